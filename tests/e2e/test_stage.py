"""``dataprep stage`` copies an output, and continues after a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import dataprep
from tests import commandline
from tests.e2e.conftest import Gate


@pytest.mark.process
def test_a_copy_that_is_killed_goes_on(reference_folder: Path, tmp_path: Path, gate: Gate) -> None:
    """A copy that was killed at its sixth shard continues where it stopped."""
    folder = tmp_path / "host"
    arguments = ("stage", str(reference_folder), "--format", "recordio")
    commandline.dataprep(
        *arguments,
        f"gated://{folder}",
        env=gate.kills_at("recordio/", 6),
        code=-signal.SIGKILL,
    )
    done = commandline.dataprep(*arguments, folder, "--json")
    (staged,) = done.one_object["splits"]
    assert 0 < staged["copied_bytes"] < staged["bytes"]
    assert dataprep.verify(folder, depth="deep")[0].ok
    assert not [*Path(folder).glob(".partial*")]


def test_the_command(reference_folder: Path, tmp_path: Path) -> None:
    """The output has the number of files and the speed. A wrong request is one line and code 2."""
    folder = tmp_path / "host"
    done = commandline.dataprep("stage", str(reference_folder), folder, "--host", "1/2", code=0)
    assert done.out.startswith("train: share 1/2, ")
    assert " MB/s" in done.out
    wrong = commandline.dataprep("stage", str(reference_folder), folder, "--host", "2/2")
    assert (wrong.code, len(wrong.complaints)) == (2, 1)
    assert "--host '2/2': write I/N" in wrong.err
