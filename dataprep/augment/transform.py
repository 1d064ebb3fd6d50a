"""An encoded image into one training array."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.augment.colour import recolour
from dataprep.augment.crops import centre_crop, random_crop
from dataprep.augment.decode import decode_part
from dataprep.augment.normalise import channels_first, normalise_planes, normalise_rows
from dataprep.errors import ConfigError
from dataprep.formats.records import Buffer
from dataprep.image.pixels import Pixels

Transform: TypeAlias = Callable[[Buffer, np.random.Generator], Any]
"""An encoded image, with a generator of its own, to anything."""


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

    def __call__(self, data: Buffer, rng: np.random.Generator) -> NDArray[Any]:
        """One encoded image as (3, size, size) or (size, size, 3), float32 or uint8.

        Raises:
            ImageError: no image, or one that cannot be decoded.
        """
        pixels = self.pixels(data, rng)
        if self.layout == "HWC":
            return normalise_rows(pixels) if self.normalise else pixels
        planes = channels_first(pixels)
        return normalise_planes(planes) if self.normalise else planes

    def pixels(self, data: Buffer, rng: np.random.Generator) -> Pixels:
        """The same before normalisation: uint8 (size, size, 3)."""
        if not self.random:
            return decode_part(data, centre_crop, self.size)
        pixels = decode_part(data, partial(random_crop, rng=rng), self.size)
        if rng.random() < 0.5:
            pixels = np.asarray(cv2.flip(pixels, 1), np.uint8)
        if self.jitter or self.noise:
            pixels = recolour(pixels, self.jitter, self.noise, rng)
        return pixels


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The generator of one sample in one epoch: the same whichever worker draws from it."""
    return np.random.default_rng((seed, epoch, index))
