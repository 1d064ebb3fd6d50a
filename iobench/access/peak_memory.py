"""How much more memory a process and all that it starts come to need.

Proportional set sizes: a page that several processes share counts once in their sum. Where the
kernel tells them apart, only pages that no file backs are counted, anonymous ones and shared
memory: the page cache, which the kernel can take back, is none of it (``smaps_rollup``, proc(5)).
"""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

from iobench.samplers.processes import descendants

_EVERY_S, _SHARE = 0.2, 0.01
_LINE = re.compile(rb"^(Pss|Pss_Anon|Pss_Shmem): +(\d+) kB$", re.M)


def proportional_bytes(process: int, proc: Path = Path("/proc")) -> int | None:
    """Of one process; None where it is gone or the kernel does not say."""
    try:
        text = (proc / str(process) / "smaps_rollup").read_bytes()
    except OSError:
        return None
    found = {name: 1024 * int(size) for name, size in _LINE.findall(text)}
    if b"Pss_Anon" in found:
        return found[b"Pss_Anon"] + found.get(b"Pss_Shmem", 0)
    return found.get(b"Pss")


def tree_bytes(root: int, proc: Path = Path("/proc")) -> int | None:
    """Of ``root`` and all below it; None where ``root`` itself cannot be read."""
    own = proportional_bytes(root, proc)
    if own is None:
        return None
    others = descendants(root, proc) - {root}
    return own + sum(proportional_bytes(process, proc) or 0 for process in others)


class PeakMemory:
    """Reads while the ``with`` block lasts, in a thread: at its beginning, at its end, and between
    them five times a second, or less often where that would take more than 1 % of a processor.

    Attributes:
        needed_bytes: the most above what it was at the beginning; None where it cannot be told.
        core_share: processor seconds of the reading / wall seconds.
    """

    def __init__(self, root: int | None = None, proc: Path = Path("/proc")) -> None:
        self._root, self._proc = root or os.getpid(), proc
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak memory", daemon=True)
        self._before: int | None = None
        self.needed_bytes: int | None = None
        self.core_share = 0.0

    def __enter__(self) -> PeakMemory:
        self._before = tree_bytes(self._root, self._proc)
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
        now = tree_bytes(self._root, self._proc)
        if now is not None and self._before is not None:
            self.needed_bytes = max(self.needed_bytes or 0, now - self._before)
