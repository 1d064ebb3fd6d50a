"""The size of the data that trials will read, as far as it is known before they are made."""

from __future__ import annotations

import math
from functools import cached_property

from dataprep.dataset import open_dataset
from dataprep.errors import DataprepError
from dataprep.sources import open_source
from iobench.data.given import expanded
from iobench.data.settings import AS_FILES, DataSettings, side_of, split_name
from iobench.stored import DataSummary

ASSUMED_SAMPLES = 10_000_000
"""Images, where they cannot be counted."""

_PHOTO_BYTES = 120_000.0  # of drawn photographs, and about those of ImageNet
_RESIZED_BYTES = 41_000.0  # with a short side of 256 pixels
_RESIZED_SIDE = 256
_PIXEL_BYTES = 4.0  # three colours, and sides of 4 to 3


class ExpectedData:
    """The images of a config: counted in a manifest or by a listing, else as many as are drawn.

    Images that are resized later are taken to have 41 kB at a short side of 256 pixels.

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

    def stored(self, name: str) -> DataSummary:
        """The data that trials call ``name``."""
        form, size_bytes, _ = split_name(name)
        counted = self._counted
        is_given = self._data.shards is not None and form == "shards"
        if is_given and size_bytes is None and side_of(name) is None:
            return counted
        sample_bytes = self._sample_bytes(name, form)
        total_bytes = int(counted.samples * sample_bytes)
        objects = counted.samples
        if form not in AS_FILES:
            objects = math.ceil(total_bytes / (size_bytes or int(self._data.shard_size)))
        return DataSummary(counted.samples, total_bytes, 0, (), max(1, objects))

    def _sample_bytes(self, name: str, form: str) -> float:
        if form in ("photos", "originals"):
            return self._counted.sample_bytes
        side = side_of(name) or self._data.size
        if form == "pixels":
            return _PIXEL_BYTES * side**2
        return _RESIZED_BYTES * (side / _RESIZED_SIDE) ** 2

    @cached_property
    def _counted(self) -> DataSummary:
        """The shards or the images that exist; images that are drawn where none exist."""
        data = self._data
        try:
            if data.shards is not None:
                with open_dataset(expanded(data.shards), data.split, options=data.store) as dataset:
                    entry = dataset.manifest.formats[dataset.format]
                    return DataSummary(entry.records, entry.bytes, 0, (), len(entry.shards))
            if data.source is not None:
                listing = open_source(expanded(data.source), options=data.store).list()
                samples, total_bytes = len(listing), int(listing.sizes.sum())
                return DataSummary(samples, total_bytes, 0, (), samples)
        except (DataprepError, OSError) as error:
            self.problems.append(
                f"the data could not be counted, {ASSUMED_SAMPLES:,} images are assumed: {error}"
            )
            return _photos(ASSUMED_SAMPLES)
        return _photos(data.images)


def _photos(samples: int) -> DataSummary:
    return DataSummary(samples, int(samples * _PHOTO_BYTES), 0, (), samples)
