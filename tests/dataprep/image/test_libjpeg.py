"""Tests of dataprep.image.libjpeg."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dataprep.errors import CorruptImage
from dataprep.image.libjpeg import decode
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image
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
