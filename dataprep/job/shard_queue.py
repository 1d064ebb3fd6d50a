"""Distribute the shards of a job to the workers of a Dask cluster, as whole shards or in chunks."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from dataprep.config.shard_config import DaskOptions
from dataprep.errors import DataprepError, JobError, StoreError, WorkerLost
from dataprep.job.in_process import OnResult, can_be_repeated, repetition_message
from dataprep.job.shard_task import ShardResult, ShardTask, cut_into_chunks

MAX_S_WITHOUT_WORKERS = 60.0
"""The job fails if its cluster has had no worker for this time."""

MIN_CHUNK_SAMPLES = 32
"""The minimum number of samples in a chunk. Each task costs Dask some milliseconds."""

POLL_INTERVAL_S = 2.0
"""How often the queue checks whether the cluster has workers, while no task ends."""

_SHARDS_IN_FLIGHT_PER_WORKER = 3  # one is stored, one is converted, one waits
_CHUNKS_IN_FLIGHT_PER_WORKER = 2  # one is converted, one waits
_CHUNKS_PER_WORKER = 12
"""The number of chunks for each worker, into which all chunked shards together are cut.

With fewer chunks, some workers are idle at the end. Each chunk costs Dask some time.
"""


def shards_to_chunk(shards: int, workers: int) -> int:
    """Return how many of the last shards are converted in chunks.

    Workers make whole shards as long as each worker gets the same number. The remaining shards are
    fewer than the workers, so they are cut into chunks. At least one shard for every four workers
    is cut into chunks, because some workers finish before others. No more shards are cut, because
    each chunk costs some time.

    Args:
        shards: the number of shards to make, at least 0.
        workers: the number of workers, at least 1. A worker with several threads counts as several.
    """
    last_shards = shards % workers
    min_shards = workers // 4
    if last_shards < min_shards:
        last_shards += min_shards
    return min(shards, last_shards)


class ShardQueue:
    """Submits the shards of a job to a Dask cluster, and collects the results.

    Each shard but the last few is one task. The last shards are cut into chunks that any worker can
    convert, so that no worker is idle at the end. Few shards are in progress at a time. This limits
    the memory, and the work that is lost if the job is killed.

    Args:
        client: the Dask client.
        topic: the name that the progress events, the upload slots and the keys of the job have in
            Dask.
        options: the settings of the cluster.
        note: called with messages for the user.
        task_builders: a function for each shard, which builds its task. It is called when the shard
            is submitted.
        on_result: called with the result of each shard.
    """

    def __init__(
        self,
        client: Any,
        topic: str,
        options: DaskOptions,
        note: Callable[[str], None],
        task_builders: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
    ) -> None:
        self._client = client
        self._topic = topic
        self._options = options
        self._note = note
        self._on_result = on_result
        self._waiting = deque(task_builders)
        # Each thread of a Dask worker counts as a worker, because it runs one task at a time.
        threads: int = sum(worker["nthreads"] for worker in self._connected_workers().values())
        self._workers = max(threads, 1)
        self._shards_to_chunk = shards_to_chunk(len(task_builders), self._workers)
        chunks = _CHUNKS_PER_WORKER * self._workers
        self._chunks_per_shard = chunks / max(self._shards_to_chunk, 1)
        # The tasks in flight, by their keys in Dask: those that store a shard, and those of chunks.
        self._task_by_key: dict[str, ShardTask] = {}
        self._chunk_keys: set[str] = set()
        # The names of shards that are made in chunks or with isolated images, and how often each
        # shard was made again.
        self._chunked_shards: set[str] = set()
        self._isolated_shards: set[str] = set()
        self._repetitions: Counter[str] = Counter()
        self._key_numbers = itertools.count()
        # When the cluster was last seen to have workers, on the monotonic clock. The workers of a
        # configured class may first wait in the queue of a batch system, without a time limit.
        self._workers_seen_s = math.inf if options.cluster else time.monotonic()

    def run(self) -> None:
        """Submit tasks and wait for results, until all shards are made.

        Raises:
            WorkerLost: workers died over a shard, the cluster has no workers, or the connection to
                it is lost.
            SourceChanged: a sample is gone or has another size than planned.
            JobError: a worker failed.
            StoreError: a shard could not be stored after all retries.

        Errors of ``on_result`` stop the job, too.
        """
        from distributed import Semaphore, as_completed

        upload_slots = Semaphore(max_leases=self._options.max_concurrent_uploads, name=self._topic)
        running = as_completed(self._submit_next())
        try:
            while not running.is_empty():
                finished = running.next_batch(block=False)
                for future in finished:
                    new_futures = self._take_result(future)
                    if future not in new_futures:
                        future.release()  # Dask then frees the memory of the result
                    running.update([*new_futures, *self._submit_next()])
                if finished:
                    self._workers_seen_s = time.monotonic()
                    continue
                with running.thread_condition:  # Dask notifies it of each result
                    has_result = running.has_ready() or running.thread_condition.wait(
                        POLL_INTERVAL_S
                    )
                if not has_result:
                    self._require_workers()
        except BaseException:
            self._client.cancel(list(running.futures), force=True)
            raise
        upload_slots.close()

    def _connected_workers(self) -> Mapping[str, Any]:
        """Return what the scheduler knows about each of its workers, by the worker's address."""
        info = self._client.scheduler_info(n_workers=-1)
        return cast(Mapping[str, Any], info["workers"])

    def _require_workers(self) -> None:
        """Raise WorkerLost if the cluster has had no worker for too long."""
        if self._connected_workers():
            self._workers_seen_s = time.monotonic()
        elif time.monotonic() - self._workers_seen_s > MAX_S_WITHOUT_WORKERS:
            raise WorkerLost(
                f"the cluster has had no worker for {MAX_S_WITHOUT_WORKERS:.0f} s. Complete shards "
                "are kept: start workers and run the same command again to resume"
            )

    def _submit_next(self) -> list[Any]:
        """Submit waiting shards until enough are in flight. Return the new futures.

        At most three shards are in flight for each worker. A shard that is made in chunks is
        submitted only if fewer than two chunks are in flight for each worker.
        """
        futures = []
        while self._waiting and len(self._task_by_key) < self._max_shards_in_flight:
            is_chunked = len(self._waiting) <= self._shards_to_chunk
            max_chunks = _CHUNKS_IN_FLIGHT_PER_WORKER * self._workers
            if is_chunked and len(self._chunk_keys) >= max_chunks:
                break
            build_task = self._waiting.popleft()
            task = build_task()
            if is_chunked:
                self._chunked_shards.add(task.name)
            futures += self._submit(task)
        return futures

    @property
    def _max_shards_in_flight(self) -> int:
        """The maximum number of shards whose tasks Dask has."""
        return _SHARDS_IN_FLIGHT_PER_WORKER * self._workers

    def _submit(self, task: ShardTask) -> list[Any]:
        """Submit a shard in the way that was chosen for it, and return its futures.

        A shard may be submitted several times, after an error.
        """
        from dataprep.job import dask_tasks

        if task.name in self._isolated_shards:
            return [self._submit_shard(task, dask_tasks.isolated_shard)]
        if task.name in self._chunked_shards:
            return self._submit_chunks(task)
        return [self._submit_shard(task, dask_tasks.whole_shard)]

    def _submit_chunks(self, task: ShardTask) -> list[Any]:
        """Submit a task for each chunk of a shard, and a task that assembles the chunks."""
        from dataprep.job import dask_tasks

        chunk_samples = math.ceil(len(task.samples) / self._chunks_per_shard)
        # The task of each chunk, by the position of its first sample in the shard.
        chunks = cut_into_chunks(task, max(MIN_CHUNK_SAMPLES, chunk_samples))
        starts = list(chunks)
        packed_chunks = [dask_tasks.pack_task(chunk) for chunk in chunks.values()]
        futures = self._client.map(
            dask_tasks.chunk,
            packed_chunks,
            starts,
            topic=self._topic,
            key=[self._new_key("chunk", f"{task.name}.{start}") for start in starts],
            pure=False,
            priority=-task.shard,  # earlier shards come first
        )
        self._chunk_keys.update(future.key for future in futures)
        return [*futures, self._submit_shard(task, dask_tasks.assembled_shard, futures)]

    def _submit_shard(
        self, task: ShardTask, function: Callable[..., Any], chunks: Sequence[Any] = ()
    ) -> Any:
        """Submit the task that stores a shard, and return its future.

        Args:
            task: the shard.
            function: the function of ``dask_tasks`` that makes or assembles the shard.
            chunks: the futures of its chunks; none if it is made as a whole.
        """
        from dataprep.job import dask_tasks

        key = self._new_key(function.__name__, task.name)
        self._task_by_key[key] = task
        if chunks:  # the tasks of the chunks have the samples already
            task = replace(task, samples=())
        return self._client.submit(
            function,
            dask_tasks.pack_task(task),
            self._options.max_concurrent_uploads,
            self._topic,
            *chunks,
            key=key,
            pure=False,
            priority=-task.shard,  # earlier shards come first
        )

    def _new_key(self, function_name: str, name: str) -> str:
        """Return a new key, which begins with the name of the function.

        Dask groups tasks by this name. It gives the tasks of a group to free workers in the order
        of priority only if the group depends on no other tasks.
        """
        return f"{function_name}-{name}-{self._topic}-{next(self._key_numbers)}"

    def _take_result(self, future: Any) -> list[Any]:
        """Pass the result of a future to ``on_result``.

        Returns:
            The futures to wait for if the shard is made again; otherwise none.
        """
        if future.key in self._chunk_keys:  # the task that assembles the shard uses the result
            self._chunk_keys.remove(future.key)
            return []
        from distributed import KilledWorker

        task = self._task_by_key.pop(future.key)
        try:
            result: ShardResult = future.result(timeout=POLL_INTERVAL_S)
        except KilledWorker:
            return self._isolate(task)
        except StoreError as error:
            return self._repeat(task, error)
        except (DataprepError, KeyboardInterrupt):
            raise
        # The remaining errors are those of Dask, and unexpected errors of the task.
        except Exception as error:
            if isinstance(error, TimeoutError) and future.status != "error":
                # The worker died with the result, so that Dask makes the shard again.
                self._task_by_key[future.key] = task
                return [future]
            if self._client.status != "running":
                raise WorkerLost(
                    "the connection to the scheduler is lost. Complete shards are kept: start a "
                    "cluster and run the same command again to resume"
                ) from None
            raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error
        self._on_result(result)
        return []

    def _isolate(self, task: ShardTask) -> list[Any]:
        """Submit a shard again, with each image in a separate process, after workers have died.

        Raises:
            WorkerLost: workers have died again although the images were isolated.
        """
        if task.name in self._isolated_shards:
            raise WorkerLost(
                f"workers died again and again over {task.name}: they ran out of memory (see --set "
                "dask.memory_limit) or were killed from outside. Complete shards are kept: run "
                "again to resume"
            ) from None
        self._note(
            f"workers died over {task.name}: each of its images is now converted in a separate "
            "process, so that an image that crashes the decoder fails alone"
        )
        self._isolated_shards.add(task.name)
        return self._submit(task)

    def _repeat(self, task: ShardTask, error: StoreError) -> list[Any]:
        """Submit a shard again after an error of a store, or raise the error.

        The error is raised if it is permanent, or if there are no retries left.
        """
        self._repetitions[task.name] += 1
        repetition = self._repetitions[task.name]
        if not can_be_repeated(error) or repetition > self._options.retries:
            raise error
        self._note(repetition_message(task, repetition, self._options.retries, error))
        return self._submit(task)
