"""Tests of dataprep.image.jpeg_decode."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import ImagePolicy, convert, jpeg_decode
from dataprep.image.jpeg import read_header
from dataprep.image.jpeg_decode import Scan, decode, scan_notes
from dataprep.sample.drawing import draw_image
from tests import encodings as enc
from tests.dataprep.image import jpeg_scans, samplings
from tests.dataprep.image.profiles import rgb_profile

IMAGE = draw_image(8, 200, 160, detail=0.3)
PLAIN = enc.jpeg(IMAGE, "444", 92)
PROGRESSIVE = enc.pillow(IMAGE, "JPEG", quality=92, progressive=True)


def test_a_whole_jpeg() -> None:
    """Decoded at the size asked for, without a note, whether truncated ones are kept or not."""
    for keep in (False, True):
        whole = decode(PLAIN, "RGB", keep_truncated=keep)
        assert whole.notes == ()
        assert np.array_equal(whole.pixels, np.asarray(Image.open(io.BytesIO(PLAIN))))
    assert decode(PLAIN, "GRAY", (100, 80)).pixels.shape == (80, 100, 1)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_what_decodes_is_kept(share: float) -> None:
    """Rows above the cut are those of the whole file, rows below it are grey."""
    cut = PLAIN[: int(len(PLAIN) * share)]
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        decode(cut, "RGB")
    kept = decode(cut, "RGB", keep_truncated=True)
    assert kept.notes == ("truncated_kept",)
    whole = decode(PLAIN, "RGB").pixels
    same = (kept.pixels == whole).all(axis=(1, 2))
    rows = int(np.argmin(same))
    assert 0.5 * share < rows / 160 < share + 0.15
    assert (kept.pixels[rows + 16 :] == 128).all()


def test_progressive_files_are_blurred_instead() -> None:
    """Of a progressive file the first scans show the whole picture."""
    kept = decode(PROGRESSIVE[: len(PROGRESSIVE) // 2], "RGB", keep_truncated=True)
    assert kept.notes == ("truncated_kept",)
    assert np.abs(kept.pixels.astype(int) - IMAGE).mean() < 25


def test_an_end_marker_alone_that_is_missing() -> None:
    """Every pixel is there, but the file is truncated all the same."""
    kept = decode(PLAIN[:-2], "RGB", keep_truncated=True)
    assert kept.notes == ("truncated_kept",)
    assert np.array_equal(kept.pixels, decode(PLAIN, "RGB").pixels)


def test_nothing_to_keep() -> None:
    """A file that ends before its first pixels is truncated, kept or not."""
    scan = PLAIN.index(b"\xff\xda")
    for keep in (False, True):
        with pytest.raises(CorruptImage, match="truncated JPEG"):
            decode(PLAIN[: scan + 14], "RGB", keep_truncated=keep)


def test_four_colours() -> None:
    """CMYK is kept too."""
    data = enc.adobe_cmyk_jpeg(IMAGE)
    kept = decode(data[: len(data) // 2], "CMYK", keep_truncated=True)
    assert (kept.pixels.shape, kept.notes) == ((160, 200, 4), ("truncated_kept",))


def test_bytes_that_are_skipped() -> None:
    """Bytes before the end marker are skipped, and noted."""
    found = decode(PLAIN[:-2] + b"\x11" * 40 + PLAIN[-2:], "RGB")
    assert found.notes == ("recovered",)
    assert np.array_equal(found.pixels, decode(PLAIN, "RGB").pixels)


def test_a_profile_that_is_not_whole() -> None:
    """Pixels do not suffer from a profile of which a part is missing; the rest is still checked."""
    data = enc.pillow(IMAGE, "JPEG", icc_profile=rgb_profile(padding=70_000))
    first = data.index(b"\xff\xe2")
    length = int.from_bytes(data[first + 2 : first + 4], "big")
    missing = data[:first] + data[first + 2 + length :]
    assert np.array_equal(decode(missing, "RGB").pixels, decode(data, "RGB").pixels)
    with pytest.raises(CorruptImage, match="truncated JPEG"):
        decode(missing[:-900], "RGB")


@given(size=st.integers(2, len(PLAIN)), keep=st.booleans())
def test_cut_anywhere(size: int, keep: bool) -> None:
    """Cut at any byte, a JPEG is decoded to its size or corrupt."""
    try:
        found = decode(PLAIN[:size], "RGB", keep_truncated=keep)
    except CorruptImage:
        return
    assert found.pixels.shape == IMAGE.shape
    assert found.notes == (("truncated_kept",) if size < len(PLAIN) else ())


def test_an_unread_header_is_told_as_such() -> None:
    """TurboJPEG blames the subsampling for whatever libjpeg does not read in a header."""
    data = enc.jpeg(IMAGE)
    with pytest.raises(CorruptImage, match=r"^corrupt JPEG: libjpeg cannot read its header$"):
        decode(data[:2] + data, "RGB")


SMALL = draw_image(3, 64, 48, detail=0.3)
ONE_SCAN = enc.jpeg(SMALL)
SCANS = enc.pillow(SMALL, "JPEG", progressive=True)
GREY = enc.pillow(SMALL, "JPEG", "L", progressive=True)


def notes(data: bytes) -> tuple[str, ...]:
    """Of the scans of a JPEG."""
    return scan_notes(data, read_header(data))


def found(data: bytes) -> list[Scan | None]:
    """Every scan, and None for the end."""
    return list(jpeg_decode.scans(data, read_header(data).scan_start))


def test_scans_are_read_to_the_end_marker() -> None:
    """Components, coefficients and the lowest bit of each scan; None stands for the end."""
    first, *_, last, end = found(SCANS)
    assert first == Scan(b"\x01\x02\x03", 0, 0, 0, 1)
    assert last == Scan(b"\x01", 1, 63, 1, 0)
    assert end is None
    assert len(found(SCANS)) == 11
    assert found(SCANS[:-2])[-1] is not None
    assert found(ONE_SCAN) == [Scan(b"\x01\x02\x03", 0, 63, 0, 0), None]


@pytest.mark.parametrize("data", [ONE_SCAN, SCANS, GREY, enc.grey_jpeg(SMALL)])
def test_a_whole_jpeg_has_no_note(data: bytes) -> None:
    """Nothing is missing in what encoders write."""
    assert notes(data) == ()
    assert convert(data).data == data


@pytest.mark.parametrize("missing", [(9,), (7,), (6, 7, 8, 9), tuple(range(1, 10))])
def test_missing_scans_are_told(missing: tuple[int, ...]) -> None:
    """A progressive JPEG that lacks a later scan decodes coarse, without a word of libjpeg's."""
    data = jpeg_scans.without(SCANS, *missing)
    assert notes(data) == ("scans_missing",)
    assert "scans_missing" in convert(data, ImagePolicy(size=20)).notes


def test_a_component_without_its_first_scan_is_corrupt() -> None:
    """Without their means the components have nothing to show: the picture would be grey."""
    with pytest.raises(CorruptImage, match="no scan of 3 of its 3 components"):
        convert(jpeg_scans.without(SCANS, 0, 6))
    with pytest.raises(CorruptImage, match="no scan of 1 of its 1 components"):
        convert(jpeg_scans.without(GREY, 0))


def test_a_cut_jpeg_is_left_to_libjpeg() -> None:
    """Without an end marker it is truncated, and kept where the policy says so."""
    cut = SCANS[:-40]
    assert notes(cut) == ()
    with pytest.raises(CorruptImage, match="truncated"):
        convert(cut)
    assert convert(cut, ImagePolicy(truncated="keep")).notes == ("truncated_kept",)


def test_scans_by_the_thousand_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each scan is decoded over the whole image: more than encoders write are hours of work."""

    def decoded(*_: object, **__: object) -> None:
        raise AssertionError("a pixel of it was decoded")

    many = jpeg_scans.repeated(GREY, 600)
    monkeypatch.setattr("dataprep.image.jpeg_decode.decode", decoded)
    with pytest.raises(ImageTooLarge, match="more than 500 scans of 64 x 48 pixels"):
        convert(many)


def test_large_images_may_have_fewer_scans() -> None:
    """At 9,000 x 9,000 pixels, 24 scans are allowed, which is more than libjpeg writes."""
    header = read_header(GREY)._replace(width=9_000, height=9_000)
    count = len(jpeg_scans.split(GREY)[1])
    scan_notes(jpeg_scans.repeated(GREY, 24 - count), header)
    with pytest.raises(ImageTooLarge, match="more than 24 scans of 9000 x 9000"):
        scan_notes(jpeg_scans.repeated(GREY, 25 - count), header)


def test_a_header_without_pixels_is_no_image() -> None:
    """Of unusual sampling Pillow shows grey where there are no pixels: too few bytes are told."""
    whole = samplings.unusual(draw_image(7, 160, 128, detail=0.2))
    assert convert(whole).notes == ("subsampling_converted",)
    start = read_header(whole).scan_offset
    with pytest.raises(CorruptImage, match="too few bytes for as many pixels"):
        convert(whole[:start] + b"\xff\xd9")


def test_arithmetic_coding_may_take_no_bytes() -> None:
    """Blocks that are as expected take none: nothing is said of those."""
    data = enc.arithmetic_jpeg()
    header = read_header(data)
    assert not jpeg_decode.lacks_pixels(data[: header.scan_offset], header)
    assert np.all(convert(data).width == header.width)
