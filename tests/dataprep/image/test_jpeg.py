"""Tests of dataprep.image.jpeg."""

from __future__ import annotations

import itertools
import struct

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptImage, ImageError, UnsupportedImage
from dataprep.image.jpeg import ends, read_header, reset_orientation
from dataprep.sample.drawing import draw_image
from tests import encodings as enc
from tests.dataprep.image.samplings import sampled
from tests.strategies import mutated

IMAGE = draw_image(1, 48, 36, detail=0.3)
PLAIN = enc.jpeg(IMAGE)
BYTE, SHORT, LONG, SSHORT, SLONG = 1, 3, 4, 8, 9


def exif_jpeg(kind: int, value: int, *, big: bool, others: int = 0, count: int = 1) -> bytes:
    """PLAIN with an orientation of any TIFF type and byte order, between ``others`` entries."""
    order = ">" if big else "<"
    code = {BYTE: "B", SHORT: "H", LONG: "I", SSHORT: "h", SLONG: "i"}[kind]
    held = struct.pack(order + code, value).ljust(4, b"\xaa")
    other = struct.pack(order + "HHII", 0x0100, LONG, 1, 0x0112)
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + held
    directory = struct.pack(order + "H", 1 + 2 * others) + other * others + entry + other * others
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(order + "I", 8)
    content = b"Exif\0\0" + head + directory + bytes(4)
    return PLAIN[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(content)) + content + PLAIN[2:]


def changed(before: bytes, after: bytes) -> list[int]:
    """Offsets of the bytes that differ."""
    assert len(before) == len(after)
    return [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


@pytest.mark.parametrize("value", range(9))
@pytest.mark.parametrize("kind", [BYTE, SHORT, LONG])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("others", [0, 3])
def test_resetting_touches_the_tag_alone(value: int, kind: int, big: bool, others: int) -> None:
    """The tag becomes 1 in its own type and byte order; at most one byte changes."""
    data = exif_jpeg(kind, value, big=big, others=others)
    header = read_header(data)
    assert [tag.value for tag in header.orientations] == [value]
    assert header.orientation == (value or 1)
    mended = reset_orientation(data, header)
    assert mended == exif_jpeg(kind, 1, big=big, others=others)
    assert len(changed(data, mended)) == (value != 1)


def test_every_orientation_tag_is_reset() -> None:
    """Where a file has two Exif segments, the first decides and both are reset."""
    once = exif_jpeg(SHORT, 6, big=True)
    twice = once[: len(once) - len(PLAIN) + 2] + exif_jpeg(LONG, 3, big=False)[2:]
    header = read_header(twice)
    assert header.orientation == 6
    mended = read_header(reset_orientation(twice, header))
    assert [tag.value for tag in mended.orientations] == [1, 1]


@pytest.mark.parametrize(("kind", "count"), [(SHORT, 0), (SHORT, 2), (SSHORT, 1), (SLONG, 1)])
@pytest.mark.parametrize("big", [False, True])
def test_tags_that_are_none_by_exif(kind: int, count: int, big: bool) -> None:
    """A tag of another type or count is read and reset, since some decoders follow it."""
    data = exif_jpeg(kind, 6, big=big, count=count)
    header = read_header(data)
    assert header.orientation == 6
    mended = reset_orientation(data, header)
    assert mended == exif_jpeg(kind, 1, big=big, count=count)
    found = cv2.imdecode(np.frombuffer(mended, np.uint8), cv2.IMREAD_COLOR)
    assert np.asarray(found).shape == IMAGE.shape
    of_no_value = exif_jpeg(kind, 9, big=big, count=count)
    assert read_header(of_no_value).orientations == ()


@pytest.mark.parametrize("value", [0, 9, 255])
def test_an_orientation_that_is_none(value: int) -> None:
    """Values that Exif does not define count as 1."""
    assert read_header(exif_jpeg(BYTE, value, big=True)).orientation == 1


@pytest.mark.parametrize(
    ("data", "colorspace", "channels", "icc"),
    [
        (PLAIN, "YCbCr", 3, False),
        (enc.grey_jpeg(IMAGE), "Grayscale", 1, False),
        (enc.adobe_rgb_jpeg(IMAGE), "RGB", 3, False),
        (enc.adobe_cmyk_jpeg(IMAGE), "CMYK", 4, False),
        (enc.plain_cmyk_jpeg(IMAGE), "CMYK", 4, False),
        (enc.ycck_jpeg(IMAGE), "YCCK", 4, False),
        (enc.icc_jpeg(IMAGE), "YCbCr", 3, True),
        (enc.pillow(IMAGE, "JPEG", progressive=True), "YCbCr", 3, False),
        (PLAIN[:2] + b"\xff\xff\xff" + PLAIN[3:], "YCbCr", 3, False),
        (PLAIN[:2] + b"skipped" + PLAIN[2:], "YCbCr", 3, False),
    ],
    ids=["ycc", "grey", "rgb", "cmyk", "ink", "ycck", "icc", "progressive", "fill", "junk"],
)
def test_headers_are_read(data: bytes, colorspace: str, channels: int, icc: bool) -> None:
    """Size, colour space and profile are read from the header, past fill bytes and junk."""
    header = read_header(data)
    assert (header.width, header.height) == (48, 36)
    assert (header.colorspace, header.channels, bool(header.icc_chunks)) == (
        colorspace,
        channels,
        icc,
    )
    assert header.orientations == ()


def test_arithmetic_coding_is_read() -> None:
    """The header of an arithmetic-coded file is read as any other."""
    header = read_header(enc.arithmetic_jpeg())
    assert (header.width, header.height, header.colorspace) == (32, 24, "YCbCr")


@pytest.mark.parametrize("adobe", [1, 7])
def test_four_components_of_an_unknown_transform(adobe: int) -> None:
    """An Adobe transform that is unknown for four components means YCCK, as libjpeg has it."""
    data = bytearray(enc.adobe_cmyk_jpeg(IMAGE))
    data[data.index(b"Adobe") + 11] = adobe
    assert read_header(bytes(data)).colorspace == "YCCK"


def with_frame(marker: int, precision: int = 8, components: int = 3) -> bytes:
    """PLAIN with another frame type, precision or number of components."""
    data = bytearray(PLAIN)
    at = data.index(b"\xff\xc0")
    data[at + 1], data[at + 4], data[at + 9] = marker, precision, components
    return bytes(data)


@pytest.mark.parametrize("marker", [0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF])
def test_lossless_and_hierarchical_are_unsupported(marker: int) -> None:
    """Frames that libjpeg cannot decode are named, not broken."""
    with pytest.raises(UnsupportedImage, match=f"lossless or hierarchical.*0x{marker:02X}"):
        read_header(with_frame(marker))


def test_other_depths_and_components_are_unsupported() -> None:
    """12 bits a sample, two components and a size of 0 are named."""
    with pytest.raises(UnsupportedImage, match="12 bits a sample"):
        read_header(with_frame(0xC1, precision=12))
    with pytest.raises(UnsupportedImage, match="2 components"):
        read_header(with_frame(0xC0, components=2))
    with pytest.raises(UnsupportedImage, match="0 x 0 pixels"):
        read_header(enc.bomb_jpeg(IMAGE, 0))


def test_a_header_cut_anywhere_is_corrupt() -> None:
    """A file that ends before its first scan is corrupt, wherever it is cut."""
    for size in range(2, read_header(PLAIN).scan_offset):
        with pytest.raises(CorruptImage, match="truncated JPEG"):
            read_header(PLAIN[:size])


def test_a_file_without_a_frame_or_a_scan() -> None:
    """A scan without a frame header and an end without a scan are corrupt."""
    with pytest.raises(CorruptImage, match="before the frame header"):
        read_header(b"\xff\xd8\xff\xda\x00\x02")
    with pytest.raises(CorruptImage, match="ends before its first scan"):
        read_header(b"\xff\xd8\xff\xd9")


def test_the_end_marker() -> None:
    """A file ends only where an end-of-image marker follows its first scan."""
    header = read_header(PLAIN)
    assert ends(PLAIN, header)
    assert ends(PLAIN + b"trailer", header)
    assert not ends(PLAIN[:-2], header)


@given(
    data=st.binary() | mutated(st.sampled_from([PLAIN, exif_jpeg(SHORT, 6, big=False, others=2)]))
)
def test_any_bytes_are_a_header_or_an_image_error(data: bytes) -> None:
    """Arbitrary bytes read or raise an ImageError; a reset changes no size and sticks."""
    data = b"\xff\xd8" + data[2:]
    try:
        header = read_header(data)
    except ImageError:
        return
    mended = reset_orientation(data, header)
    assert len(mended) == len(data)
    inside = {i for tag in header.orientations for i in range(tag.offset, tag.offset + tag.size)}
    assert set(changed(data, mended)) <= inside


def test_drawn_pictures_have_honest_headers() -> None:
    """The size in the header is that of the pixels, odd sizes too."""
    for width, height in ((1, 1), (17, 33), (64, 8)):
        header = read_header(enc.jpeg(np.zeros((height, width, 3), np.uint8)))
        assert (header.width, header.height) == (width, height)


def test_fill_bytes_and_junk_by_the_million() -> None:
    """What stands between segments is passed over, however much it is."""
    wanted = read_header(PLAIN)
    for junk in (
        b"\xff" * 3_000_000,
        b"\xff\0" * 2_000_000,
        b"\xff\xd3" * 2_000_000,
        bytes(3_000_000),
    ):
        found = read_header(PLAIN[:2] + junk + PLAIN[2:])
        assert found[:-2] == wanted[:-2]
        assert found.scan_start == wanted.scan_start + len(junk)


def test_coding_and_scans_are_told() -> None:
    """Whether the first scan is the only one, and where its parameters stand."""
    for data, frame, several in (
        (PLAIN, 0xC0, False),
        (enc.grey_jpeg(IMAGE), 0xC0, False),
        (enc.pillow(IMAGE, "JPEG", progressive=True), 0xC2, True),
        (enc.arithmetic_jpeg(), 0xC9, False),
    ):
        header = read_header(data)
        assert (header.frame, header.several_scans) == (frame, several)
        assert data[header.scan_start - 4 : header.scan_start - 2] == b"\xff\xda"
        assert data[header.scan_start] in (1, 3)


@pytest.mark.parametrize(("width", "height"), [(65_501, 8), (8, 65_535), (65_535, 65_535)])
def test_sides_beyond_libjpegs(width: int, height: int) -> None:
    """A side that libjpeg refuses is told as such, not as a corrupt file."""
    data = bytearray(PLAIN)
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    with pytest.raises(UnsupportedImage, match=f"{width} x {height} pixels; libjpeg decodes at"):
        read_header(bytes(data))


def taken(data: bytes) -> bool:
    """Whether TurboJPEG takes the header."""
    try:
        simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):
        return False
    return True


@pytest.mark.parametrize("plain", [PLAIN, enc.grey_jpeg(IMAGE), enc.adobe_cmyk_jpeg(IMAGE)])
def test_usual_samplings_are_those_of_turbojpeg(plain: bytes) -> None:
    """Of all that a frame may have: 1 to 4 each way, 10 blocks in all."""
    factors = [16 * across + down for across in range(1, 5) for down in range(1, 5)]
    first = read_header(plain)
    for sampling in itertools.product(factors, repeat=first.channels):
        if sum((factor >> 4) * (factor & 15) for factor in sampling) <= 10:
            data = sampled(plain, bytes(sampling))
            assert read_header(data).usual == taken(data), bytes(sampling).hex()


@pytest.mark.parametrize("wanted", ["444", "422", "420", "440", "411"])
def test_names(wanted: str) -> None:
    """Names are those that the encoder was asked for."""
    header = read_header(enc.jpeg(IMAGE, wanted))
    assert (header.subsampling, header.usual) == (wanted, True)
    strange = read_header(sampled(PLAIN, b"\x14\x11\x11"))
    assert (strange.subsampling, strange.usual) == ("", False)
