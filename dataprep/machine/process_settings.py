"""Change settings of the whole process during an operation, and restore them afterwards.

A library must not leave the process of its user changed. All threads of a process share these
settings. If operations in several threads overlap, the first operation changes the setting, and the
last operation restores the earlier value.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ProcessSetting(Generic[Value]):
    """A setting of the process that stays changed while at least one operation needs it."""

    def __init__(self, change: Callable[[], Value], restore: Callable[[Value], None]) -> None:
        """Describe a setting.

        Args:
            change: changes the setting, and returns its earlier value.
            restore: restores a value.
        """
        self._change = change
        self._restore = restore
        self._lock = threading.Lock()
        self._operations = 0
        self._earlier_value: Value

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Change the setting until the block ends."""
        with self._lock:
            if self._operations == 0:
                self._earlier_value = self._change()
            self._operations += 1
        try:
            yield
        finally:
            with self._lock:
                self._operations -= 1
                if self._operations == 0:
                    self._restore(self._earlier_value)


def _use_one_opencv_thread() -> int:
    """Let OpenCV use the calling thread only. Return its earlier number of threads."""
    import cv2  # imported here, because it is slow to import

    earlier_threads: int = cv2.getNumThreads()
    # 0 and 1 both mean the calling thread only. With 1, OpenCV would also wait until the threads of
    # its pool end. In a forked process, these threads do not exist, so that OpenCV would hang.
    cv2.setNumThreads(0)
    return earlier_threads


def _restore_opencv_threads(earlier_threads: int) -> None:
    """Restore the number of threads of OpenCV."""
    import cv2

    # OpenCV also reports 1 after 0 was set. Both mean the calling thread only.
    cv2.setNumThreads(0 if earlier_threads == 1 else earlier_threads)


def _raise_open_files_limit() -> tuple[int, int]:
    """Raise the limit of open files as far as possible. Return the earlier limits."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return soft_limit, hard_limit


def _restore_open_files_limit(earlier_limits: tuple[int, int]) -> None:
    """Restore the limits of open files."""
    resource.setrlimit(resource.RLIMIT_NOFILE, earlier_limits)


ONE_OPENCV_THREAD = ProcessSetting(_use_one_opencv_thread, _restore_opencv_threads)
"""Used by jobs, which convert one image in each thread. OpenCV's threads would compete with them.
"""

MAX_OPEN_FILES = ProcessSetting(_raise_open_files_limit, _restore_open_files_limit)
"""Used by jobs, because Dask opens several files for each worker."""
