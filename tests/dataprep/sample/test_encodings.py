"""Tests of the odd encodings."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dataprep.sample import encodings as enc
from dataprep.sample.drawing import Pixels, draw_image


@pytest.fixture(scope="module")
def image() -> Pixels:
    """Draw a small picture."""
    return draw_image(5, 120, 90, detail=0.2)


def _open(data: bytes) -> Image.Image:
    opened = Image.open(io.BytesIO(data))
    opened.load()
    return opened


def _difference(left: Image.Image, right: Pixels) -> float:
    return float(np.abs(np.asarray(left.convert("RGB")).astype(float) - right).mean())


@pytest.mark.parametrize(
    ("encode", "mode", "transform"),
    [
        (enc.adobe_rgb_jpeg, "RGB", 0),
        (enc.adobe_cmyk_jpeg, "CMYK", 0),
        (enc.ycck_jpeg, "CMYK", 2),
        (enc.grey_jpeg, "L", None),
        (enc.icc_jpeg, "RGB", None),
    ],
)
def test_odd_colours_show_the_picture(
    image: Pixels, encode: Callable[[Pixels], bytes], mode: str, transform: int | None
) -> None:
    """Each odd colour space is as marked and decodes to the picture that was encoded."""
    opened = _open(encode(image))
    assert (opened.mode, opened.info.get("adobe_transform")) == (mode, transform)
    truth = image if mode != "L" else np.asarray(Image.fromarray(image).convert("L"))[..., None]
    assert _difference(opened, truth) < 8


def test_plain_cmyk_is_ink(image: Pixels) -> None:
    """CMYK without an Adobe marker holds ink, so that a reader that inverts sees a negative."""
    data = enc.plain_cmyk_jpeg(image)
    opened = _open(data)
    assert opened.mode == "CMYK"
    assert b"Adobe" not in data
    negative = Image.frombytes("CMYK", opened.size, (255 - np.asarray(opened)).tobytes())
    assert _difference(negative, image) < 8 < _difference(opened, image)


def test_profile_has_no_date(image: Pixels) -> None:
    """The embedded profile carries a fixed date, so that its bytes repeat."""
    profile = _open(enc.icc_jpeg(image)).info["icc_profile"]
    assert struct.unpack(">6H", profile[24:36]) == (2012, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("as_long", [False, True])
@pytest.mark.parametrize("note_bytes", [0, 5000])
def test_orientation_can_be_read(image: Pixels, as_long: bool, note_bytes: int) -> None:
    """The EXIF orientation is read back, whatever its type and what follows it."""
    data = enc.oriented_jpeg(image, 6, as_long=as_long, note_bytes=note_bytes)
    assert _open(data).getexif()[0x0112] == 6
    assert len(data) >= len(enc.jpeg(image)) + note_bytes


def test_bad_exif_spares_the_pixels(image: Pixels) -> None:
    """Pillow warns about the broken EXIF block, and the pixels decode."""
    data = enc.bad_exif_jpeg(image)
    with pytest.warns(UserWarning, match="EXIF|Tag data larger"):
        _open(data)
    assert np.array_equal(
        simplejpeg.decode_jpeg(data, strict=True), simplejpeg.decode_jpeg(enc.jpeg(image))
    )


def test_arithmetic_coding_is_what_it_says() -> None:
    """The frame header of the arithmetic-coded JPEG is SOF9, and it decodes."""
    data = enc.arithmetic_jpeg()
    assert b"\xff\xc9" in data
    assert b"\xff\xc0" not in data
    assert _open(data).size == (32, 24)


@pytest.mark.parametrize("subsampling", ["411", "440"])
def test_rare_subsamplings(image: Pixels, subsampling: str) -> None:
    """4:1:1 and 4:4:0 stand in the header."""
    assert simplejpeg.decode_jpeg_header(enc.jpeg(image, subsampling))[3] == subsampling


def test_transparency(image: Pixels) -> None:
    """The palette has a transparent colour, and RGBA fades out."""
    assert _open(enc.palette_png(image)).info["transparency"] == 0
    faded = np.asarray(_open(enc.rgba_png(image)))
    assert faded[0, 0, 3] == 255
    assert faded[0, -1, 3] == 0


@pytest.mark.parametrize(("grey", "colour_type"), [(True, 0), (False, 2)])
def test_deep_png_has_16_bits(image: Pixels, grey: bool, colour_type: int) -> None:
    """The header of a deep PNG says 16 bits and the right colour type."""
    assert tuple(enc.deep_png(image, grey=grey)[24:26]) == (16, colour_type)


def test_gif_moves(image: Pixels) -> None:
    """The GIF has as many frames as asked for."""
    opened = Image.open(io.BytesIO(enc.animated_gif(image, frames=4)))
    assert getattr(opened, "n_frames", 1) == 4


def test_garbage_is_noticed(image: Pixels) -> None:
    """Garbage within the entropy-coded data is refused by strict and by lenient decoders."""
    data = enc.with_garbage(enc.jpeg(image), np.random.default_rng(0))
    assert len(data) == len(enc.jpeg(image))
    with pytest.raises(ValueError, match="JPEG"):
        simplejpeg.decode_jpeg(data, strict=True)
    with pytest.raises(OSError, match="broken data stream"):
        _open(data)


def test_bombs_are_noticed(image: Pixels) -> None:
    """Pillow refuses the claimed sizes before it allocates anything."""
    assert simplejpeg.decode_jpeg_header(enc.bomb_jpeg(image, 65500))[:2] == (65500, 65500)
    for data in (enc.bomb_jpeg(image, 65500), enc.bomb_png(65500)):
        with pytest.raises(Image.DecompressionBombError, match="4290250000 pixels"):
            Image.open(io.BytesIO(data))
    assert Image.open(io.BytesIO(enc.bomb_png(9))).size == (9, 9)
