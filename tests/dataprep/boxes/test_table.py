"""Boxes from CSV files."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.boxes.options import BoxOptions
from dataprep.boxes.table import parse_boxes
from dataprep.errors import ConfigError

TENSORFLOW = (
    b"n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940\n"
    b"n00007846_1.JPEG,0.1,0.2,0.3,0.4\n"
    b"n00007846_64193.JPEG,0.5,0.5,0.6,0.6\n"
)


def parsed(data: bytes, **options: Any) -> list[dict[str, Any]]:
    """Rows, keys as bytes, sides rounded to what float32 holds."""
    table = parse_boxes(data, BoxOptions(source="x", **options), "boxes.csv")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_tensorflows_own() -> None:
    """No header, relative, a line a box; boxes of one image are together, in their order."""
    first, second = parsed(TENSORFLOW)
    assert (first["key"], second["key"]) == (b"n00007846_64193", b"n00007846_1")
    assert (first["width"], first["height"]) == (1, 1)
    assert first["xmin"] == pytest.approx([0.006, 0.5])
    assert first["ymin"] == pytest.approx([0.262, 0.5])
    assert first["xmax"] == pytest.approx([0.7545, 0.6])
    assert first["ymax"] == pytest.approx([0.994, 0.6])
    assert first["name"] == ["", ""]
    assert first["problem"] is None


def test_a_sixth_column_is_the_class() -> None:
    """Of the box, by name."""
    assert parsed(b"a.jpg,0,0,1,1, cat \n")[0]["name"] == ["cat"]


def test_a_header_with_pixels() -> None:
    """Columns in any order under names that the config tells, in pixels of the image."""
    data = b"x2,image,y1,x1,kind,y2\n40,d/a.png,2,1.5,dog,30\n"
    columns = {"filename": "image", "xmin": "x1", "ymin": "y1", "xmax": "x2", "ymax": "y2"}
    (row,) = parsed(data, units="pixels", columns={**columns, "label": "kind"})
    assert (row["key"], row["width"], row["name"]) == (b"d/a", 0, ["dog"])
    assert (row["xmin"], row["ymin"], row["xmax"], row["ymax"]) == ([1.5], [2], [40], [30])


def test_the_label_is_not_needed() -> None:
    """A header without a column of classes is one of boxes all the same."""
    assert parsed(b"filename,xmin,ymin,xmax,ymax\na.jpg,0,0,1,1\n")[0]["name"] == [""]


def test_kaggles_own() -> None:
    """``LOC_train_solution.csv``: synset and pixels of all boxes of an image in one column."""
    first, second = parsed(
        b"ImageId,PredictionString\n"
        b"n02017213_7894,n02017213 115 49 448 294 \n"
        b"n02017213_1,n02017213 1 2 3 4 n02017213 5 6 7 8 \n"
    )
    assert (first["key"], first["width"], first["xmax"]) == (b"n02017213_7894", 0, [448])
    assert second["name"] == ["n02017213"] * 2
    assert second["ymin"] == [2, 6]


DETECTION = (
    b"filename,width,height,class,xmin,ymin,xmax,ymax\n"
    b"a.jpg,500,375,dog,5,6,70,80\n"
    b"\n"
    b"b.jpg,640,480,cat,1,2,3,4\n"
    b"a.jpg,500,375,dog,1,1,2,2\n"
)


def test_sizes_of_what_boxes_were_drawn_on() -> None:
    """The table of TensorFlow's object detection has them; blank lines are read over."""
    columns = {"label": "class"}
    first, second = parsed(DETECTION, units="pixels", columns=columns)
    assert (first["width"], first["height"], first["xmin"]) == (500, 375, [5, 1])
    assert (second["width"], second["height"], second["name"]) == (640, 480, ["cat"])
    for size in (b"500,0", b"500,374", b"x,375"):
        data = DETECTION.replace(b"500,375,dog,1", size + b",dog,1")
        with pytest.raises(ConfigError, match=r"line 5: (height|width) is"):
            parsed(data, units="pixels", columns=columns)


def test_names_that_are_not_utf8() -> None:
    """Bytes of a name survive."""
    assert parsed(b"caf\xe9.jpg,0,0,1,1\n")[0]["key"] == b"caf\xe9"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a.jpg,0,0,1\n", "boxes.csv has 4 columns and no header"),
        (b"a.jpg,0,0,1,1\nb.jpg,0,zero,1,1\n", r"boxes.csv, line 2: ymin is 'zero', not a number"),
        (b"a.jpg,0,0,nan,1\n", "line 1: xmax is 'nan'"),
        (b"image,xmin,ymin,xmax,ymax\n", "no column 'filename': it has 'image', 'xmin'"),
        (b"filename,xmin,ymin,xmax,ymax\na,0,0,,1\n", "line 2: xmax is ''"),
        (b"ImageId,PredictionString\na,n1 1 2 3\n", "line 2: no fives"),
        (b"a.jpg,10,20,300,400\n", r"look like pixels.*boxes\.units=pixels"),
        (b'a.jpg,0,0,1,1\n"b', "not a CSV file"),
        (b"", "not a CSV file"),
        (b",,,,\n", "blank lines only"),
        (b"a.jpg,0,0,1,1\n\n\nb.jpg,0,zero,1,1\n", "line 4: ymin is 'zero'"),
        (b"filename,xmin,ymin,xmax,ymax\na.jpg,0,0,1,1,5\n", "Expected 5 fields in line 2, saw 6"),
        (b"filename,xmin,xmin,ymin,xmax,ymax\na.jpg,0,0,0,1,1\n", "two columns of one name"),
        (b"filename;xmin;ymin;xmax;ymax\na.jpg;0;0;1;1\n", "not separated by commas"),
        (b"a.jpg\t0\t0\t1\t1\n", "not separated by commas"),
    ],
)
def test_lines_that_are_no_boxes(data: bytes, message: str) -> None:
    """What is wrong is named with its line, and nothing is guessed."""
    with pytest.raises(ConfigError, match=message):
        parsed(data)


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Arbitrary bytes are a table or a ConfigError, nothing else."""
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_boxes(data, BoxOptions(source="x"), "any"), pa.Table)
