"""It is known whether the process that wrote a file has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataprep.machine.processes import ProcessIdentity, this_process


def test_a_process_that_runs_has_not_ended() -> None:
    """A running process has not ended, with its start time or without."""
    process = this_process()
    assert not process.has_ended()
    assert not process._replace(started="").has_ended()


def test_a_number_that_another_process_has_now() -> None:
    """If another process has the number now, the start time shows that the first has ended."""
    assert ProcessIdentity(this_process().machine, os.getpid(), "1").has_ended()


def test_a_program_whose_name_is_cut_within_a_character() -> None:
    """A name that the kernel cuts within a character, so that it is not UTF-8, is no error."""
    name_file = Path("/proc/self/comm")
    name = name_file.read_bytes()
    process = this_process()
    name_file.write_bytes("ääääääää".encode())
    try:
        with pytest.raises(UnicodeDecodeError):
            name_file.read_text("utf-8")
        assert not process.has_ended()
    finally:
        name_file.write_bytes(name)
