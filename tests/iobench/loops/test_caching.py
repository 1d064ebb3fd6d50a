"""Cold or warm, for the files that a loop reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.loops import caching
from iobench.loops.caching import prepared
from iobench.machine import page_cache
from iobench.stored import Stored
from iobench.trial import Place

pytestmark = pytest.mark.slow

BYTES = 1_000_000


@pytest.fixture
def data(tmp_path: Path) -> Stored:
    """10 samples in one file."""
    path = tmp_path / "shard"
    path.write_bytes(bytes(BYTES))
    return Stored(samples=10, bytes=BYTES, classes=2, files=(path,))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Physical bytes as the kernel will tell them, the next one each time."""
    told: list[int] = []
    monkeypatch.setattr(caching, "physical_bytes", lambda: told.pop(0))
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    return told


@pytest.fixture
def resident(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to the page cache: nothing is resident after an eviction, then all of it."""
    done: list[str] = []
    asked: list[int] = []

    def residency(paths: object) -> float:
        asked.append(1)
        return float(done[-1] == "warm" or len(asked) > 1)

    monkeypatch.setattr(page_cache, "evict", lambda paths, drop: done.append("evict"))
    monkeypatch.setattr(page_cache, "warm", lambda paths: done.append("warm"))
    monkeypatch.setattr(page_cache, "residency", residency)
    return done


def local(data: Stored) -> Place:
    """Where the file lies."""
    return Place(str(data.files[0].parent), "shards")


def test_all_bytes_from_storage_are_cold(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Evicted before, read once: physical bytes are the samples' bytes."""
    counted += [5000, 5000 + BYTES]
    cold = prepared("cold", local(data), data).judged("raw", samples=10)
    assert resident == ["evict"]
    assert (cold.label, cold.resident_before, cold.physical_ratio) == ("cold", 0.0, 1.0)


def test_bytes_that_never_came_from_storage_are_warm(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Half of them shown is not cold, whatever was asked."""
    counted += [0, BYTES // 2]
    cold = prepared("cold", local(data), data).judged("raw", samples=10)
    assert (cold.label, cold.physical_ratio) == ("warm", 0.5)
    assert "50 %" in cold.why


def test_physical_bytes_are_of_the_samples_that_were_read(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """A trial that stops halfway owes half of the bytes."""
    counted += [0, BYTES // 2]
    assert prepared("cold", local(data), data).judged("raw", samples=5).label == "cold"


def test_code_is_not_data(data: Stored, counted: list[int], resident: list[str]) -> None:
    """The kernel counts what libraries are read from storage; the files' own pages do not grow."""
    counted += [0, 50 * BYTES]
    assert prepared("cold", local(data), data).judged("raw", samples=10).physical_ratio == 1.0
    resident.clear()
    counted += [0, 50 * BYTES]
    warm = prepared("warm", local(data), data).judged("raw", samples=10)
    assert (warm.physical_ratio, warm.why) == (0.0, "")


def test_more_data_than_memory_is_counted_as_the_kernel_does(
    data: Stored, counted: list[int], resident: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read has left the page cache again by the end."""
    monkeypatch.setattr(caching, "memory_bytes", lambda: BYTES)
    counted += [0, 3 * BYTES]
    assert prepared("cold", local(data), data).judged("raw", samples=30).physical_ratio == 1.0


def test_warm_files_are_read_before(data: Stored, counted: list[int], resident: list[str]) -> None:
    """And labelled warm."""
    counted += [0, 0]
    assert prepared("warm", local(data), data).judged("raw", samples=10).label == "warm"
    assert resident == ["warm"]


def test_a_store_is_left_alone(data: Stored, counted: list[int], resident: list[str]) -> None:
    """Its cache cannot be seen, and is said so."""
    counted += [0]
    place = Place("s3://bucket/prefix", "shards")
    remote = Stored(10, BYTES, 2, ())
    cold = prepared("store", place, remote).judged("raw", samples=10)
    assert cold.label == "server cache unknown"
    assert resident == []


def test_loops_in_other_processes_tell_their_bytes(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Those of all ranks together are held against the samples of all; what is unknown stays so."""
    counted += [0]
    cache = prepared("cold", local(data), data)
    assert cache.judged_by(BYTES, "raw", samples=10).label == "cold"
    half = cache.judged_by(BYTES // 2, "raw", samples=10)
    assert (half.label, half.physical_ratio) == ("warm", 0.5)
    assert cache.judged_by(None, "raw", samples=10).physical_ratio is None


def test_a_copy_of_remote_data_may_stay_in_memory(data: Stored, counted: list[int]) -> None:
    """Later epochs of it come from a disk, or from the page cache above it."""
    counted += [0, 0]
    remote = Place("s3://bucket/out", "shards")
    assert prepared("warm", remote, data).judged("raw", 10).cache_resident is None
    copied = prepared("warm", remote, data, copied=True).judged("raw", 10)
    assert (copied.label, copied.cache_resident) == ("server cache unknown", True)
