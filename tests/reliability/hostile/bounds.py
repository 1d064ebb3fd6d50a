"""What one input may take: seconds of a processor, and bytes of memory of this process.

The clock is that of the processor, since others share the machine; a reader that sleeps for ever is
ended by whoever started this process.
"""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

SECONDS = 10.0
"""Of a processor, at most, for one input of 256 KiB or less."""

MEMORY_BYTES = 512 * 2**20
"""Above what the process holds when it begins."""


class TooSlow(BaseException):
    """No ``except Exception`` of a reader may take it for something else."""


@contextlib.contextmanager
def bounded_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise TooSlow in the block after so many seconds of this process's processor time."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def bound_memory(more_bytes: int = MEMORY_BYTES) -> None:
    """Let this process map so much beyond what it has mapped now; beyond that is MemoryError."""
    limit = mapped_bytes() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def mapped_bytes() -> int:
    """Of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
