"""What Dask workers run: whole shards, chunks of shards, and shards assembled from chunks.

A worker process that hangs in native code cannot be interrupted, so a timer of the kernel ends it
(setitimer(2), whose signal needs no Python to run). Each progress report sets the timer anew.
Dask gives the task to another worker; after the second death the driver asks for the shard with
each image converted in a process of its own.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

from dataprep.errors import DataprepError, JobError, SampleLost
from dataprep.execution import SampleLimit
from dataprep.image import ImagePolicy
from dataprep.job.worker import (
    Chunk,
    Item,
    Outcome,
    Progress,
    Report,
    ShardResult,
    ShardTask,
    assemble,
    convert_items,
    encoded,
    make_shard,
)
from dataprep.sources import Located, Source
from dataprep.versions import require_versions

Result = TypeVar("Result")

WHOLE = -1
"""Stands for the number of a chunk in progress reports of a whole shard."""

# A report comes at the end of the first sample after a quarter of a second.
_BETWEEN_REPORTS_S = 1.0
_SHORTEST_S = 1e-6


def packed(task: ShardTask) -> bytes:
    """Pickle a task once: Dask would do it, undo it and do it again in the driver.

    Its items are plain tuples, for which no Python code runs.
    """
    from distributed.protocol.pickle import dumps

    items = [(tuple(located), *rest) for located, *rest in task.items]
    return cast(bytes, dumps((replace(task, items=()), items)))


def _unpacked(pickled: bytes) -> ShardTask:
    from distributed.protocol.pickle import loads

    task, items = loads(pickled)
    items = [Item(Located(*located), *rest) for located, *rest in items]
    return cast(ShardTask, replace(task, items=items))


def whole_shard(shard: bytes, uploads: int, topic: str) -> ShardResult:
    """Make a shard, the ``packed`` task; ``topic`` names upload slots and progress."""

    def make(worker: Any) -> ShardResult:
        task = _unpacked(shard)
        with _watchdog(worker, task.limit) as alive, _storing(worker, topic, uploads) as storing:
            return make_shard(task, _report(worker, topic, (task.name, WHOLE), alive), storing)

    return _run(make)


def outcomes(
    items: Sequence[Located],
    *,
    source: Source,
    policy: ImagePolicy,
    versions: tuple[tuple[str, str], ...],
    limit: SampleLimit,
) -> list[Outcome]:
    """Convert samples that are in no shard yet."""

    def convert(worker: Any) -> list[Outcome]:
        require_versions(versions)
        with _watchdog(worker, limit) as alive:
            return list(convert_items(source, items, policy, lambda progress: alive()))

    return _run(convert)


def chunks(part: bytes, number: int, topic: str) -> list[Chunk]:
    """Convert the samples of a part of a shard, ``packed``; ``number`` identifies the part."""

    def convert(worker: Any) -> list[Chunk]:
        task = _unpacked(part)
        require_versions(task.versions)
        with _watchdog(worker, task.limit) as alive:
            report = _report(worker, topic, (task.name, number), alive)
            items = [item.located for item in task.items]
            return [*encoded(task, convert_items(task.source, items, task.policy, report))]

    return _run(convert)


def assembled_shard(shard: bytes, uploads: int, topic: str, *parts: Sequence[Chunk]) -> ShardResult:
    """Make a shard from its chunks."""

    def make(worker: Any) -> ShardResult:
        task = _unpacked(shard)
        require_versions(task.versions)
        with _storing(worker, topic, uploads) as storing:
            return assemble(task, chain.from_iterable(parts), storing)

    return _run(make)


def isolated_shard(shard: bytes, uploads: int, topic: str) -> ShardResult | SampleLost:
    """Make a shard, each image converted in a process of its own.

    A sample that cannot be blamed on its content is returned as the error: Dask would retry.
    """
    from dataprep.job.isolate import isolated_outcomes

    def make(worker: Any) -> ShardResult | SampleLost:
        task = _unpacked(shard)
        report = _report(worker, topic, (task.name, WHOLE), lambda: None)
        located = [item.located for item in task.items]
        outcomes = isolated_outcomes(task.source, located, task.policy, task.limit, report)
        try:
            with _storing(worker, topic, uploads) as storing:
                return make_shard(task, report, storing, outcomes=outcomes)
        except SampleLost as error:
            return error

    return _run(make)


def _run(work: Callable[[Any], Result]) -> Result:
    """``work`` with this Dask worker; of what is no Exception Dask would not tell the driver."""
    from distributed import get_worker

    try:
        return work(get_worker())
    except Exception:
        raise
    except BaseException as error:
        raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error


def _report(worker: Any, topic: str, key: tuple[str, int], alive: Callable[[], None]) -> Report:
    def report(progress: Progress) -> None:
        alive()
        totals = (progress.samples, progress.source_bytes, progress.failed)
        worker.log_event(topic, (*key, totals))

    return report


_deadlines_s: dict[int, float] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def _watchdog(worker: Any, limit: SampleLimit) -> Iterator[Callable[[], None]]:
    """End this process unless the function that is given is called every ``limit.seconds``.

    Not in a worker without a nanny: nobody would start another one.
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


@contextlib.contextmanager
def _storing(
    worker: Any, name: str, uploads: int
) -> Iterator[contextlib.AbstractContextManager[object]]:
    """The context in which to store a shard, while the worker's thread begins the next task.

    A worker stores as many shards at a time as it has threads; all workers together ``uploads``,
    which Dask's semaphore of that name counts.
    """
    from distributed import Semaphore, secede

    slots = Semaphore(max_leases=uploads, name=name)

    @contextlib.contextmanager
    def storing() -> Iterator[None]:
        _set_deadline(threading.get_ident(), None)
        with _stored_at_once(worker.address, worker.state.nthreads):
            secede()
            with slots:
                yield

    try:
        yield storing()
    finally:
        # It would have the event loop call it for ever. Not there where leases never end.
        if hasattr(slots, "refresh_callback"):
            worker.loop.add_callback(slots.refresh_callback.stop)


@lru_cache(maxsize=64)
def _stored_at_once(address: str, threads: int) -> threading.BoundedSemaphore:
    """One for each worker of this process."""
    return threading.BoundedSemaphore(threads)


def result_of(future: Any, name: str) -> ShardResult:
    """The result of a finished shard task.

    Raises:
        SampleLost, WorkerLost, DataprepError: whatever ended it.
    """
    from distributed import KilledWorker

    from dataprep.errors import WorkerLost

    try:
        result: ShardResult | SampleLost = future.result()
    except KilledWorker:
        raise WorkerLost(
            f"workers died again and again over {name}: out of memory (see --set "
            "dask.memory_limit) or killed from outside. What is stored is kept; run again to resume"
        ) from None
    except (DataprepError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error
    if isinstance(result, SampleLost):
        raise result
    return result
