"""The page cache over some files: put into a state before a trial, judged after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iobench import pagecache
from iobench.coldness import judge
from iobench.memory import memory_bytes
from iobench.mounts import file_system
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
        """What the trial may be called; see ``coldness.judge``."""
        return judge(
            asked=self.asked,
            resident_before=self.resident_before,
            physical_ratio=physical_ratio,
            sequential=sequential,
            data_bytes=pagecache.total_bytes(self.files),
            memory_bytes=memory_bytes(),
            file_system=file_system(self.files[0]),
        )


def prepared(asked: str, files: Sequence[Path]) -> CacheState:
    """Fill the page cache with ``files`` for ``warm``, else empty it of them."""
    if asked == "warm":
        pagecache.warm(files)
    else:
        pagecache.evict(files)
    return CacheState(asked, files, pagecache.residency(files))
