"""How much more memory a process and all that it starts come to need.

Proportional set sizes: a page that several processes share counts once in their sum. Where the
kernel tells them apart, only pages that no file backs are counted, anonymous ones and shared
memory: the page cache, which the kernel can take back, is none of it (``smaps_rollup``, proc(5)).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from iobench.samplers.processes import descendants
from iobench.samplers.proportional import unbacked_bytes

_EVERY_S, _SHARE = 0.2, 0.01


def tree_bytes(root: int, below: Iterable[int], proc: Path = Path("/proc")) -> int | None:
    """Of ``root`` and those ``below`` it; None where ``root`` itself cannot be read."""
    own = unbacked_bytes(proc, root)
    if own is None:
        return None
    return own + sum(unbacked_bytes(proc, process) or 0 for process in below)


class PeakMemory:
    """Reads while the ``with`` block lasts, in a thread: at its beginning, at its end, and between
    them five times a second, or less often where that would take more than 1 % of a processor.
    A process counts from the second reading on at which it is there: until a new one has its own
    program (vfork(2)) its memory is that of the process that started it.

    Attributes:
        needed_bytes: the most above what it was at the beginning; None where it cannot be told.
        core_share: processor seconds of the reading / wall seconds.
    """

    def __init__(self, root: int | None = None, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = root or os.getpid(), proc
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak memory", daemon=True)
        self._below: set[int] = set()
        self._before: int | None = None
        self.needed_bytes: int | None = None
        self.core_share = 0.0

    def __enter__(self) -> PeakMemory:
        self._below = self._descendants()
        self._before = tree_bytes(self._root, self._below, self._proc)
        self._begun_s = time.perf_counter()
        if self._before is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._enough.set()
            self._thread.join()

    def _watch(self) -> None:
        spent_s = 0.0
        while True:
            self._look()
            before_s, spent_s = spent_s, time.thread_time()
            if self._enough.wait(max(_EVERY_S, (spent_s - before_s) / _SHARE)):
                break
        self._look()
        wall_s = time.perf_counter() - self._begun_s
        self.core_share = time.thread_time() / wall_s if wall_s > 0 else 0.0

    def _look(self) -> None:
        before, self._below = self._below, self._descendants()
        now = tree_bytes(self._root, before & self._below, self._proc)
        if now is not None and self._before is not None:
            self.needed_bytes = max(self.needed_bytes or 0, now - self._before)

    def _descendants(self) -> set[int]:
        return descendants(self._root, self._proc) - {self._root}
