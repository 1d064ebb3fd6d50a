"""Make shards in threads of this process, for notebooks and tests.

There is no isolation: if a codec crashes, the whole process ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain

from dataprep.config.shard_config import DaskOptions, SampleLimit
from dataprep.errors import PermissionRefused, StoreError, StoreFull
from dataprep.image import ImagePolicy
from dataprep.job import shard_buffer
from dataprep.job.conversion import (
    Outcome,
    Progress,
    Report,
    convert_batches,
    cut_into_batches,
)
from dataprep.job.shard_making import EncodedBatch, assemble_shard, convert_task, encode_batches
from dataprep.job.shard_task import ShardResult, ShardTask, cut_into_chunks
from dataprep.sources import Located, Source
from dataprep.threaded_map import in_order

OnResult = Callable[[ShardResult], None]
"""A function that the driver calls for each finished shard. It may raise an error to stop the job.

The driver is the process that runs the job.
"""

_MAX_THREADS = 16
"""The maximum number of threads that convert samples for the estimate."""

_CHUNK_SAMPLES = 64


def can_be_repeated(error: StoreError) -> bool:
    """Whether making a shard again may succeed after this error of a store."""
    return not isinstance(error, PermissionRefused | StoreFull)


def repetition_message(task: ShardTask, repetition: int, retries: int, error: StoreError) -> str:
    """Return the message which says that a shard is made again, and why.

    Args:
        task: the shard.
        repetition: the number of this repetition, from 1.
        retries: the maximum number of repetitions.
        error: the error of the previous attempt.
    """
    return f"{task.name} is made again ({repetition} of at most {retries} repetitions): {error}"


class Tally:
    """Adds up the progress of a job from the totals of its shards and chunks.

    Samples that are converted a second time are not counted again. The exception is a shard that
    was converted in chunks and is made again as a whole, because its totals then have another key.

    Args:
        report: called with the progress since the last call.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._totals: dict[tuple[str, int], Progress] = {}

    def add(self, chunk: tuple[str, int], total: Progress) -> None:
        """Report how far a chunk has come since its last progress.

        Nothing is reported as long as a chunk that is made again has not reached its earlier total.

        Args:
            chunk: the name of the shard and the number of the chunk.
            total: the progress of the chunk since its start.
        """
        before = self._totals.get(chunk, Progress())
        if total.samples >= before.samples:
            self._totals[chunk] = total
            self._report(total - before)


class InProcess:
    """Makes shards one after the other, in threads of this process.

    Args:
        options: the number of threads and of retries.
        report: called with the progress since the last call.
        note: called with messages for the user.

    Attributes:
        tasks_may_run: whether tasks may continue after ``close``; always False.
    """

    tasks_may_run = False

    def __init__(
        self,
        options: DaskOptions,
        report: Report,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._options = options
        self._note = note
        self._tally = Tally(report)

    def begin(self) -> None:
        """Do nothing: there are no worker processes to start."""

    def close(self) -> None:
        """Do nothing: there are no worker processes to end."""

    def run(
        self,
        task_builders: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all shards.

        Args:
            task_builders: a function for each shard, which builds its task. It is called when the
                shard is made, so that only one task at a time is in memory.
            on_result: called with the result of each shard. It may raise an error to stop the work.
            on_ready: called before the first shard.

        Raises:
            StoreError: a shard could not be stored after all retries.
            SourceChanged, JobError: a shard cannot be made.
        """
        on_ready()
        try:
            for build_task in task_builders:
                on_result(self._make_shard(build_task()))
        finally:
            shard_buffer.release()

    def convert_samples(
        self, source: Source, policy: ImagePolicy, limit: SampleLimit, items: Sequence[Located]
    ) -> Iterator[Outcome]:
        """Convert samples to estimate the size of records. Nothing is stored."""
        # Conversion needs a thread for each processor, and reading one for each request in flight.
        threads = min(max(self._options.worker_count, source.concurrency), _MAX_THREADS)

        def convert(batch: Sequence[Located]) -> list[Outcome]:
            return list(chain.from_iterable(convert_batches(source, batch, policy)))

        with closing(in_order(convert, cut_into_batches(items), threads)) as converted_batches:
            yield from chain.from_iterable(converted_batches)

    def _make_shard(self, task: ShardTask) -> ShardResult:
        """Make a shard. Make it again after errors of the store that may be temporary."""
        for repetition in range(1, self._options.retries + 1):
            try:
                return self._try_shard(task)
            except StoreError as error:
                if not can_be_repeated(error):
                    raise
                self._note(repetition_message(task, repetition, self._options.retries, error))
        return self._try_shard(task)

    def _try_shard(self, task: ShardTask) -> ShardResult:
        """Convert the chunks of a shard in threads, and assemble them in this thread."""
        chunks = cut_into_chunks(task, _CHUNK_SAMPLES)

        def encode_chunk(start: int) -> list[EncodedBatch]:
            report = partial(self._tally.add, (task.name, start))
            return list(encode_batches(chunks[start], convert_task(chunks[start], report)))

        with closing(in_order(encode_chunk, chunks, self._options.worker_count)) as encoded_chunks:
            return assemble_shard(task, chain.from_iterable(encoded_chunks))
