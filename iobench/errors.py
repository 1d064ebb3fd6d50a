"""The errors of iobench, as a tree below ``DataprepError``.

::

    DataprepError
    └── IobenchError
        ├── Unavailable    RuntimeError   a requirement of a trial is missing here: it is skipped
        ├── TrialFailed    RuntimeError   a trial ran and has no result
        ├── HostLost       RuntimeError   host 0 of a run on several hosts does not answer
        ├── RequestFailed  OSError        an object store refused (probes.object_store.clients)
        ├── NothingRan     RuntimeError   all trials were skipped, or the config has none
        ├── NotApproved    RuntimeError   the cost of the run was not approved
        ├── RunConflict    RuntimeError   the run directory holds another run
        ├── ResultError    ValueError     there is no run that this version can read
        ├── NotComparable  ValueError     saved runs have no trial in common, or machines differ
        └── NoAdvice       ValueError     a run has no figures for advice

A wrong config raises dataprep's ``ConfigError``.
"""

from __future__ import annotations

from dataprep.errors import DataprepError


class IobenchError(DataprepError):
    """The base class of all errors of iobench.

    ``exit_code`` is the exit code of the command that raises it.
    """


class Unavailable(IobenchError, RuntimeError):
    """A requirement of a trial is missing on this machine. The message says how to get it."""


class TrialFailed(IobenchError, RuntimeError):
    """A trial started, but it has no result."""


class HostLost(IobenchError, RuntimeError):
    """Host 0, which leads a run on several hosts, does not answer any more."""


class NothingRan(IobenchError, RuntimeError):
    """All trials of the config were skipped, or it has no trials."""

    exit_code = 2


class NotApproved(IobenchError, RuntimeError):
    """The run may cost more than its limit, and nobody approved it."""

    exit_code = 2


class RunConflict(IobenchError, RuntimeError):
    """The folder holds a run that cannot be continued or must not be replaced."""

    exit_code = 2


class ResultError(IobenchError, ValueError):
    """There is no run, or this version cannot read it."""

    exit_code = 2


class NotComparable(IobenchError, ValueError):
    """Saved runs have no trial in common, or their machines or settings differ too much."""

    exit_code = 2


class NoAdvice(IobenchError, ValueError):
    """A run has no training loop of the name, or too few figures for advice."""

    exit_code = 2
