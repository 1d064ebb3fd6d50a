"""Summarize the data at a location: numbers of files, samples and bytes. No sample is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import FormatMissing
from dataprep.labels import LabelSpace
from dataprep.reading.dataset import Dataset, open_dataset
from dataprep.sources import Listing, Located
from dataprep.sources.file_names import promises_image
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.local import LocalStore
from iobench.errors import Unavailable
from iobench.results.trial import Location


class ImageFiles(NamedTuple):
    """Image files in class folders.

    Attributes:
        names: the name of each file below the root.
        sizes: the size of each file in bytes, (N,) int64.
        labels: the label of each file, (N,) int64.
        classes: the number of classes; labels are 0 to ``classes`` - 1.
    """

    names: list[str]
    sizes: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: int

    def located(self, index: int) -> Located:
        """Return the name and size of a file, by which a source reads it."""
        return Located(self.names[index], int(self.sizes[index]))


def image_files(listing: Listing, every: int = 1) -> ImageFiles:
    """Return the files of a listing whose names are those of images. No file is opened.

    Labels are the same as ``dataprep shard`` gives these folders. Only the name of a file decides
    whether it is an image, as in torchvision's ``ImageFolder``, because a loader of folders must
    know its samples before it reads. A folder that has only other files is still a class.

    Args:
        listing: the listing of the folders.
        every: 1 to take all images, 2 to take every second one, and so on.
    """
    valid_rows = [row for row in range(len(listing)) if row not in listing.problems]
    label_of_class = LabelSpace.of(listing.classes[row] for row in valid_rows).index
    image_rows = [row for row in valid_rows if promises_image(listing.names[row])]
    rows = image_rows[::every]
    labels = [label_of_class[listing.classes[row]] for row in rows]
    return ImageFiles(
        names=[listing.names[row] for row in rows],
        sizes=listing.sizes[rows],
        labels=np.array(labels, np.int64),
        classes=len(label_of_class),
    )


@dataclass(frozen=True, slots=True)
class DataSummary:
    """The size of the data at a location.

    Attributes:
        samples: the number of samples.
        bytes: the size of all files or shards in bytes.
        classes: the number of classes.
        files: the paths of all files or shards; empty if the location is on a store.
        objects: the number of files or shards.
    """

    samples: int
    bytes: int
    classes: int
    files: tuple[Path, ...]
    objects: int = 0

    @property
    def object_bytes(self) -> float | None:
        """Mean size of a file or shard in bytes; None if there is none."""
        return self.bytes / self.objects if self.objects else None

    @property
    def sample_bytes(self) -> float:
        """Mean stored size of a sample in bytes; 0 if there are no samples."""
        return self.bytes / self.samples if self.samples else 0.0


def summarize_data(location: Location, reads: str) -> DataSummary:
    """Summarize the part of the data at ``location`` that a reader reads.

    Args:
        location: where the data are.
        reads: ``files``, or the record format that the reader takes. An empty name stands for the
            format in which shards are opened if no format is named.

    Raises:
        Unavailable: the location holds files instead of shards, or shards instead of files, or no
            shards in this format.
        DatasetError, SourceError: there are no data.
        PermissionRefused: the key of a shard leads out of the output.
    """
    check_data_form(location, reads)
    folder = LocalStore(location.uri)  # It refuses keys that lead out of it.
    if reads == "files":
        images = image_files(ImageFolder(location.uri, location.store).list(), location.every)
        paths = () if location.is_remote else tuple(folder.path(name) for name in images.names)
        return DataSummary(
            samples=len(images.names),
            bytes=int(images.sizes.sum()),
            classes=images.classes,
            files=paths,
            objects=len(images.names),
        )
    dataset = open_shards(location, reads or None)
    entry = dataset.manifest.formats[dataset.format]
    paths = () if location.is_remote else tuple(folder.path(shard.key) for shard in entry.shards)
    return DataSummary(
        samples=entry.records,
        bytes=entry.bytes,
        classes=len(dataset.label_space.labels),
        files=paths,
        objects=len(entry.shards),
    )


def open_shards(location: Location, format: str | None = None) -> Dataset:
    """Open the shards at ``location``. Of all shards, only every ``location.every``-th is opened.

    Args:
        location: the location of the shards.
        format: the record format; None for TFRecord if the shards exist in that format, and
            otherwise for another of their formats.

    Raises:
        Unavailable: the data set does not exist in this format.
        ManifestMissing: there is no complete data set.
    """
    try:
        dataset = open_dataset(location.uri, location.split, format=format, options=location.store)
    except FormatMissing as error:
        raise Unavailable(f"{error}: shard it with --format {format}") from None
    if location.every == 1:
        return dataset
    return dataset.of_shards(range(0, len(dataset.shards()), location.every))


def check_data_form(location: Location, reads: str) -> None:
    """Refuse files for a reader of shards, and shards for a reader of files.

    Args:
        location: the location of the data.
        reads: ``files``, or the record format that the reader takes.

    Raises:
        Unavailable: the location holds the other form of data.
    """
    form = "files" if reads == "files" else "shards"
    if location.holds != form:
        raise Unavailable(f"this loader reads {form}; these data are {location.holds}")
