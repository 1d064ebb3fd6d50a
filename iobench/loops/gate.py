"""A gate at which processes of one trial wait until all of them are there.

Two counters of the kernel (eventfd(2)) that they inherit: nothing of it is left, however the trial
ends. A process that never arrives is no matter of the gate: who started them ends them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def gate() -> Iterator[tuple[int, int]]:
    """Descriptors that the processes inherit, and are told."""
    arrived = os.eventfd(0, os.EFD_SEMAPHORE)
    try:
        opened = os.eventfd(0, os.EFD_SEMAPHORE)
        try:
            yield arrived, opened
        finally:
            os.close(opened)
    finally:
        os.close(arrived)


def wait_at(descriptors: Sequence[int], rank: int, world_size: int) -> None:
    """Return when all of ``world_size`` processes have called this, once each."""
    arrived, opened = descriptors
    if rank:
        os.eventfd_write(arrived, 1)
        os.eventfd_read(opened)
        return
    for _ in range(world_size - 1):
        os.eventfd_read(arrived)
    if world_size > 1:
        os.eventfd_write(opened, world_size - 1)
