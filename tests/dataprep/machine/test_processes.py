"""Whether the process that wrote a file is known to have ended."""

from __future__ import annotations

import os

from dataprep.machine.processes import ProcessIdentity, this_process


def test_a_process_that_runs_has_not_ended() -> None:
    """Neither where its start is known nor where the system did not say it."""
    process = this_process()
    assert not process.has_ended()
    assert not process._replace(started="").has_ended()


def test_a_number_that_another_process_has_now() -> None:
    """The process of that number that started at another time has ended."""
    assert ProcessIdentity(this_process().machine, os.getpid(), "1").has_ended()
