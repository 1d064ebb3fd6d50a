"""The functions that Dask workers run: make a whole shard, convert a chunk, assemble chunks.

A worker process that hangs in native code cannot run Python, so that it cannot interrupt itself.
Therefore a kernel timer (setitimer(2)) sends a signal that ends the process without running Python.
Each progress report restarts the timer. When the process has ended, Dask gives the task to another
worker. If this worker dies over the same task, too, the driver submits the shard again, with each
image converted in a separate process.

Dask cannot cancel a running task. Therefore each process counts its running tasks of a job, and a
job that ends asks all processes to stop these tasks (``stop``) before it releases its lock.
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

from dataprep.config.shard_config import SampleLimit
from dataprep.errors import JobError
from dataprep.image import ImagePolicy
from dataprep.job.conversion import (
    Outcome,
    Progress,
    Report,
    convert_batches,
    require_visible_source,
)
from dataprep.job.isolated_conversion import isolated_batches
from dataprep.job.shard_making import (
    EncodedBatch,
    assemble_shard,
    convert_task,
    encode_batches,
    make_shard,
)
from dataprep.job.shard_task import ShardResult, ShardTask
from dataprep.job.split_plan import PlannedSample
from dataprep.output.versions import require_versions
from dataprep.sources import Located, Source

WHOLE_SHARD = -1
"""The number of a chunk in progress reports of a whole shard."""

_MAX_REPORT_INTERVAL_S = 1.0
"""The maximum time between two progress reports, beside the time for converting one sample."""

_MIN_TIMER_S = 1e-6  # 0 would switch the timer off


def pack_task(task: ShardTask) -> bytes:
    """Pickle a task once. Dask would pickle the object twice in the driver, but only copies bytes.

    The samples become plain tuples, which are pickled without running Python code.
    """
    samples = [(tuple(located), *rest) for located, *rest in task.samples]
    return cast(bytes, dumps((replace(task, samples=()), samples)))


def _unpack_task(packed_task: bytes) -> ShardTask:
    """Return the task that ``pack_task`` has pickled."""
    task, tuples = loads(packed_task)
    samples = [PlannedSample(Located(*located), *rest) for located, *rest in tuples]
    return cast(ShardTask, replace(task, samples=samples))


def whole_shard(packed_task: bytes, max_uploads: int, topic: str) -> ShardResult:
    """Make a whole shard.

    Args:
        packed_task: the shard, as ``pack_task`` returns it.
        max_uploads: the maximum number of shards that all workers together store at a time.
        topic: the name that the progress events and the upload slots of the job have in Dask.

    Raises:
        LeaseLost: another run has taken over the lock, or this machine does not see the output.
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read or the shard could not be stored.
        JobError: the job was stopped; this machine does not see the source; or its libraries have
            other versions than the job.
    """
    worker = get_worker()
    task = _unpack_task(packed_task)
    with (
        _running_task(task, topic),
        _watchdog(worker, task.sample_limit) as keep_alive,
        _upload_slot(worker, topic, max_uploads) as upload_slot,
    ):
        report = _event_report(worker, topic, (task.name, WHOLE_SHARD), keep_alive)
        return make_shard(task, report, upload_slot)


def chunk(packed_task: bytes, number: int, topic: str) -> list[EncodedBatch]:
    """Convert and encode a chunk of a shard.

    Args:
        packed_task: the chunk, as ``pack_task`` returns it.
        number: a number that identifies the chunk of its shard in progress reports.
        topic: the name that the progress events of the job have in Dask.

    The errors are those of ``whole_shard``.
    """
    worker = get_worker()
    task = _unpack_task(packed_task)
    require_versions(task.versions)
    with _running_task(task, topic), _watchdog(worker, task.sample_limit) as keep_alive:
        report = _event_report(worker, topic, (task.name, number), keep_alive)
        return list(encode_batches(task, convert_task(task, report)))


def assembled_shard(
    packed_task: bytes, max_uploads: int, topic: str, *chunks: Sequence[EncodedBatch]
) -> ShardResult:
    """Assemble a shard from its chunks, and store it.

    ``chunks`` are the results of ``chunk``, in order. The other arguments and the errors are those
    of ``whole_shard``.
    """
    task = _unpack_task(packed_task)
    require_versions(task.versions)
    with (
        _running_task(task, topic),
        _upload_slot(get_worker(), topic, max_uploads) as upload_slot,
    ):
        return assemble_shard(task, chain.from_iterable(chunks), upload_slot)


def isolated_shard(packed_task: bytes, max_uploads: int, topic: str) -> ShardResult:
    """Make a shard, converting each image in a separate process.

    A process that hangs is ended by this worker, so that no watchdog is needed. The arguments and
    errors are those of ``whole_shard``. SampleLost is raised, too, as by ``isolated_batches``.
    """
    worker = get_worker()
    task = _unpack_task(packed_task)
    report = _event_report(worker, topic, (task.name, WHOLE_SHARD), lambda: None)
    items = [sample.located for sample in task.samples]
    batches = isolated_batches(task.source, items, task.policy, task.sample_limit, report)
    with _running_task(task, topic), _upload_slot(worker, topic, max_uploads) as upload_slot:
        return make_shard(task, report, upload_slot, batches)


def convert_samples(
    items: Sequence[Located],
    *,
    source: Source,
    policy: ImagePolicy,
    versions: tuple[tuple[str, str], ...],
    limit: SampleLimit,
) -> list[Outcome]:
    """Convert samples to estimate the size of records. Nothing is stored.

    Args:
        items: the samples.
        source: where the samples come from.
        policy: how images are converted.
        versions: the names and versions of the libraries in the driver.
        limit: how long the conversion of one sample may take.
    """
    require_versions(versions)
    require_visible_source(source)
    with _watchdog(get_worker(), limit) as keep_alive:
        batches = convert_batches(source, items, policy, lambda progress: keep_alive())
        return list(chain.from_iterable(batches))


def stop(topic: str) -> int:
    """Stop the tasks of a job in this process.

    No task starts or begins to store a shard any more. A running task ends when it reports its
    progress the next time.

    Returns:
        The number of tasks of the job that are still running in this process.
    """
    with _lock:
        _stopped_topics.add(topic)
        return _running_tasks[topic]


# The state of this process, which several tasks change in threads. The lock protects the rest.
_lock = threading.Lock()
_running_tasks: Counter[str] = Counter()  # the number of running tasks of each topic
_stopped_topics: set[str] = set()
_deadlines_s: dict[int, float] = {}  # by the id of the thread, on the monotonic clock


@contextmanager
def _running_task(task: ShardTask, topic: str) -> Iterator[None]:
    """Count a task while it runs. First check that it may run on this machine.

    Raises:
        LeaseLost: another run has taken over the lock, or this machine does not see the output.
        JobError: the job was stopped, or this machine does not see the source.
    """
    with _lock:
        _refuse_stopped(topic)
        _running_tasks[topic] += 1
    try:
        task.check_lock()
        require_visible_source(task.source)
        yield
    finally:
        with _lock:
            _running_tasks[topic] -= 1


def _refuse_stopped(topic: str) -> None:
    """Raise JobError if the job was stopped."""
    if topic in _stopped_topics:
        raise JobError("the driver has stopped the job, so that this task ends as well")


def _event_report(
    worker: Any, topic: str, chunk: tuple[str, int], keep_alive: Callable[[], None]
) -> Report:
    """Return a function that sends progress to the driver as a Dask event.

    The function raises JobError if the job was stopped.

    Args:
        worker: the Dask worker.
        topic: the name of the job in Dask.
        chunk: the name of the shard, and the number of the chunk or ``WHOLE_SHARD``.
        keep_alive: called with each report, to restart the timer of the watchdog.
    """

    def report(progress: Progress) -> None:
        keep_alive()
        _refuse_stopped(topic)
        totals = (progress.samples, progress.source_bytes, progress.failed)
        worker.log_event(topic, (*chunk, totals))

    return report


@contextmanager
def _watchdog(worker: Any, limit: SampleLimit) -> Iterator[Callable[[], None]]:
    """End this process if the yielded function is not called for about ``limit.seconds``.

    A worker without a nanny is not ended, because nothing would start it again. A nanny is the
    process that starts a Dask worker and restarts it.
    """
    thread = threading.get_ident()
    timeout_s = limit.seconds + _MAX_REPORT_INTERVAL_S

    def keep_alive() -> None:
        if worker.nanny:
            _set_deadline(thread, time.monotonic() + timeout_s)

    keep_alive()
    try:
        yield keep_alive
    finally:
        _set_deadline(thread, None)


def _set_deadline(thread: int, deadline_s: float | None) -> None:
    """Set the deadline of a thread on the monotonic clock, or remove it with None.

    A process has only one timer, which is set to the earliest deadline of all threads.
    """
    with _lock:
        if deadline_s is None:
            _deadlines_s.pop(thread, None)
        else:
            _deadlines_s[thread] = deadline_s
        timer_s = 0.0  # no timer
        if _deadlines_s:
            timer_s = max(min(_deadlines_s.values()) - time.monotonic(), _MIN_TIMER_S)
        signal.setitimer(signal.ITIMER_REAL, timer_s)


@contextmanager
def _upload_slot(
    worker: Any, topic: str, max_uploads: int
) -> Iterator[AbstractContextManager[None]]:
    """Yield a context in which a shard is stored while the worker begins its next task.

    Entering the context waits for a free slot of the worker, which has as many slots as threads.
    The task then gives up its thread (``secede``), so that the worker begins its next task. Last,
    entering waits for a slot of the job. All workers together have ``max_uploads`` of them, which a
    Dask semaphore with the name ``topic`` counts.
    """
    slots = Semaphore(max_leases=max_uploads, name=topic)

    @contextmanager
    def upload_slot() -> Iterator[None]:
        _set_deadline(threading.get_ident(), None)  # storing may take longer than a sample
        with _uploads_of_worker(worker.address, worker.state.nthreads):
            secede()
            with slots:
                _refuse_stopped(topic)
                yield

    try:
        yield upload_slot()
    finally:
        # Otherwise the event loop refreshes the leases of Dask's semaphore forever.
        worker.loop.add_callback(slots.refresh_callback.stop)


@lru_cache(maxsize=64)
def _uploads_of_worker(address: str, threads: int) -> threading.BoundedSemaphore:
    """The upload slots of the worker at an address. A process may have several workers.

    The cache returns the same semaphore for all tasks of a worker.
    """
    return threading.BoundedSemaphore(threads)
