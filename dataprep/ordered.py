"""Calls side by side, results in order, a bounded number of both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    call: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    *,
    ahead: int = 0,
    weight: Callable[[Item], int] = lambda item: 0,
    budget: int = 0,
) -> Generator[Result, None, None]:
    """``map(call, items)`` on ``threads`` threads, with 0 on the caller's own.

    Unlike an executor's ``map`` it takes items as results are taken, so that at most
    ``threads + 1`` of either exist at a time, and ``ahead`` more. Their weights together stay
    within ``budget``, unless a single item exceeds it.
    """
    if threads == 0:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[tuple[Future[Result], int]] = deque()
        held = 0
        try:
            for item in items:
                added = weight(item)
                while pending and held + added > budget:
                    held -= pending[0][1]
                    yield pending.popleft()[0].result()  # no name here keeps it alive
                pending.append((pool.submit(call, item), added))
                held += added
                if len(pending) > threads + ahead:
                    held -= pending[0][1]
                    yield pending.popleft()[0].result()
            while pending:
                yield pending.popleft()[0].result()
        finally:
            for future, _ in pending:
                future.cancel()
