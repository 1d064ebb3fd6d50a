"""Tests of dataprep.augment.decode."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.augment.crops import Box, centre_crop
from dataprep.augment.decode import decode_part, decode_whole
from dataprep.errors import ImageError
from dataprep.image import ImagePolicy, convert


def scene(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """A smooth image: red grows to the right, green downwards."""
    across = np.linspace(0, 255, width)[None, :].repeat(height, 0)
    down = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    pixels = np.stack([across, down, np.full_like(across, 99)], 2).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    """The file's bytes."""
    sink = io.BytesIO()
    image.save(sink, format, **({"quality": 95} if format == "JPEG" else {}), **options)
    return sink.getvalue()


def expected(image: Image.Image, box: Box, size: int) -> Any:
    """What Pillow makes of the same part."""
    corners = (box.left, box.top, box.left + box.width, box.top + box.height)
    part = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=corners)
    return np.asarray(part).astype(int)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "BMP", "GIF"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_part(format: str, mode: str) -> None:
    """The part that was chosen comes out as RGB, of whatever container and colours."""
    image, box = scene(300, 200, mode), Box(40, 20, 200, 100)
    pixels = decode_part(encoded(image, format), lambda *_: box, 64)
    assert pixels.shape == (64, 64, 3)
    assert pixels.dtype == np.uint8
    tolerance = 24 if format == "GIF" else 4
    assert np.abs(pixels - expected(image, box, 64)).max() <= tolerance


@pytest.mark.parametrize("encoding", ["png", "webp"])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_what_conversions_store(encoding: str, mode: str) -> None:
    """Stored PNG and WebP come out as RGB, grey ones too; what is transparent is white."""
    image = scene(120, 100, "L" if mode == "L" else "RGB")
    if mode == "RGBA":
        image.putalpha(
            Image.fromarray(np.repeat(np.array([[0, 255]], np.uint8), 60, 1).repeat(100, 0))
        )
    policy = ImagePolicy.model_validate({"encoding": encoding, "alpha": "keep"})
    stored = convert(encoded(image, "PNG"), policy).data
    whole = decode_whole(stored).astype(int)
    part = decode_part(stored, lambda *_: Box(70, 0, 50, 50), 25)
    assert (whole.shape, part.shape) == ((100, 120, 3), (25, 25, 3))
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, None if mode == "L" else image.convert("RGBA"))
    assert np.abs(whole - np.asarray(flat)).mean() < (1e-9 if encoding == "png" else 4)
    assert np.abs(part - expected(flat, Box(70, 0, 50, 50), 25)).max() <= 12


def test_cmyk() -> None:
    """A CMYK JPEG becomes RGB as Pillow has it."""
    image, box = scene(120, 100, "CMYK"), Box(0, 0, 100, 100)
    data = encoded(image)
    with Image.open(io.BytesIO(data)) as opened:
        want = expected(opened.convert("RGB"), box, 50)
    assert np.abs(decode_part(data, lambda *_: box, 50) - want).max() <= 6


@given(st.integers(0, 999), st.integers(0, 699), st.integers(20, 1000), st.integers(20, 700))
def test_scaled_decoding_keeps_the_part(left: int, top: int, width: int, height: int) -> None:
    """Decoding at a fraction of the size shows the same part as decoding in full."""
    width, height = min(width, 1000), min(height, 700)
    box = Box(min(left, 1000 - width), min(top, 700 - height), width, height)
    pixels = decode_part(LARGE, lambda *_: box, 16)
    assert np.abs(pixels - expected(scene(1000, 700), box, 16)).max() <= 12


LARGE = encoded(scene(1000, 700))


def test_sizes_are_those_of_the_image() -> None:
    """The choice is made from width and height as stored; an EXIF orientation is ignored."""
    exif = Image.Exif()
    exif[0x0112] = 6
    seen = []

    def choose(width: int, height: int) -> Box:
        seen.append((width, height))
        return centre_crop(width, height)

    decode_part(encoded(scene(90, 60), exif=exif), choose, 16)
    decode_part(encoded(scene(90, 60), "PNG", exif=exif), choose, 16)
    assert seen == [(90, 60), (90, 60)]


def test_memoryview() -> None:
    """Images may be views of a shard."""
    data = encoded(scene(90, 60))
    held = memoryview(b"shard" + data + b"rest")[5 : 5 + len(data)]
    assert np.array_equal(decode_part(held, centre_crop, 32), decode_part(data, centre_crop, 32))


def test_what_libjpeg_warns_of_is_taken() -> None:
    """A truncated JPEG gives the pixels that are there."""
    data = encoded(scene(200, 200))
    pixels = decode_part(data[: len(data) // 2], lambda *_: Box(0, 0, 200, 40), 32)
    assert np.abs(pixels - expected(scene(200, 200), Box(0, 0, 200, 40), 32)).max() <= 6


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xd8", b"\xff\xd8\xff\xe0 no image", b"no image at all", encoded(scene(9, 9))[:40]],
    ids=["empty", "marker", "broken", "text", "header"],
)
def test_no_image(data: bytes) -> None:
    """What is no image is an ImageError, never another."""
    with pytest.raises(ImageError):
        decode_part(data, centre_crop, 16)


@pytest.mark.parametrize(
    ("format", "mode"),
    [("JPEG", "CMYK"), *((form, mode) for form in ("JPEG", "PNG", "GIF") for mode in ("RGB", "L"))],
)
def test_whole(format: str, mode: str) -> None:
    """A whole image comes out at its own size, as RGB, of whatever container and colours."""
    image = scene(301, 203, mode)
    pixels = decode_whole(encoded(image, format))
    assert pixels.shape == (203, 301, 3)
    assert pixels.dtype == np.uint8
    wanted = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(pixels.astype(int) - wanted).mean() < (12 if format == "GIF" else 3)


def test_whole_ignores_orientation() -> None:
    """An orientation tag turns nothing."""
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode_whole(encoded(scene(30, 20), exif=exif)).shape == (20, 30, 3)


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"text", encoded(scene(30, 20))[:200]])
def test_whole_of_no_image(data: bytes) -> None:
    """What cannot be decoded is an ImageError."""
    with pytest.raises(ImageError):
        decode_whole(data)
