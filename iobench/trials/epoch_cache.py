"""The page cache before and after each epoch: prepare it, and judge where the bytes came from.

The *residency* of files is the share of their pages that is in the page cache. *Physical bytes* are
the bytes that processes got from storage, as the kernel counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import psutil

from iobench.clock import Clock
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
"""The largest number of attempts to count the bytes of processes. An attempt fails if a process
begins or ends meanwhile."""


class Barrier(Protocol):
    """Lets several processes wait for each other."""

    def wait(self) -> None:
        """Wait until every process has called this method as often as the caller has."""


@dataclass(frozen=True, slots=True)
class RankCacheEpoch:
    """The report of one rank about the page cache in an epoch that several ranks have read.

    If the cache is not prepared between the epochs of a trial, all epochs have one report together.

    Attributes:
        physical_bytes: the bytes that this rank got from storage; None if they are not counted.
        resident_before: the residency of the files before the epoch. Only rank 0 observes it. None
            for the other ranks, or if it is unknown.
        resident_after: the residency after the epoch; None in the same cases.
    """

    physical_bytes: int | None
    resident_before: float | None
    resident_after: float | None


class SharedCache:
    """Prepares the page cache for epochs that several ranks read together, and reports about it.

    Each rank has an object of its own. Rank 0 prepares the cache and observes the residency, while
    all other ranks wait. Each rank counts its own physical bytes.

    Args:
        cache: prepares the page cache of this machine. Only rank 0 uses it.
        barrier: lets the ranks wait for each other.
        rank: the number of this rank, from 0.
        clock: the clock of this rank.
        begin: a function that rank 0 calls when the cache is prepared for the first epoch. It may
            wait for other hosts (``Context.begin``).
    """

    def __init__(
        self,
        cache: EpochCache,
        barrier: Barrier,
        rank: int,
        clock: Clock,
        begin: Callable[[], float] = begin_at_once,
    ) -> None:
        self._cache, self._barrier, self._rank = cache, barrier, rank
        self._clock, self._begin = clock, begin
        self._physical_before: int | None = None
        self._resident_before: float | None = None
        self.epochs: list[RankCacheEpoch] = []
        """The report of this rank about each epoch so far."""

    def prepare(self) -> float:
        """Prepare the cache for an epoch, and wait until all ranks can begin to read.

        Returns the seconds for which this rank waited for other hosts, without the preparation. The
        trial may run this much longer than ``Context.give_up_s``.
        """
        self._barrier.wait()  # No rank reads any more, so that pages can be evicted.
        if self._rank == 0:
            self._cache.prepare()
            self._resident_before = self._cache.residency()
        self._barrier.wait()  # Rank 0 has prepared the cache.
        waited_s = 0.0
        if not self.epochs:
            prepared_s = self._clock.now_s()
            if self._rank == 0:
                self._begin()
            self._barrier.wait()  # Rank 0 has waited for other hosts.
            waited_s = self._clock.now_s() - prepared_s
        self._physical_before = physical_bytes()
        return waited_s

    def end_epoch(self) -> None:
        """Add the report of this rank about the epoch, after all ranks have read it."""
        rank_bytes = physical_bytes_since(self._physical_before)
        self._barrier.wait()
        resident_after = self._cache.residency() if self._rank == 0 else None
        self.epochs.append(RankCacheEpoch(rank_bytes, self._resident_before, resident_after))


@dataclass(frozen=True, slots=True)
class SharedEpoch:
    """An epoch that several ranks have read together, as the reports of all ranks describe it.

    Attributes:
        samples: the number of samples that all ranks together have read.
        physical_bytes: the bytes that each rank got from storage; None for a rank whose bytes are
            not counted.
        resident_before: the residency of the files before the epoch; None if it is unknown.
        resident_after: the residency after the epoch; None if it is unknown.
    """

    samples: int
    physical_bytes: Sequence[int | None]
    resident_before: float | None = None
    resident_after: float | None = None


def shared_epochs(
    reports_of_ranks: Sequence[Sequence[RankCacheEpoch]], samples: Sequence[int]
) -> list[SharedEpoch]:
    """Combine the reports of all ranks about the page cache.

    Args:
        reports_of_ranks: for each rank, its ``SharedCache.epochs``. Rank 0 comes first.
        samples: for each epoch, the number of samples that all ranks together have read.
    """
    reports_by_epoch = zip(*reports_of_ranks, strict=True)
    epochs = []
    for epoch_samples, reports in zip(samples, reports_by_epoch, strict=True):
        report_of_rank_0 = reports[0]
        epochs.append(
            SharedEpoch(
                epoch_samples,
                [report.physical_bytes for report in reports],
                report_of_rank_0.resident_before,
                report_of_rank_0.resident_after,
            )
        )
    return epochs


class EpochCache:
    """Prepares the page cache before the epochs of one trial, and judges each epoch afterwards.

    Data at a remote location are not in the page cache of this machine, so that ``prepare`` does
    nothing for them. A trial that reads nothing has no verdict.

    Args:
        trial: the parameters of the trial.
        requested: the requested state of the cache, ``cold`` or ``warm``; ``store`` for a training
            loop with the input ``store``. It has no effect if the trial reads nothing.
        location: the location of the data; None if the trial reads nothing.
        data: the size and the files of the data; None if the trial reads nothing.
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
        # With access ``file`` the data are on a store, also if ``location`` is the copy of ranks.
        reads_copy = trial.access == "file"
        self._is_local = location is not None and not location.is_remote and not reads_copy
        self._state: CacheState | None = None
        self._physical_before: int | None = None
        self.judged: list[Cold] = []
        # The number of samples of each judged epoch.
        self._samples: list[int] = []

    @property
    def evicts(self) -> bool:
        """Whether ``prepare`` evicts files from the page cache before each epoch, as requested."""
        has_files = self._is_local and self._data is not None
        return self._before_every_epoch and has_files and self._requested == "cold"

    def prepare(self) -> bool:
        """Prepare the cache for the next epoch. No worker may read meanwhile.

        If only the first epoch is prepared, the cache is only observed before later epochs.

        Returns whether the eviction may have failed. This is only possible if ``evicts`` is true.
        It has failed if more than ``MAX_RESIDENT_SHARE`` of the pages are still in the cache, and
        it may have failed if the residency is unknown. Files that a process has mapped cannot be
        evicted, so the caller then ends the workers, if there are any, and calls this method again.
        """
        if self._data is None or not self._is_local:
            return False
        if self.judged and not self._before_every_epoch:
            # Without preparation a cold cache does not stay cold. A warm cache stays warm.
            requested = NOT_PREPARED if self._requested == "cold" else self._requested
            self._state = page_cache.observe_cache(requested, self._data.files)
        else:
            drop_caches = self._trial.drop_caches
            self._state = page_cache.prepare_cache(self._requested, self._data.files, drop_caches)
        self._physical_before = physical_bytes()
        if not self.evicts:
            return False
        residency = self._state.resident_before
        return residency is None or residency > MAX_RESIDENT_SHARE

    def residency(self) -> float | None:
        """The present residency of the files; None if it is unknown or the trial reads no files."""
        return page_cache.residency(self._data.files) if self._data is not None else None

    def judge_shared_epochs(self, epochs: Sequence[SharedEpoch]) -> Cold | None:
        """Judge the epochs that several ranks have read together. Returns the verdict on all.

        The process of the trial calls this method. Rank 0 has prepared the cache before each epoch,
        in another process, so that the state before an epoch is known only from ``epochs``.
        """
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

        Returns the verdict, which is also added to ``judged``; None if the trial reads nothing.

        Args:
            samples: the number of samples that were read.
            physical_bytes_of_processes: the bytes that each reading process got from storage; None
                for a process whose bytes are not counted. If it is empty, the bytes are counted
                that this process and its workers got since the last ``prepare``.
            resident_after: the residency of the files when the epoch ended; None to observe the
                present residency.
        """
        if self._data is None:
            return None
        byte_counts = physical_bytes_of_processes or [physical_bytes_since(self._physical_before)]
        if self._state is None:
            cold = self._judge_remote(self._data)
        else:
            physical_ratio = _physical_ratio(
                samples, self._data, self._state, byte_counts, resident_after
            )
            reads_whole_files = not capabilities_of(self._trial.loader).reads_single_samples
            cold = self._state.judged(physical_ratio, sequential=reads_whole_files)
        self.judged.append(cold)
        self._samples.append(samples)
        return cold

    def _judge_remote(self, data: DataSummary) -> Cold:
        """The verdict on data at a remote location.

        With access ``file`` the epochs read a local copy, which may stay in the page cache. The
        verdict then says whether it may.
        """
        cold = judge_remote(self._requested)
        if self._trial.access != "file":
            return cold
        return replace(cold, cache_resident=cache_resident(data.bytes, memory_bytes()))

    def judge_trial(self, samples: int) -> Cold | None:
        """Judge the samples that are not judged yet, and return the verdict on the whole trial.

        Args:
            samples: the number of all samples of the trial. It includes the samples that were read
                after the last ``prepare`` and are not judged yet.
        """
        remaining_samples = samples - sum(self._samples)
        if remaining_samples > 0 or not self.judged:
            self.judge_epoch(remaining_samples)
        return self.verdict()

    def verdict(self) -> Cold | None:
        """The verdict on all judged epochs together; None if no epoch was judged."""
        return combine_epochs(self.judged, self._samples) if self.judged else None


def _physical_ratio(
    samples: int,
    data: DataSummary,
    state: CacheState,
    physical_bytes_of_processes: Sequence[int | None],
    resident_after: float | None,
) -> float | None:
    """The bytes of the data that came from storage, divided by the stored bytes of the samples.

    None if the bytes of a process are not counted, or if the samples have no bytes.

    Args:
        samples: the number of samples that were read.
        data: the size and the files of the data.
        state: the page cache before the epoch.
        physical_bytes_of_processes: the bytes that each reading process got from storage; None for
            a process whose bytes are not counted.
        resident_after: the residency of the files when the epoch ended; None to observe the present
            residency.
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
    """The bytes of the data among all bytes that the reading processes got from storage.

    The kernel counts everything that a process reads, also the code of programs. If the page cache
    has room for all data, the data that were read from storage stay in the cache. Their bytes are
    then at most the growth of the resident data. If the cache has no room for all data, or the
    residency is unknown, all bytes are taken for bytes of the data.

    Args:
        total_bytes: the bytes that all reading processes got from storage.
        data: the size of the data.
        resident_before: the residency of the files before the epoch; None if it is unknown.
        resident_after: the residency after the epoch; None if it is unknown.
    """
    # The other half of the memory is left for programs, so that no page of the data is evicted.
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
    """Bytes that this process and its descendants got from storage so far.

    None if the kernel does not count them, if another user owns a process, or if processes began or
    ended during each of ``_MAX_TRIES`` attempts.

    The kernel's count of a process includes its threads and the children that it has reaped. A
    worker is therefore counted by itself while it lives, and as a part of its parent afterwards. If
    a process begins or ends during the count, the count is repeated, so that no process is left out
    or counted twice.
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
