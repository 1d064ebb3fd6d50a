"""Whole images as RGB pixels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dataprep.errors import ImageError
from dataprep.image import ImagePolicy, convert
from dataprep.image.rgb import decode_whole

ACROSS, DOWN = np.meshgrid(np.linspace(0, 255, 301), np.linspace(0, 255, 203))
SCENE = Image.fromarray(np.dstack([ACROSS, DOWN, np.full_like(DOWN, 99)]).astype(np.uint8))


def encoded(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    """The file's bytes."""
    sink = io.BytesIO()
    image.save(sink, format, **options)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("format", "mode"),
    [("JPEG", "CMYK"), *((form, mode) for form in ("JPEG", "PNG", "GIF") for mode in ("RGB", "L"))],
)
def test_containers_and_colours(format: str, mode: str) -> None:
    """Every image comes out at its own size as RGB."""
    image = SCENE.convert(mode)
    pixels = decode_whole(encoded(image, format))
    assert pixels.shape == (203, 301, 3)
    assert pixels.dtype == np.uint8
    wanted = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(pixels.astype(int) - wanted).mean() < (12 if format == "GIF" else 3)


@pytest.mark.parametrize("encoding", ["png", "webp"])
def test_stored_alpha(encoding: str) -> None:
    """Transparent pixels of a stored image are white."""
    image = SCENE.copy()
    image.putalpha(Image.fromarray(np.where(ACROSS < 128, 0, 255).astype(np.uint8)))
    policy = ImagePolicy.model_validate({"encoding": encoding, "alpha": "keep"})
    pixels = decode_whole(convert(encoded(image, "PNG"), policy).data).astype(int)
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, None, image)
    assert np.abs(pixels - np.asarray(flat)).mean() < 4


def test_orientation_is_ignored() -> None:
    """An EXIF orientation turns nothing."""
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode_whole(encoded(SCENE, exif=exif)).shape == (203, 301, 3)


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"text", encoded(SCENE)[:200]])
def test_no_image(data: bytes) -> None:
    """What cannot be decoded is an ImageError."""
    with pytest.raises(ImageError):
        decode_whole(data)
