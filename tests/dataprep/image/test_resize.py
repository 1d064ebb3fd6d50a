"""Sizes of images are computed from modes, and pixels are scaled to them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from dataprep.drawn.drawing import draw_image
from dataprep.errors import ImageTooLarge
from dataprep.image import resize
from dataprep.image.output_size import (
    Geometry,
    Pixels,
    is_below_size,
    plan_geometry,
    require_feasible,
)
from dataprep.image.policy import Filter, ImagePolicy, Mode
from dataprep.image.resize import bgrx, fit
from tests.strategies import image_policies, sides

PHOTO = draw_image(4, 250, 190, detail=0.3)
SOFT = (64 + PHOTO // 2).astype(np.uint8)  # nothing overshoots between the passes
MEMORY = np.random.default_rng(0).integers(0, 256, (7, 5, 4), dtype=np.uint8)
RGB = MEMORY[:, :, 2::-1]  # as decoders return it
SIDES = st.integers(1, 90)
WITH_CYKOOZ = pytest.mark.skipif(
    find_spec("cykooz_resizer") is None, reason="cykooz-resizer has no wheel for this processor"
)
CONVOLVED: tuple[Filter, ...] = ("bilinear", "bicubic")


def scaled(pixels: Pixels, width: int, height: int, filter: Filter) -> Pixels:
    """The pixels scaled to exactly this size, without a crop."""
    return fit(pixels, Geometry(width, height, width, height), filter)


@pytest.fixture(params=[pytest.param("cykooz", marks=WITH_CYKOOZ), "numpy"])
def resizer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either resizer, as if the other one were missing."""
    if request.param == "numpy":
        monkeypatch.setattr(resize, "cykooz_resizer", None)
    return str(request.param)


@pytest.mark.usefixtures("resizer")
@pytest.mark.parametrize("filter", CONVOLVED)
@pytest.mark.parametrize("sides", [(7, 5), (61, 40), (90, 200), (1, 1), (33, 40)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_plain_image_stays_plain(filter: Filter, sides: tuple[int, int], channels: int) -> None:
    """A plain image stays plain for any size, filter and channels: rounding loses no weight."""
    for value in (0, 1, 127, 255):
        plain = np.full((40, 61, channels), value, np.uint8)
        if channels == 4:
            plain[:, :, 3] = 255
        assert np.array_equal(
            scaled(plain, *sides, filter), np.resize(plain[0, 0], (*sides[::-1], channels))
        )


@pytest.mark.usefixtures("resizer")
@pytest.mark.parametrize(("filter", "native"), [("bilinear", "BILINEAR"), ("bicubic", "BICUBIC")])
@pytest.mark.parametrize("size", [(125, 95), (171, 130), (33, 190), (7, 5), (250, 40), (400, 300)])
@pytest.mark.parametrize("channels", [1, 3])
def test_filters_are_pillows(
    filter: Filter, native: str, size: tuple[int, int], channels: int
) -> None:
    """Pixels differ from Pillow's by 2 of 255 at most.

    Pillow scales horizontally first, and cykooz-resizer rounds weights to 15 bits.
    """
    pixels = SOFT[:, :, :channels]
    image = Image.fromarray(pixels[:, :, 0].copy() if channels == 1 else pixels)
    array = np.asarray(image.resize(size, Image.Resampling[native]))
    scaled_pixels = scaled(pixels, *size, filter).astype(int)
    assert abs(scaled_pixels - array.reshape(scaled_pixels.shape)).max() <= 2


@WITH_CYKOOZ
@given(data=st.data())
def test_numpy_gives_the_pixels_of_cykooz_resizer(data: st.DataObject) -> None:
    """NumPy gives exactly the pixels of cykooz-resizer, both of smooth and of extreme pixels."""
    height, width, high, wide = (data.draw(SIDES) for _ in range(4))
    channels = data.draw(st.sampled_from([1, 3, 4]))
    filter: Filter = data.draw(st.sampled_from(CONVOLVED))
    noise = np.random.default_rng(data.draw(st.integers(0, 9)))
    pixels = noise.integers(0, 256, (height, width, channels), dtype=np.uint8)
    if data.draw(st.booleans()):
        pixels = np.where(pixels < 128, 0, 255).astype(np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        by_cykooz = scaled(pixels, wide, high, filter)
        patch.setattr(resize, "cykooz_resizer", None)
        by_numpy = scaled(pixels, wide, high, filter)
    assert np.array_equal(by_cykooz, by_numpy)


@WITH_CYKOOZ
@pytest.mark.parametrize("filter", CONVOLVED)
@pytest.mark.parametrize("wide", [8_000, 19_999, 60_000])
def test_numpy_gives_the_pixels_of_cykooz_resizer_for_large_reductions(
    monkeypatch: pytest.MonkeyPatch, wide: int, filter: Filter
) -> None:
    """Both round the small weights of a large reduction to the same number of bits."""
    noise = np.random.default_rng(wide).integers(0, 256, (3, wide, 3), dtype=np.uint8)
    for pixels in (noise, np.full_like(noise, 255), noise.swapaxes(0, 1)):
        size = (64, 3) if pixels.shape[1] == wide else (3, 64)
        by_cykooz = scaled(pixels, *size, filter)
        with monkeypatch.context() as patch:
            patch.setattr(resize, "cykooz_resizer", None)
            assert np.array_equal(by_cykooz, scaled(pixels, *size, filter))


@WITH_CYKOOZ
@pytest.mark.parametrize("extensions", ["sse4_1", "avx2", "neon"])
@pytest.mark.parametrize("filter", CONVOLVED)
@given(data=st.data())
def test_every_processor_gives_the_same_pixels(
    filter: Filter, extensions: str, data: st.DataObject
) -> None:
    """Each available set of vector instructions gives exactly the same pixels."""
    if not _has(extensions):
        pytest.skip(f"this processor has no {extensions}")
    height, width, high, wide = (data.draw(SIDES) for _ in range(4))
    channels = data.draw(st.sampled_from([1, 3, 4]))
    noise = np.random.default_rng(data.draw(st.integers(0, 9)))
    pixels = noise.integers(0, 256, (height, width, channels), dtype=np.uint8)
    cykooz = import_module("cykooz_resizer")
    results = []
    for name in ("none", extensions):
        resizer = cykooz.Resizer()
        resizer.cpu_extensions = cykooz.CpuExtensions[name]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resize, "_idle_resizers", [resizer])
            results.append(scaled(pixels, wide, high, filter))
    assert np.array_equal(results[0], results[1])


def _has(extensions: str) -> bool:
    """Whether this processor has the vector instructions."""
    features = {"sse4_1": "SSE4.1", "avx2": "AVX2", "neon": "NEON"}
    arguments = cv2.getCPUFeaturesLine().replace("*", " ").replace("?", " ? ").split()
    name = features[extensions]
    if name not in arguments:
        return False
    behind = arguments[arguments.index(name) + 1 :]
    is_missing_here = behind[:1] == ["?"]
    return not is_missing_here


@pytest.mark.usefixtures("resizer")
def test_threads_do_not_meet() -> None:
    """Many threads at the same time get the result of one thread."""
    sizes = [(40 + n, 30 + n) for n in range(40)]
    start = threading.Barrier(4)

    def work(number: int) -> list[Pixels]:
        start.wait()
        return [scaled(PHOTO, *size, "bicubic") for size in sizes[number::4]]

    with ThreadPoolExecutor(4) as pool:
        images_of_threads = list(pool.map(work, range(4)))
    for number, images in enumerate(images_of_threads):
        for size, image in zip(sizes[number::4], images, strict=True):
            assert np.array_equal(image, scaled(PHOTO, *size, "bicubic"))


@pytest.mark.parametrize(
    "part",
    [
        lambda pixels: pixels,
        lambda pixels: pixels[2:6, 1:4],
        lambda pixels: pixels[6:, 4:],
        lambda pixels: pixels[::-1],
    ],
)
def test_memory_of_four_bytes_is_not_copied(part: Callable[[Pixels], Pixels]) -> None:
    """A decoded image, or a part of it, is not copied."""
    view = bgrx(part(RGB))
    assert np.shares_memory(view, MEMORY)
    assert view.tolist() == part(MEMORY).tolist()


@pytest.mark.parametrize(
    "pixels",
    [
        np.ascontiguousarray(RGB),
        np.rot90(RGB),
        RGB[:, ::-1],
        MEMORY[:, :, :3],
        np.asfortranarray(MEMORY[:, :, :3]),
    ],
    ids=["plain", "turned", "mirrored", "first three", "by columns"],
)
def test_other_memory_is_copied(pixels: Pixels) -> None:
    """Memory with other strides is copied, and its colours do not change."""
    assert bgrx(pixels)[:, :, :3].tolist() == pixels[:, :, ::-1].tolist()


def exact_area(row: NDArray[Any], target: int) -> list[int]:
    """One row in fractions: each pixel is the exact mean of its interval, rounded half up."""
    size = len(row)
    result = []
    for i in range(target):
        start, stop = Fraction(i * size, target), Fraction((i + 1) * size, target)
        total = Fraction(0)
        for x, value in enumerate(row):
            overlap = min(stop, Fraction(x + 1)) - max(start, Fraction(x))
            total += int(value) * max(Fraction(0), overlap)
        result.append(int(total / (stop - start) + Fraction(1, 2)))
    return result


@given(row=st.binary(min_size=1, max_size=24), target=st.integers(1, 30), down=st.booleans())
def test_area_is_the_mean_of_the_area(row: bytes, target: int, down: bool) -> None:
    """Each pixel is the exact mean of its area, in both directions, smaller or larger."""
    values = np.frombuffer(row, np.uint8)
    image = values.reshape(-1, 1, 1) if down else values.reshape(1, -1, 1)
    size = (1, target) if down else (target, 1)
    assert scaled(image, *size, "area").ravel().tolist() == exact_area(values, target)


@pytest.mark.parametrize("channels", [1, 3])
def test_lanczos_is_pillows(channels: int) -> None:
    """The Lanczos filter gives exactly the pixels of Pillow."""
    pixels: Pixels = PHOTO[:, :, :channels]
    image = Image.fromarray(pixels[:, :, 0].copy() if channels == 1 else pixels)
    array = np.asarray(image.resize((99, 77), Image.Resampling.LANCZOS)).reshape(77, 99, channels)
    assert np.array_equal(scaled(pixels, 99, 77, "lanczos"), array)


@pytest.mark.parametrize(
    ("mode", "size", "upscale", "source", "result"),
    [
        ("none", None, False, (500, 375), (500, 375, 500, 375)),
        ("short", 256, False, (500, 375), (341, 256, 341, 256)),
        ("short", 256, False, (375, 500), (256, 341, 256, 341)),
        ("short", 256, False, (200, 100), (200, 100, 200, 100)),
        ("short", 256, True, (200, 100), (512, 256, 512, 256)),
        ("long", 250, False, (500, 375), (250, 188, 250, 188)),
        ("long", 1000, True, (500, 375), (1000, 750, 1000, 750)),
        ("long", 1000, False, (500, 375), (500, 375, 500, 375)),
        ("exact", (224, 100), False, (500, 375), (224, 100, 224, 100)),
        ("exact", 400, False, (500, 375), (400, 375, 400, 375)),
        ("exact", 400, True, (500, 375), (400, 400, 400, 400)),
        ("crop", 224, False, (500, 375), (299, 224, 224, 224)),
        ("crop", (100, 300), False, (500, 375), (400, 300, 100, 300)),
        ("crop", 400, False, (500, 375), (500, 375, 400, 375)),
        ("crop", 400, True, (500, 375), (533, 400, 400, 400)),
        ("short", 1, False, (3000, 2), (1500, 1, 1500, 1)),
        ("long", 2, False, (3000, 1), (2, 1, 2, 1)),
    ],
)
def test_known_sizes(
    mode: Mode,
    size: int | tuple[int, int] | None,
    upscale: bool,
    source: tuple[int, int],
    result: tuple[int, int, int, int],
) -> None:
    """Each mode gives the documented size, with and without upscaling."""
    policy = ImagePolicy(mode=mode, size=size, upscale=upscale)
    assert plan_geometry(*source, policy) == Geometry(*result)


@given(width=sides, height=sides, size=st.integers(1, 16_384))
def test_scaling_rounds_halves_up(width: int, height: int, size: int) -> None:
    """A scaled side is the nearest whole number, rounded up for halves, and never 0."""
    geometry = plan_geometry(width, height, ImagePolicy(size=size, upscale=True))
    for side, scaled in ((width, geometry.width), (height, geometry.height)):
        exact = Fraction(side * size, min(width, height))
        assert scaled == max(1, math.floor(exact + Fraction(1, 2)))


@given(width=sides, height=sides, policy=image_policies())
def test_nothing_grows_unless_told(width: int, height: int, policy: ImagePolicy) -> None:
    """Without upscaling no side grows, and the crop is always within the scaled image."""
    geometry = plan_geometry(width, height, policy)
    assert 1 <= geometry.crop_width <= geometry.width
    assert 1 <= geometry.crop_height <= geometry.height
    if not policy.upscale:
        assert geometry.width <= width
        assert geometry.height <= height


@given(
    width=sides,
    height=sides,
    policy=image_policies("short") | image_policies("long") | image_policies("crop"),
)
def test_the_aspect_is_kept(width: int, height: int, policy: ImagePolicy) -> None:
    """Modes that keep the aspect differ by less than a pixel from the exact length."""
    geometry = plan_geometry(width, height, policy)
    long, short = sorted([(width, geometry.width), (height, geometry.height)], reverse=True)
    assert abs(Fraction(short[0] * long[1], long[0]) - short[1]) <= 1


@given(width=sides, height=sides, policy=image_policies())
def test_the_asked_side_is_met(width: int, height: int, policy: ImagePolicy) -> None:
    """With upscaling the requested side is exact, and no result is reported as too small."""
    policy = policy.model_copy(update={"upscale": True})
    geometry = plan_geometry(width, height, policy)
    cut = (geometry.crop_width, geometry.crop_height)
    size = policy.size or 0
    box = size if isinstance(size, tuple) else (size, size)
    requested = {
        "none": cut == (width, height),
        "short": min(cut) == box[0],
        "long": max(cut) == box[0],
        "exact": cut == box,
        "crop": cut == box,
    }
    assert requested[policy.mode]
    assert not is_below_size(geometry, policy)


@given(width=sides, height=sides, policy=image_policies())
def test_falling_short_is_what_upscaling_would_change(
    width: int, height: int, policy: ImagePolicy
) -> None:
    """A result is reported as too small exactly if upscaling would give another size."""
    policy = policy.model_copy(update={"upscale": False})
    grown = policy.model_copy(update={"upscale": True})
    geometry = plan_geometry(width, height, policy)
    assert is_below_size(geometry, policy) == (
        geometry[2:] != plan_geometry(width, height, grown)[2:]
    )


@pytest.mark.parametrize(("encoding", "most"), [("jpeg", 65_500), ("webp", 16_383)])
def test_sides_that_an_encoding_does_not_have(encoding: str, most: int) -> None:
    """The largest side of an encoding is accepted and a larger one refused, after the crop."""
    policy = ImagePolicy.model_validate({"encoding": encoding})
    for width, height in ((most, 1), (1, most)):
        require_feasible(width, height, Geometry(width, height, width, height), policy)
    with pytest.raises(ImageTooLarge, match=f"{encoding} allows at most {most:,} pixels per side"):
        require_feasible(1, 1, Geometry(1, most + 1, 1, most + 1), policy)
    require_feasible(1, 1, Geometry(1, most + 1, 1, most), policy)


@pytest.mark.parametrize(
    ("width", "height", "geometry", "fits"),
    [
        (10, 10, Geometry(9_459, 9_459, 10, 10), True),
        (10, 10, Geometry(9_460, 9_460, 10, 10), False),
        (1, 400_000, Geometry(256, 256, 256, 256), False),
        (1, 300_000, Geometry(256, 256, 256, 256), True),
    ],
)
def test_pixels_that_cannot_be_stored(
    width: int, height: int, geometry: Geometry, fits: bool
) -> None:
    """The image before its crop has at most the pixels that readers or the policy allow."""
    if not fits:
        with pytest.raises(ImageTooLarge, match="would be scaled to"):
            require_feasible(width, height, geometry, ImagePolicy(max_pixels=1))
    require_feasible(width, height, geometry, ImagePolicy(max_pixels=150_000_000))
