"""These contenders serve tests of the frame."""

from __future__ import annotations

import os

from benchmarks.contest import Measured


def counted(amount: float) -> Measured:
    """Return the amount in half a second, with the process and its number of processors."""
    others = {"process": os.getpid(), "cores": len(os.sched_getaffinity(0))}
    return Measured(amount, 0.5, others)


def failing() -> Measured:
    """Fail as a contender."""
    raise RuntimeError("out of paint")
