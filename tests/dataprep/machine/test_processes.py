"""It is known whether the process that wrote a file has ended."""

from __future__ import annotations

import os

from dataprep.machine.processes import ProcessIdentity, this_process


def test_a_process_that_runs_has_not_ended() -> None:
    """A running process has not ended, with its start time or without."""
    process = this_process()
    assert not process.has_ended()
    assert not process._replace(started="").has_ended()


def test_a_number_that_another_process_has_now() -> None:
    """If another process has the number now, the start time shows that the first has ended."""
    assert ProcessIdentity(this_process().machine, os.getpid(), "1").has_ended()
