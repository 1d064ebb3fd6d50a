"""A loop runs ahead of its GPU by two steps, no more."""

from __future__ import annotations

from iobench.consumers.queue import Queue


def test_the_oldest_is_waited_for_once_there_are_more_than_two() -> None:
    """Step 3 waits for step 1, and so on."""
    waited: list[int] = []
    queue = Queue(waited.append)
    for step in range(5):
        queue.add(step)
    assert waited == [0, 1, 2]


def test_what_is_past_is_waited_for_no_more() -> None:
    """After the loop has waited for the device itself."""
    waited: list[int] = []
    queue = Queue(waited.append)
    for step in (1, 2):
        queue.add(step)
    queue.clear()
    queue.add(3)
    queue.add(4)
    assert waited == []
