"""PURE. Loader settings as an augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dataprep.adapters.augment import Augmentation, Box, scaled_part
from dataprep.formats.protocol import Buffer
from dataprep.image.geometry import Pixels
from iobench.loaders.protocol import LoaderSettings
from iobench.pixels import unpacked

_JITTER, _NOISE = 0.4, 0.1  # what the field uses


@dataclass(frozen=True)
class OfPixels(Augmentation):
    """The same of images that are stored decoded: cut and scaled, with nothing to decode."""

    def part(self, data: Buffer, choose: Callable[[int, int], Box]) -> Pixels:
        """As of an encoded image.

        Raises:
            CorruptImage: it is stored otherwise.
        """
        pixels = unpacked(data)
        height, width, _ = pixels.shape
        return scaled_part(pixels, choose(width, height), self.size)


def augmentation_of(
    settings: LoaderSettings, layout: Literal["CHW", "HWC"] = "CHW", *, decoded: bool = False
) -> Augmentation:
    """Colours change only where images are augmented at all. ``decoded``: how they are stored."""
    return (OfPixels if decoded else Augmentation)(
        size=settings.image_size,
        random=settings.augment,
        jitter=_JITTER if settings.colour_jitter else 0.0,
        noise=_NOISE if settings.pca_noise else 0.0,
        normalise=settings.normalise,
        layout=layout,
    )
