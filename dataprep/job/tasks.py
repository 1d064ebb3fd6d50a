"""What Dask workers run: whole shards, chunks of shards, and shards assembled from chunks.

A worker process that hangs in native code cannot be interrupted, so a kernel timer ends it
(setitimer(2), whose signal needs no Python to run). Each progress report sets the timer anew.
Dask gives the task to another worker; after the second death the driver asks for the shard with
each image converted in a process of its own.

A task that runs cannot be cancelled either. So each process counts the tasks of a job, and a job
that ends asks all of them to stop (``stop``) before it releases its lock.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, cast

from distributed import Semaphore, get_worker, secede
from distributed.protocol.pickle import dumps, loads

from dataprep.config import SampleLimit
from dataprep.errors import JobError
from dataprep.image import ImagePolicy
from dataprep.job.isolate import isolated_outcomes
from dataprep.job.worker import (
    Chunk,
    Outcome,
    Progress,
    Report,
    ShardResult,
    ShardTask,
    assemble,
    convert_items,
    converted,
    encoded,
    make_shard,
    require_visible,
)
from dataprep.sources import Located, Source
from dataprep.split_plan import Item
from dataprep.versions import require_versions

WHOLE = -1
"""Stands for the number of a chunk in progress reports of a whole shard."""

_BETWEEN_REPORTS_S = 1.0
_SHORTEST_S = 1e-6


def packed(task: ShardTask) -> bytes:
    """Pickle a task once; Dask itself would pickle it twice in the driver.

    Its items become plain tuples, for which no Python code runs.
    """
    items = [(tuple(located), *rest) for located, *rest in task.items]
    return cast(bytes, dumps((replace(task, items=()), items)))


def _unpacked(pickled: bytes) -> ShardTask:
    task, items = loads(pickled)
    items = [Item(Located(*located), *rest) for located, *rest in items]
    return cast(ShardTask, replace(task, items=items))


def whole_shard(shard: bytes, uploads: int, topic: str) -> ShardResult:
    """Make a shard, a ``packed`` task. Upload slots and progress events are named ``topic``."""
    worker, task = get_worker(), _unpacked(shard)
    with (
        _begun(task, topic),
        _watchdog(worker, task.limit) as alive,
        _storing(worker, topic, uploads) as storing,
    ):
        return make_shard(task, _report(worker, topic, (task.name, WHOLE), alive), storing)


def chunks(part: bytes, number: int, topic: str) -> list[Chunk]:
    """Convert the samples of a part of a shard, a ``packed`` task; ``number`` identifies it."""
    worker, task = get_worker(), _unpacked(part)
    require_versions(task.versions)
    with _begun(task, topic), _watchdog(worker, task.limit) as alive:
        report = _report(worker, topic, (task.name, number), alive)
        return [*encoded(task, converted(task, report))]


def assembled_shard(shard: bytes, uploads: int, topic: str, *parts: Sequence[Chunk]) -> ShardResult:
    """Make a shard from its chunks."""
    task = _unpacked(shard)
    require_versions(task.versions)
    with _begun(task, topic), _storing(get_worker(), topic, uploads) as storing:
        return assemble(task, chain.from_iterable(parts), storing)


def isolated_shard(shard: bytes, uploads: int, topic: str) -> ShardResult:
    """Make a shard, each image converted in a process of its own."""
    worker, task = get_worker(), _unpacked(shard)
    report = _report(worker, topic, (task.name, WHOLE), lambda: None)
    items = [item.located for item in task.items]
    found = isolated_outcomes(task.source, items, task.policy, task.limit, report)
    with _begun(task, topic), _storing(worker, topic, uploads) as storing:
        return make_shard(task, report, storing, found)


def outcomes(
    items: Sequence[Located],
    *,
    source: Source,
    policy: ImagePolicy,
    versions: tuple[tuple[str, str], ...],
    limit: SampleLimit,
) -> list[Outcome]:
    """Convert samples that are in no shard yet."""
    require_versions(versions)
    require_visible(source)
    with _watchdog(get_worker(), limit) as alive:
        return list(convert_items(source, items, policy, lambda progress: alive()))


def stop(topic: str) -> int:
    """Let no task of a job begin or write in this process; return how many have not ended yet."""
    with _lock:
        _stopped.add(topic)
        return _running[topic]


_running: Counter[str] = Counter()
_stopped: set[str] = set()


@contextmanager
def _begun(task: ShardTask, topic: str) -> Iterator[None]:
    """Count a task while it runs, once it is clear that it may run here.

    Raises:
        LeaseLost: another run has taken over, or this machine does not see the output.
        JobError: the job was stopped, or this machine does not see the source.
    """
    with _lock:
        _require_going_on(topic)
        _running[topic] += 1
    try:
        task.check_lock()
        require_visible(task.source)
        yield
    finally:
        with _lock:
            _running[topic] -= 1


def _require_going_on(topic: str) -> None:
    if topic in _stopped:
        raise JobError("the job was stopped by its driver, and its tasks end as well")


def _report(worker: Any, topic: str, key: tuple[str, int], alive: Callable[[], None]) -> Report:
    def report(progress: Progress) -> None:
        alive()
        _require_going_on(topic)
        totals = (progress.samples, progress.source_bytes, progress.failed)
        worker.log_event(topic, (*key, totals))

    return report


_deadlines_s: dict[int, float] = {}
_lock = threading.Lock()


@contextmanager
def _watchdog(worker: Any, limit: SampleLimit) -> Iterator[Callable[[], None]]:
    """End this process unless the yielded function is called every ``limit.seconds``.

    A worker without a nanny is not ended, since nothing would start it again.
    """
    thread = threading.get_ident()
    seconds = limit.seconds + _BETWEEN_REPORTS_S

    def alive() -> None:
        if worker.nanny:
            _set_deadline(thread, time.monotonic() + seconds)

    alive()
    try:
        yield alive
    finally:
        _set_deadline(thread, None)


def _set_deadline(thread: int, deadline_s: float | None) -> None:
    """Set the process's timer to the first deadline of all threads."""
    with _lock:
        if deadline_s is None:
            _deadlines_s.pop(thread, None)
        else:
            _deadlines_s[thread] = deadline_s
        left_s = min(_deadlines_s.values(), default=0.0) - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left_s, _SHORTEST_S) if _deadlines_s else 0.0)


@contextmanager
def _storing(worker: Any, name: str, uploads: int) -> Iterator[AbstractContextManager[None]]:
    """The context in which to store a shard, while the worker's thread begins the next task.

    A worker stores as many shards at a time as it has threads. All workers together store
    ``uploads``, which Dask's semaphore of that name counts.
    """
    slots = Semaphore(max_leases=uploads, name=name)

    @contextmanager
    def storing() -> Iterator[None]:
        _set_deadline(threading.get_ident(), None)
        with _stored_at_once(worker.address, worker.state.nthreads):
            secede()
            with slots:
                _require_going_on(name)
                yield

    try:
        yield storing()
    finally:
        # Otherwise the event loop refreshes the semaphore's leases for ever.
        worker.loop.add_callback(slots.refresh_callback.stop)


@lru_cache(maxsize=64)
def _stored_at_once(address: str, threads: int) -> threading.BoundedSemaphore:
    """One for each worker of this process."""
    return threading.BoundedSemaphore(threads)
