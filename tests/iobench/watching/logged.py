"""Logs of the steps of a watched loop: made for a test, and kept in memory."""

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
    """Return the log of a pass with batches of 4 samples.

    The wait for the end of the epoch takes half as long as that for a batch.
    """
    step_s = wait_s + work_s
    starts = [begun_s + step_s * index for index in range(batches)]
    end_s = begun_s + step_s * batches
    steps = [(loader, number, at, at + wait_s, at + step_s, 4.0) for at in starts]
    return [*steps, (loader, number, end_s, end_s + wait_s / 2, end_s + wait_s / 2, -1)]


def packed(*records: Record) -> bytes:
    """Return the bytes of these records in a log."""
    return array("d", chain.from_iterable(records)).tobytes()


def table(*records: Record) -> pd.DataFrame:
    """Return these records as the companion reads them."""
    return read_step_log(packed(*records))


class MemoryLog(StepLog):
    """A log that keeps its bytes in memory."""

    def __init__(self) -> None:
        self.file = BytesIO()
        super().__init__(self.file.write)

    def records(self) -> list[Record]:
        """Return all records of the log."""
        self.flush()
        numbers = array("d", self.file.getvalue())
        width = len(STEP_FIELDS)
        return [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]
