"""Settings of the whole process that an operation needs, and that it restores afterwards.

A library must leave the process of its user as it was. These settings exist once in a process, so
operations that overlap, in several threads, share one change: the first makes it, and the last one
restores what was there before.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ProcessSetting(Generic[Value]):
    """A setting that is changed while at least one operation needs it."""

    def __init__(self, change: Callable[[], Value], restore: Callable[[Value], None]) -> None:
        """``change`` returns the value before, which ``restore`` takes."""
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._operations = 0
        self._before: Value

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Change the setting for as long as the context is open."""
        with self._lock:
            if self._operations == 0:
                self._before = self._change()
            self._operations += 1
        try:
            yield
        finally:
            with self._lock:
                self._operations -= 1
                if self._operations == 0:
                    self._restore(self._before)


def _one_opencv_thread() -> int:
    import cv2  # here, since it is slow to import

    before: int = cv2.getNumThreads()
    # 0 means the calling thread alone. 1 would mean the same, but OpenCV would then wait for the
    # threads of its pool to end, and a fork of a process with such a pool has none of them.
    cv2.setNumThreads(0)
    return before


def _restore_opencv_threads(before: int) -> None:
    import cv2

    # OpenCV reports 1 also where 0 was set. Both mean the calling thread; see above for the 0.
    cv2.setNumThreads(0 if before == 1 else before)


def _all_open_files() -> tuple[int, int]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    return before


def _restore_open_files(before: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


ONE_OPENCV_THREAD = ProcessSetting(_one_opencv_thread, _restore_opencv_threads)
"""For jobs: they convert an image in each thread or process, and OpenCV's pool would compete."""

MOST_OPEN_FILES = ProcessSetting(_all_open_files, _restore_open_files)
"""For Dask, which opens several files for each worker."""
