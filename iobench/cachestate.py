"""The page cache over some files: put into a state before a trial, judged after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iobench import pagecache
from iobench.cache_limits import access_to, limits
from iobench.coldness import judge
from iobench.epoch_coldness import LEFT
from iobench.memory import memory_bytes
from iobench.mounts import file_system
from iobench.pagecache import WHEN_NEEDED, DropCaches
from iobench.trial import Cold


@dataclass(frozen=True, slots=True)
class CacheState:
    """What a trial asked for, and how much of its files was resident when it began.

    ``resident_before`` is None where that cannot be told.
    """

    asked: str
    files: Sequence[Path]
    resident_before: float | None

    def judged(self, physical_ratio: float | None, *, sequential: bool) -> Cold:
        """What the trial may be called; see ``coldness.judge``. What was left as it was found
        is held against cold."""
        judged = judge(
            asked="cold" if self.asked == LEFT else self.asked,
            resident_before=self.resident_before,
            physical_ratio=physical_ratio,
            sequential=sequential,
            data_bytes=pagecache.total_bytes(self.files),
            memory_bytes=memory_bytes(),
            file_system=file_system(self.files[0]),
            limits=self._limits() if self.asked == "cold" else (),
        )
        return replace(judged, asked=self.asked)

    def _limits(self) -> Sequence[str]:
        return limits(access_to(self.files[0], told=self.resident_before is not None))


def prepared(
    asked: str, files: Sequence[Path], drop_caches: DropCaches = WHEN_NEEDED
) -> CacheState:
    """Fill the page cache with ``files`` for ``warm``, else empty it of them."""
    if asked == "warm":
        pagecache.warm(files)
    elif asked == "cold":
        pagecache.evict(files, drop_caches)
    else:
        pagecache.evict(files)
    return found(asked, files)


def found(asked: str, files: Sequence[Path]) -> CacheState:
    """As it is: nothing is filled or emptied."""
    return CacheState(asked, files, pagecache.residency(files))
