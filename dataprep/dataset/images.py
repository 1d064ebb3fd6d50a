"""Samples as pixels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import SupportsIndex, overload

from dataprep.errors import ImageError
from dataprep.formats import Sample
from dataprep.image.geometry import Pixels
from dataprep.image.rgb import decode_whole


class Images(Sequence[Pixels]):
    """Decoded images: uint8 arrays of shape (height, width, 3), RGB, each of its own size.

    Greyscale is repeated over the three channels; the orientation tag is not looked at.
    ``images[i]`` is one range request, iteration reads shard after shard.
    """

    def __init__(self, samples: Sequence[Sample], name: Callable[[int], str]) -> None:
        self._samples = samples
        self._name = name

    def __len__(self) -> int:
        return len(self._samples)

    def __repr__(self) -> str:
        return f"<Images of {self._samples!r}>"

    @overload
    def __getitem__(self, index: SupportsIndex) -> Pixels: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pixels]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Pixels | list[Pixels]:
        """Pixels of one sample, or of several.

        Raises:
            ImageError: it cannot be decoded; the message says where it lies.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = operator.index(index)
        sample = self._samples[number]  # its own IndexError says more than range's
        return self._decoded(range(len(self))[number], sample)

    def __iter__(self) -> Iterator[Pixels]:
        for number, sample in enumerate(self._samples):
            yield self._decoded(number, sample)

    def _decoded(self, number: int, sample: Sample) -> Pixels:
        try:
            return decode_whole(sample.image)
        except ImageError as error:
            raise type(error)(f"{self._name(number)}: {error}") from None
