"""Calls side by side, results in order, a bounded number of both."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
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


def fed_in_order(
    call: Callable[[Item], Result], items: Generator[Item, None, None], threads: int, *, ahead: int
) -> Generator[Result, None, None]:
    """As ``in_order``, for items that come slowly: no result waits for the items after it.

    ``in_order`` takes all items that may exist before it gives the first result. Here a thread of
    its own takes them, and closes ``items`` at the end.
    """
    if threads == 0:
        yield from map(call, items)
        return
    futures: queue.SimpleQueue[Future[Result] | None] = queue.SimpleQueue()
    room = threading.Semaphore(threads + ahead)
    is_stopped = threading.Event()

    def feed(pool: ThreadPoolExecutor) -> None:
        try:
            with closing(items):
                for item in items:
                    futures.put(pool.submit(call, item))
                    del item
                    room.acquire()
                    if is_stopped.is_set():
                        break
        except BaseException as error:  # noqa: BLE001  it is raised where results are taken
            failed: Future[Result] = Future()
            failed.set_exception(error)
            futures.put(failed)
        futures.put(None)

    with ThreadPoolExecutor(threads) as pool:
        feeder = threading.Thread(target=feed, args=(pool,), name="feeder", daemon=True)
        feeder.start()
        try:
            while (future := futures.get()) is not None:
                room.release()
                yield future.result()
        finally:
            is_stopped.set()
            room.release()
            feeder.join()
            pool.shutdown(cancel_futures=True)
