"""The page cache before and after each epoch: prepare it, and judge where the bytes came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import psutil

from iobench.data.data_summary import DataSummary
from iobench.loaders.capabilities import capabilities_of
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
from iobench.results.trial import Cold, Location, begin_at_once
from iobench.trials.loader_grid import LoopTrial

_MAX_TRIES = 5
"""How often processes are counted again if one of them ended while they were counted."""


class Barrier(Protocol):
    """Lets several processes wait for each other."""

    def wait(self) -> None:
        """Wait until every process has called this method as often as the caller has."""


@dataclass(frozen=True, slots=True)
class RankCacheEpoch:
    """The report of one rank about the page cache in an epoch that several ranks have read.

    Attributes:
        physical_bytes: the bytes that this rank got from storage; None if they are not counted.
        resident_before: the share of the files in the page cache before the epoch; None if it is
            unknown, or this is not rank 0.
        resident_after: the same share after the epoch.
    """

    physical_bytes: int | None
    resident_before: float | None
    resident_after: float | None


class SharedCache:
    """The page cache of epochs that several ranks read together. Each rank has its own object.

    Rank 0 prepares the cache before each epoch, while all other ranks wait.

    Args:
        cache: the page cache of this machine. Only rank 0 prepares it.
        barrier: lets the ranks wait for each other.
        rank: the number of this rank.
        begin: is called by rank 0 when the first epoch is prepared. It may wait for other hosts
            (``Context.begin``).
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
        self._physical_before: int | None = None
        self._resident_before: float | None = None
        self.epochs: list[RankCacheEpoch] = []
        """The report of this rank about each epoch so far."""

    def prepare(self) -> None:
        """Wait for all ranks, and prepare the cache for an epoch."""
        self._barrier.wait()
        if self._rank == 0:
            self._cache.prepare()
            self._resident_before = self._cache.residency()
            if not self.epochs:
                self._begin()
        self._barrier.wait()
        self._physical_before = physical_bytes()

    def end_epoch(self) -> None:
        """Count the bytes that this rank has got from storage, and wait for the other ranks."""
        physical = physical_bytes_since(self._physical_before)
        self._barrier.wait()
        resident_after = self._cache.residency() if self._rank == 0 else None
        self.epochs.append(RankCacheEpoch(physical, self._resident_before, resident_after))


@dataclass(frozen=True, slots=True)
class SharedEpoch:
    """An epoch that several ranks have read together.

    Attributes:
        samples: the samples of all ranks.
        physical_bytes: the bytes that each rank got from storage; None where they are not counted.
        resident_before: the share of the files in the page cache before the epoch.
        resident_after: the same share after the epoch.
    """

    samples: int
    physical_bytes: Sequence[int | None]
    resident_before: float | None = None
    resident_after: float | None = None


def shared_epochs(
    ranks: Sequence[Sequence[RankCacheEpoch]], samples: Sequence[int]
) -> list[SharedEpoch]:
    """Combine the reports of all ranks about the page cache.

    Args:
        ranks: for each rank, its ``SharedCache.epochs``. Rank 0 comes first.
        samples: for each epoch, the samples of all ranks.
    """
    reports_by_epoch = zip(*ranks, strict=True)
    epochs = []
    for epoch_samples, reports in zip(samples, reports_by_epoch, strict=True):
        rank_0 = reports[0]
        epochs.append(
            SharedEpoch(
                epoch_samples,
                [report.physical_bytes for report in reports],
                rank_0.resident_before,
                rank_0.resident_after,
            )
        )
    return epochs


class EpochCache:
    """Prepares the page cache before the epochs of one trial, and judges each epoch afterwards.

    Data at a remote location are not in the page cache of this machine, but a downloaded copy of
    them may be. A trial that reads nothing has no verdict.

    Args:
        trial: the parameters of the trial.
        requested: the requested state of the cache: ``cold``, ``warm`` or ``store``.
        location: where the data are; None if the trial reads nothing.
        data: the files of the data; None if the trial reads nothing.
        before_every_epoch: whether the cache is prepared before each epoch, or only before the
            first one.

    Attributes:
        judged: the verdict on each epoch so far.
    """

    def __init__(
        self,
        trial: LoopTrial,
        requested: str,
        location: Location | None,
        data: DataSummary | None,
        *,
        before_every_epoch: bool,
    ) -> None:
        self._trial, self._requested = trial, requested
        self._before_every_epoch = before_every_epoch
        self._data = data if location is not None else None
        self._is_local = location is not None and not location.is_remote
        self._state: CacheState | None = None
        self._physical_before: int | None = None
        self.judged: list[Cold] = []
        self._samples: list[int] = []

    @property
    def evicts(self) -> bool:
        """Whether files are evicted from the page cache before each epoch."""
        has_files = self._is_local and self._data is not None
        return self._before_every_epoch and has_files and self._requested == "cold"

    def prepare(self) -> bool:
        """Prepare the cache for the next epoch, or only observe it. No worker may read meanwhile.

        Returns True if files should have been evicted, and some of their pages are still in the
        cache or this is unknown. The caller must then end the workers, because files that a process
        has mapped cannot be evicted, and call this method again.
        """
        if self._data is None or not self._is_local:
            return False
        if self.judged and not self._before_every_epoch:
            state = NOT_PREPARED if self._requested == "cold" else self._requested
            self._state = page_cache.observe_cache(state, self._data.files)
        else:
            drop_caches = self._trial.drop_caches
            self._state = page_cache.prepare_cache(self._requested, self._data.files, drop_caches)
        self._physical_before = physical_bytes()
        if not self.evicts:
            return False
        resident = self._state.resident_before
        return resident is None or resident > MAX_RESIDENT_SHARE

    def residency(self) -> float | None:
        """The share of the files that is in the page cache now; None if it is unknown."""
        return page_cache.residency(self._data.files) if self._data is not None else None

    def judge_shared_epochs(self, epochs: Sequence[SharedEpoch]) -> Cold | None:
        """Judge the epochs that several ranks have read together. Returns the verdict on all."""
        for epoch in epochs:
            if self._data is not None and self._is_local:
                self._state = CacheState(self._requested, self._data.files, epoch.resident_before)
            self.judge_epoch(epoch.samples, epoch.physical_bytes, epoch.resident_after)
        return self.verdict()

    def judge_epoch(
        self,
        samples: int,
        physical_bytes_of_processes: Sequence[int | None] = (),
        resident_after: float | None = None,
    ) -> Cold | None:
        """Judge the epoch that was read after the last ``prepare``.

        Returns the verdict; None if the trial reads nothing.

        Args:
            samples: the samples that were read.
            physical_bytes_of_processes: the bytes that each reading process got from storage. The
                default is one number, the bytes of this process with its workers.
            resident_after: the share of the files in the page cache when the epoch ended. By
                default it is the present share.
        """
        if self._data is None:
            return None
        counts = physical_bytes_of_processes or [physical_bytes_since(self._physical_before)]
        if self._state is None:
            cold = self._judge_remote(self._data)
        else:
            ratio = _physical_ratio(samples, self._data, self._state, counts, resident_after)
            reads_whole_files = not capabilities_of(self._trial.loader).reads_single_samples
            cold = self._state.judged(ratio, sequential=reads_whole_files)
        self.judged.append(cold)
        self._samples.append(samples)
        return cold

    def _judge_remote(self, data: DataSummary) -> Cold:
        """The verdict on data at a remote location, or on a copy that was downloaded from there."""
        cold = judge_remote(self._requested)
        if self._trial.access != "file":
            return cold
        return replace(cold, cache_resident=cache_resident(data.bytes, memory_bytes()))

    def judge_trial(self, samples: int) -> Cold | None:
        """Judge a whole trial.

        Args:
            samples: all samples of the trial. They include the samples that were read after the
                last ``prepare`` and are not judged yet.
        """
        remaining_samples = samples - sum(self._samples)
        if remaining_samples > 0 or not self.judged:
            self.judge_epoch(remaining_samples)
        return self.verdict()

    def verdict(self) -> Cold | None:
        """The verdict on all epochs so far; None if nothing was read."""
        return combine_epochs(self.judged, self._samples) if self.judged else None


def _physical_ratio(
    samples: int,
    data: DataSummary,
    state: CacheState,
    physical_bytes_of_processes: Sequence[int | None],
    resident_after: float | None,
) -> float | None:
    """The bytes of the data that came from storage, divided by the bytes of the samples.

    None if the bytes of a process are not counted, or no bytes were read.

    Args:
        samples: the samples that were read.
        data: the files of the data.
        state: the page cache before the epoch.
        physical_bytes_of_processes: the bytes that each reading process got from storage.
        resident_after: the share of the files in the page cache when the epoch ended; None for the
            present share.
    """
    logical_bytes = samples * data.sample_bytes
    known_counts = [count for count in physical_bytes_of_processes if count is not None]
    if len(known_counts) < len(physical_bytes_of_processes) or logical_bytes <= 0:
        return None
    if resident_after is None:
        resident_after = page_cache.residency(data.files)
    data_bytes = _data_bytes(sum(known_counts), data, state.resident_before, resident_after)
    return data_bytes / logical_bytes


def _data_bytes(
    total_bytes: int,
    data: DataSummary,
    resident_before: float | None,
    resident_after: float | None,
) -> int:
    """The bytes of the data among all bytes that a process got from storage.

    The kernel counts everything that a process reads, also the code of programs. If the page cache
    has room for all data, the data that were read from storage stay in the cache. Their bytes are
    then at most the growth of the resident data.
    """
    fits_in_memory = data.bytes <= memory_bytes() / 2
    if resident_before is None or resident_after is None or not fits_in_memory:
        return total_bytes
    resident_growth = max(0.0, resident_after - resident_before)
    return min(total_bytes, int(resident_growth * data.bytes))


def physical_bytes_since(before: int | None) -> int | None:
    """The difference of ``physical_bytes()`` now and ``before``; None if either is unknown."""
    if before is None:
        return None
    now = physical_bytes()
    return None if now is None else now - before


def physical_bytes() -> int | None:
    """Bytes that this process and its descendants got from storage; None if they are not counted.

    The kernel's count of a process includes its threads and the children that it has reaped. A
    worker is therefore counted by itself while it lives, and as a part of its parent afterwards. If
    a process ends during the count, the count is repeated, so that no process is counted twice.
    """
    this_process = psutil.Process()
    for _ in range(_MAX_TRIES):
        processes = [this_process, *this_process.children(recursive=True)]
        try:
            counts = [process.io_counters().read_bytes for process in processes]
        except psutil.NoSuchProcess:
            continue  # A process has ended, and the count of its parent may include it now.
        except (psutil.AccessDenied, RuntimeError, ValueError, OSError):
            return None
        if [this_process, *this_process.children(recursive=True)] == processes:
            return sum(counts)
    return None
