"""Class folders as samples: which files, and their labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dataprep.labels import LabelSpace
from dataprep.sources import Listing


def labelled(listing: Listing) -> tuple[list[str], NDArray[np.int64]]:
    """Names of all files that are samples, and their labels: the places of their classes.

    The labels are those that ``dataprep shard`` gives the same folders.
    """
    rows = [row for row in range(len(listing)) if row not in listing.problems]
    index = LabelSpace.of(listing.classes[row] for row in rows).index
    labels = np.array([index[listing.classes[row]] for row in rows], np.int64)
    return [listing.names[row] for row in rows], labels
