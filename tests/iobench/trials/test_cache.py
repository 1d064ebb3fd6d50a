"""The page cache is prepared and judged for each epoch of a loop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, NamedTuple

import psutil
import pytest

from iobench.clock import VirtualClock
from iobench.data.data_summary import DataSummary
from iobench.machine import page_cache
from iobench.machine.coldness import IN_MEMORY, NOT_PREPARED
from iobench.machine.mounts import file_system
from iobench.results.trial import FIRST_EPOCH_COLD, Location
from iobench.trials import epoch_cache as cache_module
from iobench.trials.epoch_cache import (
    EpochCache,
    RankCacheEpoch,
    SharedCache,
    physical_bytes,
    shared_epochs,
)
from iobench.trials.loader_grid import LoaderTrial
from tests.iobench.trials.fakes import PARAMS

BYTES, SAMPLES = 1_000_000, 10
TRIAL = LoaderTrial.model_validate({**PARAMS, "loader": "raw"})
REMOTE = Location("s3://bucket/out", "shards")


class Memory:
    """A page cache of one file, with the bytes that came from storage so far."""

    def __init__(self) -> None:
        self.resident, self.physical = 1.0, 0
        self.done: list[str] = []

    def evict(self, paths: object, drop: str = "when-needed") -> None:
        """Evict the whole file."""
        self.done.append(f"evict {drop}")
        self.resident = 0.0

    def warm(self, paths: object) -> None:
        """Read the whole file."""
        self.done.append("warm")
        self.read()

    def read(self, share: float = 1.0) -> None:
        """Read a share of the file as a loader would."""
        self.physical += int(BYTES * max(0.0, share - self.resident))
        self.resident = max(share, self.resident)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Return a simulated page cache, which replaces the real one."""
    fake_memory = Memory()
    monkeypatch.setattr(page_cache, "evict", fake_memory.evict)
    monkeypatch.setattr(page_cache, "warm", fake_memory.warm)
    monkeypatch.setattr(page_cache, "residency", lambda paths: fake_memory.resident)
    monkeypatch.setattr(cache_module, "physical_bytes", lambda: fake_memory.physical)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    return fake_memory


def cache(
    tmp_path: Path,
    requested: str,
    *,
    every: bool = True,
    trial: LoaderTrial = TRIAL,
    location: Location | None = None,
) -> EpochCache:
    """Return the cache of epochs over a file of ten samples, or over a remote location."""
    (tmp_path / "shard").write_bytes(bytes(BYTES))
    files = () if location else (tmp_path / "shard",)
    location = location or Location(str(tmp_path), "shards")
    data = DataSummary(SAMPLES, BYTES, 2, files)
    return EpochCache(trial, requested, location, data, before_every_epoch=every)


def epochs(of: EpochCache, memory: Memory, count: int = 3) -> list[tuple[str, str, float | None]]:
    """Return the requested state, the label and the share from storage of each epoch."""
    labels = []
    for _ in range(count):
        of.prepare()
        memory.read()
        cold = of.judge_epoch(SAMPLES)
        assert cold is not None
        labels.append((cold.asked, cold.label, cold.physical_ratio))
    return labels


def label(of: EpochCache) -> str:
    """Return the label of all epochs so far."""
    verdict = of.verdict()
    assert verdict is not None
    return verdict.label


@pytest.mark.parametrize(
    ("read", "samples", "expected"),
    [(1.0, 10, ("cold", 1.0)), (0.5, 10, ("warm", 0.5)), (0.5, 5, ("cold", 1.0))],
)
def test_cold_is_what_came_from_storage(
    tmp_path: Path, memory: Memory, read: float, samples: int, expected: tuple[str, float]
) -> None:
    """Physical bytes are compared with those of the samples that were read."""
    of = cache(tmp_path, "cold")
    of.prepare()
    memory.read(read)
    cold = of.judge_epoch(samples)
    assert cold is not None
    assert (cold.label, cold.physical_ratio) == expected
    assert cold.resident_before == 0.0


def test_code_is_not_data(tmp_path: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that are read from storage do not count unless the data exceed the memory."""
    for requested, ratio in (("cold", 1.0), ("warm", 0.0)):
        of = cache(tmp_path, requested)
        of.prepare()
        memory.read()
        memory.physical += 50 * BYTES
        cold = of.judge_epoch(SAMPLES)
        assert cold is not None
        assert cold.physical_ratio == ratio
    monkeypatch.setattr(cache_module, "memory_bytes", lambda: BYTES)
    of = cache(tmp_path, "cold")
    of.prepare()
    memory.physical += 3 * BYTES
    cold = of.judge_epoch(3 * SAMPLES)
    assert cold is not None
    assert cold.physical_ratio == 1.0


def test_loops_in_other_processes_tell_their_bytes(tmp_path: Path, memory: Memory) -> None:
    """The bytes of all ranks are added, and the sum is unknown if one is."""
    of = cache(tmp_path, "cold")
    of.prepare()
    memory.resident = 1.0
    half = BYTES // 2
    colds = [of.judge_epoch(10, counts) for counts in ([half, half], [half], [1, None])]
    assert [cold and cold.physical_ratio for cold in colds] == [1.0, 0.5, None]
    assert [cold and cold.label for cold in colds][:2] == ["cold", "warm"]


@pytest.mark.parametrize(("access", "resident"), [("direct", None), ("file", True)])
def test_a_store_is_left_alone(
    tmp_path: Path, memory: Memory, access: str, resident: bool | None
) -> None:
    """The cache of a store is unknown; a copy of its data on a disk may stay in memory."""
    trial = TRIAL.model_copy(update={"access": access})
    of = cache(tmp_path, "store", trial=trial, location=REMOTE)
    assert epochs(of, memory, 2) == [("store", "server cache unknown", None)] * 2
    verdict = of.verdict()
    assert verdict is not None
    assert (verdict.label, verdict.cache_resident) == ("server cache unknown", resident)
    assert (memory.done, of.evicts) == ([], False)


def test_every_epoch_begins_cold(tmp_path: Path, memory: Memory) -> None:
    """Data are evicted before each epoch as requested, and only that epoch's bytes count."""
    of = cache(tmp_path, "cold", trial=TRIAL.model_copy(update={"drop_caches": "always"}))
    assert epochs(of, memory) == [("cold", "cold", 1.0)] * 3
    assert memory.done == ["evict always"] * 3
    assert of.evicts
    assert label(of) == "cold"


@pytest.mark.parametrize(
    ("mapped", "must_end"), [(0.0, False), (0.01, False), (0.02, True), (None, True)]
)
def test_workers_that_have_mapped_files_must_end(
    tmp_path: Path,
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    mapped: float | None,
    must_end: bool,
) -> None:
    """``prepare`` requires it if more than 1 % of the pages stayed, or if that is unknown."""
    monkeypatch.setattr(page_cache, "residency", lambda paths: mapped)
    assert cache(tmp_path, "cold").prepare() == must_end
    assert not cache(tmp_path, "warm").prepare()
    assert not cache(tmp_path, "store", location=REMOTE).prepare()
    first_alone = cache(tmp_path, "cold", every=False)
    assert not first_alone.prepare()


def test_epochs_of_ranks_are_judged_together(tmp_path: Path, memory: Memory) -> None:
    """The residency is that which rank 0 has seen, and bytes are those of all ranks."""
    of = cache(tmp_path, "cold")
    ranks = [
        [RankCacheEpoch(BYTES // 2, 0.0, 1.0), RankCacheEpoch(0, 1.0, 1.0)],
        [RankCacheEpoch(BYTES // 2, None, None), RankCacheEpoch(0, None, None)],
    ]
    of.judge_shared_epochs(shared_epochs(ranks, [SAMPLES, SAMPLES]))
    judgements = [(cold.label, cold.resident_before) for cold in of.judged]
    assert judgements == [("cold", 0.0), ("warm", 1.0)]


def test_the_copy_of_a_store_is_left_in_the_cache(tmp_path: Path, memory: Memory) -> None:
    """With access ``file``, ranks and a single device read the copy in the same state."""
    path = tmp_path / "shard"
    path.write_bytes(bytes(BYTES))
    data = DataSummary(SAMPLES, BYTES, 2, (path,))
    trial = TRIAL.model_copy(update={"access": "file"})
    verdicts = []
    for location in (REMOTE, Location(str(tmp_path), "shards")):
        of = EpochCache(trial, "store", location, data, before_every_epoch=True)
        of.prepare()
        verdicts.append(of.judge_trial(SAMPLES))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0] is not None
    assert verdicts[0].label == "server cache unknown"
    assert memory.done == []


class Turns:
    """A barrier that notes each wait. A wait takes some seconds of a clock."""

    def __init__(self, done: list[str], clock: VirtualClock, waits_s: Sequence[float] = ()) -> None:
        self._done, self._clock = done, clock
        self._waits_s = list(waits_s)

    def wait(self) -> None:
        """Note the wait, and return after its time; after no time if there is none left."""
        self._done.append("wait")
        self._clock.sleep(self._waits_s.pop(0) if self._waits_s else 0.0)


def test_rank_0_prepares_the_cache_while_the_others_wait(tmp_path: Path, memory: Memory) -> None:
    """Each rank counts its own bytes, and rank 0 adds the residency."""
    clock = VirtualClock()
    turns = Turns(memory.done, clock)
    shared = [SharedCache(cache(tmp_path, "cold"), turns, rank, clock) for rank in range(2)]
    for shared_cache in shared:
        memory.done.clear()
        shared_cache.prepare()
        evictions = ["evict when-needed"] if shared_cache is shared[0] else []
        assert memory.done == ["wait", *evictions, "wait", "wait"]
    for shared_cache in shared:
        memory.read(0.5)
        shared_cache.end_epoch()
    first, second = (shared_cache.epochs for shared_cache in shared)
    assert first == [RankCacheEpoch(BYTES // 2, resident_before=0.0, resident_after=0.5)]
    assert second == [RankCacheEpoch(BYTES // 2, resident_before=None, resident_after=None)]


def test_every_rank_knows_the_wait_for_other_hosts(tmp_path: Path, memory: Memory) -> None:
    """The time in which rank 0 prepares the cache is no part of it, and it comes once."""
    first_clock, second_clock = VirtualClock(), VirtualClock()

    def begin() -> float:
        first_clock.sleep(40.0)
        return 40.0

    of = cache(tmp_path, "cold")
    first = SharedCache(of, Turns([], first_clock, [3.0]), 0, first_clock, begin)
    second = SharedCache(of, Turns([], second_clock, [1.0, 7.0, 40.0]), 1, second_clock)
    for shared_cache in (first, second):
        assert shared_cache.prepare() == 40.0
        shared_cache.end_epoch()
        assert shared_cache.prepare() == 0.0


def test_the_first_alone_is_evicted(tmp_path: Path, memory: Memory) -> None:
    """Later epochs find the pages of the first one, unless these do not stay."""
    of = cache(tmp_path, "cold", every=False)
    assert epochs(of, memory) == [("cold", "cold", 1.0), *[(NOT_PREPARED, "warm", 0.0)] * 2]
    assert memory.done == ["evict when-needed"]
    assert not of.evicts
    verdict = of.verdict()
    assert verdict is not None
    assert verdict.label == FIRST_EPOCH_COLD
    assert verdict.physical_ratio == pytest.approx(1 / 3)
    of = cache(tmp_path, "cold", every=False)
    for _ in range(2):
        epochs(of, memory, 1)
        memory.resident = 0.0
    assert label(of) == "cold"


def test_warm_epochs_are_filled_as_they_are_evicted(tmp_path: Path, memory: Memory) -> None:
    """Pages are read before each epoch or before the first; an epoch that lost pages says so."""
    assert epochs(cache(tmp_path, "warm"), memory) == [("warm", "warm", 0.0)] * 3
    assert memory.done == ["warm"] * 3
    of = cache(tmp_path, "warm", every=False)
    epochs(of, memory, 1)
    assert memory.done == ["warm"] * 4
    memory.resident = 0.4
    assert epochs(of, memory, 1) == [("warm", "warm", 0.6)]
    verdict = of.verdict()
    assert verdict is not None
    assert verdict.why.startswith("epoch 2 of 2: only 40 % of the pages")


def test_a_trial_that_ends_in_an_epoch_is_judged_whole(tmp_path: Path, memory: Memory) -> None:
    """The rest of a trial is judged like an epoch."""
    of = cache(tmp_path, "cold", every=False)
    epochs(of, memory, 1)
    of.prepare()
    colds = [of.judge_trial(SAMPLES), of.judge_trial(2 * SAMPLES)]
    assert [cold and cold.label for cold in colds] == ["cold", FIRST_EPOCH_COLD]


def test_a_trial_without_data_has_no_verdict() -> None:
    """A trial without data prepares nothing and has no label."""
    of = EpochCache(TRIAL, "warm", None, None, before_every_epoch=True)
    of.prepare()
    assert (of.judge_trial(10), of.evicts) == (None, False)


def test_epochs_of_a_real_file(tmp_path: Path) -> None:
    """By the kernel's counts, every epoch or the first one alone comes from storage."""
    path = tmp_path / "shard"
    path.write_bytes(os.urandom(4 * 2**20))
    if file_system(tmp_path) in IN_MEMORY or page_cache.residency([path]) is None:
        pytest.skip("temporary files have no page cache that can be seen")
    data = DataSummary(SAMPLES, path.stat().st_size, 2, (path,))
    labels = {}
    for every in (True, False):
        location = Location(str(tmp_path), "shards")
        of = EpochCache(TRIAL, "cold", location, data, before_every_epoch=every)
        colds = []
        for _ in range(2):
            of.prepare()
            path.read_bytes()
            colds.append(of.judge_epoch(SAMPLES))
        if not (colds[0] and colds[0].physical_ratio):
            pytest.skip("physical bytes are not counted here")
        labels[every] = [cold and cold.label for cold in colds], label(of)
    assert labels == {
        True: (["cold", "cold"], "cold"),
        False: (["cold", "warm"], FIRST_EPOCH_COLD),
    }


class Worker(NamedTuple):
    """A process that has read this number of bytes, or has ended if the number is 0."""

    read: int
    error: Exception | None = None

    def io_counters(self) -> SimpleNamespace:
        """Return the counters of the process as psutil does."""
        if self.error is not None:
            raise self.error
        if not self.read:
            raise psutil.NoSuchProcess(1)
        return SimpleNamespace(read_bytes=self.read)


class Parent(Worker):
    """A process whose workers differ at each look."""

    looks: ClassVar[list[list[Worker]]]

    def children(self, recursive: bool) -> list[Worker]:
        """Return the workers of the next look."""
        assert recursive
        return self.looks.pop(0)


def test_living_workers_count_beside_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that ends meanwhile is counted once, by its parent."""
    there = [Worker(20), Worker(3)]
    Parent.looks = [[Worker(0)], there, [Worker(20)], there, there]
    monkeypatch.setattr(psutil, "Process", lambda: Parent(100))
    assert physical_bytes() == 123
    assert Parent.looks == []


@pytest.mark.parametrize("error", [psutil.AccessDenied(), RuntimeError("no fields"), OSError()])
def test_bytes_that_may_not_be_read_are_unknown(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The bytes are unknown if the kernel refuses or counts nothing."""
    Parent.looks = [[]]
    monkeypatch.setattr(psutil, "Process", lambda: Parent(100, error))
    assert physical_bytes() is None
