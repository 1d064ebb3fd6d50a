"""A source made into the plan of one or two splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dataprep import estimate, plan
from dataprep.config import ShardConfig
from dataprep.errors import ConfigError
from dataprep.formats import get_format
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.sources import Listing

VALIDATION = "validation"


def make_plans(
    listing: Listing,
    label_space: LabelSpace,
    calibration: estimate.Calibration,
    config: ShardConfig,
    boxes: BoxColumns | None = None,
) -> dict[str, SplitPlan]:
    """Split, order and cut. Entries that are no samples go to the main split's plan.

    ``boxes`` has a row for each of the listing.
    """
    labels = labels_of(listing, label_space)
    rows = sample_rows(listing)
    parts = {config.split: rows}
    if (share := config.validation_share) is not None:
        mask = plan.held_out(listing.names, labels, rows, share, config.seed)
        parts = {config.split: rows[~mask], VALIDATION: rows[mask]}
    plans = {}
    for split, part in parts.items():
        if not len(part):
            raise ConfigError(
                f"split {split!r} would have no samples: with a share of {config.validation} "
                "of each class, no class is large enough; give a larger --validation"
            )
        order = (
            plan.shuffled(listing.names, part, config.seed)
            if config.shuffle
            else _own_order(listing, part)
        )
        others = sorted(listing.problems) if split == config.split else []
        planned = _split_plan(listing, labels, order, others, calibration, config)
        if boxes is not None:
            rows_of_split = np.concatenate([order, np.array(others, dtype=np.int64)])
            planned = replace(planned, boxes=boxes.take(rows_of_split))
        plans[split] = planned
    return plans


def labels_of(listing: Listing, label_space: LabelSpace) -> NDArray[np.int32]:
    """The label of each entry, -1 where it has no class."""
    return np.array([label_space.index.get(group, -1) for group in listing.classes], dtype=np.int32)


def sample_rows(listing: Listing) -> NDArray[np.int64]:
    """Rows of the listing that are samples."""
    is_sample = np.ones(len(listing), dtype=np.bool_)
    is_sample[list(listing.problems)] = False
    return np.flatnonzero(is_sample).astype(np.int64)


def _own_order(listing: Listing, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """``rows`` as the source has them."""
    return rows if listing.order is None else listing.order[np.isin(listing.order, rows)]


def _split_plan(
    listing: Listing,
    labels: NDArray[np.int32],
    order: NDArray[np.int64],
    others: Sequence[int],
    calibration: estimate.Calibration,
    config: ShardConfig,
) -> SplitPlan:
    predicted = calibration.predict(listing.sizes[order])
    bounds = plan.cut(predicted, plan.clamp_target(int(config.shard_size)))
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


def label_offsets(config: ShardConfig, label_space: LabelSpace) -> Mapping[str, int]:
    """Format name to the offset inside its records: as configured, else the format's own."""
    return {
        name: config.label_offset.get(
            name,
            get_format(name).default_label_offset(
                label_space.are_synsets, config.record_options.layout
            ),
        )
        for name in config.format
    }
