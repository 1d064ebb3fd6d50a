"""Tests of iobench.loaders.augmentation."""

from __future__ import annotations

from dataprep.augment import Augmentation
from iobench.loaders import LoaderSettings
from iobench.loaders.augmentation import augmentation_of


def test_defaults() -> None:
    """The usual augmentation, without colours."""
    assert augmentation_of(LoaderSettings()) == Augmentation()


def test_all_of_it() -> None:
    """Jitter and noise have the strengths that the field uses."""
    settings = LoaderSettings(
        image_size=96, colour_jitter=True, pca_noise=True, normalise=False, augment=False
    )
    assert augmentation_of(settings, "HWC") == Augmentation(
        size=96, random=False, jitter=0.4, noise=0.1, normalise=False, layout="HWC"
    )
