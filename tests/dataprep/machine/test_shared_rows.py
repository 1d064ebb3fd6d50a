"""Rows that threads and forked processes append to a file in memory."""

from __future__ import annotations

import contextlib
import gc
import math
import multiprocessing
import os
import struct
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.machine.shared_rows import SharedRows

WHOLE = st.integers(-(2**63), 2**63 - 1)


def open_files_in_memory(name: str) -> int:
    """Return how many descriptors this process has of files in memory with this name."""
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor of the folder itself is closed again
            targets.append(str(descriptor.readlink()))
    return sum(f"memfd:{name}" in target for target in targets)


@given(st.lists(st.tuples(WHOLE, WHOLE, WHOLE), max_size=300), st.integers(0, 300))
def test_whole_numbers_come_back(numbers: list[tuple[int, int, int]], start: int) -> None:
    """Rows come back in their order, from any row on."""
    rows = SharedRows("test", "q")
    for row in numbers:
        rows.append(*row)
    first = min(start, len(numbers))
    assert rows.rows(first).shape == (len(numbers) - first, 3)
    assert [tuple(row) for row in rows.rows(first).tolist()] == numbers[first:]


def test_floating_point_numbers_come_back() -> None:
    """They come back exactly."""
    rows = SharedRows("test", "d")
    rows.append(0.1, -math.inf, 5e-324)
    assert rows.rows().tolist() == [[0.1, -math.inf, 5e-324]]


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_that_is_too_large_is_an_error(value: int) -> None:
    """It leaves no part of a row behind."""
    rows = SharedRows("test", "q")
    with pytest.raises(struct.error):
        rows.append(1, 2, value)
    assert rows.rows().shape == (0, 3)


def test_readers_never_see_a_part_of_a_row() -> None:
    """Rows are whole at any time, while other threads append them.

    With rows of 24 bytes, one row in 170 crosses the border between two pages. Readers saw a part
    of such a row within 10,000 readings.
    """
    rows = SharedRows("test", "q")
    ends = threading.Event()

    def append_until_the_end(thread: int) -> int:
        appended = 0
        while not ends.is_set():
            rows.append(thread, appended, -appended)
            appended += 1
        return appended

    with ThreadPoolExecutor(3) as threads:
        counts = [threads.submit(append_until_the_end, thread) for thread in range(3)]
        try:
            seen = 0
            for _ in range(50_000):
                new_rows = rows.rows(seen)
                seen += len(new_rows)
                assert (new_rows[:, 1] == -new_rows[:, 2]).all()
        finally:
            ends.set()
    assert len(rows.rows()) == sum(count.result() for count in counts)


def test_killed_processes_leave_whole_rows() -> None:
    """The rows of other processes are not damaged, and can still be appended."""
    rows = SharedRows("test", "q")

    def append_forever(process: int) -> None:
        while True:
            rows.append(process, 1, 2)

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=append_forever, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    while len(rows.rows()) < 2_000:
        pass
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
    rows.append(9, 1, 2)
    content = rows.rows()
    assert (content[:, 1:] == [1, 2]).all()
    assert content[-1, 0] == 9


def test_nothing_is_appended_after_close() -> None:
    """Another file may have the number of the descriptor by then."""
    rows = SharedRows("test", "q")
    rows.close()
    with tempfile.TemporaryFile() as other:
        rows.append(1, 2, 3)
        rows.close()
        assert os.fstat(other.fileno()).st_size == 0


def test_rows_leave_no_descriptor_open() -> None:
    """The file in memory is removed with its object."""
    rows = SharedRows("test-of-descriptors", "q")
    assert open_files_in_memory("test-of-descriptors") == 1
    del rows
    gc.collect()
    assert open_files_in_memory("test-of-descriptors") == 0
