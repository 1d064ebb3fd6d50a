"""Which sample goes into which split and shard, and in which order: ``SPLIT.plan.parquet``.

Order and splits come from keyed BLAKE2b hashes of the names (RFC 7693): they depend on the seed and
on the names alone, not on a random generator's version. A sample that is added changes the relative
order of no others, and the split of at most one other, of its own class. Shards are cut where the
predicted bytes reach equal shares, so that all of them, the last included, have the same size but
for the error of prediction.

How large records become is a line through a handful of points (source bytes, record bytes), each
the mean of one slice of the calibration sample ordered by size. Whole numbers only: the plan must
be the same on every processor. On 1,000 ImageNet photographs the size of the file predicts nearly
as well as its dimensions do (standard deviation of 27 % against 23 % of the mean, one image), and
no file has to be opened.
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

from dataprep.config import ShardConfig
from dataprep.errors import ConfigError, DatasetError
from dataprep.formats import get_format
from dataprep.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import Annotated, BoxColumns
from dataprep.manifest import Row, Samples
from dataprep.names import CODEC, escape, escape_all, unescape_all
from dataprep.samples import in_numpy, numbers, read_table, texts
from dataprep.sources import Listing, Located
from dataprep.sources.protocol import Integers

VALIDATION = "validation"
SMALLEST_TARGET = -(-MIN_SHARD_BYTES * 100 // 85)
LARGEST_TARGET = MAX_SHARD_BYTES * 100 // 115
MAX_SLICES = 8
"""Points of the line that predicts the size of records."""

_MOST_MOVED = Fraction(1, 25)
"""How far the bound of a shard may be from equal shares, as a share of a shard, where its samples
are read in runs. Both bounds of a shard may move: 8 % beside the error of prediction."""

_PER_SLICE = 16
_LEAST, _MOST = 32, 128
_PART = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MOST_PARTS = 999_999
# Variables with the number of this process, or of its host, and with how many there are. The first
# pair counts of which both are set: torchrun within a pod of Kubernetes starts several processes.
_ARRAY = ("AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")
_INDEXED_JOB = ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS")
_STARTED_BY = {
    "--part": (
        *(_ARRAY, ("RANK", "WORLD_SIZE")),
        *(("SLURM_PROCID", "SLURM_NTASKS"), _INDEXED_JOB),
    ),
    "--host": (
        *(_ARRAY, ("GROUP_RANK", "GROUP_WORLD_SIZE"), ("SLURM_NODEID", "SLURM_NNODES")),
        # MPI names ranks only: start one on each host.
        *(("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")),
        _INDEXED_JOB,
    ),
}

Labels: TypeAlias = NDArray[np.int32]


def sample_size(samples: int) -> int:
    """How many conversions to calibrate with: a tenth, at least 32, at most 128."""
    return min(samples, max(_LEAST, min(_MOST, samples // 10)))


def pick(sizes: Integers, count: int) -> Integers:
    """``count`` rows, evenly spread over the samples in order of size."""
    order = np.argsort(sizes, kind="stable")
    places = (2 * np.arange(count, dtype=np.int64) + 1) * len(order) // (2 * count)
    return order[places].astype(np.int64)


def pick_runs(containers: Sequence[str], sizes: Integers, count: int) -> Integers:
    """About ``count`` places: the beginnings of some runs, evenly spread over runs by size.

    A run is read from its beginning, and its samples have one size.

    Args:
        containers: that of each sample, in the order of the source.
        sizes: of each sample.
        count: of samples.
    """
    starts = _run_starts(containers)
    lengths = np.diff([*starts, len(containers)])
    needed = -(-count * len(starts) // max(len(containers), 1))
    runs = min(len(starts), max(MAX_SLICES, needed))
    each = -(-count // max(runs, 1))
    places: list[int] = []
    for run in sorted(pick(sizes[starts], runs).tolist()):
        start = int(starts[run])
        places.extend(range(start, start + min(each, int(lengths[run]))))
    return np.array(places, dtype=np.int64)


def _run_starts(containers: Sequence[str]) -> Integers:
    """Where each run of neighbours in one container begins."""
    starts = [
        place
        for place, container in enumerate(containers)
        if place == 0 or container != containers[place - 1]
    ]
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True)
class Calibration:
    """Points of the line, in ascending source bytes."""

    points: tuple[tuple[int, int], ...]

    @classmethod
    def fit(cls, pairs: Sequence[tuple[int, int]]) -> Calibration:
        """Learn from (source bytes, record bytes); a failed conversion counts as 0 bytes."""
        ordered = sorted(pairs)
        slices = max(1, min(MAX_SLICES, len(ordered) // _PER_SLICE))
        points: list[tuple[int, int]] = []
        for i in range(slices):
            start = i * len(ordered) // slices
            stop = (i + 1) * len(ordered) // slices
            sources, records = zip(*ordered[start:stop], strict=True)
            source = sum(sources) // (stop - start)
            record = sum(records) // (stop - start)
            if not points or source > points[-1][0]:
                points.append((max(1, source), record))
        return cls(tuple(points))

    def predict(self, sizes: Integers) -> Integers:
        """Record bytes for each of ``sizes``: int64, never negative."""
        sizes = sizes.astype(np.int64)
        if len(self.points) == 1:
            source, record = self.points[0]
            # One point shows no constant part: sizes are taken as proportional.
            return np.where(sizes > 0, np.maximum(1, sizes * record // source), 0)
        x = np.array([point[0] for point in self.points], dtype=np.int64)
        y = np.array([point[1] for point in self.points], dtype=np.int64)
        segment = np.clip(np.searchsorted(x, sizes, side="right") - 1, 0, len(x) - 2)
        following = segment + 1
        x0, x1 = x[segment], x[following]
        y0, y1 = y[segment], y[following]
        rise = y1 - y0
        # Beyond the ends the line goes on, but never falls and never outgrows the source.
        run, above = x1 - x0, sizes > x1
        outside = above | (sizes < x0)
        rise = np.where(outside, np.clip(rise, 0, run), rise)
        anchor_x = np.where(above, x1, x0)
        anchor_y = np.where(above, y1, y0)
        predicted = anchor_y + rise * (sizes - anchor_x) // run
        return np.where(sizes > 0, np.maximum(1, predicted), 0)


class Item(NamedTuple):
    """One sample of a plan: where its bytes are, its 0-based label, all its labels, its boxes.

    ``label`` is -1 where a job is unlabelled. ``values`` is empty where a sample has one label,
    ``annotated`` None where a job has no boxes.
    """

    located: Located
    label: int
    values: tuple[float, ...] = ()
    annotated: Annotated | None = None


@dataclass(frozen=True)
class SplitPlan:
    """The rows of ``SPLIT.plan.parquet``: samples in the order and shard they are written to.

    ``shards`` is -1 for entries that are no samples, which come last; ``statuses`` and ``reasons``
    say why. ``containers`` and ``offsets`` are empty where every sample is a file of its own.
    ``values``, float32 of shape (rows, k), is None where a sample has one label only, ``boxes``
    where the job has none.
    """

    names: Sequence[str]
    sizes: Integers
    labels: Labels
    predicted: Integers
    shards: Labels
    statuses: Sequence[str]
    reasons: Sequence[str]
    containers: Sequence[str] = ()
    offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    values: NDArray[np.float32] | None = None
    boxes: BoxColumns | None = None

    @cached_property
    def shard_count(self) -> int:
        """How many shards."""
        return int(self.shards.max(initial=-1)) + 1

    @cached_property
    def samples(self) -> int:
        """How many rows are samples."""
        return int((self.shards >= 0).sum())

    def rows_of(self, shard: int) -> slice:
        """The rows of one shard's samples."""
        start, stop = np.searchsorted(self.shards[: self.samples], [shard, shard + 1])
        return slice(int(start), int(stop))

    def samples_in(self, shard: int) -> int:
        """How many samples a shard has."""
        rows = self.rows_of(shard)
        return int(rows.stop) - int(rows.start)

    def items(self, rows: slice) -> tuple[Item, ...]:
        """Some samples, as a worker needs them."""
        columns = [self.names[rows], self.sizes[rows].tolist()]
        if self.containers:
            columns += [self.containers[rows], self.offsets[rows].tolist()]
        places = [Located(*place) for place in zip(*columns, strict=True)]
        labels = self.labels[rows].tolist()
        values: list[tuple[float, ...]] = [()] * len(labels)
        if self.values is not None:
            values = [tuple(each) for each in self.values[rows].tolist()]
        annotated: list[Annotated | None] = [None] * len(labels)
        if self.boxes is not None:
            annotated = [*self.boxes.of(rows)]
        return tuple(map(Item, places, labels, values, annotated))

    def others(self, label_space: LabelSpace) -> Samples:
        """Entries that are in no shard, as rows of the samples table."""
        rows = []
        for i in range(self.samples, len(self.names)):
            label = int(self.labels[i])
            synset = label_space.synset_of(label)
            row = Row(
                number=-1,
                source=escape(self.names[i]),
                label=label,
                synset=escape(synset),
                status=self.statuses[i],
                reason=self.reasons[i],
                kind="refused",
                source_bytes=int(self.sizes[i]),
            )
            rows.append(row)
        return Samples.of(rows)

    def to_parquet(self) -> bytes:
        """As stored; names escaped."""
        columns = {
            "source": texts(escape_all(self.names)),
            "source_bytes": numbers(self.sizes),
            "label": numbers(self.labels),
            "predicted_bytes": numbers(self.predicted),
            "shard": numbers(self.shards),
            "status": texts(self.statuses),
            "reason": texts(self.reasons),
        }
        if self.containers:
            columns["container"] = texts(escape_all(self.containers))
            columns["offset"] = numbers(self.offsets)
        if self.values is not None:
            columns["values"] = pa.array(list(self.values), pa.list_(pa.float32()))
        if self.boxes is not None:
            columns |= self.boxes.to_arrow()
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink, compression="zstd")
        return sink.getvalue()

    @classmethod
    def from_parquet(cls, data: bytes, name: str = "the plan") -> SplitPlan:
        """Read what ``to_parquet`` wrote; ``name`` is what errors call it.

        Raises:
            DatasetError: no such table, or a damaged one.
        """
        try:
            table = read_table(data)
            within: dict[str, Any] = {}
            if "container" in table.column_names:
                within["containers"] = unescape_all(table["container"].to_pylist())
                within["offsets"] = in_numpy(table["offset"])
            if "values" in table.column_names:
                within["values"] = np.array(table["values"].to_pylist(), dtype=np.float32)
            return cls(
                names=unescape_all(table["source"].to_pylist()),
                sizes=in_numpy(table["source_bytes"]),
                labels=in_numpy(table["label"]),
                predicted=in_numpy(table["predicted_bytes"]),
                shards=in_numpy(table["shard"]),
                statuses=table["status"].to_pylist(),
                reasons=table["reason"].to_pylist(),
                boxes=BoxColumns.from_arrow(table),
                **within,
            )
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())[:200]
            raise DatasetError(f"{name}: damaged, or not a plan: {why}") from None


def make_plans(
    listing: Listing,
    label_space: LabelSpace,
    calibration: Calibration,
    config: ShardConfig,
    boxes: BoxColumns | None = None,
) -> dict[str, SplitPlan]:
    """Split, order and cut. Entries that are no samples go to the main split's plan.

    ``boxes`` has a row for each of the listing.

    Raises:
        ConfigError: a split would have no samples, or a label would overwrite the first of several
            labels of a sample.
    """
    labels = labels_of(listing, label_space)
    rows = sample_rows(listing)
    _require_values_kept(listing, labels, rows)
    parts = {config.split: rows}
    if (share := config.validation_share) is not None:
        if listing.in_runs:
            mask = held_out_runs(listing.containers, rows, share, config.seed)
        else:
            mask = held_out(listing.names, labels, rows, share, config.seed)
        parts = {config.split: rows[~mask], VALIDATION: rows[mask]}
    plans = {}
    for split, part in parts.items():
        if not len(part):
            raise ConfigError(
                f"split {split!r} would have no samples: each class keeps one image for "
                f"{config.split!r}, and no class has a second one"
            )
        if config.shuffle:
            order = shuffled(listing.names, part, config.seed)
        else:
            order = in_source_order(listing, part)
        others = sorted(listing.problems) if split == config.split else []
        plans[split] = _split_plan(listing, labels, order, others, calibration, config)
        if boxes is not None:
            rows_of_split = np.concatenate([order, np.array(others, dtype=np.int64)])
            plans[split] = replace(plans[split], boxes=boxes.take(rows_of_split))
    return plans


def _require_values_kept(listing: Listing, labels: Labels, rows: Integers) -> None:
    if listing.values is None:
        return
    differing = rows[listing.values[rows, 0] != labels[rows]]
    if len(differing):
        row = int(differing[0])
        raise ConfigError(
            f"{listing.names[row]!r} has several labels, of which the first, "
            f"{listing.values[row, 0]:g}, is its class, but that class has the label {labels[row]} "
            "in this output, which would overwrite it: leave labels.map, labels.ground_truth and "
            "labels.classes out, give class_names in the order of the numbers, or use another "
            "--output"
        )


def _split_plan(
    listing: Listing,
    labels: Labels,
    order: Integers,
    others: Sequence[int],
    calibration: Calibration,
    config: ShardConfig,
) -> SplitPlan:
    predicted = calibration.predict(listing.sizes[order])
    bounds = cut(predicted, clamp_target(int(config.shard_size)))
    if listing.in_runs:
        runs = _run_starts([listing.containers[row] for row in order.tolist()])
        bounds = moved_to_runs(bounds, predicted, runs)
    shards = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
    rows = np.concatenate([order, np.array(others, dtype=np.int64)])
    problems = [listing.problems[row] for row in others]
    none = [""] * len(order)
    return SplitPlan(
        names=[listing.names[row] for row in rows.tolist()],
        sizes=listing.sizes[rows],
        labels=labels[rows],
        predicted=np.concatenate([predicted, np.zeros(len(others), dtype=np.int64)]),
        shards=np.concatenate([shards, np.full(len(others), -1, dtype=np.int32)]),
        statuses=[*none, *(problem.status for problem in problems)],
        reasons=[*none, *(problem.reason for problem in problems)],
        containers=[listing.containers[row] for row in rows.tolist()] if listing.containers else (),
        offsets=listing.offsets[rows] if listing.containers else listing.offsets,
        values=None if listing.values is None else listing.values[rows],
    )


def used_labels(plans: Iterable[SplitPlan]) -> set[int]:
    """The labels of the samples in these plans; -1 where there is no class."""
    return {label for plan in plans for label in np.unique(plan.labels[: plan.samples]).tolist()}


def labels_of(listing: Listing, label_space: LabelSpace) -> Labels:
    """The label of each entry, -1 where it has no class."""
    return np.array([label_space.index.get(group, -1) for group in listing.classes], dtype=np.int32)


def sample_rows(listing: Listing) -> Integers:
    """Rows of the listing that are samples."""
    is_sample = np.ones(len(listing), dtype=np.bool_)
    is_sample[list(listing.problems)] = False
    return np.flatnonzero(is_sample).astype(np.int64)


def label_offsets(config: ShardConfig, label_space: LabelSpace) -> Mapping[str, int]:
    """Format name to the offset inside its records: as configured, else the format's own.

    Samples without a class have -1 in every format that has a label.
    """
    if config.unlabelled:
        return dict.fromkeys(config.format, 0)
    layout = config.record_options.layout
    own = {
        name: get_format(name).default_label_offset(label_space.are_synsets, layout)
        for name in config.format
    }
    return {name: config.label_offset.get(name, offset) for name, offset in own.items()}


def clamp_target(target_bytes: int) -> int:
    """The target, moved so that a shard 15 % off still has 1 to 128 MB."""
    return min(max(target_bytes, SMALLEST_TARGET), LARGEST_TARGET)


def shuffled(names: Sequence[str], rows: Integers, seed: int) -> Integers:
    """``rows`` in the order of the seeded hashes of their names."""
    return _by_hash(names, rows, seed, b"order")


def in_source_order(listing: Listing, rows: Integers) -> Integers:
    """``rows`` in the source's own order."""
    if listing.order is None:
        return rows
    return listing.order[np.isin(listing.order, rows)]


def classes_in_a_shard(plan: SplitPlan) -> tuple[float, float]:
    """How many classes a shard has on average, and how many one of shuffled samples would have."""
    labels = plan.labels[: plan.samples].astype(np.int64)
    _, counts = np.unique(labels, return_counts=True)
    keys = plan.shards[: plan.samples].astype(np.int64) * (int(labels.max(initial=0)) + 2) + labels
    shares = counts / max(plan.samples, 1)
    samples_a_shard = plan.samples / max(plan.shard_count, 1)
    shuffled = float(np.sum(1 - (1 - shares) ** samples_a_shard))
    return len(np.unique(keys)) / max(plan.shard_count, 1), shuffled


def held_out_runs(
    containers: Sequence[str], rows: Integers, share: Fraction, seed: int
) -> NDArray[np.bool_]:
    """Mask over ``rows``: whole containers with about the validation share of all samples.

    Raises:
        ConfigError: there is only one container, or none.
    """
    members: dict[str, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        members.setdefault(containers[row], []).append(place)
    names = [*members]
    if len(names) < 2:
        raise ConfigError(
            "--validation takes whole row groups, of which this source has only one: give a "
            "source for each split"
        )
    wanted = share * len(rows)
    mask = np.zeros(len(rows), dtype=np.bool_)
    hashed = _by_hash(names, np.arange(len(names), dtype=np.int64), seed, b"validation")
    held = 0
    for taken, number in enumerate(hashed.tolist()):
        places = members[names[number]]
        is_nearer = Fraction(held) + Fraction(len(places), 2) <= wanted
        if taken > 0 and (not is_nearer or taken == len(names) - 1):
            break
        mask[places] = True
        held += len(places)
    return mask


def held_out(
    names: Sequence[str],
    labels: Labels,
    rows: Integers,
    share: Fraction,
    seed: int,
) -> NDArray[np.bool_]:
    """Mask over ``rows``: the validation share of each class, halves rounded up.

    Each class keeps at least one sample, and one of two samples or more gives at least one.
    """
    hashed = _by_hash(names, rows, seed, b"validation")
    rank = np.empty(len(names), dtype=np.int64)
    rank[hashed] = np.arange(len(hashed))
    order = np.lexsort((rank[rows], labels[rows]))
    grouped = labels[rows][order]
    _, starts, counts = np.unique(grouped, return_index=True, return_counts=True)
    mask = np.zeros(len(rows), dtype=np.bool_)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        wanted = int(Fraction(count) * share + Fraction(1, 2))
        wanted = min(max(wanted, 1), count - 1)
        mask[order[start : start + wanted]] = True
    return mask


def cut(predicted: Integers, target_bytes: int) -> tuple[int, ...]:
    """Bounds of shards of equal predicted bytes near ``target_bytes``; each has a sample."""
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
    for i, place in enumerate(cuts):
        earliest = bounds[-1] + 1
        latest = count - (shards - 1 - i)
        bounds.append(min(max(place, earliest), latest))
    return (*bounds, count)


def moved_to_runs(bounds: Sequence[int], predicted: Integers, runs: Integers) -> tuple[int, ...]:
    """The bounds of shards, each moved to the nearest beginning of a run that is near enough.

    A run across a bound is read by the tasks of both shards. A bound moves by at most
    ``_MOST_MOVED`` of a shard, and not where a shard would become too small or too large.

    Args:
        bounds: as ``cut`` returns them.
        predicted: bytes of each sample.
        runs: where each run of neighbours in one container begins, ascending.
    """
    before = np.concatenate([[0], np.cumsum(predicted)])
    most_bytes = _MOST_MOVED * (int(before[-1]) // (len(bounds) - 1))
    moved = [*bounds]
    for number in range(1, len(bounds) - 1):
        after = int(np.searchsorted(runs, bounds[number]))
        around = runs[max(after - 1, 0) : after + 1]
        distances_bytes = np.abs(before[around] - before[bounds[number]])
        nearest = int(around[np.argmin(distances_bytes)])
        both_bytes = np.diff(before[[moved[number - 1], nearest, moved[number + 1]]])
        is_bounded = both_bytes.min() >= SMALLEST_TARGET and both_bytes.max() <= LARGEST_TARGET
        if is_bounded and int(distances_bytes.min()) <= most_bytes:
            moved[number] = nearest
    return tuple(moved)


def _by_hash(names: Sequence[str], rows: Integers, seed: int, purpose: bytes) -> Integers:
    key = seed.to_bytes(8, "little", signed=True)
    hashes = [
        hashlib.blake2b(names[row].encode(*CODEC), digest_size=16, key=key, person=purpose).digest()
        for row in rows.tolist()
    ]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    return rows[np.array(order, dtype=np.int64)]


def _variables(option: str) -> tuple[str, str]:
    """The two variables of the environment that ``auto`` means for this option.

    Raises:
        ConfigError: no pair of variables is set.
    """
    for index, count in _STARTED_BY[option]:
        if {index, count} <= os.environ.keys():
            return index, count
    index, count = _INDEXED_JOB
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
    """One of ``count`` machines that share a job; ``number`` counts from 0.

    Shards are dealt out like cards: part I has the shards I, I + N, I + 2N ... so that every
    part has the same number of them, give or take one.
    """

    number: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str, option: str = "--part") -> Part:
        """``0/4`` to ``3/4``; ``auto`` takes both numbers from variables of the environment.

        They are those of an AWS Batch array, torchrun, Slurm, or an Indexed Job of Kubernetes.

        Raises:
            ConfigError: it is something else, or none of them started this process.
        """
        problem = (
            f"{option} {text!r}: write I/N with I from 0 to N-1 and N at most {_MOST_PARTS:,}, as "
            f"in {option} 0/4 for the first of four"
        )
        if text == "auto":
            index, count = _variables(option)
            text = f"{os.environ[index]}/{os.environ[count]}"
            problem = (
                f"{option} auto: {index} is {os.environ[index]!r} and {count} is "
                f"{os.environ[count]!r}: the first must be a number from 0 on, below the second, "
                f"and the second at most {_MOST_PARTS:,}; correct them, or give {option} I/N"
            )
        match = _PART.fullmatch(text.strip())
        if not match or not int(match[1]) < int(match[2]):
            raise ConfigError(problem)
        return cls(int(match[1]), int(match[2]))

    def of(self, shards: Iterable[int]) -> list[int]:
        """Those of ``shards`` that this part makes."""
        return [shard for shard in shards if shard % self.count == self.number]
