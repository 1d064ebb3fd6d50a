"""Cold or warm, for the files that a loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iobench import pagecache
from iobench.coldness import judge, judge_remote
from iobench.memory import memory_bytes
from iobench.mounts import file_system
from iobench.stored import Stored
from iobench.trial import Cold, Place

# Reading in the order in which bytes lie; the others jump.
_RANDOM = frozenset({"torch-map"})


@dataclass(frozen=True, slots=True)
class CacheState:
    """How the page cache was found before a loop: see ``prepared``."""

    asked: str
    place: Place
    data: Stored
    resident_before: float | None
    physical_before: int | None

    def judged(self, loader: str, samples: int) -> Cold:
        """What the cache did for ``samples`` samples, once every worker is reaped."""
        if self.place.is_remote:
            return judge_remote(self.asked)
        now = pagecache.physical_read_bytes()
        logical = samples * self.data.sample_bytes
        physical = None
        if now is not None and self.physical_before is not None and logical > 0:
            physical = (now - self.physical_before) / logical
        return judge(
            asked=self.asked,
            resident_before=self.resident_before,
            physical_ratio=physical,
            sequential=loader not in _RANDOM,
            data_bytes=self.data.bytes,
            memory_bytes=memory_bytes(),
            file_system=file_system(Path(self.place.uri)),
        )


def prepared(asked: str, place: Place, data: Stored) -> CacheState:
    """Evict the files, or read them, as ``asked``; remote places are left alone."""
    if not place.is_remote:
        (pagecache.evict if asked == "cold" else pagecache.warm)(data.files)
    resident = None if place.is_remote else pagecache.residency(data.files)
    return CacheState(asked, place, data, resident, pagecache.physical_read_bytes())
