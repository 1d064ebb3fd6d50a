"""The errors of measuring, as one tree below ``DataprepError``.

::

    DataprepError
    └── IobenchError
        ├── Unavailable    RuntimeError   what a trial needs is not on this machine: skipped
        ├── TrialFailed    RuntimeError   a trial ran and has no figure
        ├── HostLost       RuntimeError   host 0 of several gives no sign any more
        ├── RequestFailed  OSError        an object store refused (probes.object_store.clients)
        ├── NothingRan     RuntimeError   all trials of the config were skipped, or there are none
        ├── NotApproved    RuntimeError   the cost of the run was not approved
        ├── RunConflict    RuntimeError   the run directory holds another run
        ├── ResultError    ValueError     no run, or none that this version can read
        ├── NotComparable  ValueError     saved runs that share nothing, or unlike machines
        └── NoAdvice       ValueError     a run lacks what a config for shards needs

A wrong config is dataprep's ``ConfigError``.
"""

from __future__ import annotations

from dataprep.errors import DataprepError


class IobenchError(DataprepError):
    """Root of the tree. ``exit_code`` is the exit code of the command."""


class Unavailable(IobenchError, RuntimeError):
    """Something that a trial needs is not on this machine; the message says how to get it."""


class TrialFailed(IobenchError, RuntimeError):
    """A trial ran, or began to, and has no figure."""


class HostLost(IobenchError, RuntimeError):
    """Host 0, which leads the run of several hosts, gives no sign any more."""


class NothingRan(IobenchError, RuntimeError):
    """All trials of the config were skipped, or it asks for none."""

    exit_code = 2


class NotApproved(IobenchError, RuntimeError):
    """The run may cost more than its limit, and that was not approved."""

    exit_code = 2


class RunConflict(IobenchError, RuntimeError):
    """The run directory holds another run: of this config, of another, of another machine."""

    exit_code = 2


class ResultError(IobenchError, ValueError):
    """There is no run, or none that this version can read."""

    exit_code = 2


class NotComparable(IobenchError, ValueError):
    """Saved runs have no point in common, or are of unlike machines."""

    exit_code = 2


class NoAdvice(IobenchError, ValueError):
    """A run has no such loop, or lacks what a config for shards needs."""

    exit_code = 2
