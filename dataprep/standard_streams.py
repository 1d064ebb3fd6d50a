"""Standard input, output and error as a job needs them that runs all night: there, and no reason
to end."""

from __future__ import annotations

import io
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """Standard output: where it cannot be written, the error says that it was this."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Some of ``data``, at least.

        Raises:
            OSError: the disk is full, or nobody reads any more; with the stream as its file.
        """
        try:
            while (written := super().write(data)) is None:  # of a pipe that is full, as below
                select.select([], [self], [])
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None
        return written


class _Unheard(io.FileIO):
    """Standard error: what cannot be said there (a terminal that went away, a full disk, a pipe
    that nobody reads or empties) is left unsaid, and the work goes on."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Some of ``data``, or none of it and no word of that."""
        try:
            # None of a pipe that is full, where whoever made it has it not wait.
            return super().write(data) or memoryview(data).nbytes
        except OSError:
            return memoryview(data).nbytes


def settle() -> None:
    """Have all three open, and the latter two the program's own, unless they are already others.

    A file that is opened where one of them is closed would get its number, and whatever says
    something there would write it into that file: POSIX, ``dup`` and ``exec``, on descriptors 0
    to 2. The program's children inherit what stands in for them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  kept
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Unheard(2, "w", closefd=False), sys.stderr)


def _text(raw: io.FileIO, before: TextIO | None) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before else "utf-8",
        errors=before.errors if before else "backslashreplace",
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )
