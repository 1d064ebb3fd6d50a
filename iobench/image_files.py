"""Class folders as samples: which of their files, how large, and their labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.labels import LabelSpace
from dataprep.sources import Listing, Located
from dataprep.sources.classes import promises_image


class ImageFiles(NamedTuple):
    """``names`` with, for each, its ``sizes`` in bytes and its ``labels``, (N,) int64.

    ``classes`` is the number of classes that the labels are counted in.
    """

    names: list[str]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: int

    def located(self, index: int) -> Located:
        """What a source is asked for to get that file."""
        return Located(self.names[index], int(self.sizes[index]))


def image_files(listing: Listing) -> ImageFiles:
    """The files that are named as images; nothing is opened.

    Labels are those that ``dataprep shard`` gives the same folders. As in torchvision's
    ``ImageFolder`` the name decides: a loader of folders has to know before it reads.
    """
    taken = [row for row in range(len(listing)) if row not in listing.problems]
    index = LabelSpace.of(listing.classes[row] for row in taken).index
    rows = [row for row in taken if promises_image(listing.names[row])]
    return ImageFiles(
        [listing.names[row] for row in rows],
        listing.sizes[rows],
        np.array([index[listing.classes[row]] for row in rows], np.int64),
        len(index),
    )
