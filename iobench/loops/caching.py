"""Cold or warm, for the files that a loop reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iobench.loaders.own import BY_SAMPLE
from iobench.loops.physical_bytes import physical_bytes
from iobench.machine import page_cache
from iobench.machine.coldness import cache_resident, judge_remote
from iobench.machine.hardware import memory_bytes
from iobench.machine.page_cache import WHEN_NEEDED, CacheState, DropCaches
from iobench.stored import Stored
from iobench.trial import Cold, Place


@dataclass(frozen=True, slots=True)
class LoopCache:
    """How the page cache was found before a loop; ``state`` is None for a remote place.

    ``copied``: what is read of it is a copy on a disk, which the page cache may keep.
    """

    asked: str
    data: Stored
    state: CacheState | None
    physical_before: int | None
    copied: bool = False

    def judged(self, loader: str, samples: int) -> Cold:
        """What the cache did for the ``samples`` that were taken, by workers alive or reaped."""
        now = None if self.state is None else physical_bytes()
        if now is None or self.physical_before is None:
            return self.judged_by(None, loader, samples)
        return self.judged_by(now - self.physical_before, loader, samples)

    def judged_by(self, counted: int | None, loader: str, samples: int) -> Cold:
        """The same, of loops in other processes to which storage gave ``counted`` bytes."""
        if self.state is None:
            found = judge_remote(self.asked)
            fits = cache_resident(self.data.bytes, memory_bytes()) if self.copied else None
            return replace(found, cache_resident=fits)
        physical = None if counted is None else self._of_the_data(counted, self.state)
        logical = samples * self.data.sample_bytes
        ratio = physical / logical if physical is not None and logical > 0 else None
        return self.state.judged(ratio, sequential=loader not in BY_SAMPLE)

    def _of_the_data(self, counted: int, state: CacheState) -> int:
        """Of ``counted`` bytes those of the data, which came from storage since ``prepared``.

        The kernel counts whatever a process read, code included. So no more is believed than
        came into the page cache of the data's own files, where all of it has room to stay.
        """
        before = state.resident_before
        if before is None or self.data.bytes > memory_bytes() / 2:
            return counted
        resident = page_cache.residency(self.data.files)
        if resident is None:
            return counted
        return min(counted, int(max(0.0, resident - before) * self.data.bytes))


def prepared(
    asked: str,
    place: Place,
    data: Stored,
    *,
    copied: bool = False,
    drop_caches: DropCaches = WHEN_NEEDED,
) -> LoopCache:
    """Evict the files, or read them, as ``asked``; remote places are left alone."""
    state = None if place.is_remote else page_cache.prepared(asked, data.files, drop_caches)
    return LoopCache(asked, data, state, physical_bytes(), copied)
