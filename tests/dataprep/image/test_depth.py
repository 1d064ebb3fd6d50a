"""Tests of dataprep.image.depth."""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from PIL import Image

from dataprep.image.depth import is_deep
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image

IMAGE = draw_image(10, 40, 30, detail=0.2)
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
