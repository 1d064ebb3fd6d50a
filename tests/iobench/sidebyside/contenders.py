"""Contenders for tests of the frame."""

from __future__ import annotations

import os

from iobench.sidebyside.contest import Measured


def counted(amount: float) -> Measured:
    """As asked, with the process that did it and the processors that it had."""
    others = {"process": os.getpid(), "cores": len(os.sched_getaffinity(0))}
    return Measured(amount, 0.5, others)


def both(amount: float) -> dict[str, Measured]:
    """Two at once."""
    return {"a": counted(amount), "b": counted(2 * amount)}


def failing() -> Measured:
    """It cannot."""
    raise RuntimeError("out of paint")
