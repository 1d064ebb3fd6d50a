"""The page cache from epoch to epoch, its files and counters replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.loops import caching, epoch_cache
from iobench.loops.epoch_cache import EpochCache, epoch_cache_for
from iobench.machine import page_cache
from iobench.machine.coldness import FIRST_EPOCH_COLD, IN_MEMORY, LEFT
from iobench.machine.mounts import file_system
from iobench.stored import Stored
from iobench.trial import Params, Place

BYTES, SAMPLES = 1_000_000, 10
PARAMS = {"loader": "raw"}


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
    for module in (caching, epoch_cache):
        monkeypatch.setattr(module, "physical_bytes", lambda: found.physical)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    return found


def cache(
    tmp_path: Path, asked: str, *, every: bool, remote: bool = False, params: Params = PARAMS
) -> EpochCache:
    """Over one file of ten samples."""
    (tmp_path / "shard").write_bytes(bytes(BYTES))
    place = Place("s3://bucket/out" if remote else str(tmp_path), "shards")
    files = () if remote else (tmp_path / "shard",)
    found = epoch_cache_for(params, asked, place, Stored(SAMPLES, BYTES, 2, files), every=every)
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
    of = cache(tmp_path, "cold", every=True, params={**PARAMS, "drop_caches": "always"})
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
    assert epoch_cache_for({"access": "file"}, "warm", None, None, every=True) is None


def test_epochs_of_a_real_file(tmp_path: Path) -> None:
    """The kernel's own counts: every epoch from storage, or the first alone."""
    path = tmp_path / "shard"
    path.write_bytes(os.urandom(4 * 2**20))
    if file_system(tmp_path) in IN_MEMORY or page_cache.residency([path]) is None:
        pytest.skip("temporary files have no page cache that can be seen")
    data = Stored(SAMPLES, path.stat().st_size, 2, (path,))
    labels = {}
    for every in (True, False):
        of = EpochCache(PARAMS, "cold", Place(str(tmp_path), "shards"), data, every=every)
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
