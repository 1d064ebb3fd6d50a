"""Many images on one."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFont

from dataprep.errors import ConfigError
from dataprep.inspection.contact_sheet import Picture, _cut, draw_sheet, encode_sheet


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (300, 200)) -> bytes:
    """An image of one colour."""
    sink = io.BytesIO()
    Image.new("RGB", size, colour).save(sink, "PNG")
    return sink.getvalue()


COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30), (30, 200, 200)]


def test_every_picture_is_on_it() -> None:
    """Each image stands once on the sheet, in reading order."""
    sheet = draw_sheet([Picture(plain(colour), ("x",)) for colour in COLOURS], "five")
    pixels = np.asarray(sheet)
    places = []
    for colour in COLOURS:
        rows, columns = np.nonzero((pixels == colour).all(axis=2))
        assert len(rows) > 10_000
        places.append((rows.min(), columns.min()))
    assert places == sorted(places)
    assert len({row for row, _ in places}) == 2


def test_captions_are_drawn() -> None:
    """Captions are there to be read: the sheets of two captions differ below the image."""
    one, two = (draw_sheet([Picture(plain(COLOURS[0]), (text,))], "") for text in ("7 a", "8 b"))
    difference = np.asarray(one, np.int16) - np.asarray(two, np.int16)
    rows, _ = np.nonzero(difference.any(axis=2))
    assert len(rows)
    assert rows.min() > 176


def test_what_is_no_image() -> None:
    """In the place of an image that cannot be decoded stands why."""
    blank = draw_sheet([Picture(None, ("x",), "")], "")
    broken = draw_sheet([Picture(b"\xff\xd8\xff broken", ("x",))], "")
    told = draw_sheet([Picture(None, ("x",), "the checksum does not match")], "")
    assert blank.size == broken.size == told.size
    assert len({blank.tobytes(), broken.tobytes(), told.tobytes()}) == 3


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (16, 16)])
def test_odd_sizes(size: tuple[int, int]) -> None:
    """Images of any shape find their place."""
    assert draw_sheet([Picture(plain(COLOURS[0], size), ())], "x").size[0] > 176


def test_nothing() -> None:
    """A sheet of nothing is a title."""
    assert draw_sheet([], "nothing").size[1] > 0


@given(st.text(max_size=80), st.integers(20, 200))
def test_captions_keep_to_their_column(text: str, width: int) -> None:
    """Whatever a name holds, it is one line that fits."""
    font = ImageFont.load_default(13)
    cut = _cut(text, font, width)
    assert "\n" not in cut
    assert font.getlength(cut) <= max(width, font.getlength("…"))


def test_long_names_keep_both_ends() -> None:
    """Names that differ at their ends alone still do when they are cut."""
    font = ImageFont.load_default(13)
    cut = [_cut(f"ILSVRC2012_val_{number:08d}.JPEG", font, 176) for number in (1234, 1235)]
    assert [name.partition("…")[2][-8:] for name in cut] == ["234.JPEG", "235.JPEG"]
    assert all(name.startswith("ILSVRC") for name in cut)
    assert _cut("short.JPEG", font, 176) == "short.JPEG"


@pytest.mark.parametrize(("suffix", "form"), [(".png", "PNG"), (".JPG", "JPEG"), (".jpeg", "JPEG")])
def test_suffixes(suffix: str, form: str) -> None:
    """The suffix says what the file becomes."""
    data = encode_sheet(draw_sheet([Picture(plain(COLOURS[0]), ("x",))], "x"), suffix)
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == form


def test_another_suffix() -> None:
    """Any other is refused with those that there are."""
    with pytest.raises(ConfigError, match=r"\.png or \.jpg"):
        encode_sheet(draw_sheet([], "x"), ".gif")
