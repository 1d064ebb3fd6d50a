"""Plan the splits of a job: assign each sample to a split and a shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import ConfigError
from dataprep.job.calibration import Calibration
from dataprep.job.sample_labels import labels_of, rows_of_samples
from dataprep.job.sample_order import (
    in_source_order,
    shuffled,
    validation_mask,
    validation_mask_of_containers,
)
from dataprep.job.shard_bounds import (
    clamp_target,
    cut_into_shards,
    move_bounds_to_runs,
    run_starts,
)
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.sources import Listing
from dataprep.sources.protocol import Integers

VALIDATION = "validation"
"""The split that ``config.validation`` takes out of ``config.split``."""


def make_plans(
    listing: Listing,
    label_space: LabelSpace,
    calibration: Calibration,
    config: ShardConfig,
    boxes: BoxColumns | None = None,
) -> dict[str, SplitPlan]:
    """Plan the splits of a job: ``config.split`` and, if requested, the validation split.

    The plan of ``config.split`` also lists the entries that are not samples.

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
            is not the number of its class in this output.
    """
    labels = labels_of(listing, label_space)
    rows = rows_of_samples(listing)
    _require_first_value_is_label(listing, labels, rows)
    plans = {}
    for split, rows_of_split in _rows_by_split(listing, labels, rows, config).items():
        if not len(rows_of_split):
            # This is the validation split. The other split has at least one sample of each class.
            raise ConfigError(
                f"split {split!r} would have no samples: each class keeps one image for "
                f"{config.split!r}, and no class has a second image"
            )
        if config.shuffle:
            order = shuffled(listing.names, rows_of_split, config.seed)
        else:
            order = in_source_order(listing, rows_of_split)
        sharded_samples = _shard_samples(listing, order, calibration, config)
        problem_rows = sorted(listing.problems) if split == config.split else []
        plans[split] = _plan_split(listing, labels, sharded_samples, problem_rows, boxes)
    return plans


def _require_first_value_is_label(
    listing: Listing, labels: NDArray[np.int32], rows: Integers
) -> None:
    """Refuse a sample with several labels if the first is not the number of its class.

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
    """Divide the rows of the samples between ``config.split`` and the validation split."""
    share = config.validation_share
    if share is None:
        return {config.split: rows}
    if listing.in_runs:
        # Samples of one container are read together. Both splits would read a divided container.
        mask = validation_mask_of_containers(listing.containers, rows, share, config.seed)
    else:
        mask = validation_mask(listing.names, labels, rows, share, config.seed)
    return {config.split: rows[~mask], VALIDATION: rows[mask]}


class _ShardedSamples(NamedTuple):
    """The samples of a split, in the order in which they are written.

    Attributes:
        rows: the row of each sample in the listing.
        predicted_bytes: the predicted record bytes of each sample.
        shards: the number of each sample's shard, ascending.
    """

    rows: Integers
    predicted_bytes: Integers
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
    predicted_bytes = calibration.predict(listing.sizes[order])
    bounds = cut_into_shards(predicted_bytes, clamp_target(int(config.shard_size)))
    if listing.in_runs:
        # Samples of one container are read together. Two shards would read a divided container.
        runs = run_starts([listing.containers[row] for row in order.tolist()])
        bounds = move_bounds_to_runs(bounds, predicted_bytes, runs)
    shard_numbers = np.arange(len(bounds) - 1, dtype=np.int32)
    samples_in_shards = np.diff(bounds)
    shards = np.repeat(shard_numbers, samples_in_shards)
    return _ShardedSamples(order, predicted_bytes, shards)


def _plan_split(
    listing: Listing,
    labels: NDArray[np.int32],
    sharded_samples: _ShardedSamples,
    problem_rows: Sequence[int],
    boxes: BoxColumns | None,
) -> SplitPlan:
    """Make the plan of one split.

    Args:
        listing: the entries of the source.
        labels: the label of each entry.
        sharded_samples: the samples of the split.
        problem_rows: the rows of the entries that are not samples. They follow the samples.
        boxes: the boxes of each entry; None if the job has no boxes.
    """
    rows = np.concatenate([sharded_samples.rows, np.array(problem_rows, dtype=np.int64)])
    row_list = rows.tolist()
    no_bytes = np.zeros(len(problem_rows), dtype=np.int64)
    no_shards = np.full(len(problem_rows), -1, dtype=np.int32)
    statuses = [""] * len(sharded_samples.rows)
    reasons = [""] * len(sharded_samples.rows)
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
        predicted_bytes=np.concatenate([sharded_samples.predicted_bytes, no_bytes]),
        shards=np.concatenate([sharded_samples.shards, no_shards]),
        statuses=statuses,
        reasons=reasons,
        containers=containers,
        offsets=offsets,
        values=None if listing.values is None else listing.values[rows],
        boxes=None if boxes is None else boxes.take(rows),
    )
