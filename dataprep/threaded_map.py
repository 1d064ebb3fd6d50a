"""Call a function in several threads. Results are in the order of the items; memory is bounded."""

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
    """Yield ``call(item)`` for each item, in order.

    ``ThreadPoolExecutor.map`` takes all items at once. This function takes a new item only when the
    caller takes a result. Therefore the number of items and results in memory is bounded.

    Args:
        call: the function.
        items: its arguments.
        threads: the number of threads; 0 to call the function in the caller's thread.
        ahead: at most ``threads + 1 + ahead`` items and results exist at the same time.
        weight: returns the weight of an item, such as its bytes in memory.
        budget: the maximum weight of all items and results that exist at the same time. A heavier
            item is processed alone.
    """
    if threads == 0:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[tuple[Future[Result], int]] = deque()
        pending_weight = 0
        try:
            for item in items:
                item_weight = weight(item)
                while pending and pending_weight + item_weight > budget:
                    pending_weight -= pending[0][1]
                    # Hold no reference to the result, so that its memory is freed early.
                    yield pending.popleft()[0].result()
                pending.append((pool.submit(call, item), item_weight))
                pending_weight += item_weight
                if len(pending) > threads + ahead:
                    pending_weight -= pending[0][1]
                    yield pending.popleft()[0].result()
            while pending:
                yield pending.popleft()[0].result()
        finally:
            for future, _ in pending:
                future.cancel()


def fed_in_order(
    call: Callable[[Item], Result], items: Generator[Item, None, None], threads: int, *, ahead: int
) -> Generator[Result, None, None]:
    """Yield ``call(item)`` for each item, in order, for items that arrive slowly.

    ``in_order`` takes as many items as may exist at the same time before it yields its first
    result. Here, a separate thread takes the items. Therefore a result never waits for later items.
    The thread closes ``items`` at the end.

    Args:
        call: the function.
        items: its arguments.
        threads: the number of threads; 0 to call the function in the caller's thread.
        ahead: at most ``threads + ahead + 2`` items and results exist at the same time.
    """
    if threads == 0:
        yield from map(call, items)
        return
    # None marks the end of the items.
    futures: queue.SimpleQueue[Future[Result] | None] = queue.SimpleQueue()
    free_slots = threading.Semaphore(threads + ahead)
    is_stopped = threading.Event()

    def feed(pool: ThreadPoolExecutor) -> None:
        """Submit a call for each item, as long as there are free slots."""
        try:
            with closing(items):
                for item in items:
                    futures.put(pool.submit(call, item))
                    del item  # so that its memory is freed early
                    free_slots.acquire()
                    if is_stopped.is_set():
                        break
        except BaseException as error:  # noqa: BLE001  the consumer of the results raises it
            failed: Future[Result] = Future()
            failed.set_exception(error)
            futures.put(failed)
        futures.put(None)

    with ThreadPoolExecutor(threads) as pool:
        feeder = threading.Thread(target=feed, args=(pool,), name="feeder", daemon=True)
        feeder.start()
        try:
            while (future := futures.get()) is not None:
                free_slots.release()
                yield future.result()
        finally:
            is_stopped.set()
            free_slots.release()
            feeder.join()
            pool.shutdown(cancel_futures=True)
