"""An encoded image into one training array."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.augment.colour import recolour
from dataprep.augment.crops import Box, centre_crop, random_crop
from dataprep.augment.decode import decode_part
from dataprep.augment.normalise import write_planes, write_rows
from dataprep.errors import ConfigError
from dataprep.formats import Buffer
from dataprep.image.geometry import Pixels

Transform: TypeAlias = Callable[[Buffer, np.random.Generator], Any]
"""An encoded image, with a generator of its own, to anything."""


@runtime_checkable
class ArrayTransform(Protocol):
    """A transform whose arrays all have one shape and dtype: it can write them into a batch."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of every array."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of every array."""
        ...

    def __call__(self, data: Buffer, rng: np.random.Generator) -> NDArray[Any]:
        """An array of its own."""
        ...

    def write(self, data: Buffer, rng: np.random.Generator, out: NDArray[Any]) -> None:
        """The same into ``out``, which is contiguous and of that shape and dtype."""
        ...


def array_transform(transform: object) -> ArrayTransform | None:
    """``transform`` where it is one whose ``write`` does what calling it does.

    None also for a subclass that has another ``__call__`` and no ``write`` for it.
    """
    if not isinstance(transform, ArrayTransform):
        return None
    caller = next(cls for cls in type(transform).__mro__ if "__call__" in vars(cls))
    return transform if "write" in vars(caller) else None


@dataclass(frozen=True)
class Augmentation:
    """What is done to an image on its way into a training batch.

    Attributes:
        size: pixels a side of the square that comes out.
        random: a random resized crop and a flip in half of all cases, then colours; otherwise
            the centre, as if scaled to ``size * 256 / 224`` and cropped, for evaluation.
        jitter: strength of brightness, contrast and saturation changes; 0.4 is usual.
        noise: sigma of AlexNet's lighting noise; 0.1 is usual.
        normalise: float32 by ImageNet's mean and deviation; otherwise uint8.
        layout: ``CHW``, as torch and MXNet have it, or ``HWC``, as TensorFlow has it.
    """

    size: int = 224
    random: bool = True
    jitter: float = 0.0
    noise: float = 0.0
    normalise: bool = True
    layout: Literal["CHW", "HWC"] = "CHW"

    def __post_init__(self) -> None:
        whole = self.size == int(self.size) and self.size >= 1
        if not whole or not 0 <= self.jitter <= 1 or not 0 <= self.noise < math.inf:
            raise ConfigError(
                f"augmentation of size {self.size}, jitter {self.jitter}, noise {self.noise}: "
                "size is a whole number from 1 on, jitter 0 to 1, noise at least 0"
            )
        if self.layout not in ("CHW", "HWC"):
            raise ConfigError(f"no layout {self.layout!r}: use CHW or HWC")

    @property
    def shape(self) -> tuple[int, int, int]:
        """What comes out: (3, size, size) or (size, size, 3)."""
        sides = self.size, self.size
        return (*sides, 3) if self.layout == "HWC" else (3, *sides)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What comes out: float32 or uint8."""
        return np.dtype(np.float32 if self.normalise else np.uint8)

    def __call__(self, data: Buffer, rng: np.random.Generator) -> NDArray[Any]:
        """One encoded image as an array of ``shape`` and ``dtype``.

        Raises:
            ImageError: no image, or one that cannot be decoded.
        """
        out = np.empty(self.shape, self.dtype)
        self.write(data, rng, out)
        return out

    def write(self, data: Buffer, rng: np.random.Generator, out: NDArray[Any]) -> None:
        """The same into ``out``, which is contiguous, such as a slot of a batch.

        Raises:
            ImageError: no image, or one that cannot be decoded.
        """
        if self.layout == "CHW":
            write_planes(self.pixels(data, rng), out)
        elif self.normalise:
            write_rows(self.pixels(data, rng), out)
        else:
            self.pixels(data, rng, out)

    def pixels(self, data: Buffer, rng: np.random.Generator, out: Pixels | None = None) -> Pixels:
        """The same before normalisation: uint8 (size, size, 3), in ``out`` if it is given."""
        if not self.random:
            return self.part(data, centre_crop, out)
        pixels = self.part(data, partial(random_crop, rng=rng), out)
        if rng.random() < 0.5:
            cv2.flip(pixels, 1, pixels)
        if self.jitter or self.noise:
            pixels = recolour(pixels, self.jitter, self.noise, rng, out=pixels)
        return pixels

    def part(
        self, data: Buffer, choose: Callable[[int, int], Box], out: Pixels | None = None
    ) -> Pixels:
        """The part named by ``choose(width, height)``: uint8 (size, size, 3), in ``out`` if given.

        What a subclass replaces whose images are stored in a way of its own.

        Raises:
            ImageError: no image, or one that cannot be decoded.
        """
        return decode_part(data, choose, self.size, out)


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The generator of one sample in one epoch: the same whichever worker draws from it."""
    return np.random.default_rng((seed, epoch, index))
