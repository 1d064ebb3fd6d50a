"""Rows of numbers that a process and its forks append to one file in memory."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Any, Literal

import numpy as np

_ROW_BYTES = 32
"""The size of a row in the file: three numbers of 8 bytes, and 8 bytes of padding.

A row must not cross the border of two pages of memory. Linux writes a row that crosses it in two
steps, so that readers could see a part of the row, and a process that is killed could leave a part.
A power of two divides the size of every page.
"""
_CLOSED = -1  # stands for the descriptor of a file that was closed


class SharedRows:
    """Rows of three numbers, which threads and forked processes append without a lock.

    The file is open for appending, so that rows of several processes do not mix (open(2),
    O_APPEND). Because there is no lock, a process that is killed cannot leave one behind.

    Args:
        name: a name for the file, which ``/proc/PID/fd`` shows.
        kind: ``q`` for whole numbers from -2**63 to 2**63 - 1, or ``d`` for floating-point numbers,
            as in ``struct``.
    """

    _descriptor = _CLOSED  # until the file has been made

    def __init__(self, name: str, kind: Literal["q", "d"]) -> None:
        self._row = struct.Struct(f"={kind}{kind}{kind}8x")
        self._kind = np.dtype(kind)
        self._descriptor = os.memfd_create(name)
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | os.O_APPEND)

    def append(self, first: float, second: float, third: float) -> None:
        """Append a row. Nothing happens if this process has closed the rows.

        An object that appends a row when it is garbage-collected may outlive the rows.

        Raises:
            struct.error: a number does not fit into 8 bytes, or is not whole in rows of kind ``q``.
        """
        if self._descriptor != _CLOSED:
            os.write(self._descriptor, self._row.pack(first, second, third))

    def rows(self, start: int = 0) -> np.ndarray[Any, Any]:
        """Return the rows that were appended so far, in their order.

        Args:
            start: the number of rows at the beginning that are left out.

        Returns:
            an array of shape (rows, 3), int64 or float64.
        """
        size_bytes = os.fstat(self._descriptor).st_size - start * _ROW_BYTES
        content = os.pread(self._descriptor, size_bytes, start * _ROW_BYTES)
        numbers = np.frombuffer(content, self._kind)
        return numbers.reshape(-1, _ROW_BYTES // 8)[:, :3]

    def close(self) -> None:
        """Close the file in this process. Its memory is freed when no process has it open."""
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
