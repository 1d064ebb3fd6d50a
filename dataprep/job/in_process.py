"""Make shards in this process: for notebooks and tests, without protection against crashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain

from dataprep import shard_buffer
from dataprep.config import DaskOptions, SampleLimit
from dataprep.errors import PermissionRefused, StoreError, StoreFull
from dataprep.image import ImagePolicy
from dataprep.job.worker import (
    Chunk,
    Outcome,
    Progress,
    Report,
    ShardResult,
    ShardTask,
    assemble,
    chunks,
    convert_items,
    converted,
    encoded,
    parts_of,
)
from dataprep.ordered import in_order
from dataprep.sources import Located, Source

OnResult = Callable[[ShardResult], None]
"""Called in the driver for each finished shard; raising stops the job."""

_MOST_THREADS = 16
_PART_SAMPLES = 64


def may_pass(error: StoreError) -> bool:
    """Whether a shard is made again after an error of a store."""
    return not isinstance(error, PermissionRefused | StoreFull)


def made_again(task: ShardTask, number: int, retries: int, error: StoreError) -> str:
    """What is announced of the repetition of a shard: which of how many, and the reason."""
    return f"{task.name} is made again ({number} of at most {retries} repetitions): {error}"


class Tally:
    """Adds up progress that arrives as totals, of a shard or of a chunk of one.

    What is done a second time does not count again, unless a shard that was converted in chunks is
    made anew as a whole.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._totals: dict[tuple[str, int], Progress] = {}

    def add(self, key: tuple[str, int], total: Progress) -> None:
        """Report what is new of ``key``: a shard and the number of a chunk."""
        before = self._totals.get(key, Progress())
        if total.samples >= before.samples:
            self._totals[key] = total
            self._report(total - before)


class InProcess:
    """One shard after the other, converted by threads of this process."""

    tasks_may_run = False
    """No task goes on when the engine is closed."""

    def __init__(
        self,
        options: DaskOptions,
        report: Report,
        announce: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._options = options
        self._announce = announce
        self._tally = Tally(report)

    def begin(self) -> None:
        """Start nothing."""

    def close(self) -> None:
        """End nothing."""

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all shards; each task is built when its turn comes."""
        on_ready()
        try:
            for build in tasks:
                on_result(self._made(build()))
        finally:
            shard_buffer.release()

    def convert_samples(
        self, source: Source, policy: ImagePolicy, limit: SampleLimit, items: Sequence[Located]
    ) -> Iterator[Outcome]:
        """Convert samples that are in no shard yet, to learn how large records become."""
        threads = min(max(self._options.worker_count, source.concurrency), _MOST_THREADS)

        def convert(part: Sequence[Located]) -> list[Outcome]:
            return list(convert_items(source, part, policy))

        with closing(in_order(convert, chunks(items), threads)) as converted:
            yield from chain.from_iterable(converted)

    def _made(self, task: ShardTask) -> ShardResult:
        for number in range(1, self._options.retries + 1):
            try:
                return self._attempt(task)
            except StoreError as error:
                if not may_pass(error):
                    raise
                self._announce(made_again(task, number, self._options.retries, error))
        return self._attempt(task)

    def _attempt(self, task: ShardTask) -> ShardResult:
        def converted_part(start: int) -> list[Chunk]:
            report = partial(self._tally.add, (task.name, start))
            return [*encoded(parts[start], converted(parts[start], report))]

        parts = parts_of(task, _PART_SAMPLES)
        with closing(in_order(converted_part, parts, self._options.worker_count)) as made:
            return assemble(task, chain.from_iterable(made))
