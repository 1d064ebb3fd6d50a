"""Logs of steps: made up, and kept in memory."""

from __future__ import annotations

from array import array
from io import BytesIO
from itertools import chain

import pandas as pd

from iobench.watching.figures import read_step_log
from iobench.watching.session import STEP_FIELDS, StepLog

Record = tuple[float, ...]


def epoch(
    number: int,
    begun_s: float,
    batches: int,
    wait_s: float = 1,
    work_s: float = 3,
    loader: int = 0,
) -> list[Record]:
    """A pass of batches of 4, and its end, which is waited for half as long."""
    step_s = wait_s + work_s
    starts = [begun_s + step_s * index for index in range(batches)]
    end_s = begun_s + step_s * batches
    steps = [(loader, number, at, at + wait_s, at + step_s, 4.0) for at in starts]
    return [*steps, (loader, number, end_s, end_s + wait_s / 2, end_s + wait_s / 2, -1)]


def packed(*records: Record) -> bytes:
    """As a log has them."""
    return array("d", chain.from_iterable(records)).tobytes()


def table(*records: Record) -> pd.DataFrame:
    """As the companion reads them."""
    return read_step_log(packed(*records))


class MemoryLog(StepLog):
    """A log that remembers."""

    def __init__(self) -> None:
        self.file = BytesIO()
        super().__init__(self.file.write)

    def records(self) -> list[Record]:
        """All that was added."""
        self.flush()
        numbers = array("d", self.file.getvalue())
        width = len(STEP_FIELDS)
        return [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]
