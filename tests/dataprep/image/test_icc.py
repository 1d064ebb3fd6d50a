"""ICC profiles are recognised, applied and embedded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from dataprep.image import icc
from tests.dataprep.image import profiles
from tests.strategies import mutated

RAMP = np.arange(256, dtype=np.uint8)[np.newaxis]
COLOURS = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def srgb_of_linear(values: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """8-bit sRGB of linear light in 8 bits, by the formula of IEC 61966-2-1."""
    light = np.asarray(values, float) / 255
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray(curve * 255)


def pixels(image: Image.Image) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The pixels as whole numbers that do not overflow."""
    return np.asarray(image).astype(np.int64)


def test_what_can_be_embedded() -> None:
    """A profile fits only images with its channels. Alpha does not count."""
    assert [icc.embeddable(SRGB, channels) for channels in (1, 3, 4)] == [False, True, True]
    grey = profiles.grey_profile()
    assert [icc.embeddable(grey, channels) for channels in (1, 3, 4)] == [True, False, False]
    assert not any(icc.embeddable(profiles.ink_profile(), channels) for channels in (1, 3, 4))


@pytest.mark.parametrize(
    "profile",
    [
        profiles.rgb_profile(2.2),
        profiles.rgb_profile(1.0),
        profiles.swapped_profile(),
        profiles.grey_profile(1.0),
        profiles.ink_profile(),
    ],
    ids=["gamma", "linear", "swapped", "grey", "inks"],
)
def test_srgb_is_known_by_what_it_does(profile: bytes) -> None:
    """A profile that acts like sRGB needs no conversion. Other curves, primaries and inks do."""
    assert icc.is_srgb(profile) is False
    assert icc.is_srgb(SRGB)
    image = Image.fromarray(COLOURS)
    assert icc.to_srgb(image, SRGB) == (image, None)


def test_linear_light_gets_the_curve_of_srgb() -> None:
    """Pixels of linear light become those of the standard's formula, within 1."""
    converted_image, note = icc.to_srgb(Image.fromarray(COLOURS), profiles.rgb_profile(1.0))
    assert note == "icc_converted"
    # Dark colours are less exact, because the profile's primaries are rounded.
    bright = COLOURS.min(axis=-1) > 20
    assert np.abs(pixels(converted_image) - srgb_of_linear(COLOURS))[bright].max() <= 1.5


def test_grey_stays_grey() -> None:
    """Greyscale stays one channel with a profile of grey or of RGB."""
    image = Image.fromarray(RAMP)
    for profile in (profiles.grey_profile(1.0), profiles.rgb_profile(1.0)):
        converted_image, note = icc.to_srgb(image, profile)
        assert (converted_image.mode, note) == ("L", "icc_converted")
        assert np.abs(pixels(converted_image)[0, 6:] - srgb_of_linear(RAMP[0, 6:])).max() <= 1.5


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_alpha_stays_as_it_is(mode: str) -> None:
    """The conversion of colours does not change their alpha."""
    image = Image.fromarray(RAMP).convert(mode)
    image.putalpha(Image.fromarray(RAMP[:, ::-1].copy()))
    profile = profiles.grey_profile(1.0) if mode == "LA" else profiles.rgb_profile(1.0)
    converted_image = icc.to_srgb(image, profile)[0]
    assert converted_image.mode == mode
    assert np.array_equal(pixels(converted_image.getchannel("A")), RAMP[:, ::-1])
    assert converted_image.getpixel((128, 0))[0] == pytest.approx(srgb_of_linear(128), abs=1.5)  # type: ignore[index]


@given(profile=mutated(st.sampled_from([profiles.rgb_profile(), profiles.ink_profile()])))
def test_mutated_profiles_are_applied_or_broken(profile: bytes) -> None:
    """A broken profile never raises another error and never changes an image's size."""
    image = Image.fromarray(COLOURS)
    converted_image = icc.to_srgb(image, profile)[0]
    assert converted_image.size == image.size
    assert converted_image.mode == "RGB"


def test_threads_share_a_transform() -> None:
    """Eight threads that convert with one profile get the result of one thread."""
    images = [np.roll(COLOURS, i, axis=0) for i in range(64)]
    profile = profiles.rgb_profile(1.7)

    def convert(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
        return icc.to_srgb(Image.fromarray(image), profile)[0].tobytes()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(convert, images)) == [convert(image) for image in images]
