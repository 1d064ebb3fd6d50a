"""Tests of dataprep.image.png."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL.PngImagePlugin import PngInfo

from dataprep.image import png
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image

IMAGE = draw_image(9, 40, 30, detail=0.2)
PLAIN = enc.pillow(IMAGE, "PNG")


@pytest.mark.parametrize(
    ("data", "depth", "grey_alpha"),
    [
        (PLAIN, 8, False),
        (enc.pillow(IMAGE, "PNG", "LA"), 8, True),
        (enc.pillow(IMAGE, "PNG", "1"), 1, False),
        (enc.deep_png(IMAGE, grey=True), 16, False),
        (PLAIN[:20], 0, False),
    ],
)
def test_the_header(data: bytes, depth: int, grey_alpha: bool) -> None:
    """Bits a sample and colour type, as the file has them."""
    assert (png.depth(data), png.is_grey_alpha(data)) == (depth, grey_alpha)


@given(at=st.integers(8, len(PLAIN) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(at: int, bit: int) -> None:
    """A PNG is sound; with any bit changed behind its signature it is not."""
    assert png.is_sound(PLAIN)
    assert png.is_sound(PLAIN + b"trailer")
    flipped = bytearray(PLAIN)
    flipped[at] ^= 1 << bit
    assert not png.is_sound(bytes(flipped))
    assert not png.is_sound(PLAIN[:at])


def test_texts_are_left_out() -> None:
    """Every text goes and nothing else does, also where the last chunk is cut."""
    info = PngInfo()
    info.add_text("a", "b" * 90)
    info.add_text("c", "d" * 90, zip=True)
    info.add_itxt("e", "f" * 90)
    told = enc.pillow(IMAGE, "PNG", pnginfo=info)
    assert len(told) > len(PLAIN)
    assert png.without_texts(told) == PLAIN
    assert png.without_texts(told[:-3]) == PLAIN[:-3]
    assert png.without_texts(PLAIN) == PLAIN
