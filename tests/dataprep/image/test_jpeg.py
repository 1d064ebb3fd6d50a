"""Headers of JPEGs are read, and flawed, truncated and many-scan files are handled."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import cv2
import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st

from dataprep.drawn.drawing import draw_image
from dataprep.errors import CorruptImage, ImageError, ImageTooLarge, UnsupportedImage
from dataprep.image import Converted, ImagePolicy, check, convert
from dataprep.image.jpeg import read_header
from dataprep.image.output_size import Pixels
from tests import encodings as enc
from tests.dataprep.image import odd_jpegs
from tests.dataprep.image.pictures import pillow_image
from tests.dataprep.image.profiles import rgb_profile
from tests.strategies import mutated

IMAGE = draw_image(1, 48, 36, detail=0.3)
PLAIN = enc.jpeg(IMAGE)
BYTE, SHORT, LONG, SSHORT, SLONG = 1, 3, 4, 8, 9
PHOTO = draw_image(8, 200, 160, detail=0.3)
BASELINE = enc.jpeg(PHOTO, "444", 92)
PROGRESSIVE = enc.pillow(PHOTO, "JPEG", quality=92, progressive=True)
KEEP = ImagePolicy(encoding="png", truncated="keep")


def pixels(data: bytes) -> Pixels:
    """The pixels as Pillow decodes them."""
    return np.asarray(pillow_image(data))


def exif_jpeg(kind: int, value: int, *, big: bool, others: int = 0, count: int = 1) -> bytes:
    """PLAIN with an orientation of any TIFF type and byte order, between other entries."""
    order = ">" if big else "<"
    code = {BYTE: "B", SHORT: "H", LONG: "I", SSHORT: "h", SLONG: "i"}[kind]
    content = struct.pack(order + code, value).ljust(4, b"\xaa")
    other = struct.pack(order + "HHII", 0x0100, LONG, 1, 0x0112)
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + content
    directory = struct.pack(order + "H", 1 + 2 * others) + other * others + entry + other * others
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(order + "I", 8)
    exif = b"Exif\0\0" + head + directory + bytes(4)
    return PLAIN[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif + PLAIN[2:]


@pytest.mark.parametrize("value", range(9))
@pytest.mark.parametrize("kind", [BYTE, SHORT, LONG])
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("others", [0, 3])
def test_resetting_touches_the_tag_alone(value: int, kind: int, big: bool, others: int) -> None:
    """The tag becomes 1 in its own type and byte order, and no other byte changes."""
    converted_image = convert(exif_jpeg(kind, value, big=big, others=others))
    assert converted_image.data == exif_jpeg(kind, 1, big=big, others=others)
    assert converted_image.exif_orientation == (value or 1)
    assert converted_image.action == ("passthrough" if value == 1 else "retagged")


def test_every_orientation_tag_is_reset() -> None:
    """If a file has two Exif segments, the first one decides and both are reset."""
    first, second = exif_jpeg(SHORT, 6, big=True), exif_jpeg(LONG, 3, big=False)
    converted_image = convert(first[: len(first) - len(PLAIN) + 2] + second[2:])
    upright, other = exif_jpeg(SHORT, 1, big=True), exif_jpeg(LONG, 1, big=False)
    assert converted_image.data == upright[: len(upright) - len(PLAIN) + 2] + other[2:]
    assert converted_image.exif_orientation == 6


@pytest.mark.parametrize(("kind", "count"), [(SHORT, 0), (SHORT, 2), (SSHORT, 1), (SLONG, 1)])
@pytest.mark.parametrize("big", [False, True])
def test_tags_that_are_none_by_exif(kind: int, count: int, big: bool) -> None:
    """A tag of another type or count is read and reset, because some decoders follow it."""
    converted_image = convert(exif_jpeg(kind, 6, big=big, count=count))
    assert (converted_image.exif_orientation, converted_image.action) == (6, "retagged")
    assert converted_image.data == exif_jpeg(kind, 1, big=big, count=count)
    decoded = cv2.imdecode(np.frombuffer(converted_image.data, np.uint8), cv2.IMREAD_COLOR)
    assert np.asarray(decoded).shape == IMAGE.shape


@pytest.mark.parametrize("value", [9, 255])
def test_an_orientation_that_is_none(value: int) -> None:
    """Values that Exif does not define count as 1, and are not changed."""
    data = exif_jpeg(BYTE, value, big=True)
    converted_image = convert(data, ImagePolicy(orientation="apply"))
    assert (converted_image.data, converted_image.exif_orientation) == (data, 1)


@given(data=mutated(st.just(exif_jpeg(SHORT, 6, big=False, others=2))))
def test_a_broken_exif_segment_costs_no_image(data: bytes) -> None:
    """A damaged header is an error, or only the bytes of orientations change."""
    try:
        converted_image = convert(data)
    except ImageError:
        return
    if converted_image.action != "reencoded":
        assert len(converted_image.data) == len(data)
        changed = [new for old, new in zip(data, converted_image.data, strict=True) if old != new]
        assert set(changed) <= {1}


@pytest.mark.parametrize(
    ("data", "colorspace", "channels", "profile"),
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
    ],
    ids=["ycc", "grey", "rgb", "cmyk", "ink", "ycck", "icc", "progressive", "fill"],
)
def test_headers_are_read(data: bytes, colorspace: str, channels: int, profile: bool) -> None:
    """Size, colour space and profile are read from the header, past fill bytes."""
    header = read_header(data)
    assert (header.width, header.height) == (48, 36)
    assert (header.colorspace, header.channels) == (colorspace, channels)
    assert bool(header.profile) == profile
    assert header.orientations == ()


def test_arithmetic_coding() -> None:
    """An arithmetic-coded file is read like any other."""
    converted_image = convert(enc.arithmetic_jpeg())
    assert (converted_image.width, converted_image.height, converted_image.action) == (
        32,
        24,
        "passthrough",
    )


@pytest.mark.parametrize("marker", [0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF])
def test_lossless_and_hierarchical_are_unsupported(marker: int) -> None:
    """Frames that libjpeg cannot decode are unsupported, and not corrupt."""
    with pytest.raises(UnsupportedImage, match="lossless, hierarchical, or does not have 8 bits"):
        convert(PLAIN.replace(b"\xff\xc0", bytes([0xFF, marker])))


def test_a_header_cut_anywhere_is_corrupt() -> None:
    """A file that ends before its first scan is corrupt, at each length."""
    for size in range(2, PLAIN.index(b"\xff\xda") + 14):
        with pytest.raises(CorruptImage, match="truncated JPEG"):
            convert(PLAIN[:size])
    with pytest.raises(CorruptImage, match="ends before its first scan"):
        convert(b"\xff\xd8\xff\xd9")


@pytest.mark.parametrize(
    "junk", [b"\xff" * 3_000_000, b"\xff\0" * 2_000_000, b"\xff\xd3" * 2_000_000, bytes(3_000_000)]
)
def test_junk_by_the_million(junk: bytes) -> None:
    """Any number of bytes between segments is skipped."""
    header = read_header(PLAIN[:20] + junk + PLAIN[20:])
    assert (header.width, header.height) == (48, 36)
    assert header.scan_offset == read_header(PLAIN).scan_offset + len(junk)


@pytest.mark.parametrize(("width", "height"), [(65_501, 8), (8, 65_535), (0, 0), (0, 8)])
def test_sides_that_no_jpeg_has(width: int, height: int) -> None:
    """A side that libjpeg refuses is an ImageError."""
    data = bytearray(PLAIN)
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    with pytest.raises(ImageError):
        convert(bytes(data))


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_what_decodes_is_kept(share: float) -> None:
    """Rows above the cut equal those of the complete file, and rows below it are grey."""
    cut = BASELINE[: int(len(BASELINE) * share)]
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(cut)
    converted_image = convert(cut, KEEP)
    assert converted_image.notes == ("truncated_kept",)
    decoded = pixels(converted_image.data)
    rows = int(np.argmin((decoded == pixels(BASELINE)).all(axis=(1, 2))))
    assert 0.5 * share < rows / 160 < share + 0.15
    assert (decoded[rows + 16 :] == 128).all()
    complete = convert(BASELINE[:-2], KEEP)  # only an end marker is missing
    assert complete.notes == ("truncated_kept",)
    assert np.array_equal(pixels(complete.data), pixels(BASELINE))


def test_progressive_files_are_blurred_instead() -> None:
    """The first scans of a truncated progressive file show the complete picture."""
    converted_image = convert(PROGRESSIVE[: len(PROGRESSIVE) // 2], KEEP)
    assert converted_image.notes == ("truncated_kept",)
    assert np.abs(pixels(converted_image.data).astype(int) - PHOTO).mean() < 25


@pytest.mark.parametrize("truncated", ["keep", "fail"])
def test_nothing_to_keep(truncated: str) -> None:
    """A file that ends before its first pixels is truncated, even if truncated files are kept."""
    policy = ImagePolicy.model_validate({"truncated": truncated})
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(BASELINE[: BASELINE.index(b"\xff\xda") + 14], policy)


FLAWED: Mapping[str, tuple[bytes, bytes]] = {
    "before tables": (BASELINE, odd_jpegs.stray(BASELINE, b"\xff\xdb")),
    "before a scan": (BASELINE, odd_jpegs.stray(BASELINE, b"\xff\xda")),
    "before the end": (BASELINE, odd_jpegs.stray(BASELINE, b"\xff\xd9")),
    "scan parameters": (BASELINE, odd_jpegs.odd_scan(BASELINE)),
    "three": (
        BASELINE,
        odd_jpegs.odd_scan(
            odd_jpegs.stray(odd_jpegs.stray(BASELINE, b"\xff\xc0"), b"\xff\xd9"),
        ),
    ),
    "progressive": (PROGRESSIVE, odd_jpegs.stray(PROGRESSIVE, b"\xff\xc2")),
}


@pytest.mark.parametrize("name", FLAWED)
def test_flaws_that_cost_nothing(name: str) -> None:
    """A flaw without lost pixels leaves the file as it is, and is counted as recovered."""
    sound, data = FLAWED[name]
    converted_image = convert(data)
    assert (converted_image.data, converted_image.notes) == (data, ("recovered",))
    assert check(data) == (200, 160, 3)
    for policy in (ImagePolicy(size=40), ImagePolicy(encoding="png")):
        output = convert(data, policy)
        assert (output.data, output.notes) == (convert(sound, policy).data, ("recovered",))


@pytest.mark.parametrize("name", FLAWED)
@pytest.mark.parametrize("size", [None, 40])
def test_pixels_that_are_lost_behind_a_flaw(name: str, size: int | None) -> None:
    """Pixels lost behind a flaw make the file corrupt, even with an end marker, resized or not."""
    _, data = FLAWED[name]
    scan = data.index(b"\xff\xda")
    truncated = data[: scan + (len(data) - scan) * 6 // 10]
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(truncated, ImagePolicy(size=size))
    repaired = convert(truncated, ImagePolicy(size=size, truncated="keep"))
    assert repaired.action == "reencoded"
    assert "truncated_kept" in repaired.notes
    if name != "progressive":
        with pytest.raises(CorruptImage, match="corrupt JPEG"):
            convert(truncated + b"\xff\xd9", ImagePolicy(size=size))


@given(
    data=st.sampled_from([*(data for pair in FLAWED.values() for data in pair)]),
    share=st.floats(0.001, 0.999),
    keep=st.booleans(),
)
def test_cut_anywhere(data: bytes, share: float, keep: bool) -> None:
    """A JPEG that is cut at any byte is kept, if the policy says so, or corrupt."""
    policy = ImagePolicy(truncated="keep" if keep else "fail")
    converted_image: Converted | None = None
    try:
        converted_image = convert(data[: int(len(data) * share)], policy)
    except CorruptImage:
        return
    assert keep
    assert (converted_image.action, converted_image.width, converted_image.height) == (
        "reencoded",
        200,
        160,
    )
    assert "truncated_kept" in converted_image.notes


def test_a_profile_that_is_not_whole() -> None:
    """A profile with a missing part does not affect the pixels, and the rest is still checked."""
    data = enc.pillow(PHOTO, "JPEG", icc_profile=rgb_profile(padding=70_000))
    missing = odd_jpegs.without_part_of_its_profile(data)
    png = ImagePolicy(encoding="png")
    converted_image = convert(missing, png)
    assert converted_image.data == convert(data, png).data
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        convert(missing[:-900], png)


def test_scans_by_the_thousand_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More scans than encoders write are refused, because decoding all of them takes hours."""
    large = enc.pillow(np.zeros((4000, 4000, 3), np.uint8), "JPEG", "L", progressive=True)
    assert convert(large, ImagePolicy(check="header")).data == large

    def decoded(*_: object, **__: object) -> None:
        raise AssertionError("a pixel of it was decoded")

    monkeypatch.setattr(simplejpeg, "decode_jpeg", decoded)
    with pytest.raises(ImageTooLarge, match="more than 62 scans of 4000 x 4000 pixels"):
        convert(odd_jpegs.repeated(large, 70))


UNUSUAL = odd_jpegs.unusual(draw_image(5, 160, 128, detail=0.3))
SHARP = {"quality": 100, "subsampling": "444"}


@pytest.mark.parametrize("check_by", ["decode", "header"])
@pytest.mark.parametrize("size", [None, 60])
def test_unusual_samplings_are_encoded_anew(size: int | None, check_by: str) -> None:
    """A JPEG that TurboJPEG refuses is decoded by Pillow, as other readers decode it."""
    policy = ImagePolicy.model_validate({**SHARP, "size": size, "check": check_by})
    converted_image = convert(UNUSUAL, policy)
    assert (converted_image.action, converted_image.notes) == (
        "reencoded",
        ("subsampling_converted",),
    )
    assert check(converted_image.data) == (converted_image.width, converted_image.height, 3)
    assert converted_image.data == convert(enc.pillow(pixels(UNUSUAL), "PNG"), policy).data


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_unusual_samplings_that_end_early(share: float) -> None:
    """An unusual JPEG that is truncated fails, or is kept, like any other."""
    data = UNUSUAL[: int(len(UNUSUAL) * share)]
    with pytest.raises(CorruptImage, match="truncated"):
        convert(data)
    repaired = convert(data, ImagePolicy.model_validate({**SHARP, "truncated": "keep"}))
    assert repaired.notes == ("subsampling_converted", "truncated_kept")
    assert np.abs(pixels(repaired.data)[:32].astype(int) - pixels(UNUSUAL)[:32]).max() < 9
