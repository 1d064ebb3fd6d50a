"""Files in order, however their reads end, and never more of them than asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dataprep.errors import (
    ImageTooLarge,
    SourceChanged,
    StoreUnreachable,
    UnreadableImage,
)
from dataprep.job.worker import contents
from dataprep.sources import Listing, Located

ITEMS = [Located(f"{i:02}", i + 1) for i in range(40)]


class Scripted:
    """A source whose reads do what the test says; each file is its number, repeated."""

    uri = "scripted"

    def __init__(
        self, concurrency: int, before: Callable[[int], object] = lambda number: None
    ) -> None:
        self.concurrency = concurrency
        self._before = before
        self.started: list[int] = []
        self._lock = threading.Lock()

    def list(self) -> Listing:
        """Not asked for."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """The file."""
        with self._lock:
            self.started.append(int(item.name))
        self._before(int(item.name))
        return bytes([int(item.name)]) * (int(item.name) + 1)


@pytest.mark.parametrize("concurrency", [1, 2, 7, 64])
def test_order(concurrency: int) -> None:
    """Contents come in the order of the names, whatever the number of reads in flight."""
    found = list(contents(Scripted(concurrency), ITEMS, 1000))
    assert found == [bytes([i]) * (i + 1) for i in range(40)]


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

    found = list(contents(Scripted(4, before), ITEMS, 1000))
    assert [data[0] for data in found if isinstance(data, bytes)] == list(range(40))


@pytest.mark.parametrize("concurrency", [1, 2, 7])
def test_bounded(concurrency: int) -> None:
    """Never are more files read than were taken, and as many as the source asks for."""
    source = Scripted(concurrency)
    for taken, _ in enumerate(contents(source, ITEMS, 1000), start=1):
        assert taken <= len(source.started) <= taken + concurrency


def test_reads_are_in_flight_at_once() -> None:
    """The reads that a remote source asks for do run at the same time."""
    together = threading.Barrier(5)
    source = Scripted(5, lambda number: together.wait(30))
    assert len(list(contents(source, ITEMS, 1000))) == 40


def test_one_at_a_time_in_this_thread() -> None:
    """A local source is read by the thread that takes the files."""
    threads: set[int] = set()
    source = Scripted(1, lambda number: threads.add(threading.get_ident()))
    list(contents(source, ITEMS, 1000))
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("planned", [5, 7])
def test_another_size(concurrency: int, planned: int) -> None:
    """A file that is shorter or longer than planned ends the reading, with both sizes."""
    items = [*ITEMS[:5], Located("05", planned), *ITEMS[6:]]
    reading = contents(Scripted(concurrency), items, 1000)
    with pytest.raises(SourceChanged, match=f"'05' had {planned} bytes .* and has 6 now"):
        list(reading)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_too_large_is_not_read(concurrency: int) -> None:
    """A file above the limit is an error in its place, and is never opened."""
    source = Scripted(concurrency)
    found = list(contents(source, ITEMS, 38))
    assert [type(data) for data in found[37:]] == [bytes, ImageTooLarge, ImageTooLarge]
    assert sorted(source.started) == list(range(38))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_unreadable_file(concurrency: int) -> None:
    """A file that may not be read is an error in its place; the others come."""

    def before(number: int) -> None:
        if number == 3:
            raise UnreadableImage("permission denied")

    found = list(contents(Scripted(concurrency, before), ITEMS, 1000))
    assert isinstance(found[3], UnreadableImage)
    assert sum(isinstance(data, bytes) for data in found) == 39


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_store_error(concurrency: int) -> None:
    """A source that does not answer ends the reading, since that is no property of a file."""

    def before(number: int) -> None:
        if number == 3:
            raise StoreUnreachable("no answer")

    source = Scripted(concurrency, before)
    with pytest.raises(StoreUnreachable):
        list(contents(source, ITEMS, 1000))
    assert len(source.started) < 12


def test_large_files_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded in bytes as well: what waits to be converted does not grow with reads."""
    monkeypatch.setattr("dataprep.job.worker.READ_AHEAD_BYTES", 60)
    source = Scripted(16)
    files = contents(source, ITEMS[19:], 1000)
    assert len(next(files)) == 20  # type: ignore[arg-type]
    assert len(source.started) <= 3
    assert [len(data) for data in files if isinstance(data, bytes)] == list(range(21, 41))
