"""Which entries of a listing are samples, and which labels they get in each format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dataprep.config.shard_config import ShardConfig
from dataprep.formats import get_format
from dataprep.labels import LabelSpace
from dataprep.sources import Listing
from dataprep.sources.protocol import Integers


def rows_of_samples(listing: Listing) -> Integers:
    """Return the rows of the listing that are samples, in ascending order.

    The other rows are the keys of ``listing.problems``.
    """
    is_sample = np.ones(len(listing), dtype=np.bool_)
    is_sample[list(listing.problems)] = False
    return np.flatnonzero(is_sample).astype(np.int64)


def labels_of(listing: Listing, label_space: LabelSpace) -> NDArray[np.int32]:
    """Return the 0-based label of each entry of a listing; -1 if its class has no label."""
    labels = [label_space.index.get(class_name, -1) for class_name in listing.classes]
    return np.array(labels, dtype=np.int32)


def label_offsets(config: ShardConfig, label_space: LabelSpace) -> Mapping[str, int]:
    """Return the label offset of each format: the configured offset, or the format's default.

    Records contain the label plus this offset.

    The label of an unlabelled job is -1. Its offsets are 0, because another offset would change
    that label.
    """
    if config.unlabelled:
        return dict.fromkeys(config.format, 0)
    layout = config.record_options.layout
    offsets = {}
    for name in config.format:
        default = get_format(name).default_label_offset(label_space.are_synsets, layout)
        offsets[name] = config.label_offset.get(name, default)
    return offsets
