"""Encoded images are decoded, cropped and augmented to training arrays."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.errors import ConfigError, ImageError
from dataprep.reading.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    Augmentation,
    Box,
    centre_crop,
    random_crop,
    recolour,
    sample_rng,
)
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from dataprep.reading.transforms import has_write
from tests.dataprep.image.pictures import pillow_image, saved, turned

PIXELS = np.random.default_rng(5).integers(0, 256, (80, 120, 3)).astype(np.uint8)
IMAGE: bytes = simplejpeg.encode_jpeg(PIXELS, quality=95)
LUMA = np.array([0.299, 0.587, 0.114])
sides = st.integers(1, 2000)
seeds = st.integers(0, 2**32)


def scene(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """A smooth image: red grows to the right, green downwards."""
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    pixels = np.dstack([across, down, np.full_like(across, 99)]).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    """The bytes of the image as a file."""
    return saved(image, format, **({"quality": 95} if format == "JPEG" else {}), **options)


def expected(image: Image.Image, box: Box, size: int) -> Any:
    """The result of Pillow's crop and resize."""
    corners = (box.left, box.top, box.left + box.width, box.top + box.height)
    part = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=corners)
    return np.asarray(part).astype(int)


class TestCrops:
    @given(sides, sides, seeds)
    def test_a_random_crop_is_within_the_image(self, width: int, height: int, seed: int) -> None:
        """A crop is never empty, and is within the image."""
        box = random_crop(width, height, np.random.default_rng(seed))
        assert 0 <= box.left < box.left + box.width <= width
        assert 0 <= box.top < box.top + box.height <= height

    def test_random_crops_fill_their_ranges(self) -> None:
        """Area, aspect ratio and position of crops reach both ends of their ranges."""
        rng = np.random.default_rng(0)
        boxes = [random_crop(500, 500, rng) for _ in range(3000)]
        shares = [box.width * box.height / 500**2 for box in boxes]
        assert AREA[0] * 0.96 <= min(shares) < 0.09
        assert 0.95 < max(shares) <= AREA[1]
        aspects = [box.width / box.height for box in boxes]
        assert ASPECT[0] * 0.98 <= min(aspects) < 0.77
        assert 1.3 < max(aspects) <= ASPECT[1] * 1.02
        assert abs(np.log(aspects).mean()) < 0.02  # as often tall as wide
        offsets = [box.left / (500 - box.width) for box in boxes if box.width < 200]
        assert min(offsets) < 0.02
        assert max(offsets) > 0.98

    @pytest.mark.parametrize(
        ("size", "box"),
        [((1000, 10), Box(493, 0, 13, 10)), ((10, 1000), Box(0, 493, 10, 13))],
        ids=["wide", "tall"],
    )
    def test_no_crop_fits(self, size: tuple[int, int], box: Box) -> None:
        """If no crop fits, it is the largest allowed part at the centre."""
        assert random_crop(*size, np.random.default_rng(0)) == box

    @given(sides, sides)
    def test_the_centre_crop(self, width: int, height: int) -> None:
        """The crop is a centred square with 224/256 of the short side."""
        box = centre_crop(width, height)
        assert box.width == box.height == max(1, round(min(width, height) * 7 / 8))
        assert 0 <= width - box.width - 2 * box.left <= 1
        assert 0 <= height - box.height - 2 * box.top <= 1


class TestDecoding:
    @pytest.mark.parametrize(
        ("format", "mode"),
        [("JPEG", "CMYK"), *((f, m) for f in ("JPEG", "PNG", "BMP", "GIF") for m in ("RGB", "L"))],
    )
    def test_the_chosen_part(self, format: str, mode: str) -> None:
        """The chosen part is returned as RGB from every container, and from a view of a shard."""
        image, box = scene(300, 200, mode), Box(40, 20, 200, 100)
        data = encoded(image, format)
        image = pillow_image(data) if mode == "CMYK" else image
        pixels = Augmentation(size=64).part(memoryview(b"shard" + data)[5:], lambda *_: box)
        assert pixels.shape == (64, 64, 3)
        assert pixels.dtype == np.uint8
        tolerance = {"GIF": 24}.get(format, 6 if mode == "CMYK" else 4)
        assert np.abs(pixels - expected(image, box, 64)).max() <= tolerance

    @given(st.integers(0, 999), st.integers(0, 699), st.integers(20, 1000), st.integers(20, 700))
    def test_reduced_decoding(self, left: int, top: int, width: int, height: int) -> None:
        """Decoding at a fraction of the size shows the same part."""
        width, height = min(width, 1000), min(height, 700)
        box = Box(min(left, 1000 - width), min(top, 700 - height), width, height)
        pixels = Augmentation(size=16).part(LARGE, lambda *_: box)
        assert np.abs(pixels - expected(scene(1000, 700), box, 16)).max() <= 12

    def test_orientation_is_ignored(self) -> None:
        """The part is chosen by the stored width and height, without the orientation."""
        sizes = []

        def choose(width: int, height: int) -> Box:
            sizes.append((width, height))
            return centre_crop(width, height)

        for format in ("JPEG", "PNG"):
            Augmentation(size=16).part(encoded(scene(90, 60), format, exif=turned(6)), choose)
        assert sizes == [(90, 60), (90, 60)]

    def test_a_truncated_jpeg(self) -> None:
        """The pixels that a truncated JPEG has are used."""
        data, box = encoded(scene(200, 200)), Box(0, 0, 200, 40)
        pixels = Augmentation(size=32).part(data[: len(data) // 2], lambda *_: box)
        assert np.abs(pixels - expected(scene(200, 200), box, 32)).max() <= 6

    @pytest.mark.parametrize(
        "data",
        [b"", b"\xff\xd8", b"\xff\xd8\xff\xe0 no image", b"text", encoded(scene(9, 9))[:40]],
        ids=["empty", "marker", "broken", "text", "header"],
    )
    def test_no_image(self, data: bytes) -> None:
        """Bytes that cannot be decoded raise an ImageError."""
        with pytest.raises(ImageError):
            Augmentation(size=16).part(data, centre_crop)

    @pytest.mark.parametrize("restarts", [0, 3], ids=["plain", "restarts"])
    @pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
    @pytest.mark.parametrize(
        "options",
        [{"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"mode": "L"}],
        ids=["444", "422", "420", "grey"],
    )
    def test_rows_below_the_part_do_not_matter(
        self, options: dict[str, Any], progressive: bool, restarts: int
    ) -> None:
        """The pixels of a part do not depend on the rows below it."""
        settings = {"progressive": progressive, "restart_marker_blocks": restarts, "quality": 50}
        mode = options.get("mode", "RGB")
        image = Image.fromarray(NOISE).convert(mode)
        data = saved(image, "JPEG", **settings, **({} if mode == "L" else options))
        full_image = simplejpeg.decode_jpeg(data, "RGB")
        for top in range(0, 110, 7):
            part = Augmentation(size=50).part(data, lambda *_, top=top: Box(10, top, 50, 50))
            assert np.array_equal(part, full_image[top : top + 50, 10:60])

    def test_rows_below_the_part_are_not_decoded(self) -> None:
        """Damage below the part causes no error."""
        data, box = encoded(Image.fromarray(NOISE)), Box(0, 0, 200, 40)
        cut = data[: len(data) // 2] + b"\0" * (len(data) // 4) + b"\xff\xd9"
        part = Augmentation(size=32).part(data, lambda *_: box)
        assert np.array_equal(Augmentation(size=32).part(cut, lambda *_: box), part)


LARGE = encoded(scene(1000, 700))
NOISE = np.random.default_rng(3).integers(90, 160, (181, 203, 3)).astype(np.uint8)


def in_steps(pixels: Any, strength: float, rng: np.random.Generator) -> Any:
    """Brightness, contrast and saturation one after the other, in float64."""
    values = pixels.astype(float)
    factors = 1 + strength * (2 * rng.random(3) - 1)
    for kind in rng.permutation(3).tolist():
        grey = {0: 0.0, 1: (values @ LUMA).mean(), 2: (values @ LUMA)[..., None]}[kind]
        values = factors[kind] * values + (1 - factors[kind]) * grey
    return values


class TestColours:
    @given(seeds, st.floats(0.01, 0.4))
    def test_jitter(self, seed: int, strength: float) -> None:
        """One matrix gives the result of three blends in random order, except for rounding."""
        pixels = np.random.default_rng(seed).integers(90, 160, (20, 30, 3)).astype(np.uint8)
        expected = in_steps(pixels, strength, np.random.default_rng(seed)).clip(0, 255)
        recolour(pixels, strength, 0.0, np.random.default_rng(seed))
        assert np.abs(pixels - expected).max() < 1

    def test_lighting_noise(self) -> None:
        """All pixels shift equally, and many draws are distributed as the principal components."""
        rng, shifts = np.random.default_rng(0), []
        for _ in range(20_000):
            pixels = np.full((1, 2, 3), 128, np.uint8)
            recolour(pixels, 0.0, 0.3, rng)
            assert (pixels[0, 0] == pixels[0, 1]).all()
            shifts.append(pixels[0, 0].astype(float) - 128)
        components = 255 * EIGENVECTORS * (0.3 * EIGENVALUES)
        assert np.allclose(np.cov(np.array(shifts).T), components @ components.T, rtol=0.05, atol=1)
        assert np.abs(np.mean(shifts, axis=0)).max() < 1
        assert np.allclose(EIGENVECTORS.T @ EIGENVECTORS, np.eye(3), atol=1e-3)


class TestAugmentation:
    @pytest.mark.parametrize("random", [True, False])
    @pytest.mark.parametrize("layout", ["CHW", "HWC"])
    @pytest.mark.parametrize("normalise", [True, False])
    def test_a_call_and_a_slot_of_a_batch(self, random: bool, layout: Any, normalise: bool) -> None:
        """A call and a write into a batch give equal values of the announced shape and type.

        Neighbours in the batch do not change.
        """
        augmentation = Augmentation(40, random, 0.4, 0.1, normalise, layout)
        assert augmentation.shape == ((3, 40, 40) if layout == "CHW" else (40, 40, 3))
        assert augmentation.dtype == (np.float32 if normalise else np.uint8)
        batch = np.full((3, *augmentation.shape), 7, augmentation.dtype)
        for index in range(8):
            augmented = augmentation(IMAGE, sample_rng(0, 0, index))
            assert (augmented.shape, augmented.dtype) == (augmentation.shape, augmentation.dtype)
            assert augmented.flags.c_contiguous
            augmentation.write(IMAGE, sample_rng(0, 0, index), batch[1])
            assert np.array_equal(batch[1], augmented)
            assert (batch[::2] == 7).all()

    def test_normalised_values(self) -> None:
        """Values are (x / 255 - mean) / std in both layouts."""
        pixels = Augmentation(32, normalise=False, layout="HWC")(IMAGE, sample_rng(1, 2, 3))
        expected = (pixels / 255 - IMAGENET_MEAN) / IMAGENET_STD
        first, last = (
            Augmentation(32, layout=layout)(IMAGE, sample_rng(1, 2, 3)) for layout in ("CHW", "HWC")
        )
        assert np.allclose(last, expected, atol=1e-5)
        assert np.array_equal(first, last.transpose(2, 0, 1))

    def test_randomness_comes_from_the_generator(self) -> None:
        """Seed, epoch and index each change the result. The same three repeat it, also pickled."""
        augmentation = Augmentation(size=32, jitter=0.4, noise=0.1)
        assert pickle.loads(pickle.dumps(augmentation)) == augmentation
        keys = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
        results = [augmentation(IMAGE, sample_rng(*key)).tobytes() for key in keys]
        assert len(set(results)) == 4
        assert results[0] == results[-1]

    def test_half_are_flipped(self) -> None:
        """A flip mirrors the crop in about half of all cases."""
        rows = np.tile(np.arange(0, 240, 2, dtype=np.uint8)[None, :, None], (80, 1, 3))
        image = simplejpeg.encode_jpeg(np.ascontiguousarray(rows), quality=98)
        augmentation = Augmentation(size=32, normalise=False)
        results = [augmentation(image, sample_rng(0, 0, index)).astype(int) for index in range(400)]
        assert (
            150 < sum(bool(augmented[0, 0, 0] > augmented[0, 0, -1]) for augmented in results) < 250
        )

    def test_evaluation_is_not_random(self) -> None:
        """Evaluation uses the centre of the image, with any generator and colour settings."""
        results = [
            Augmentation(70, random=False, normalise=False, layout="HWC"),
            Augmentation(70, random=False, normalise=False, layout="HWC", jitter=0.4, noise=0.1),
        ]
        first, second = (
            augmentation(IMAGE, sample_rng(0, 0, n)) for n, augmentation in enumerate(results)
        )
        assert np.array_equal(first, second)
        assert np.array_equal(first, simplejpeg.decode_jpeg(IMAGE)[5:75, 25:95])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"size": 0}, "size is at least 1"),
            ({"noise": math.nan}, "noise at least 0"),
            ({"jitter": 1.5}, "jitter is 0 to 1"),
            ({"noise": -1}, "noise at least 0"),
            ({"layout": "NHWC"}, "CHW or HWC"),
        ],
        ids=str,
    )
    def test_settings_out_of_range(self, options: dict[str, Any], message: str) -> None:
        """Settings out of range are refused when the object is created."""
        with pytest.raises(ConfigError, match=message):
            Augmentation(**options)


class Called(Augmentation):
    """A transform that replaces ``__call__`` only."""

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        return super().__call__(data, rng) + 1


class Written:
    """A transform that can write."""

    shape, dtype = (3, 8, 8), np.dtype(np.uint8)

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return an array."""

    def write(self, data: Any, rng: np.random.Generator, out: Any) -> None:
        """Write into a batch."""


def test_which_transforms_write() -> None:
    """A transform writes only if its ``write`` belongs to the class of its ``__call__``."""
    assert [has_write(augmentation) for augmentation in (Augmentation(), Written())] == [True, True]
    assert [
        has_write(augmentation) for augmentation in (Called(), lambda data, rng: None, None)
    ] == [False] * 3
