"""Plan the splits of a job: assign each sample to a split and a shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError
from dataprep.formats import get_format
from dataprep.job.calibration import Calibration
from dataprep.job.sample_order import (
    in_source_order,
    run_starts,
    shuffled,
    validation_mask,
    validation_mask_of_containers,
)
from dataprep.job.shard_bounds import clamp_target, cut_into_shards, move_bounds_to_runs
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.sources import Listing
from dataprep.sources.protocol import Integers

VALIDATION = "validation"
"""The name of the split that ``config.validation`` takes from the main split."""


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
    plans = {}
    for split, rows_of_split in _rows_by_split(listing, labels, rows, config).items():
        if not len(rows_of_split):
            raise ConfigError(
                f"split {split!r} would have no samples: each class keeps one image for "
                f"{config.split!r}, and no class has a second image"
            )
        if config.shuffle:
            order = shuffled(listing.names, rows_of_split, config.seed)
        else:
            order = in_source_order(listing, rows_of_split)
        shards = _shard_samples(listing, order, calibration, config)
        problem_rows = sorted(listing.problems) if split == config.split else []
        plans[split] = _plan_split(listing, labels, shards, problem_rows, boxes)
    return plans


def _require_first_value_is_label(
    listing: Listing, labels: NDArray[np.int32], rows: Integers
) -> None:
    """Refuse a sample with several labels if the first is not the label of its class.

    Raises:
        ConfigError: there is such a sample.
    """
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


def _rows_by_split(
    listing: Listing, labels: NDArray[np.int32], rows: Integers, config: ShardConfig
) -> dict[str, Integers]:
    """Divide the rows of the samples between the main split and the validation split."""
    share = config.validation_share
    if share is None:
        return {config.split: rows}
    if listing.in_runs:
        mask = validation_mask_of_containers(listing.containers, rows, share, config.seed)
    else:
        mask = validation_mask(listing.names, labels, rows, share, config.seed)
    return {config.split: rows[~mask], VALIDATION: rows[mask]}


class _ShardedSamples(NamedTuple):
    """The samples of a split, in the order in which they are written.

    Attributes:
        rows: the row of each sample in the listing.
        predicted: the predicted record bytes of each sample.
        shards: the shard of each sample, ascending.
    """

    rows: Integers
    predicted: Integers
    shards: NDArray[np.int32]


def _shard_samples(
    listing: Listing, order: Integers, calibration: Calibration, config: ShardConfig
) -> _ShardedSamples:
    """Assign each sample of a split to a shard.

    Args:
        listing: the entries of the source.
        order: the rows of the samples, in the order in which they are written.
        calibration: predicts the size of records.
        config: the config of the job.
    """
    predicted = calibration.predict(listing.sizes[order])
    bounds = cut_into_shards(predicted, clamp_target(int(config.shard_size)))
    if listing.in_runs:
        runs = run_starts([listing.containers[row] for row in order.tolist()])
        bounds = move_bounds_to_runs(bounds, predicted, runs)
    shards = np.arange(len(bounds) - 1, dtype=np.int32)
    samples_in_shards = np.diff(bounds)
    return _ShardedSamples(order, predicted, np.repeat(shards, samples_in_shards))


def _plan_split(
    listing: Listing,
    labels: NDArray[np.int32],
    samples: _ShardedSamples,
    problem_rows: Sequence[int],
    boxes: BoxColumns | None,
) -> SplitPlan:
    """Make the plan of one split.

    Args:
        listing: the entries of the source.
        labels: the label of each entry.
        samples: the samples of the split.
        problem_rows: the rows of the entries that are not samples. They follow the samples.
        boxes: the boxes of each entry; None if the job has no boxes.
    """
    rows = np.concatenate([samples.rows, np.array(problem_rows, dtype=np.int64)])
    row_list = rows.tolist()
    no_bytes = np.zeros(len(problem_rows), dtype=np.int64)
    no_shards = np.full(len(problem_rows), -1, dtype=np.int32)
    statuses = [""] * len(samples.rows)
    reasons = [""] * len(samples.rows)
    for row in problem_rows:
        statuses.append(listing.problems[row].status)
        reasons.append(listing.problems[row].reason)
    containers: Sequence[str] = ()
    offsets = listing.offsets
    if listing.containers:
        containers = [listing.containers[row] for row in row_list]
        offsets = listing.offsets[rows]
    return SplitPlan(
        names=[listing.names[row] for row in row_list],
        sizes=listing.sizes[rows],
        labels=labels[rows],
        predicted=np.concatenate([samples.predicted, no_bytes]),
        shards=np.concatenate([samples.shards, no_shards]),
        statuses=statuses,
        reasons=reasons,
        containers=containers,
        offsets=offsets,
        values=None if listing.values is None else listing.values[rows],
        boxes=None if boxes is None else boxes.take(rows),
    )


def labels_of(listing: Listing, label_space: LabelSpace) -> NDArray[np.int32]:
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
