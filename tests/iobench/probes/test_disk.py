"""Whole trials of the disk probe on small files."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from iobench.errors import TrialFailed, Unavailable
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import residency
from iobench.probes import disk
from iobench.results.trial import Outcome
from tests.iobench.probes.conftest import FILE_BYTES, Probe, is_provable

pytestmark = pytest.mark.slow

SHM = Path("/dev/shm")


def check(outcome: Outcome) -> None:
    """Check the figures of a trial that read or wrote its whole file."""
    metrics = outcome.metrics
    assert metrics["bytes"] == FILE_BYTES
    assert metrics["operations"] == FILE_BYTES // 2**16
    assert metrics["mb_per_s"] == pytest.approx(FILE_BYTES / 1e6 / metrics["seconds"])
    assert metrics["iops"] == pytest.approx(metrics["operations"] / metrics["seconds"])
    assert 0 < metrics["latency_s_p50"] <= metrics["seconds"]
    # The quantile p99 needs 1,000 operations, and there are 64.
    assert "latency_s_p99" not in metrics


@pytest.mark.parametrize("pattern", ["sequential", "random"])
def test_a_cold_read_is_proved(disk_folder: Path, probe: Probe, pattern: str) -> None:
    """Every byte is read once from the disk."""
    outcome = probe(disk_folder, pattern=pattern)
    check(outcome)
    cold = outcome.cold
    assert cold is not None
    assert cold.asked == "cold"
    if cold.label != "cold" and not is_provable(disk_folder):
        pytest.skip(f"not provable here: {cold.why}")
    assert (cold.label, cold.why) == ("cold", "")
    assert cold.resident_before == pytest.approx(0, abs=0.01)
    assert cold.physical_ratio is None or cold.physical_ratio >= 0.95


def test_a_cold_read_that_was_answered_from_memory_is_called_warm(
    disk_folder: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If eviction has no effect, the trial is not labelled cold."""
    probe(disk_folder, cache="warm", seconds=0.01)
    if not residency([disk_folder / f"read-{FILE_BYTES}"]):
        pytest.skip("what is resident cannot be told here")
    monkeypatch.setattr("iobench.machine.page_cache.evict", lambda paths, drop_caches: None)
    cold = probe(disk_folder).cold
    assert cold is not None
    assert cold.label == "warm"
    assert "resident before" in cold.why


@pytest.mark.parametrize("pattern", ["sequential", "random"])
def test_a_warm_read_goes_round_until_the_time_is_over(
    tmp_path: Path, probe: Probe, pattern: str
) -> None:
    """A warm trial reads the file again and again from memory."""
    outcome = probe(
        tmp_path, cache="warm", pattern=pattern, seconds=0.3, file_bytes=2**17, block_bytes=4096
    )
    assert outcome.metrics["bytes"] > 2**17
    assert outcome.cold is not None
    assert outcome.cold.label == "warm"


@pytest.mark.parametrize("pattern", ["sequential", "random"])
def test_direct_trials(direct_folder: Path, probe: Probe, pattern: str) -> None:
    """Direct trials bypass the page cache; a direct write has no fsync."""
    outcome = probe(direct_folder, cache="direct", pattern=pattern)
    check(outcome)
    assert outcome.cold is not None
    assert outcome.cold.label == "direct"
    outcome = probe(direct_folder, operation="write", cache="direct", pattern=pattern)
    check(outcome)
    assert "fsync_s" not in outcome.metrics


@pytest.mark.parametrize("pattern", ["sequential", "random"])
def test_a_buffered_write_counts_until_the_disk_has_it(
    tmp_path: Path, probe: Probe, pattern: str
) -> None:
    """The final fsync counts in its time; the file is removed."""
    outcome = probe(tmp_path, operation="write", cache="buffered", pattern=pattern)
    check(outcome)
    assert 0 <= outcome.metrics["fsync_s"] <= outcome.metrics["seconds"]
    assert outcome.cold is None
    assert list(tmp_path.iterdir()) == []


def test_a_disk_in_memory(probe: Probe) -> None:
    """Direct trials are unavailable on tmpfs, and no read is cold."""
    if not SHM.is_dir() or file_system(SHM) != "tmpfs":
        pytest.skip("no /dev/shm here")
    run = secrets.token_hex(8)
    folder = disk.folder_of_run(SHM, run)
    try:
        outcome = probe(folder)
        for operation in ("read", "write"):
            with pytest.raises(Unavailable, match=r"O_DIRECT.* no device below"):
                probe(folder, cache="direct", operation=operation)
        assert [path.name for path in folder.iterdir()] == [f"read-{FILE_BYTES}"]
    finally:
        disk.clean(SHM, run)
    check(outcome)
    assert outcome.cold is not None
    assert (outcome.cold.label, outcome.cold.why) == ("warm", "tmpfs is memory")


def test_a_disk_that_fills_up_fails_and_is_left_clean(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thinly provisioned volume may accept the allocation and refuse the bytes."""
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("os.pwritev", full)
    with pytest.raises(TrialFailed, match="'here' is full"):
        probe(tmp_path, operation="write", cache="buffered")
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_shared_by_trials_and_cleaned_at_the_end(tmp_path: Path, probe: Probe) -> None:
    """The file is made once; blocks that do not divide it are left out."""
    folder = disk.folder_of_run(tmp_path, "run")
    reported: list[tuple[Any, str]] = []
    size = FILE_BYTES + 70_000
    check(probe(folder, file_bytes=size, progress=lambda *done: reported.append(done)))
    assert reported[-1] == (FILE_BYTES, "bytes")
    inodes = [path.stat().st_ino for path in folder.iterdir()]
    probe(folder, pattern="random", file_bytes=size)
    assert [path.stat().st_ino for path in folder.iterdir()] == inodes
    disk.clean(tmp_path, "run")
    assert list(tmp_path.iterdir()) == []
