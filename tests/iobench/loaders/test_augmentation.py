"""Tests of iobench.loaders.augmentation."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from dataprep.adapters.augment import Augmentation, sample_rng
from dataprep.errors import CorruptImage
from dataprep.image.rgb import decode_whole
from iobench.loaders import LoaderSettings
from iobench.loaders.augmentation import augmentation_of
from iobench.pixels import packed


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


@pytest.mark.parametrize("augment", [True, False], ids=["augmented", "centred"])
def test_stored_pixels_become_what_their_image_becomes(augment: bool) -> None:
    """The same draws, cuts and colours: nothing but the decoding is left out."""
    noise = np.random.default_rng(3).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(cv2.blur(noise, (9, 9))).save(file, "JPEG")
    settings = LoaderSettings(image_size=48, augment=augment, colour_jitter=True)
    encoded, decoded = augmentation_of(settings), augmentation_of(settings, decoded=True)
    image = packed(decode_whole(file.getvalue()))
    for index in range(20):
        draws = [sample_rng(1, 2, index) for _ in range(2)]
        made = encoded(file.getvalue(), draws[0]), decoded(image, draws[1])
        assert np.array_equal(*made)
        assert draws[0].random() == draws[1].random()


def test_an_encoded_image_is_no_pixels() -> None:
    """It is refused, not read as noise."""
    made = augmentation_of(LoaderSettings(), decoded=True)
    with pytest.raises(CorruptImage):
        made(b"\xff\xd8\xff\xe0" * 20, sample_rng(0, 0, 0))
