"""The size of the data that trials will read, estimated before the data are made."""

from __future__ import annotations

import math
from functools import cached_property

from dataprep.errors import DataprepError
from dataprep.reading.dataset import open_dataset
from dataprep.sources import open_source
from iobench.data.data_summary import DataSummary
from iobench.data.existing import expand_home
from iobench.data.settings import AS_FILES, DataSettings, side_of, split_name

ASSUMED_SAMPLES = 10_000_000
"""Number of images that is assumed if they cannot be counted."""

_PHOTO_BYTES = 120_000.0
"""Mean size of a drawn photograph, and about the mean size of ImageNet's."""

_RESIZED_BYTES = 41_000.0
"""Mean size of an image with a short side of ``_RESIZED_SIDE`` pixels."""

_RESIZED_SIDE = 256
"""The short side in pixels to which ``_RESIZED_BYTES`` refers."""

_BYTES_PER_SQUARED_SIDE = 4.0
"""Bytes of a decoded image, divided by the square of its short side in pixels: three colours, and
sides of 4:3."""


class ExpectedData:
    """The images of a config: existing images, or images that will be drawn.

    Existing shards are counted by their manifest, existing images by a listing. Images that will be
    resized are assumed to have 41 kB at a short side of 256 pixels, and proportionally more or less
    at another area.

    Attributes:
        problems: warnings about data that could not be counted.
    """

    def __init__(self, data: DataSettings) -> None:
        self._data = data
        self.problems: list[str] = []

    @property
    def samples(self) -> int:
        """The number of images."""
        return self._counted.samples

    def summary(self, name: str) -> DataSummary:
        """Return the size of the data called ``name``. Classes and files are left out."""
        form, shard_bytes, _ = split_name(name)
        counted = self._counted
        exists = self._data.shards is not None and form == "shards"
        if exists and shard_bytes is None and side_of(name) is None:
            return counted
        total_bytes = int(counted.samples * self._sample_bytes(name, form))
        objects = counted.samples
        if form not in AS_FILES:
            objects = math.ceil(total_bytes / (shard_bytes or int(self._data.shard_size)))
        return DataSummary(counted.samples, total_bytes, 0, (), max(1, objects))

    def _sample_bytes(self, name: str, form: str) -> float:
        """Return the mean bytes of a sample of the data called ``name``, which have this form."""
        if form in ("photos", "originals"):
            return self._counted.sample_bytes
        side = side_of(name) or self._data.size
        if form == "pixels":
            return _BYTES_PER_SQUARED_SIDE * side**2
        return _RESIZED_BYTES * (side / _RESIZED_SIDE) ** 2

    @cached_property
    def _counted(self) -> DataSummary:
        """The existing shards or images; if there are none, the images that will be drawn."""
        data = self._data
        try:
            if data.shards is not None:
                uri = expand_home(data.shards)
                with open_dataset(uri, data.split, options=data.store) as dataset:
                    entry = dataset.manifest.formats[dataset.format]
                    return DataSummary(entry.records, entry.bytes, 0, (), len(entry.shards))
            if data.source is not None:
                listing = open_source(expand_home(data.source), options=data.store).list()
                samples, total_bytes = len(listing), int(listing.sizes.sum())
                return DataSummary(samples, total_bytes, 0, (), samples)
        except (DataprepError, OSError) as error:
            self.problems.append(
                f"the data could not be counted, {ASSUMED_SAMPLES:,} images are assumed: {error}"
            )
            return _photos(ASSUMED_SAMPLES)
        return _photos(data.images)


def _photos(samples: int) -> DataSummary:
    """Return the size of a number of drawn photographs."""
    return DataSummary(samples, int(samples * _PHOTO_BYTES), 0, (), samples)
