"""What training in every framework shares."""

from __future__ import annotations

from dataprep.adapters.augment import IMAGENET_MEAN, IMAGENET_STD
from iobench.consumers.training import MEAN, STD


def test_pixels_are_normalised_as_the_loaders_do_it() -> None:
    """The device's mean and deviation are those of dataprep's own augmentation."""
    assert (MEAN, STD) == (IMAGENET_MEAN, IMAGENET_STD)
