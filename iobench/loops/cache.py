"""Prepare the page cache before the epochs of a loop, and judge where their bytes came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psutil

from iobench.loaders.own import BY_SAMPLE
from iobench.loops.loader_grid import LoopTrial
from iobench.machine import page_cache
from iobench.machine.coldness import LEFT, cache_resident, judge_remote, whole
from iobench.machine.hardware import memory_bytes
from iobench.machine.page_cache import CacheState
from iobench.stored import Stored
from iobench.trial import Cold, Place

_TRIES = 5


class EpochCache:
    """The page cache of one trial: ``before`` and ``after`` each epoch, ``whole`` at the end.

    ``asked`` is ``cold``, ``warm`` or ``store``. The cache is prepared before each epoch if
    ``every`` is true, otherwise before the first one only. A remote place is not in the page cache
    of this machine, but a downloaded copy of it may be. A trial without ``place`` or ``data`` reads
    nothing and has no verdict.

    Attributes:
        restarts: whether workers must end between epochs, since files that they have mapped cannot
            be evicted.
    """

    def __init__(
        self, trial: LoopTrial, asked: str, place: Place | None, data: Stored | None, *, every: bool
    ) -> None:
        self._trial, self._asked, self._every = trial, asked, every
        self._data = data if place is not None else None
        self._is_local = place is not None and not place.is_remote
        self.restarts = every and self._is_local
        self._state: CacheState | None = None
        self._physical: int | None = None
        self._judged: list[Cold] = []
        self._samples: list[int] = []

    def before(self) -> None:
        """Prepare the cache for the next epoch, or look at it. No worker may be running."""
        if self._data is None or not self._is_local:
            return
        if self._judged and not self._every:
            asked = LEFT if self._asked == "cold" else self._asked
            self._state = page_cache.observed(asked, self._data.files)
        else:
            drop_caches = self._trial.drop_caches
            self._state = page_cache.prepared(self._asked, self._data.files, drop_caches)
        self._physical = physical_bytes()

    def after(self, samples: int, counts: Sequence[int | None] = ()) -> Cold | None:
        """Judge an epoch of ``samples`` that was read since ``before``.

        ``counts``: the bytes that each reading process got from storage; by default, this process
        with its workers.
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
                ratio = self._of_the_data(sum(known), self._data, self._state) / logical
            whole_files = self._trial.loader not in BY_SAMPLE
            cold = self._state.judged(ratio, sequential=whole_files)
        self._judged.append(cold)
        self._samples.append(samples)
        return cold

    @staticmethod
    def _of_the_data(counted: int, data: Stored, state: CacheState) -> int:
        """The bytes of the data among the ``counted`` bytes that came from storage.

        The kernel counts everything that a process read, its code included. If the page cache has
        room for all data, the bytes are at most those by which their part of the cache grew.
        """
        if state.resident_before is None or data.bytes > memory_bytes() / 2:
            return counted
        resident = page_cache.residency(data.files)
        if resident is None:
            return counted
        return min(counted, int(max(0.0, resident - state.resident_before) * data.bytes))

    def ended(self, samples: int) -> Cold | None:
        """Judge a whole trial of so many ``samples``, including those read since ``before``."""
        rest = samples - sum(self._samples)
        if rest > 0 or not self._judged:
            self.after(rest)
        return self.whole()

    def whole(self) -> Cold | None:
        """The verdict on all epochs so far; None if nothing was read."""
        return whole(self._judged, self._samples) if self._judged else None


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
