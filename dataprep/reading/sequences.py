"""Sequences of samples whose slices are lists: the base class, and the decoded images."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeVar, overload

from dataprep.errors import ImageError
from dataprep.formats import Sample
from dataprep.image.output_size import Pixels
from dataprep.image.rgb import decode_rgb
from dataprep.reading.subset import sample_name
from dataprep.stores import location

if TYPE_CHECKING:
    from dataprep.reading.dataset import Dataset

Item = TypeVar("Item")


class SlicedToLists(Sequence[Item]):
    """A sequence whose slices are lists. A subclass defines ``__len__`` and ``_item``."""

    @abstractmethod
    def _item(self, number: int) -> Item:
        """Return an item by its number, which is from 0 to ``len(self) - 1``."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(number) for number in range(*index.indices(len(self)))]
        return self._item(sample_number(index, len(self)))


class Images(SlicedToLists[Pixels]):
    """The decoded images of a data set: uint8 arrays of shape (height, width, 3), in RGB.

    Each image has its own size. A greyscale image has three equal channels. The EXIF orientation is
    ignored. ``images[i]`` takes one range request. Iteration reads shard after shard. If an image
    cannot be decoded, ImageError is raised. Its message names the sample, its shard and its offset.

    Example:
        >>> pixels = dataprep.open("out").images[0]
        >>> pixels.dtype
        dtype('uint8')
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __iter__(self) -> Iterator[Pixels]:
        for number, sample in enumerate(self._dataset):
            yield self._pixels(number, sample)

    def _item(self, number: int) -> Pixels:
        return self._pixels(number, self._dataset[number])

    def _pixels(self, number: int, sample: Sample) -> Pixels:
        """Decode the image of a sample.

        Raises:
            ImageError: the image cannot be decoded. The message names the sample.
        """
        try:
            return decode_rgb(sample.image)
        except ImageError as error:
            dataset = self._dataset
            key, offset, _ = dataset.place(number)
            where = f"{location(dataset.store, key)} at byte {offset:,}"
            name = sample_name(number, dataset.numbers if dataset.is_subset else None)
            raise type(error)(f"{name} ({where}): {error}") from None


def sample_number(index: SupportsIndex, samples: int) -> int:
    """Return the number of a sample, from 0, for an index that may count from the end.

    Raises:
        IndexError: there is no sample with this index.
    """
    number = operator.index(index)
    if not -samples <= number < samples:
        raise IndexError(f"sample {number} of {samples}")
    return number % samples
