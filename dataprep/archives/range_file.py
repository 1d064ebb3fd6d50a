"""Part of a file or an object as a file of its own, the next parts fetched ahead."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class RangeFile(io.RawIOBase):
    """Bytes ``start`` to ``start + size`` of what ``fetch`` reads, in windows.

    ``ahead`` windows are under way while one is read, on threads of their own; with 0 each is
    fetched when it is needed.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], bytes],
        start: int,
        size: int,
        window_bytes: int = 1 << 20,
        ahead: int = 0,
    ) -> None:
        self._fetch, self._start, self._size = fetch, start, size
        self._window_bytes, self._ahead = window_bytes, ahead
        self._position = 0
        self.error: Exception | None = None
        """What kept the last read from succeeding, for callers whose caller hides it."""
        self._windows: dict[int, Future[bytes] | bytes] = {}
        self._pool = ThreadPoolExecutor(ahead) if ahead else None

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Up to the end of a window."""
        view = memoryview(buffer).cast("B")
        number, begin = divmod(self._position, self._window_bytes)
        if self._position >= self._size or not len(view):
            return 0
        try:
            part = self._window(number)[begin : begin + len(view)]
        except Exception as error:
            self.error = error
            raise
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def close(self) -> None:
        """Forget what was fetched ahead."""
        if self._pool and not self.closed:
            self._pool.shutdown(cancel_futures=True)
        self._windows.clear()
        super().close()

    def _window(self, number: int) -> bytes:
        wanted = range(number, number + 1 + self._ahead)
        # The one before is kept: inflating steps back a few bytes now and then.
        self._windows = {k: v for k, v in self._windows.items() if k + 1 in wanted or k in wanted}
        if self._pool:
            for ahead in wanted:
                if ahead not in self._windows and ahead * self._window_bytes < self._size:
                    self._windows[ahead] = self._pool.submit(self._read, ahead)
        elif number not in self._windows:
            self._windows[number] = self._read(number)
        window = self._windows[number]
        return window if isinstance(window, bytes) else window.result()

    def _read(self, number: int) -> bytes:
        offset = number * self._window_bytes
        return self._fetch(self._start + offset, min(self._window_bytes, self._size - offset))
