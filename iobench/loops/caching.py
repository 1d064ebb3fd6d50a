"""Cold or warm, for the files that a loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iobench import pagecache
from iobench.coldness import judge, judge_remote
from iobench.loaders.own import BY_SAMPLE
from iobench.memory import memory_bytes
from iobench.mounts import file_system
from iobench.stored import Stored
from iobench.trial import Cold, Place


@dataclass(frozen=True, slots=True)
class CacheState:
    """How the page cache was found before a loop: see ``prepared``."""

    asked: str
    place: Place
    data: Stored
    resident_before: float | None
    physical_before: int | None

    def judged(self, loader: str, samples: int) -> Cold:
        """What the cache did for the ``samples`` that were taken, once every worker is reaped."""
        if self.place.is_remote:
            return judge_remote(self.asked)
        physical = self._physical_bytes()
        logical = samples * self.data.sample_bytes
        return judge(
            asked=self.asked,
            resident_before=self.resident_before,
            physical_ratio=physical / logical if physical is not None and logical > 0 else None,
            sequential=loader not in BY_SAMPLE,
            data_bytes=self.data.bytes,
            memory_bytes=memory_bytes(),
            file_system=file_system(Path(self.place.uri)),
        )

    def _physical_bytes(self) -> int | None:
        """Bytes of the data that came from storage since ``prepared``.

        The kernel counts whatever the process read, code included. So no more is believed than
        came into the page cache of the data's own files, where all of it has room to stay.
        """
        now = pagecache.physical_read_bytes()
        if now is None or self.physical_before is None:
            return None
        counted = now - self.physical_before
        if self.resident_before is None or self.data.bytes > memory_bytes() / 2:
            return counted
        resident = pagecache.residency(self.data.files)
        if resident is None:
            return counted
        return min(counted, int(max(0.0, resident - self.resident_before) * self.data.bytes))


def prepared(asked: str, place: Place, data: Stored) -> CacheState:
    """Evict the files, or read them, as ``asked``; remote places are left alone."""
    if not place.is_remote:
        (pagecache.evict if asked == "cold" else pagecache.warm)(data.files)
    resident = None if place.is_remote else pagecache.residency(data.files)
    return CacheState(asked, place, data, resident, pagecache.physical_read_bytes())
