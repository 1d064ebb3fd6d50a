"""Prepare the page cache before the epochs of a loop, and judge where their bytes came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import psutil

from iobench.loaders.capabilities import capabilities_of
from iobench.loops.loader_grid import LoopTrial
from iobench.machine import page_cache
from iobench.machine.coldness import (
    MAX_RESIDENT_SHARE,
    NOT_PREPARED,
    cache_resident,
    combine_epochs,
    judge_remote,
)
from iobench.machine.hardware import memory_bytes
from iobench.machine.page_cache import CacheState
from iobench.stored import Stored
from iobench.trial import Cold, Place, begin_at_once

_TRIES = 5


class Barrier(Protocol):
    """Lets several processes wait for each other."""

    def wait(self) -> None:
        """Return when all processes have called this equally often."""


class SharedCache:
    """The page cache of epochs that several ranks read together; each rank has such an object.

    Rank 0 prepares the cache before each epoch, while all others wait. Before the first epoch it
    then calls ``begin``, which may wait for other hosts (``Context.begin``).
    """

    def __init__(
        self,
        cache: EpochCache,
        barrier: Barrier,
        rank: int,
        begin: Callable[[], float] = begin_at_once,
    ) -> None:
        self._cache, self._barrier, self._rank = cache, barrier, rank
        self._begin = begin
        self._physical: int | None = None
        self._resident_before: float | None = None
        self.epochs: list[dict[str, Any]] = []
        """For each epoch: this rank's bytes from storage, and residencies if it is rank 0."""

    def before(self) -> None:
        """Wait for all ranks, and prepare the cache for an epoch."""
        self._barrier.wait()
        if self._rank == 0:
            self._cache.before()
            self._resident_before = self._cache.residency()
            if not self.epochs:
                self._begin()
        self._barrier.wait()
        self._physical = physical_bytes()

    def after(self) -> None:
        """Count what this rank has got from storage, and wait for the others."""
        physical = physical_since(self._physical)
        self._barrier.wait()
        resident_after = self._cache.residency() if self._rank == 0 else None
        self.epochs.append(
            {
                "physical_bytes": physical,
                "resident_before": self._resident_before,
                "resident_after": resident_after,
            }
        )


@dataclass(frozen=True, slots=True)
class RankEpoch:
    """An epoch that several ranks have read together.

    Attributes:
        samples: of all ranks.
        physical_bytes: the bytes that each rank got from storage; None where not counted.
        resident_before, resident_after: the share of the files in the page cache.
    """

    samples: int
    physical_bytes: Sequence[int | None]
    resident_before: float | None = None
    resident_after: float | None = None


def rank_epochs(
    ranks: Sequence[Sequence[Mapping[str, Any]]], samples: Sequence[int]
) -> list[RankEpoch]:
    """The epochs of all ranks together.

    Args:
        ranks: for each rank, the ``epochs`` of its ``SharedCache``; rank 0 first.
        samples: of all ranks, for each epoch.
    """
    return [
        RankEpoch(
            count,
            [rank["physical_bytes"] for rank in of_epoch],
            of_epoch[0]["resident_before"],
            of_epoch[0]["resident_after"],
        )
        for count, of_epoch in zip(samples, zip(*ranks, strict=True), strict=True)
    ]


class EpochCache:
    """The page cache of one trial: ``before`` and ``after`` each epoch, ``whole`` at the end.

    ``asked`` is ``cold``, ``warm`` or ``store``. The cache is prepared before each epoch if
    ``every`` is true, otherwise before the first one only. A remote place is not in the page cache
    of this machine, but a downloaded copy of it may be. A trial without ``place`` or ``data`` reads
    nothing and has no verdict.

    Attributes:
        judged: the verdict on each epoch so far.
    """

    def __init__(
        self, trial: LoopTrial, asked: str, place: Place | None, data: Stored | None, *, every: bool
    ) -> None:
        self._trial, self._asked, self._every = trial, asked, every
        self._data = data if place is not None else None
        self._is_local = place is not None and not place.is_remote
        self._state: CacheState | None = None
        self._physical: int | None = None
        self.judged: list[Cold] = []
        self._samples: list[int] = []

    @property
    def evicts(self) -> bool:
        """Whether files are evicted from the page cache before each epoch."""
        return self._every and self._is_local and self._asked == "cold" and self._data is not None

    def before(self) -> bool:
        """Prepare the cache for the next epoch, or look at it.

        No worker may be reading. Returns whether pages could not be evicted, or whether that is
        unknown: workers that have mapped the files must then end first.
        """
        if self._data is None or not self._is_local:
            return False
        if self.judged and not self._every:
            asked = NOT_PREPARED if self._asked == "cold" else self._asked
            self._state = page_cache.observe_cache(asked, self._data.files)
        else:
            drop_caches = self._trial.drop_caches
            self._state = page_cache.prepare_cache(self._asked, self._data.files, drop_caches)
        self._physical = physical_bytes()
        if not self.evicts:
            return False
        resident = self._state.resident_before
        return resident is None or resident > MAX_RESIDENT_SHARE

    def residency(self) -> float | None:
        """The share of the files that is in the page cache now; None if it is unknown."""
        return page_cache.residency(self._data.files) if self._data is not None else None

    def after_ranks(self, epochs: Sequence[RankEpoch]) -> Cold | None:
        """Judge the epochs that several processes have read together."""
        for epoch in epochs:
            if self._data is not None and self._is_local:
                self._state = CacheState(self._asked, self._data.files, epoch.resident_before)
            self.after(epoch.samples, epoch.physical_bytes, epoch.resident_after)
        return self.whole()

    def after(
        self,
        samples: int,
        counts: Sequence[int | None] = (),
        resident_after: float | None = None,
    ) -> Cold | None:
        """Judge an epoch of ``samples`` that was read since ``before``.

        Args:
            samples: that were read.
            counts: the bytes that each reading process got from storage; by default, this process
                with its workers.
            resident_after: the share of the files in the page cache when the epoch ended; by
                default, the present one.
        """
        if self._data is None:
            return None
        counts = counts or [physical_since(self._physical)]
        if self._state is None:
            cold = judge_remote(self._asked)
            if self._trial.access == "file":
                fits = cache_resident(self._data.bytes, memory_bytes())
                cold = replace(cold, cache_resident=fits)
        else:
            ratio = None
            logical = samples * self._data.sample_bytes
            known = [count for count in counts if count is not None]
            if len(known) == len(counts) and logical > 0:
                if resident_after is None:
                    resident_after = self.residency()
                physical = self._of_the_data(sum(known), resident_after, self._data, self._state)
                ratio = physical / logical
            whole_files = not capabilities_of(self._trial.loader).reads_single_samples
            cold = self._state.judged(ratio, sequential=whole_files)
        self.judged.append(cold)
        self._samples.append(samples)
        return cold

    @staticmethod
    def _of_the_data(
        counted: int, resident_after: float | None, data: Stored, state: CacheState
    ) -> int:
        """The bytes of the data among the ``counted`` bytes that came from storage.

        The kernel counts everything that a process read, its code included. If the page cache has
        room for all data, the bytes are at most those by which their part of the cache grew.
        """
        before = state.resident_before
        if before is None or resident_after is None or data.bytes > memory_bytes() / 2:
            return counted
        return min(counted, int(max(0.0, resident_after - before) * data.bytes))

    def ended(self, samples: int) -> Cold | None:
        """Judge a whole trial of so many ``samples``, including those read since ``before``."""
        rest = samples - sum(self._samples)
        if rest > 0 or not self.judged:
            self.after(rest)
        return self.whole()

    def whole(self) -> Cold | None:
        """The verdict on all epochs so far; None if nothing was read."""
        return combine_epochs(self.judged, self._samples) if self.judged else None


def physical_since(before: int | None) -> int | None:
    """The growth of ``physical_bytes`` since it was ``before``."""
    now = None if before is None else physical_bytes()
    return None if before is None or now is None else now - before


def physical_bytes() -> int | None:
    """Bytes that this process and its descendants got from storage; None if not counted.

    The kernel's count of a process includes its threads and the children that it has reaped. So a
    worker is counted by itself while it lives and with its parent afterwards, never in both.
    """
    this = psutil.Process()
    for _ in range(_TRIES):
        before = [this, *this.children(recursive=True)]
        try:
            counts = [process.io_counters().read_bytes for process in before]
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile, and its parent's count may include it now
        except (psutil.AccessDenied, RuntimeError, ValueError, OSError):
            return None
        if [this, *this.children(recursive=True)] == before:
            return sum(counts)
    return None
