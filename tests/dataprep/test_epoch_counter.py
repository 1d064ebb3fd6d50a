"""Workers of a loader agree on the epoch that they read."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.context import ForkProcess

from dataprep.reading.epoch_counter import EpochCounter, LoaderWorker

FORK = multiprocessing.get_context("fork")
_TICK_S = 0.02
"""Longer than the steps in which Linux counts when a process was started."""


def start_worker(counter: EpochCounter, number: int, seed: int = 1) -> ForkProcess:
    """A worker process of two, which claims an epoch, ends its iteration and puts the epoch out."""

    def work() -> None:
        if number == 1:
            may_claim.wait()
        iteration = counter.claim(LoaderWorker(number, 2, seed))
        may_end.wait()
        counter.end(iteration)
        epochs.put(iteration.epoch)

    worker = FORK.Process(target=work)
    worker.start()
    return worker


may_claim = FORK.Event()
may_end = FORK.Event()
epochs: multiprocessing.Queue[int] = FORK.Queue()


def test_a_worker_that_starts_slowly_belongs_to_its_own_iteration() -> None:
    """It claims no epoch of its own if the program has left the loop before it came."""
    may_claim.clear()
    may_end.clear()
    counter = EpochCounter(5)
    # A loader starts all of its workers before any of them can end.
    first, second = start_worker(counter, 0), start_worker(counter, 1)
    may_end.set()
    assert epochs.get(timeout=30) == 5
    first.join()
    may_claim.set()
    assert epochs.get(timeout=30) == 5
    second.join()
    assert counter.following() == 6


def test_a_later_iteration_with_the_same_seed_has_the_next_epoch() -> None:
    """Programs seed torch anew, so that iterations can have equal seeds."""
    may_claim.set()
    may_end.set()
    counter = EpochCounter(5)
    first = start_worker(counter, 0)
    assert epochs.get(timeout=30) == 5
    first.join()
    time.sleep(_TICK_S)
    second = start_worker(counter, 1)
    assert epochs.get(timeout=30) == 6
    second.join()
