"""Tests of dataprep.image.scans."""

from __future__ import annotations

import numpy as np
import pytest

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import ImagePolicy, convert, scans
from dataprep.image.jpeg import read_header
from dataprep.image.scans import Scan, scan_notes
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image
from tests.dataprep.image import jpeg_scans, samplings

IMAGE = draw_image(3, 64, 48, detail=0.3)
PLAIN = enc.jpeg(IMAGE)
PROGRESSIVE = enc.pillow(IMAGE, "JPEG", progressive=True)
GREY = enc.pillow(IMAGE, "JPEG", "L", progressive=True)


def notes(data: bytes) -> tuple[str, ...]:
    """Of the scans of a JPEG."""
    return scan_notes(data, read_header(data))


def found(data: bytes) -> list[Scan | None]:
    """Every scan, and None for the end."""
    return list(scans.scans(data, read_header(data).scan_start))


def test_scans_are_read_to_the_end_marker() -> None:
    """Components, coefficients and the lowest bit of each scan; None stands for the end."""
    first, *_, last, end = found(PROGRESSIVE)
    assert first == Scan(b"\x01\x02\x03", 0, 0, 0, 1)
    assert last == Scan(b"\x01", 1, 63, 1, 0)
    assert end is None
    assert len(found(PROGRESSIVE)) == 11
    assert found(PROGRESSIVE[:-2])[-1] is not None
    assert found(PLAIN) == [Scan(b"\x01\x02\x03", 0, 63, 0, 0), None]


@pytest.mark.parametrize("data", [PLAIN, PROGRESSIVE, GREY, enc.grey_jpeg(IMAGE)])
def test_a_whole_jpeg_has_no_note(data: bytes) -> None:
    """Nothing is missing in what encoders write."""
    assert notes(data) == ()
    assert convert(data).data == data


@pytest.mark.parametrize("missing", [(9,), (7,), (6, 7, 8, 9), tuple(range(1, 10))])
def test_missing_scans_are_told(missing: tuple[int, ...]) -> None:
    """A progressive JPEG that lacks a later scan decodes coarse, without a word of libjpeg's."""
    data = jpeg_scans.without(PROGRESSIVE, *missing)
    assert notes(data) == ("scans_missing",)
    assert "scans_missing" in convert(data, ImagePolicy(size=20)).notes


def test_a_component_without_its_first_scan_is_corrupt() -> None:
    """Without their means the components have nothing to show: the picture would be grey."""
    with pytest.raises(CorruptImage, match="no scan of 3 of its 3 components"):
        convert(jpeg_scans.without(PROGRESSIVE, 0, 6))
    with pytest.raises(CorruptImage, match="no scan of 1 of its 1 components"):
        convert(jpeg_scans.without(GREY, 0))


def test_a_cut_jpeg_is_left_to_libjpeg() -> None:
    """Without an end marker it is truncated, and kept where the policy says so."""
    cut = PROGRESSIVE[:-40]
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
    monkeypatch.setattr("dataprep.image.libjpeg.decode", decoded)
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
    assert not scans.lacks_pixels(data[: header.scan_offset], header)
    assert np.all(convert(data).width == header.width)
