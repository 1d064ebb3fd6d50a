"""What an encoded image says of itself."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.errors import ImageError
from dataprep.inspection.image_facts import container_of, image_facts, size_of
from tests.strategies import mutated


def encoded(form: str, mode: str = "RGB", **options: Any) -> bytes:
    """A small image by Pillow, 37 x 23."""
    pixels = np.random.default_rng(0).integers(0, 256, (23, 37, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(sink, form, **options)
    return sink.getvalue()


FORMS = ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"]


@pytest.mark.parametrize("form", FORMS)
def test_container(form: str) -> None:
    """The first bytes tell what kind of image it is."""
    data = encoded(form, "P" if form == "GIF" else "RGB")
    assert container_of(data[:16]) == form
    facts = image_facts(data)
    assert (facts.container, facts.width, facts.height) == (form, 37, 23)
    assert facts.bytes == len(data)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("GIF", {}),
        ("WEBP", {"quality": 80}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}),
    ],
    ids=str,
)
def test_size_from_the_beginning(form: str, options: dict[str, Any]) -> None:
    """Less than 1 kB of the file is enough to know its size."""
    data = encoded(form, "P" if form == "GIF" else "RGB", **options)
    assert size_of(data[:900]) == (37, 23)


@pytest.mark.parametrize("head", [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"text"])
def test_size_of_too_little(head: bytes) -> None:
    """Where the beginning does not reach, the size is not made up."""
    assert size_of(head) is None


@given(mutated(st.sampled_from(FORMS[:4]).map(lambda f: encoded(f, "P" if f == "GIF" else "RGB"))))
def test_size_of_damaged(data: bytes) -> None:
    """Damage is never more than a size that is not known."""
    size = size_of(data)
    assert size is None or len(size) == 2


@pytest.mark.parametrize(
    ("options", "mode", "said"),
    [
        ({"subsampling": "4:4:4"}, "RGB", "YCbCr, 4:4:4"),
        ({"subsampling": "4:2:0", "progressive": True}, "RGB", "YCbCr, 4:2:0, progressive"),
        ({}, "L", "Grayscale"),
        ({}, "CMYK", "YCCK"),
        ({"icc_profile": b"x" * 200}, "RGB", "ICC profile"),
    ],
)
def test_in_words(options: dict[str, Any], mode: str, said: str) -> None:
    """Colour space, subsampling, coding and profile are named as they are stored."""
    facts = image_facts(encoded("JPEG", mode, **options))
    assert str(facts).startswith("JPEG of 37 x 23, ")
    assert said in str(facts) or (mode == "CMYK" and "CMYK" in str(facts))


def test_orientation() -> None:
    """An orientation other than 1 is told."""
    exif = Image.Exif()
    exif[0x0112] = 6
    assert "orientation 6" in image_facts(encoded("JPEG", exif=exif)).details


@pytest.mark.parametrize("data", [b"", b"hello", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n" + bytes(9)])
def test_no_image(data: bytes) -> None:
    """What is no image is an error of this package."""
    with pytest.raises(ImageError):
        image_facts(data)
