"""Tests of dataprep.ordered."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dataprep.ordered import in_order


@pytest.mark.parametrize("threads", [0, 1, 2, 8])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    """However the calls overlap, results stand in the order of their items."""
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
    """With 0 calls run on the caller's thread, with 1 beside it."""
    found = set(in_order(lambda _: threading.current_thread(), range(5), threads))
    assert (threading.current_thread() in found) == (threads == 0)
    assert len(found) == 1


@pytest.mark.parametrize("ahead", [0, 5])
def test_no_more_items_are_taken_than_threads_and_one(ahead: int) -> None:
    """And as many ahead as asked: memory does not grow with the number of items."""
    taken = []

    def items() -> Iterator[int]:
        for item in range(100):
            taken.append(item)
            yield item

    results = in_order(lambda item: item, items(), 3, ahead=ahead)
    assert next(results) == 0
    assert len(taken) == 4 + ahead
    assert next(results) == 1
    assert len(taken) == 5 + ahead
    assert list(results) == list(range(2, 100))


def test_an_error_is_raised_where_its_result_would_stand() -> None:
    """Earlier results come first; nothing comes after the error."""

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
    """What is in flight weighs no more than the budget, or is one item alone."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in (3, 3, 3, 3, 9, 20, 1, 1):
            taken.append(item)
            yield item

    results = in_order(lambda item: item, items(), 4, weight=lambda item: item, budget=9)
    held = []
    found = []
    for result in results:
        found.append(result)
        held.append(taken[len(found) : -1])
    assert found == [3, 3, 3, 3, 9, 20, 1, 1]
    assert all(sum(part) <= 9 or len(part) == 1 for part in held)
    assert max(len(part) for part in held) == 2
