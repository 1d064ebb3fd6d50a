"""Samples and bytes that arrive are counted, in threads and in forked processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.reading.dataset import Dataset
from dataprep.reading.read_counter import ReadCounter, ReadTotals, StreamReport, WindowsInUse
from dataprep.reading.record_reader import Records
from tests.dataprep.machine.test_shared_rows import open_files_in_memory

READS = st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 2**40)), max_size=30)


@given(st.lists(READS, max_size=5))
def test_totals_are_the_sum_of_all_reads(rounds: list[list[tuple[int, int]]]) -> None:
    """Totals can be read at any time and repeatedly."""
    counter = ReadCounter()
    expected = ReadTotals()
    for reads in rounds:
        before = counter.totals()
        for samples, size in reads:
            counter.add(samples, size)
        new = ReadTotals(sum(read[0] for read in reads), sum(read[1] for read in reads))
        expected = ReadTotals(expected.samples + new.samples, expected.bytes + new.bytes)
        assert counter.totals() == counter.totals() == expected
        assert counter.totals().since(before) == new


def test_threads_count_together() -> None:
    """No read is lost or counted twice, even while totals are read."""
    counter = ReadCounter()

    def read(thread: int) -> list[int]:
        totals = []
        for _ in range(200):
            counter.add(1, 10)
            totals.append(counter.totals().samples)
        return totals

    with ThreadPoolExecutor(8) as threads:
        for thread_totals in threads.map(read, range(8)):
            assert thread_totals == sorted(thread_totals)
    assert counter.totals() == ReadTotals(1_600, 16_000)


def test_forked_processes_count_together() -> None:
    """Each process adds its own reads, and a killed one leaves no lock behind."""
    counter = ReadCounter()
    context = multiprocessing.get_context("fork")

    def read(number: int) -> None:
        for _ in range(500):
            counter.add(1, number)
        if number == 3:
            os.kill(os.getpid(), 9)

    workers = [context.Process(target=read, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counter.totals() == ReadTotals(2_000, 500 * (0 + 1 + 2 + 3))


def test_a_counter_leaves_no_descriptor_open() -> None:
    """The counter's file in memory is removed with it."""
    gc.collect()
    before = open_files_in_memory("dataprep-reads")
    counters = [ReadCounter() for _ in range(5)]
    assert open_files_in_memory("dataprep-reads") == before + 5
    counters.clear()
    gc.collect()
    assert open_files_in_memory("dataprep-reads") == before


def test_reads_of_a_data_set_are_counted(dataset: Dataset) -> None:
    """Each reader made afterwards counts, and neighbours that are read together count each."""
    earlier = Records(dataset)
    counter = dataset.count_reads()
    records, other = Records(dataset), Records(dataset)
    earlier.image(0)
    assert counter.totals() == ReadTotals()
    records.fetch([0, 1, 2, 50])
    other.image(7)
    lengths = dataset.places.lengths
    size = int(lengths[[0, 1, 2, 50, 7]].sum())
    assert counter.totals() == ReadTotals(5, size)
    for _ in records.stream(np.arange(len(dataset))):
        pass
    assert counter.totals() == ReadTotals(5 + len(dataset), size + int(lengths.sum()))


def test_windows_count_when_they_arrive(dataset: Dataset) -> None:
    """Samples count before they are consumed, and no more count than were requested."""
    counter = dataset.count_reads()
    windows = Records(dataset).windows(np.arange(len(dataset)), 10)
    numbers, _ = next(windows)
    assert len(numbers) == 10
    assert 10 <= counter.totals().samples <= 30
    windows.close()  # type: ignore[attr-defined]


def test_windows_in_use_are_reported(dataset: Dataset) -> None:
    """The windows of all active streams of this process are reported, later the largest ones."""
    counter = dataset.count_reads()
    assert counter.windows() == WindowsInUse()
    records = Records(dataset)
    stream = records.stream(np.arange(len(dataset)), 16)
    next(stream)
    windows = counter.windows()
    assert windows.windows_at_once == 1
    assert 16 <= windows.window_samples == windows.largest_samples <= 64
    stream.close()  # type: ignore[attr-defined]
    assert counter.windows() == WindowsInUse(0, 1, windows.largest_samples)


def test_forked_processes_report_their_windows() -> None:
    """The largest window of all streams is reported, without streams that have ended."""
    counter = ReadCounter()
    mine = StreamReport(counter)
    mine.window(64, 2)

    def read() -> None:
        stream, other = StreamReport(counter), StreamReport(counter)
        stream.window(128, 2)
        other.window(400, 2)
        other.end()

    worker = multiprocessing.get_context("fork").Process(target=read)
    worker.start()
    worker.join()
    counter.add(3, 10)
    assert counter.windows() == WindowsInUse(128, 2, 400)
    assert counter.totals() == ReadTotals(3, 10, 128)
    mine.window(256, 2)
    assert counter.windows() == WindowsInUse(256, 2, 400)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_a_pickled_reader_does_not_count(dataset: Dataset, protocol: int) -> None:
    """A pickled reader or data set does not count, because it has no access to the counter."""
    counter = dataset.count_reads()
    records = pickle.loads(pickle.dumps(Records(dataset), protocol))
    assert bytes(records.image(3)) == bytes(dataset[3].image)
    assert records.counter is None
    assert pickle.loads(pickle.dumps(dataset, protocol)).read_counter is None
    assert counter.totals() == ReadTotals()


def test_without_a_counter_nothing_is_counted(dataset: Dataset) -> None:
    """Without a counter nothing is counted, so that training loops have no cost."""
    assert dataset.read_counter is None
    assert Records(dataset).counter is None
