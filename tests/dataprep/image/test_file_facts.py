"""Tests of dataprep.image.file_facts."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dataprep.image import file_facts
from dataprep.image.file_facts import is_deep, tiff_has_whole_directory
from dataprep.sample.drawing import draw_image
from tests import encodings as enc

IMAGE = draw_image(10, 40, 30, detail=0.2)
PNG = enc.pillow(IMAGE, "PNG")
DEEP = IMAGE.astype(np.uint16) * 257


def opened(data: bytes) -> bool:
    """What is said of an encoded image."""
    with Image.open(io.BytesIO(data)) as image:
        return is_deep(image, data)


def by_opencv(kind: str, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint16]]) -> bytes:
    """16 bits a sample, as OpenCV writes them."""
    return bytes(cv2.imencode(kind, pixels)[1].tobytes())


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000", "AVIF", "BMP", "GIF", "WEBP"])
def test_eight_bits_are_not_deep(kind: str) -> None:
    """Eight bits a sample are what every container usually has."""
    assert not opened(enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB"))
    if kind in ("PNG", "TIFF", "PPM"):
        assert not opened(enc.pillow(IMAGE, kind, "1"))


@pytest.mark.parametrize("kind", [".png", ".tiff", ".ppm"])
@pytest.mark.parametrize("grey", [True, False])
def test_sixteen_bits_are_deep(kind: str, grey: bool) -> None:
    """Sixteen are found in grey and in colours, where Pillow opens the latter as plain RGB."""
    assert opened(
        by_opencv(kind.replace("ppm", "pgm") if grey else kind, DEEP[..., 1] if grey else DEEP)
    )


def test_jpeg_2000_of_sixteen_bits() -> None:
    """JPEG 2000 says how deep it is; Pillow opens its colours as plain RGB."""
    sink = io.BytesIO()
    Image.fromarray(DEEP[..., 1].copy()).save(sink, "JPEG2000")
    assert opened(sink.getvalue())
    data = enc.pillow(IMAGE, "JPEG2000")
    at = data.index(b"\xff\x4f\xff\x51") + 42
    assert data[at] == 7
    with Image.open(io.BytesIO(data)) as image:
        assert is_deep(image, data[:at] + b"\x0b" + data[at + 1 :])


def test_a_pgm_of_ten_bits_with_comments() -> None:
    """A PGM's largest value is read past comments."""
    head = b"P5\n# drawn\n2 # two\n1\n# and\n1023\n"
    assert opened(head + struct.pack(">2H", 0, 1023))
    assert not opened(head.replace(b"1023", b"255") + b"\0\xff")


def test_avif_of_ten_bits() -> None:
    """AVIF says in its configuration box whether it has more than 8 bits."""
    data = enc.pillow(IMAGE, "AVIF")
    at = data.index(b"av1C") + 6
    deep = data[:at] + bytes([data[at] | 0x40]) + data[at + 1 :]
    with Image.open(io.BytesIO(data)) as image:
        assert (is_deep(image, data), is_deep(image, deep)) == (False, True)


@pytest.mark.parametrize(
    ("data", "depth", "grey_alpha"),
    [
        (PNG, 8, False),
        (enc.pillow(IMAGE, "PNG", "LA"), 8, True),
        (enc.pillow(IMAGE, "PNG", "1"), 1, False),
        (enc.deep_png(IMAGE, grey=True), 16, False),
        (PNG[:20], 0, False),
    ],
)
def test_the_header(data: bytes, depth: int, grey_alpha: bool) -> None:
    """Bits a sample and colour type, as the file has them."""
    assert (file_facts.png_depth(data), file_facts.is_png_grey_alpha(data)) == (depth, grey_alpha)


@given(at=st.integers(8, len(PNG) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(at: int, bit: int) -> None:
    """A PNG is sound; with any bit changed behind its signature it is not."""
    assert file_facts.is_png_sound(PNG)
    assert file_facts.is_png_sound(PNG + b"trailer")
    flipped = bytearray(PNG)
    flipped[at] ^= 1 << bit
    assert not file_facts.is_png_sound(bytes(flipped))
    assert not file_facts.is_png_sound(PNG[:at])


def test_texts_are_left_out() -> None:
    """Every text goes and nothing else does, also where the last chunk is cut."""
    info = PngInfo()
    info.add_text("a", "b" * 90)
    info.add_text("c", "d" * 90, zip=True)
    info.add_itxt("e", "f" * 90)
    told = enc.pillow(IMAGE, "PNG", pnginfo=info)
    assert len(told) > len(PNG)
    assert file_facts.png_without_texts(told) == PNG
    assert file_facts.png_without_texts(told[:-3]) == PNG[:-3]
    assert file_facts.png_without_texts(PNG) == PNG


TIFFS = [
    enc.pillow(IMAGE, "TIFF"),
    enc.pillow(IMAGE, "TIFF", compression="tiff_lzw"),
    by_opencv(".tiff", IMAGE.astype("uint16")),
]


@pytest.mark.parametrize("data", TIFFS)
def test_whole_tiffs(data: bytes) -> None:
    """A sound file's directory is in it."""
    assert tiff_has_whole_directory(data)


@pytest.mark.parametrize("data", TIFFS)
@pytest.mark.parametrize("big", [False, True])
def test_directories_that_are_cut(data: bytes, big: bool) -> None:
    """Cut in the directory, or before it, in any order of bytes, it is not whole."""
    start = int.from_bytes(data[4:8], "little")
    for size in (8, start + 1, start + 2, start + 40):
        assert not tiff_has_whole_directory(data[:size])
    if big:
        assert not tiff_has_whole_directory(b"MM\0*" + data[4:])


def test_values_that_are_cut() -> None:
    """Values that stand behind the directory belong to it."""
    data = TIFFS[1]
    assert not tiff_has_whole_directory(data[:-1])
