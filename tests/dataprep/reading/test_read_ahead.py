"""Files and results are returned in order, and the number of reads is bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator

import pytest

from dataprep.errors import ImageTooLarge, SourceChanged, StoreUnreachable, UnreadableImage
from dataprep.job.conversion import read_files
from dataprep.sources import Listing, Located
from dataprep.threaded_map import fed_in_order, in_order

ITEMS = [Located(f"{i:02}", i + 1) for i in range(40)]


class Scripted:
    """A source whose reads act as the test says. The content of a file is its repeated number."""

    uri = "scripted"

    def __init__(
        self, concurrency: int, before: Callable[[int], object] = lambda number: None
    ) -> None:
        self.concurrency = concurrency
        self._before = before
        self.started: list[int] = []
        self._lock = threading.Lock()

    def list(self) -> Listing:
        """Fail: no test lists it."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """The content of the file."""
        with self._lock:
            self.started.append(int(item.name))
        self._before(int(item.name))
        return bytes([int(item.name)]) * (int(item.name) + 1)


@pytest.mark.parametrize("concurrency", [1, 2, 7, 64])
def test_order(concurrency: int) -> None:
    """Contents come in the order of the names, with any number of reads in flight."""
    results = list(read_files(Scripted(concurrency), ITEMS, 1000))
    assert results == [bytes([i]) * (i + 1) for i in range(40)]


def test_order_of_reads_that_end_backwards() -> None:
    """A first read that ends last still comes first."""
    others = threading.Barrier(3)
    done = threading.Event()

    def before(number: int) -> None:
        if number == 0:
            assert done.wait(30)
        elif number < 4:
            others.wait(30)
            done.set()

    results = list(read_files(Scripted(4, before), ITEMS, 1000))
    assert [data[0] for data in results if isinstance(data, bytes)] == list(range(40))


@pytest.mark.parametrize("concurrency", [1, 2, 7])
def test_bounded(concurrency: int) -> None:
    """The number of files that are read ahead is limited by the source."""
    source = Scripted(concurrency)
    for taken_count, _ in enumerate(read_files(source, ITEMS, 1000), start=1):
        assert taken_count <= len(source.started) <= taken_count + concurrency


def test_reads_are_in_flight_at_once() -> None:
    """The reads of a remote source run at the same time."""
    together = threading.Barrier(5)
    source = Scripted(5, lambda number: together.wait(30))
    assert len(list(read_files(source, ITEMS, 1000))) == 40


def test_one_at_a_time_in_this_thread() -> None:
    """A local source is read by the thread that takes the files."""
    threads: set[int] = set()
    source = Scripted(1, lambda number: threads.add(threading.get_ident()))
    list(read_files(source, ITEMS, 1000))
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("planned", [5, 7])
def test_another_size(concurrency: int, planned: int) -> None:
    """A file that is shorter or longer than planned ends the reading, with both sizes."""
    items = [*ITEMS[:5], Located("05", planned), *ITEMS[6:]]
    reading = read_files(Scripted(concurrency), items, 1000)
    with pytest.raises(SourceChanged, match=f"'05' had {planned} bytes .* and has 6 now"):
        list(reading)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_too_large_is_not_read(concurrency: int) -> None:
    """A file above the limit is an error in its position, and is never opened."""
    source = Scripted(concurrency)
    results = list(read_files(source, ITEMS, 38))
    assert [type(data) for data in results[37:]] == [bytes, ImageTooLarge, ImageTooLarge]
    assert sorted(source.started) == list(range(38))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_unreadable_file(concurrency: int) -> None:
    """An unreadable file is an error in its position, and the others are returned."""

    def before(number: int) -> None:
        if number == 3:
            raise UnreadableImage("permission denied")

    results = list(read_files(Scripted(concurrency, before), ITEMS, 1000))
    assert isinstance(results[3], UnreadableImage)
    assert sum(isinstance(data, bytes) for data in results) == 39


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_store_error(concurrency: int) -> None:
    """A source that does not answer ends the reading, because this is no fault of a file."""

    def before(number: int) -> None:
        if number == 3:
            raise StoreUnreachable("no answer")

    source = Scripted(concurrency, before)
    with pytest.raises(StoreUnreachable):
        list(read_files(source, ITEMS, 1000))
    assert len(source.started) < 12


def test_large_files_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded in bytes too: large files are read a few at a time."""
    monkeypatch.setattr("dataprep.job.conversion.READ_AHEAD_BYTES", 60)
    source = Scripted(16)
    files = read_files(source, ITEMS[19:], 1000)
    assert len(next(files)) == 20  # type: ignore[arg-type]
    assert len(source.started) <= 3
    assert [len(data) for data in files if isinstance(data, bytes)] == list(range(21, 41))


@pytest.mark.parametrize("threads", [0, 1, 2, 8])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    """Results are in the order of their items, however the calls overlap."""
    first_may_go = threading.Event()

    def call(item: int) -> int:
        if item == 0 and threads > 1:
            assert first_may_go.wait(60)
        elif item == 1:
            first_may_go.set()
        return item * item

    assert list(in_order(call, range(20), threads)) == [item * item for item in range(20)]


@pytest.mark.parametrize("threads", [0, 1])
def test_whose_thread(threads: int) -> None:
    """Calls run on the caller's thread with 0 threads, and on another thread with 1."""
    threads_used = set(in_order(lambda _: threading.current_thread(), range(5), threads))
    assert (threading.current_thread() in threads_used) == (threads == 0)
    assert len(threads_used) == 1


@pytest.mark.parametrize("ahead", [0, 5])
def test_no_more_items_are_taken_than_threads_and_one(ahead: int) -> None:
    """Memory grows only with the requested read-ahead, and not with the number of items."""
    taken_items = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken_items.append(item)
            yield item

    results = in_order(lambda item: item, items(), 3, ahead=ahead)
    assert next(results) == 0
    assert len(taken_items) == 4 + ahead
    assert next(results) == 1
    assert len(taken_items) == 5 + ahead
    assert list(results) == list(range(2, 100))


def test_a_fed_result_does_not_wait_for_later_items() -> None:
    """The first result is returned before the second item exists."""
    second_may_come = threading.Event()

    def items() -> Generator[int, None, None]:
        yield 0
        assert second_may_come.wait(60)
        yield from range(1, 20)

    results = fed_in_order(lambda item: item * item, items(), 2, ahead=8)
    assert next(results) == 0
    second_may_come.set()
    assert list(results) == [item * item for item in range(1, 20)]


@pytest.mark.parametrize("taken_items", [0, 1, 5])
def test_fed_items_are_bounded_and_closed(taken_items: int) -> None:
    """Items are taken for each thread and for the read-ahead only, and are closed at the end."""
    started = []
    closed = threading.Event()

    def items() -> Generator[int, None, None]:
        try:
            for item in range(100):
                started.append(item)
                yield item
        finally:
            closed.set()

    results = fed_in_order(lambda item: item, items(), 2, ahead=3)
    for expected in range(taken_items):
        assert next(results) == expected
        assert len(started) <= expected + 2 + 2 + 3
    results.close()
    assert closed.is_set() == (taken_items > 0)


@pytest.mark.parametrize("where", ["call", "items"])
def test_an_error_of_fed_items_comes_in_its_turn(where: str) -> None:
    """Earlier results come before an error of the items, and nothing comes after it."""

    def items() -> Generator[int, None, None]:
        yield from range(3)
        if where == "items":
            raise ValueError("three")
        yield from range(3, 50)

    def call(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return item

    results = fed_in_order(call, items(), 2, ahead=4)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert list(results) == []


def test_an_error_is_raised_where_its_result_would_stand() -> None:
    """Earlier results come before an error of a call, and nothing comes after it."""

    def call(item: int) -> int:
        if item == 2:
            raise ValueError("two")
        return item

    results = in_order(call, range(100), 4)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(results)
    assert list(results) == []


def test_heavy_items_come_fewer_at_a_time() -> None:
    """The weight in flight is within the budget, or is that of one item."""
    taken_items: list[int] = []

    def items() -> Iterator[int]:
        for item in (3, 3, 3, 3, 9, 20, 1, 1):
            taken_items.append(item)
            yield item

    results = in_order(lambda item: item, items(), 4, weight=lambda item: item, budget=9)
    items_in_flight = []
    returned = []
    for result in results:
        returned.append(result)
        items_in_flight.append(taken_items[len(returned) : -1])
    assert returned == [3, 3, 3, 3, 9, 20, 1, 1]
    assert all(sum(part) <= 9 or len(part) == 1 for part in items_in_flight)
    assert max(len(part) for part in items_in_flight) == 2
