"""The page cache around the epochs of a loop."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import psutil
import pytest

from iobench.loops import cache as cache_module
from iobench.loops.cache import EpochCache, epoch_cache_for, physical_bytes
from iobench.loops.loader_grid import LoaderTrial, loader_trial
from iobench.machine import page_cache
from iobench.machine.coldness import FIRST_EPOCH_COLD, IN_MEMORY, LEFT
from iobench.machine.mounts import file_system
from iobench.stored import Stored
from iobench.trial import Place
from tests.iobench.loops.fakes import PARAMS as TOLD

BYTES = 1_000_000
TRIAL = loader_trial({**TOLD, "loader": "raw"})


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
    monkeypatch.setattr(cache_module, "physical_bytes", lambda: told.pop(0))
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


def prepared(asked: str, place: Place, data: Stored, trial: LoaderTrial = TRIAL) -> EpochCache:
    """The page cache before a loop of one epoch."""
    found = EpochCache(trial, asked, place, data, every=True)
    found.before()
    return found


def local(data: Stored) -> Place:
    """Where the file lies."""
    return Place(str(data.files[0].parent), "shards")


def test_all_bytes_from_storage_are_cold(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Evicted before, read once: physical bytes are the samples' bytes."""
    counted += [5000, 5000 + BYTES]
    cold = prepared("cold", local(data), data).after(10)
    assert resident == ["evict"]
    assert (cold.label, cold.resident_before, cold.physical_ratio) == ("cold", 0.0, 1.0)


def test_bytes_that_never_came_from_storage_are_warm(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Half of them shown is not cold, whatever was asked."""
    counted += [0, BYTES // 2]
    cold = prepared("cold", local(data), data).after(10)
    assert (cold.label, cold.physical_ratio) == ("warm", 0.5)
    assert "50 %" in cold.why


def test_physical_bytes_are_of_the_samples_that_were_read(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """A trial that stops halfway owes half of the bytes."""
    counted += [0, BYTES // 2]
    assert prepared("cold", local(data), data).after(5).label == "cold"


def test_code_is_not_data(data: Stored, counted: list[int], resident: list[str]) -> None:
    """The kernel counts what libraries are read from storage; the files' own pages do not grow."""
    counted += [0, 50 * BYTES]
    assert prepared("cold", local(data), data).after(10).physical_ratio == 1.0
    resident.clear()
    counted += [0, 50 * BYTES]
    warm = prepared("warm", local(data), data).after(10)
    assert (warm.physical_ratio, warm.why) == (0.0, "")


def test_more_data_than_memory_is_counted_as_the_kernel_does(
    data: Stored, counted: list[int], resident: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read has left the page cache again by the end."""
    monkeypatch.setattr(cache_module, "memory_bytes", lambda: BYTES)
    counted += [0, 3 * BYTES]
    assert prepared("cold", local(data), data).after(30).physical_ratio == 1.0


def test_warm_files_are_read_before(data: Stored, counted: list[int], resident: list[str]) -> None:
    """And labelled warm."""
    counted += [0, 0]
    assert prepared("warm", local(data), data).after(10).label == "warm"
    assert resident == ["warm"]


def test_a_store_is_left_alone(data: Stored, counted: list[int], resident: list[str]) -> None:
    """Its cache cannot be seen, and is said so."""
    counted += [0]
    place = Place("s3://bucket/prefix", "shards")
    remote = Stored(10, BYTES, 2, ())
    cold = prepared("store", place, remote).after(10)
    assert cold.label == "server cache unknown"
    assert resident == []


def test_loops_in_other_processes_tell_their_bytes(
    data: Stored, counted: list[int], resident: list[str]
) -> None:
    """Those of all ranks together are held against the samples of all; what is unknown stays so."""
    counted += [0]
    cache = prepared("cold", local(data), data)
    assert cache.judge(10, [BYTES]).label == "cold"
    half = cache.judge(10, [BYTES // 2])
    assert (half.label, half.physical_ratio) == ("warm", 0.5)
    assert cache.judge(10, [None]).physical_ratio is None


def test_a_copy_of_remote_data_may_stay_in_memory(data: Stored, counted: list[int]) -> None:
    """Later epochs of it come from a disk, or from the page cache above it."""
    counted += [0, 0]
    remote = Place("s3://bucket/out", "shards")
    assert prepared("warm", remote, data).after(10).cache_resident is None
    copied = prepared("warm", remote, data, replace(TRIAL, access="file")).after(10)
    assert (copied.label, copied.cache_resident) == ("server cache unknown", True)


SAMPLES = 10


class Memory:
    """A page cache of one file, and what storage gave so far."""

    def __init__(self) -> None:
        self.resident, self.physical = 1.0, 0
        self.done: list[str] = []

    def evict(self, paths: object, drop: str = "when-needed") -> None:
        """All of it."""
        self.done.append(f"evict {drop}")
        self.resident = 0.0

    def warm(self, paths: object) -> None:
        """All of it, which storage gives."""
        self.done.append("warm")
        self._fill()

    def read(self) -> None:
        """By a loader."""
        self._fill()

    def _fill(self) -> None:
        self.physical += int(BYTES * (1 - self.resident))
        self.resident = 1.0


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Every way to it replaced."""
    found = Memory()
    monkeypatch.setattr(page_cache, "evict", found.evict)
    monkeypatch.setattr(page_cache, "warm", found.warm)
    monkeypatch.setattr(page_cache, "residency", lambda paths: found.resident)
    monkeypatch.setattr(cache_module, "physical_bytes", lambda: found.physical)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    return found


def cache(
    tmp_path: Path, asked: str, *, every: bool, remote: bool = False, trial: LoaderTrial = TRIAL
) -> EpochCache:
    """Over one file of ten samples."""
    (tmp_path / "shard").write_bytes(bytes(BYTES))
    place = Place("s3://bucket/out" if remote else str(tmp_path), "shards")
    files = () if remote else (tmp_path / "shard",)
    found = epoch_cache_for(trial, asked, place, Stored(SAMPLES, BYTES, 2, files), every=every)
    assert found is not None
    return found


def epochs(of: EpochCache, memory: Memory, count: int = 3) -> list[tuple[str, str, float | None]]:
    """What each is called, what was asked of it, and which share came from storage."""
    found = []
    for _ in range(count):
        of.before()
        memory.read()
        cold = of.after(SAMPLES)
        found.append((cold.asked, cold.label, cold.physical_ratio))
    return found


def test_every_epoch_begins_cold(tmp_path: Path, memory: Memory) -> None:
    """Evicted before each, with the bytes of that epoch alone."""
    of = cache(tmp_path, "cold", every=True)
    assert epochs(of, memory) == [("cold", "cold", 1.0)] * 3
    assert memory.done == ["evict when-needed"] * 3
    assert of.restarts
    assert of.whole().label == "cold"


def test_the_first_alone_is_evicted(tmp_path: Path, memory: Memory) -> None:
    """Later ones find what it left behind."""
    of = cache(tmp_path, "cold", every=False)
    assert epochs(of, memory) == [("cold", "cold", 1.0), *[(LEFT, "warm", 0.0)] * 2]
    assert memory.done == ["evict when-needed"]
    assert not of.restarts
    whole = of.whole()
    assert whole.label == FIRST_EPOCH_COLD
    assert whole.physical_ratio == pytest.approx(1 / 3)


def test_what_does_not_stay_is_cold_again(tmp_path: Path, memory: Memory) -> None:
    """Data that no memory holds are cold without an eviction."""
    of = cache(tmp_path, "cold", every=False)
    found = []
    for _ in range(2):
        of.before()
        memory.read()
        found.append(of.after(SAMPLES).label)
        memory.resident = 0.0
    assert (found, of.whole().label) == (["cold", "cold"], "cold")


def test_warm_epochs_are_filled_as_they_are_evicted(tmp_path: Path, memory: Memory) -> None:
    """Before each, or before the first; one that lost its pages is not quite warm."""
    assert epochs(cache(tmp_path, "warm", every=True), memory) == [("warm", "warm", 0.0)] * 3
    assert memory.done == ["warm"] * 3
    of = cache(tmp_path, "warm", every=False)
    epochs(of, memory, 1)
    assert memory.done == ["warm"] * 4
    memory.resident = 0.4
    assert epochs(of, memory, 1) == [("warm", "warm", 0.6)]
    assert of.whole().why.startswith("epoch 2 of 2: only 40 % of the pages")


def test_a_store_is_left_alone_and_its_workers_go_on(tmp_path: Path, memory: Memory) -> None:
    """Nothing of it can be evicted here."""
    of = cache(tmp_path, "store", every=True, remote=True)
    found = epochs(of, memory, 2)
    assert found == [("store", "server cache unknown", None)] * 2
    assert (memory.done, of.restarts, of.whole().label) == ([], False, "server cache unknown")


def test_caches_of_the_machine_are_dropped_as_told(tmp_path: Path, memory: Memory) -> None:
    """By a trial's own params."""
    of = cache(tmp_path, "cold", every=True, trial=replace(TRIAL, drop_caches="always"))
    epochs(of, memory, 1)
    assert memory.done == ["evict always"]


def test_a_trial_that_ends_in_an_epoch_is_judged_whole(tmp_path: Path, memory: Memory) -> None:
    """Its rest as an epoch; without a rest nothing is added."""
    of = cache(tmp_path, "cold", every=False)
    epochs(of, memory, 1)
    of.before()
    assert of.ended(SAMPLES).label == "cold"
    assert of.ended(2 * SAMPLES).label == FIRST_EPOCH_COLD
    alone = cache(tmp_path, "cold", every=False)
    alone.before()
    memory.read()
    assert alone.ended(SAMPLES).label == "cold"


def test_a_trial_without_data_has_no_cache() -> None:
    """There is nothing to prepare."""
    assert epoch_cache_for(TRIAL, "warm", None, None, every=True) is None


def test_epochs_of_a_real_file(tmp_path: Path) -> None:
    """The kernel's own counts: every epoch from storage, or the first alone."""
    path = tmp_path / "shard"
    path.write_bytes(os.urandom(4 * 2**20))
    if file_system(tmp_path) in IN_MEMORY or page_cache.residency([path]) is None:
        pytest.skip("temporary files have no page cache that can be seen")
    data = Stored(SAMPLES, path.stat().st_size, 2, (path,))
    labels = {}
    for every in (True, False):
        of = EpochCache(TRIAL, "cold", Place(str(tmp_path), "shards"), data, every=every)
        colds = []
        for _ in range(2):
            of.before()
            path.read_bytes()
            colds.append(of.after(SAMPLES))
        if not colds[0].physical_ratio:
            pytest.skip("physical bytes are not counted here")
        labels[every] = [one.label for one in colds], of.whole().label
    assert labels[True] == (["cold", "cold"], "cold")
    assert labels[False] == (["cold", "warm"], FIRST_EPOCH_COLD)


class Worker(NamedTuple):
    """A process that has read so many bytes; one that has read none has ended."""

    read: int
    error: Exception | None = None

    def io_counters(self) -> SimpleNamespace:
        """As psutil tells them."""
        if self.error is not None:
            raise self.error
        if not self.read:
            raise psutil.NoSuchProcess(1)
        return SimpleNamespace(read_bytes=self.read)


class Parent(Worker):
    """A process whose workers are others at each look."""

    looks: ClassVar[list[list[Worker]]]

    def children(self, recursive: bool) -> list[Worker]:
        """Those of the next look."""
        assert recursive
        return self.looks.pop(0)


def test_living_workers_count_beside_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends meanwhile is counted once, by its parent: all is read again."""
    there = [Worker(20), Worker(3)]
    Parent.looks = [[Worker(0)], there, [Worker(20)], there, there]
    monkeypatch.setattr(psutil, "Process", lambda: Parent(100))
    assert physical_bytes() == 123
    assert Parent.looks == []


@pytest.mark.parametrize("error", [psutil.AccessDenied(), RuntimeError("no fields"), OSError()])
def test_what_may_not_be_read_is_not_known(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A hardened kernel refuses, or counts nothing."""
    Parent.looks = [[]]
    monkeypatch.setattr(psutil, "Process", lambda: Parent(100, error))
    assert physical_bytes() is None


def test_this_process_and_its_children() -> None:
    """The kernel's own count never falls."""
    before = physical_bytes()
    if before is None:
        pytest.skip("physical bytes are not counted here")
    assert (physical_bytes() or 0) >= before >= 0
