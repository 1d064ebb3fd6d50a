"""The files, samples and bytes at a place, without reading its samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.dataset import Dataset, open_dataset
from dataprep.errors import FormatMissing
from dataprep.labels import LabelSpace
from dataprep.sources import Listing, Located
from dataprep.sources.file_names import promises_image
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.local import LocalStore
from iobench.errors import Unavailable
from iobench.trial import Place


class ImageFiles(NamedTuple):
    """``names`` with, for each, its ``sizes`` in bytes and its ``labels``, (N,) int64.

    ``classes`` is the number of classes that the labels are counted in.
    """

    names: list[str]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: int

    def located(self, index: int) -> Located:
        """The file as a request to a source."""
        return Located(self.names[index], int(self.sizes[index]))


def image_files(listing: Listing, every: int = 1) -> ImageFiles:
    """The files that are named as images, or every so many of them; nothing is opened.

    Labels are those that ``dataprep shard`` gives the same folders. As in torchvision's
    ``ImageFolder`` the name decides: a loader of folders has to know before it reads.
    """
    taken = [row for row in range(len(listing)) if row not in listing.problems]
    index = LabelSpace.of(listing.classes[row] for row in taken).index
    rows = [row for row in taken if promises_image(listing.names[row])][::every]
    return ImageFiles(
        [listing.names[row] for row in rows],
        listing.sizes[rows],
        np.array([index[listing.classes[row]] for row in rows], np.int64),
        len(index),
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """The data at a place: ``files`` are local paths, ``objects`` is the number of files or shards.

    A remote place has no ``files``.
    """

    samples: int
    bytes: int
    classes: int
    files: tuple[Path, ...]
    objects: int = 0

    @property
    def object_bytes(self) -> float | None:
        """Mean size of a shard, or of a small file."""
        return self.bytes / self.objects if self.objects else None

    @property
    def sample_bytes(self) -> float:
        """Mean stored size of a sample."""
        return self.bytes / self.samples if self.samples else 0.0


def stored(place: Place, reads: str) -> Stored:
    """Describe the data at ``place`` for a reader of the format ``reads``, or of ``files``.

    Without a name it is the format in which shards are opened if none is named.

    Raises:
        Unavailable: the place holds something else, or no shards of that format.
        DatasetError, SourceError: there are no data.
        PermissionRefused: the key of a shard leads out of the output.
    """
    check_form(place, reads)
    folder = LocalStore(place.uri)  # refuses keys that lead out of it
    if reads == "files":
        found = image_files(ImageFolder(place.uri, place.store).list(), place.every)
        return Stored(
            samples=len(found.names),
            bytes=int(found.sizes.sum()),
            classes=found.classes,
            files=() if place.is_remote else tuple(map(folder.path, found.names)),
            objects=len(found.names),
        )
    dataset = open_shards(place, reads or None)
    entry = dataset.manifest.formats[dataset.format]
    return Stored(
        samples=entry.records,
        bytes=entry.bytes,
        classes=len(dataset.label_space.labels),
        files=() if place.is_remote else tuple(folder.path(shard.key) for shard in entry.shards),
        objects=len(entry.shards),
    )


def open_shards(place: Place, format: str | None = None) -> Dataset:
    """The shards of ``place`` that are read, in one of its formats; TFRecord if it has that.

    Raises:
        Unavailable: it was not made in that format.
        ManifestMissing: there is no complete data set.
    """
    try:
        dataset = open_dataset(place.uri, place.split, format=format, options=place.store)
    except FormatMissing as error:
        raise Unavailable(f"{error}: shard it with --format {format}") from None
    if place.every == 1:
        return dataset
    return dataset.of_shards(range(0, len(dataset.shards()), place.every))


def check_form(place: Place, reads: str) -> None:
    """Refuse data of a form that a reader of ``reads`` does not take.

    Raises:
        Unavailable: shards for one of files, or the other way round.
    """
    wanted = "files" if reads == "files" else "shards"
    if place.holds != wanted:
        raise Unavailable(f"this loader reads {wanted}; these data are {place.holds}")
