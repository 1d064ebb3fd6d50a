"""Assign samples to splits and shards, and order them: ``SPLIT.plan.parquet``.

Keyed BLAKE2b hashes of the names (RFC 7693) decide the order and the splits. The result depends
only on the seed and the names, not on the version of a random generator. If a sample is added, the
other samples keep their relative order, and at most one other sample, of the same class, changes
its split. Shards are cut where the predicted bytes reach equal shares of the total. Therefore all
shards, including the last, have the same size, except for errors of the prediction.

The size of a record is predicted from the size of its source file by a piecewise linear function
through a few points (source bytes, record bytes). The calibration samples are sorted by size and
cut into slices; each point is the mean of a slice. The computation uses whole numbers only, because
the plan must be the same on every processor. On 1,000 ImageNet photographs, file sizes predict the
size of a record nearly as well as image dimensions: the standard deviation for one image is 27 % of
the mean instead of 23 %. And no file has to be opened.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError, DatasetError
from dataprep.formats import get_format
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import AnnotatedImage, BoxColumns
from dataprep.names import CODEC, escape, escape_all, unescape_all
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.output.receipt import Row, Samples
from dataprep.output.samples_table import number_column, read_table, text_column, to_numpy_array
from dataprep.sources import Listing, Located
from dataprep.sources.protocol import Integers

VALIDATION = "validation"
SMALLEST_TARGET = -(-MIN_SHARD_BYTES * 100 // 85)
LARGEST_TARGET = MAX_SHARD_BYTES * 100 // 115
MAX_SLICES = 8
"""The maximum number of points of the function that predicts the size of records."""

_MAX_MOVE = Fraction(1, 25)
"""The maximum move of a shard bound to the start of a run, as a share of a shard.

Both bounds of a shard may move, so that its size changes by up to 8 %."""

_MIN_SLICE_SAMPLES = 16
_MIN_CONVERSIONS = 32
_MAX_CONVERSIONS = 128
_PART_PATTERN = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MAX_PARTS = 999_999
# Pairs of environment variables: the number of this process or host, and the number of processes
# or hosts. The first pair is used of which both variables are set. torchrun comes before
# Kubernetes, because it may start several processes in a pod.
_BATCH_ARRAY = ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")
_KUBERNETES_JOB = ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS")
_LAUNCHER_VARIABLES = {
    "--part": (
        _BATCH_ARRAY,
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        _KUBERNETES_JOB,
    ),
    "--host": (
        _BATCH_ARRAY,
        ("GROUP_RANK", "GROUP_WORLD_SIZE"),
        ("SLURM_NODEID", "SLURM_NNODES"),
        # MPI has no variables for hosts. With one rank on each host, ranks are hosts.
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        _KUBERNETES_JOB,
    ),
}

SmallIntegers: TypeAlias = NDArray[np.int32]


def calibration_samples(samples: int) -> int:
    """Return the number of samples to convert for the calibration: a tenth, but 32 to 128."""
    tenth = samples // 10
    return min(samples, max(_MIN_CONVERSIONS, min(_MAX_CONVERSIONS, tenth)))


def choose_evenly(sizes: Integers, count: int) -> Integers:
    """Choose ``count`` rows that are evenly spread over all samples sorted by size."""
    order = np.argsort(sizes, kind="stable")
    # Cut the samples into equal slices, and take the middle of each slice.
    positions = (2 * np.arange(count, dtype=np.int64) + 1) * len(order) // (2 * count)
    return order[positions].astype(np.int64)


def choose_run_starts(containers: Sequence[str], sizes: Integers, count: int) -> Integers:
    """Choose about ``count`` rows at the start of runs that are evenly spread by size.

    A run is a sequence of neighbouring samples in one container. Reading it always begins at its
    start. The listing has the same size for all samples of a container.

    Args:
        containers: the container of each sample, in the order of the source.
        sizes: the size of each sample.
        count: how many samples to choose.
    """
    starts = _run_starts(containers)
    lengths = np.diff([*starts, len(containers)])
    share_of_runs = -(-count * len(starts) // max(len(containers), 1))
    runs = min(len(starts), max(MAX_SLICES, share_of_runs))
    samples_per_run = -(-count // max(runs, 1))
    rows: list[int] = []
    for run in sorted(choose_evenly(sizes[starts], runs).tolist()):
        start = int(starts[run])
        rows.extend(range(start, start + min(samples_per_run, int(lengths[run]))))
    return np.array(rows, dtype=np.int64)


def _run_starts(containers: Sequence[str]) -> Integers:
    """The first row of each run of neighbours in one container."""
    starts = [
        row
        for row, container in enumerate(containers)
        if row == 0 or container != containers[row - 1]
    ]
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True)
class Calibration:
    """Predicts the size of a record from the size of its source file, by interpolation.

    Attributes:
        points: pairs of source bytes and record bytes, in ascending source bytes.
    """

    points: tuple[tuple[int, int], ...]

    @classmethod
    def fit(cls, pairs: Sequence[tuple[int, int]]) -> Calibration:
        """Compute the points from samples that were converted.

        Args:
            pairs: the source bytes and the record bytes of each sample; 0 record bytes if its
                conversion failed.
        """
        ordered = sorted(pairs)
        slices = max(1, min(MAX_SLICES, len(ordered) // _MIN_SLICE_SAMPLES))
        points: list[tuple[int, int]] = []
        for i in range(slices):
            start = i * len(ordered) // slices
            stop = (i + 1) * len(ordered) // slices
            sources, records = zip(*ordered[start:stop], strict=True)
            mean_source = sum(sources) // (stop - start)
            mean_record = sum(records) // (stop - start)
            if not points or mean_source > points[-1][0]:
                points.append((max(1, mean_source), mean_record))
        return cls(tuple(points))

    def predict(self, sizes: Integers) -> Integers:
        """Predict record bytes.

        Args:
            sizes: the sizes of source files, of shape (samples,).

        Returns:
            The predicted sizes of their records, int64 of shape (samples,), never negative.
        """
        sizes = sizes.astype(np.int64)
        if len(self.points) == 1:
            source, record = self.points[0]
            # With one point, assume that record sizes are proportional to source sizes.
            return np.where(sizes > 0, np.maximum(1, sizes * record // source), 0)
        sources = np.array([source for source, _ in self.points], dtype=np.int64)
        records = np.array([record for _, record in self.points], dtype=np.int64)
        # Each size is on the segment between two neighbouring points, or beyond an end point.
        segment = np.searchsorted(sources, sizes, side="right") - 1
        segment = np.clip(segment, 0, len(sources) - 2)
        source_0, source_1 = sources[segment], sources[segment + 1]
        record_0, record_1 = records[segment], records[segment + 1]
        run = source_1 - source_0
        rise = record_1 - record_0
        # Beyond the end points, the first or the last segment is extended. There, its slope is
        # limited to the range from 0 to 1.
        is_above = sizes > source_1
        is_outside = is_above | (sizes < source_0)
        rise = np.where(is_outside, np.clip(rise, 0, run), rise)
        anchor_source = np.where(is_above, source_1, source_0)
        anchor_record = np.where(is_above, record_1, record_0)
        predicted = anchor_record + rise * (sizes - anchor_source) // run
        return np.where(sizes > 0, np.maximum(1, predicted), 0)


class PlannedSample(NamedTuple):
    """A sample of a plan in the form that workers get.

    Attributes:
        located: the name of the sample, and the location of its bytes.
        label: the 0-based label; -1 if the job is unlabelled.
        values: all labels; empty if the sample has one label.
        annotated: the boxes; None if the job has no boxes.
    """

    located: Located
    label: int
    values: tuple[float, ...] = ()
    annotated: AnnotatedImage | None = None


@dataclass(frozen=True)
class SplitPlan:
    """The rows of ``SPLIT.plan.parquet``: samples in the order in which they are written.

    Some entries of a source are not samples, such as unreadable files. Their rows come last.

    Attributes:
        names: the name of each row.
        sizes: the source bytes of each row.
        labels: the 0-based label of each row.
        predicted: the predicted record bytes of each row.
        shards: the shard of each row; -1 for an entry that is not a sample.
        statuses: ``failed`` or ``skipped`` for an entry that is not a sample, else empty.
        reasons: the reason of ``statuses``, else empty.
        containers: the file that contains the sample; no elements if every sample is a separate
            file.
        offsets: the position of the sample in its container, in bytes; no elements if every sample
            is a separate file.
        values: all labels, float32 of shape (rows, k); None if samples have one label only.
        boxes: the boxes of each row; None if the job has no boxes.
    """

    names: Sequence[str]
    sizes: Integers
    labels: SmallIntegers
    predicted: Integers
    shards: SmallIntegers
    statuses: Sequence[str]
    reasons: Sequence[str]
    containers: Sequence[str] = ()
    offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    values: NDArray[np.float32] | None = None
    boxes: BoxColumns | None = None

    @cached_property
    def shard_count(self) -> int:
        """The number of shards."""
        return int(self.shards.max(initial=-1)) + 1

    @cached_property
    def samples(self) -> int:
        """The number of rows that are samples. They come first."""
        return int((self.shards >= 0).sum())

    def rows_of(self, shard: int) -> slice:
        """Return the rows of a shard's samples."""
        start, stop = np.searchsorted(self.shards[: self.samples], [shard, shard + 1])
        return slice(int(start), int(stop))

    def samples_in(self, shard: int) -> int:
        """Return the number of samples in a shard."""
        rows = self.rows_of(shard)
        return int(rows.stop) - int(rows.start)

    def planned_samples(self, rows: slice) -> tuple[PlannedSample, ...]:
        """Return the samples of some rows in the form that workers get."""
        location_columns = [self.names[rows], self.sizes[rows].tolist()]
        if self.containers:
            location_columns += [self.containers[rows], self.offsets[rows].tolist()]
        located = [Located(*fields) for fields in zip(*location_columns, strict=True)]
        labels = self.labels[rows].tolist()
        values: list[tuple[float, ...]] = [()] * len(labels)
        if self.values is not None:
            values = [tuple(row) for row in self.values[rows].tolist()]
        annotated: list[AnnotatedImage | None] = [None] * len(labels)
        if self.boxes is not None:
            annotated = [*self.boxes.annotated_images(rows)]
        return tuple(map(PlannedSample, located, labels, values, annotated))

    def entries_without_shard(self, label_space: LabelSpace) -> Samples:
        """Return the rows of the samples table for entries that are in no shard."""
        rows = []
        for position in range(self.samples, len(self.names)):
            label = int(self.labels[position])
            row = Row(
                number=-1,
                source=escape(self.names[position]),
                label=label,
                synset=escape(label_space.synset_of(label)),
                status=self.statuses[position],
                reason=self.reasons[position],
                kind="refused",
                source_bytes=int(self.sizes[position]),
            )
            rows.append(row)
        return Samples.of(rows)

    def to_parquet(self) -> bytes:
        """Return the plan as a Parquet file, with escaped names."""
        columns = {
            "source": text_column(escape_all(self.names)),
            "source_bytes": number_column(self.sizes),
            "label": number_column(self.labels),
            "predicted_bytes": number_column(self.predicted),
            "shard": number_column(self.shards),
            "status": text_column(self.statuses),
            "reason": text_column(self.reasons),
        }
        if self.containers:
            columns["container"] = text_column(escape_all(self.containers))
            columns["offset"] = number_column(self.offsets)
        if self.values is not None:
            columns["values"] = pa.array(list(self.values), pa.list_(pa.float32()))
        if self.boxes is not None:
            columns |= self.boxes.to_arrow()
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="zstd")
        return sink.getvalue()

    @classmethod
    def from_parquet(cls, data: bytes, name: str = "the plan") -> SplitPlan:
        """Read a plan that ``to_parquet`` wrote; ``name`` is the name of the file in errors.

        Raises:
            DatasetError: the data are damaged, or are not a plan.
        """
        try:
            table = read_table(data)
            optional: dict[str, Any] = {}
            if "container" in table.column_names:
                optional["containers"] = unescape_all(table["container"].to_pylist())
                optional["offsets"] = to_numpy_array(table["offset"])
            if "values" in table.column_names:
                optional["values"] = np.array(table["values"].to_pylist(), dtype=np.float32)
            return cls(
                names=unescape_all(table["source"].to_pylist()),
                sizes=to_numpy_array(table["source_bytes"]),
                labels=to_numpy_array(table["label"]),
                predicted=to_numpy_array(table["predicted_bytes"]),
                shards=to_numpy_array(table["shard"]),
                statuses=table["status"].to_pylist(),
                reasons=table["reason"].to_pylist(),
                boxes=BoxColumns.from_arrow(table),
                **optional,
            )
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            problem = " ".join(str(error).split())[:200]
            raise DatasetError(f"{name}: damaged, or not a plan: {problem}") from None


def make_plans(
    listing: Listing,
    label_space: LabelSpace,
    calibration: Calibration,
    config: ShardConfig,
    boxes: BoxColumns | None = None,
) -> dict[str, SplitPlan]:
    """Plan the splits of a job. The main split also gets the entries that are not samples.

    Args:
        listing: the entries of the source.
        label_space: the labels.
        calibration: predicts the size of records.
        config: the config of the job.
        boxes: the boxes of each row of the listing; None if the job has no boxes.

    Returns:
        The plan of each split.

    Raises:
        ConfigError: a split would have no samples; or a sample has several labels, and the first
            is not the label of its class in this output.
    """
    labels = labels_of(listing, label_space)
    rows = sample_rows(listing)
    _require_first_value_is_label(listing, labels, rows)
    rows_by_split = {config.split: rows}
    if (share := config.validation_share) is not None:
        if listing.in_runs:
            mask = validation_mask_of_containers(listing.containers, rows, share, config.seed)
        else:
            mask = validation_mask(listing.names, labels, rows, share, config.seed)
        rows_by_split = {config.split: rows[~mask], VALIDATION: rows[mask]}
    plans = {}
    for split, rows_of_split in rows_by_split.items():
        if not len(rows_of_split):
            raise ConfigError(
                f"split {split!r} would have no samples: each class keeps one image for "
                f"{config.split!r}, and no class has a second image"
            )
        if config.shuffle:
            order = shuffled(listing.names, rows_of_split, config.seed)
        else:
            order = in_source_order(listing, rows_of_split)
        problem_rows = sorted(listing.problems) if split == config.split else []
        plans[split] = _plan_split(listing, labels, order, problem_rows, calibration, config)
        if boxes is not None:
            plan_rows = np.concatenate([order, np.array(problem_rows, dtype=np.int64)])
            plans[split] = replace(plans[split], boxes=boxes.take(plan_rows))
    return plans


def _require_first_value_is_label(listing: Listing, labels: SmallIntegers, rows: Integers) -> None:
    """Raise ConfigError if a sample has several labels, and the first is not that of its class."""
    if listing.values is None:
        return
    differing = rows[listing.values[rows, 0] != labels[rows]]
    if len(differing):
        row = int(differing[0])
        raise ConfigError(
            f"{listing.names[row]!r} has several labels. The first, {listing.values[row, 0]:g}, "
            f"is its class, but this output gives that class the label {labels[row]}, which would "
            "overwrite it: leave labels.map, labels.ground_truth and labels.classes out, give "
            "class_names in the order of the numbers, or use another --output"
        )


def _plan_split(
    listing: Listing,
    labels: SmallIntegers,
    order: Integers,
    problem_rows: Sequence[int],
    calibration: Calibration,
    config: ShardConfig,
) -> SplitPlan:
    """Plan one split.

    Args:
        listing: the entries of the source.
        labels: the label of each entry.
        order: the rows of the samples of the split, in the order in which they are written.
        problem_rows: the rows of the entries that are not samples.
        calibration: predicts the size of records.
        config: the config of the job.
    """
    predicted = calibration.predict(listing.sizes[order])
    bounds = cut_into_shards(predicted, clamp_target(int(config.shard_size)))
    if listing.in_runs:
        runs = _run_starts([listing.containers[row] for row in order.tolist()])
        bounds = move_bounds_to_runs(bounds, predicted, runs)
    shards = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
    rows = np.concatenate([order, np.array(problem_rows, dtype=np.int64)])
    problems = [listing.problems[row] for row in problem_rows]
    no_text = [""] * len(order)  # samples have neither a status nor a reason
    containers: Sequence[str] = ()
    offsets = listing.offsets
    if listing.containers:
        containers = [listing.containers[row] for row in rows.tolist()]
        offsets = listing.offsets[rows]
    return SplitPlan(
        names=[listing.names[row] for row in rows.tolist()],
        sizes=listing.sizes[rows],
        labels=labels[rows],
        predicted=np.concatenate([predicted, np.zeros(len(problems), dtype=np.int64)]),
        shards=np.concatenate([shards, np.full(len(problems), -1, dtype=np.int32)]),
        statuses=[*no_text, *(problem.status for problem in problems)],
        reasons=[*no_text, *(problem.reason for problem in problems)],
        containers=containers,
        offsets=offsets,
        values=None if listing.values is None else listing.values[rows],
    )


def used_labels(plans: Iterable[SplitPlan]) -> set[int]:
    """Return the labels of the samples in some plans, with -1 for samples without a class."""
    labels: set[int] = set()
    for plan in plans:
        labels.update(np.unique(plan.labels[: plan.samples]).tolist())
    return labels


def labels_of(listing: Listing, label_space: LabelSpace) -> SmallIntegers:
    """Return the label of each entry; -1 for an entry without a class."""
    labels = [label_space.index.get(class_name, -1) for class_name in listing.classes]
    return np.array(labels, dtype=np.int32)


def sample_rows(listing: Listing) -> Integers:
    """Return the rows of the listing that are samples."""
    is_sample = np.ones(len(listing), dtype=np.bool_)
    is_sample[list(listing.problems)] = False
    return np.flatnonzero(is_sample).astype(np.int64)


def label_offsets(config: ShardConfig, label_space: LabelSpace) -> Mapping[str, int]:
    """Return the label offset of each format: the configured offset, or the format's default.

    If the job is unlabelled, all offsets are 0, so that formats with a label store -1.
    """
    if config.unlabelled:
        return dict.fromkeys(config.format, 0)
    layout = config.record_options.layout
    offsets = {}
    for name in config.format:
        default = get_format(name).default_label_offset(label_space.are_synsets, layout)
        offsets[name] = config.label_offset.get(name, default)
    return offsets


def clamp_target(target_bytes: int) -> int:
    """Limit the target size, so that shards have 1 to 128 MB even if the prediction is 15 % off."""
    return min(max(target_bytes, SMALLEST_TARGET), LARGEST_TARGET)


def shuffled(names: Sequence[str], rows: Integers, seed: int) -> Integers:
    """Return ``rows`` in the order of the seeded hashes of their names."""
    return _in_hash_order(names, rows, seed, b"order")


def in_source_order(listing: Listing, rows: Integers) -> Integers:
    """Return ``rows`` in the order of the source."""
    if listing.order is None:
        return rows
    return listing.order[np.isin(listing.order, rows)]


def classes_in_a_shard(plan: SplitPlan) -> tuple[float, float]:
    """Return the mean number of classes in a shard: in this plan, and with shuffled samples."""
    labels = plan.labels[: plan.samples].astype(np.int64)
    shards = plan.shards[: plan.samples].astype(np.int64)
    # Combine shard and label into one number. Labels begin with -1.
    label_count = int(labels.max(initial=0)) + 2
    pairs = np.unique(shards * label_count + labels)
    _, counts = np.unique(labels, return_counts=True)
    class_shares = counts / max(plan.samples, 1)
    samples_per_shard = plan.samples / max(plan.shard_count, 1)
    # A shuffled shard has a class unless none of its samples has it.
    shuffled_classes = float(np.sum(1 - (1 - class_shares) ** samples_per_shard))
    return len(pairs) / max(plan.shard_count, 1), shuffled_classes


def validation_mask_of_containers(
    containers: Sequence[str], rows: Integers, share: Fraction, seed: int
) -> NDArray[np.bool_]:
    """Choose whole containers for the validation split.

    Args:
        containers: the container of each entry of the listing.
        rows: the rows of the samples.
        share: the share of the samples to choose.
        seed: the seed of the choice.

    Returns:
        A mask over ``rows``, true for the samples of the validation split.

    Raises:
        ConfigError: there is only one container, or none.
    """
    positions_by_container: dict[str, list[int]] = {}
    for position, row in enumerate(rows.tolist()):
        positions_by_container.setdefault(containers[row], []).append(position)
    names = [*positions_by_container]
    if len(names) < 2:
        raise ConfigError(
            "--validation takes whole row groups, of which this source has only one: give a "
            "source for each split"
        )
    target_samples = share * len(rows)
    mask = np.zeros(len(rows), dtype=np.bool_)
    order = _in_hash_order(names, np.arange(len(names), dtype=np.int64), seed, b"validation")
    samples = 0
    for containers_taken, number in enumerate(order.tolist()):
        positions = positions_by_container[names[number]]
        is_nearer = Fraction(samples) + Fraction(len(positions), 2) <= target_samples
        is_last = containers_taken == len(names) - 1
        if containers_taken > 0 and (is_last or not is_nearer):
            break
        mask[positions] = True
        samples += len(positions)
    return mask


def validation_mask(
    names: Sequence[str],
    labels: SmallIntegers,
    rows: Integers,
    share: Fraction,
    seed: int,
) -> NDArray[np.bool_]:
    """Choose the validation share of each class, rounded to whole samples.

    At least one sample of each class stays in the main split. A class of two or more samples has at
    least one in the validation split.

    Args:
        names: the name of each entry of the listing.
        labels: the label of each entry.
        rows: the rows of the samples.
        share: the share of the samples to choose.
        seed: the seed of the choice.

    Returns:
        A mask over ``rows``, true for the samples of the validation split.
    """
    hashed = _in_hash_order(names, rows, seed, b"validation")
    rank = np.empty(len(names), dtype=np.int64)
    rank[hashed] = np.arange(len(hashed))
    order = np.lexsort((rank[rows], labels[rows]))
    grouped = labels[rows][order]
    _, starts, counts = np.unique(grouped, return_index=True, return_counts=True)
    mask = np.zeros(len(rows), dtype=np.bool_)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        held_samples = int(Fraction(count) * share + Fraction(1, 2))
        held_samples = min(max(held_samples, 1), count - 1)
        mask[order[start : start + held_samples]] = True
    return mask


def cut_into_shards(predicted: Integers, target_bytes: int) -> tuple[int, ...]:
    """Cut samples into shards of equal predicted bytes, near ``target_bytes``.

    Args:
        predicted: the predicted bytes of each sample.
        target_bytes: the desired size of a shard.

    Returns:
        The bounds of the shards. Shard i has the samples from bound i up to, but not including,
        bound i + 1. Each shard has at least one sample.
    """
    count = len(predicted)
    total = int(predicted.sum())
    shards = max(1, (2 * total + target_bytes) // (2 * target_bytes))
    if total > shards * LARGEST_TARGET:
        shards += 1
    if shards > 1 and total < shards * SMALLEST_TARGET:
        shards -= 1
    shards = min(shards, count)
    ends = np.cumsum(predicted)
    middles = ends - predicted // 2
    goals = [total * i // shards for i in range(1, shards)]
    cuts = np.searchsorted(middles, np.array(goals, dtype=np.int64)).tolist()
    bounds = [0]
    for i, bound in enumerate(cuts):
        earliest = bounds[-1] + 1
        latest = count - (shards - 1 - i)
        bounds.append(min(max(bound, earliest), latest))
    return (*bounds, count)


def move_bounds_to_runs(
    bounds: Sequence[int], predicted: Integers, runs: Integers
) -> tuple[int, ...]:
    """Move each shard bound to the nearest start of a run, if that is near enough.

    If a bound is inside a run, the tasks of both shards must read the run. A bound moves by at most
    ``_MAX_MOVE`` of a shard. It does not move if a shard would become too small or too large.

    Args:
        bounds: the bounds of shards from ``cut_into_shards``.
        predicted: the predicted bytes of each sample.
        runs: the first sample of each run of neighbours in one container, ascending.
    """
    bytes_before = np.concatenate([[0], np.cumsum(predicted)])
    max_move_bytes = _MAX_MOVE * (int(bytes_before[-1]) // (len(bounds) - 1))
    moved = [*bounds]
    for number in range(1, len(bounds) - 1):
        next_run = int(np.searchsorted(runs, bounds[number]))
        candidates = runs[max(next_run - 1, 0) : next_run + 1]
        distances_bytes = np.abs(bytes_before[candidates] - bytes_before[bounds[number]])
        nearest = int(candidates[np.argmin(distances_bytes)])
        shard_bounds = [moved[number - 1], nearest, moved[number + 1]]
        shard_bytes = np.diff(bytes_before[shard_bounds])
        is_in_range = shard_bytes.min() >= SMALLEST_TARGET and shard_bytes.max() <= LARGEST_TARGET
        if is_in_range and int(distances_bytes.min()) <= max_move_bytes:
            moved[number] = nearest
    return tuple(moved)


def _in_hash_order(names: Sequence[str], rows: Integers, seed: int, purpose: bytes) -> Integers:
    """Return ``rows`` in the order of the hashes of their names.

    Different values of ``purpose`` give independent orders.
    """
    key = seed.to_bytes(8, "little", signed=True)
    hashes = [
        hashlib.blake2b(names[row].encode(*CODEC), digest_size=16, key=key, person=purpose).digest()
        for row in rows.tolist()
    ]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    return rows[np.array(order, dtype=np.int64)]


def _launcher_variables(option: str) -> tuple[str, str]:
    """Return the pair of environment variables that ``auto`` reads for an option.

    Raises:
        ConfigError: no pair is set.
    """
    for index, count in _LAUNCHER_VARIABLES[option]:
        if {index, count} <= os.environ.keys():
            return index, count
    index, count = _KUBERNETES_JOB
    if index in os.environ:
        raise ConfigError(
            f"{option} auto: Kubernetes sets {index}, but not the number of indexes: set {count} "
            f"to spec.completions in the env of the container (docs/kubernetes.md), or give "
            f"{option} I/N"
        )
    if count in os.environ:
        raise ConfigError(
            f"{option} auto: {count} is set, but not {index}, which Kubernetes sets in the pods of "
            f"an Indexed Job: set spec.completionMode to Indexed (docs/kubernetes.md), or give "
            f"{option} I/N"
        )
    raise ConfigError(
        f"{option} auto: this process was started by none of Slurm (srun), torchrun, an AWS Batch "
        f"array and an Indexed Job of Kubernetes: give {option} I/N"
    )


class Part(NamedTuple):
    """One host's share of a job, as ``--part I/N`` gives it.

    Part I of N has the shards I, I + N, I + 2N and so on. Two parts therefore have equally many
    shards, or differ by one shard.

    Attributes:
        number: the number of the part, from 0.
        count: the number of parts.
    """

    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str, option: str = "--part") -> Part:
        """Read ``I/N``, such as ``0/4`` to ``3/4``, or ``auto``.

        ``auto`` takes both numbers from the environment variables of the launcher, such as an AWS
        Batch array, torchrun, Slurm or an Indexed Job of Kubernetes.

        Args:
            text: the value of the option.
            option: the name of the option: ``--part`` or ``--host``. They read other variables for
                ``auto``.

        Raises:
            ConfigError: the text is neither, or no launcher has set its variables.
        """
        problem = (
            f"{option} {text!r}: write I/N with I from 0 to N-1 and N at most {_MAX_PARTS:,}, as "
            f"in {option} 0/4 for the first of four"
        )
        if text == "auto":
            index, count = _launcher_variables(option)
            text = f"{os.environ[index]}/{os.environ[count]}"
            problem = (
                f"{option} auto: {index} is {os.environ[index]!r} and {count} is "
                f"{os.environ[count]!r}: the first must be a number from 0 on, below the second, "
                f"and the second at most {_MAX_PARTS:,}: correct them, or give {option} I/N"
            )
        match = _PART_PATTERN.fullmatch(text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise ConfigError(problem)
        return cls(int(match[1]), int(match[2]))

    def of(self, shards: Iterable[int]) -> list[int]:
        """Return the shards among ``shards`` that belong to this part."""
        return [shard for shard in shards if shard % self.count == self.number]
