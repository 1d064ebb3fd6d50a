"""PURE. Loader settings as an augmentation."""

from __future__ import annotations

from typing import Literal

from dataprep.augment import Augmentation
from iobench.loaders.protocol import LoaderSettings

_JITTER, _NOISE = 0.4, 0.1  # what the field uses


def augmentation_of(
    settings: LoaderSettings, layout: Literal["CHW", "HWC"] = "CHW"
) -> Augmentation:
    """Colours change only where images are augmented at all."""
    return Augmentation(
        size=settings.image_size,
        random=settings.augment,
        jitter=_JITTER if settings.colour_jitter else 0.0,
        noise=_NOISE if settings.pca_noise else 0.0,
        normalise=settings.normalise,
        layout=layout,
    )
