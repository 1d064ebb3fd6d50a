"""XML files of boxes: whole, broken and hostile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.boxes.voc import LARGEST_BYTES, Drawn, parse_voc
from tests.strategies import mutated

ILSVRC = b"""<annotation>
	<folder>n02092002</folder>
	<filename>%s</filename>
	<source><database>ILSVRC_2012</database></source>
	<size><width>500</width><height>375</height><depth>3</depth></size>
	<segmented>0</segmented>
	<object>
		<name>n02092002</name><pose>Unspecified</pose><truncated>0</truncated>
		<bndbox><xmin>5</xmin><ymin>12</ymin><xmax>400</xmax><ymax>300</ymax></bndbox>
	</object>
	<object>
		<name>Scottish_deerhound</name>
		<bndbox><xmin>70.5</xmin><ymin>2</ymin><xmax>60</xmax><ymax>390</ymax></bndbox>
	</object>
</annotation>"""


def test_boxes_of_one_image() -> None:
    """Size, sides as they are drawn, swapped and outside ones too, and names, in file order."""
    assert parse_voc(ILSVRC) == Drawn(
        500,
        375,
        ((5.0, 12.0, 400.0, 300.0), (70.5, 2.0, 60.0, 390.0)),
        ("n02092002", "Scottish_deerhound"),
    )


def test_an_image_without_objects_has_no_boxes() -> None:
    """An annotation may say that there is nothing."""
    assert parse_voc(b"<annotation/>") == Drawn(0, 0, (), ())


@pytest.mark.parametrize(
    "size",
    [
        b"",
        b"<size/>",
        b"<size><width>5</width></size>",
        b"<size><width/><height>5</height></size>",
        b"<size><width>0</width><height>0</height></size>",
    ],
)
def test_a_size_that_is_not_told(size: bytes) -> None:
    """Without both sides, or with 0 x 0, pixels are those of the image; boxes stay."""
    told = b"<size><width>500</width><height>375</height><depth>3</depth></size>"
    assert parse_voc(ILSVRC.replace(told, size)) == parse_voc(ILSVRC)._replace(width=0, height=0)


@pytest.mark.parametrize("width", [b"wide", b"-5", b"5.5"])
def test_a_size_that_is_none(width: bytes) -> None:
    """A size that is told wrongly is not guessed."""
    with pytest.raises(ValueError, match="width> is"):
        parse_voc(ILSVRC.replace(b"<width>500<", b"<width>" + width + b"<"))


def test_parts_are_not_the_object() -> None:
    """Pascal VOC's people have heads and hands, with boxes of their own."""
    part = b"<part><name>head</name>" + ILSVRC[ILSVRC.index(b"<bndbox") :].partition(b"</object")[0]
    data = ILSVRC.replace(b"</object>", part + b"</part></object>", 1)
    assert data.count(b"<bndbox>") == 3
    assert parse_voc(data) == parse_voc(ILSVRC)


def test_a_name_space_is_read_over() -> None:
    """Elements are known by their names."""
    data = ILSVRC.replace(b"<annotation>", b'<annotation xmlns="http://host.robots.ox.ac.uk/VOC">')
    assert parse_voc(data) == parse_voc(ILSVRC)


@pytest.mark.parametrize("data", [b"<html><body>404</body></html>", b"<object/>"])
def test_what_is_no_annotation(data: bytes) -> None:
    """A page that says that there is nothing is not an image without boxes."""
    with pytest.raises(ValueError, match="is no annotation"):
        parse_voc(data)


@pytest.mark.parametrize("side", [b"", b"five", b"nan", b"inf", b"-1e99", b"0x10"])
def test_sides_that_are_no_numbers(side: bytes) -> None:
    """What is no number of pixels is named."""
    with pytest.raises(ValueError, match=r"<xmin> is .*, not a number of pixels"):
        parse_voc(ILSVRC.replace(b"<xmin>5<", b"<xmin>" + side + b"<"))


def test_a_billion_laughs_are_not_laughed() -> None:
    """Entities that grow are refused before they grow."""
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 10))
    data = b'<!DOCTYPE a [<!ENTITY l0 "lol">' + laughs + b"]><a>&l9;</a>"
    with pytest.raises(ValueError, match="hostile XML: DTDForbidden"):
        parse_voc(data)


def test_no_file_is_opened_for_an_annotation(tmp_path: Path) -> None:
    """External entities are refused, and what they name is not read."""
    secret = tmp_path / "secret"
    secret.write_text("5")
    data = (
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file://'
        + str(secret).encode()
        + b'">]>'
        + ILSVRC.replace(b"<xmin>5<", b"<xmin>&x;<")
    )
    with pytest.raises(ValueError, match="hostile XML"):
        parse_voc(data)


def test_deep_nesting_is_harmless() -> None:
    """A tower of elements is read or refused, and nothing falls over."""
    tower = b"<annotation>" + b"<a>" * 50_000 + b"</a>" * 50_000 + b"</annotation>"
    assert parse_voc(tower) == Drawn(0, 0, (), ())


def test_what_is_too_large_is_no_annotation() -> None:
    """A megabyte of boxes of one image is a mistake."""
    with pytest.raises(ValueError, match="are no annotation"):
        parse_voc(ILSVRC + b" " * LARGEST_BYTES)


@given(data=st.binary() | mutated(st.just(ILSVRC)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Arbitrary bytes and damaged files give boxes or a ValueError, nothing else."""
    try:
        drawn = parse_voc(data)
    except ValueError:
        return
    assert len(drawn.sides) == len(drawn.names)
