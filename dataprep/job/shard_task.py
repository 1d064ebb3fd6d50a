"""The task of making one shard, or a chunk of a shard, and the result that a worker reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dataprep.config.shard_config import DEFAULT_SAMPLE_LIMIT, SampleLimit
from dataprep.formats import IMAGENET, Layout
from dataprep.image import ImagePolicy
from dataprep.job.split_plan import PlannedSample
from dataprep.labels import LabelSpace
from dataprep.labels.options import BoxOptions
from dataprep.output import keys
from dataprep.sources import ReadsRuns, Source
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, no_lock

_MAX_PIECE_CHUNKS = 4
"""The maximum length of a piece of a run, in chunks. A longer run is cut into several pieces.

Cutting costs time, because each piece must read the run from its start. Without it, one worker
would convert a long run while the others have nothing to do.
"""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Everything that a worker needs to make a shard, or to convert a chunk of a shard.

    Attributes:
        fingerprint: the fingerprint of the job.
        versions: the names and versions of the libraries that the job was planned with.
        split: the split that the shard belongs to.
        shard: the number of the shard, from 0.
        shards: the number of shards of the split.
        first_number: the position of the first of ``samples`` in the plan of the split, from 0.
        samples: the samples of the shard or chunk, in the order of their records.
        label_space: the classes and their labels.
        policy: how images are converted.
        label_offsets: the names of the formats to write, each with the number that its records add
            to a label.
        source: where the samples come from.
        store: the output.
        layout: the features of TFRecord examples.
        boxes: the settings of bounding boxes; None if the job has no boxes.
        sample_limit: how long the conversion of one sample may take, and what happens if it takes
            longer.
        check_lock: raises LeaseLost if another run has taken over the lock.
    """

    fingerprint: str
    versions: tuple[tuple[str, str], ...]
    split: str
    shard: int
    shards: int
    first_number: int
    samples: Sequence[PlannedSample]
    label_space: LabelSpace
    policy: ImagePolicy
    label_offsets: tuple[tuple[str, int], ...]
    source: Source
    store: Store
    layout: Layout = IMAGENET
    boxes: BoxOptions | None = None
    sample_limit: SampleLimit = DEFAULT_SAMPLE_LIMIT
    check_lock: LockCheck = no_lock

    @property
    def name(self) -> str:
        """The name of the shard, as in the names of its files: ``train-00000-of-00012``."""
        return keys.numbered(self.split, self.shard, self.shards)


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What a worker reports of a finished shard. The receipt contains the details.

    Attributes:
        shard: the number of the shard.
        samples: the number of its samples, including failed and skipped samples.
        failed: the number of samples that failed.
        examples: the names and reasons of the first few samples that failed.
    """

    shard: int
    samples: int
    failed: int
    examples: tuple[tuple[str, str], ...] = ()


def cut_into_chunks(task: ShardTask, chunk_samples: int) -> dict[int, ShardTask]:
    """Cut a shard into chunks, which several workers can convert. Each chunk is a task.

    A run is a sequence of neighbouring samples in one container. If the source reads whole runs
    (``ReadsRuns``), a chunk ends where a run ends, unless the run is much longer than a chunk.

    Args:
        task: the shard.
        chunk_samples: the number of samples in each chunk but the last. If the source reads whole
            runs, a chunk may have more.

    Returns:
        The tasks of the chunks, by the position of their first sample in the shard; none if the
        shard has no samples.
    """
    sample_count = len(task.samples)
    if isinstance(task.source, ReadsRuns):
        starts = _chunk_starts_at_runs(task.samples, chunk_samples)
    else:
        starts = list(range(0, sample_count, chunk_samples))
    stops = [*starts[1:], sample_count]
    chunks = {}
    for start, stop in zip(starts, stops, strict=True):
        samples = task.samples[start:stop]
        chunks[start] = replace(task, samples=samples, first_number=task.first_number + start)
    return chunks


def _chunk_starts_at_runs(samples: Sequence[PlannedSample], chunk_samples: int) -> list[int]:
    """The position of the first sample of each chunk, chosen so that few runs are read twice.

    Each chunk but the last has at least ``chunk_samples`` samples. Therefore several short runs
    may be in one chunk.
    """
    if not samples:
        return []
    starts = [0]
    run_start = 0
    for _, run in groupby(samples, key=lambda sample: sample.located.container):
        run_length = len(list(run))
        # Cut the run into as few pieces as the limit allows, of about equal lengths.
        piece_count = -(-run_length // (_MAX_PIECE_CHUNKS * chunk_samples))  # rounded up
        for piece in range(1, piece_count + 1):
            stop = run_start + run_length * piece // piece_count
            if stop - starts[-1] >= chunk_samples and stop < len(samples):
                starts.append(stop)
        run_start += run_length
    return starts
