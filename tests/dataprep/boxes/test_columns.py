"""Boxes as columns, and as columns of the plan."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from dataprep.boxes import Annotated, BoxColumns
from dataprep.boxes.columns import none_of
from dataprep.formats import Box

float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
annotated = st.builds(
    Annotated,
    st.lists(
        st.builds(Box, float32, float32, float32, float32, st.integers(-1, 999)), max_size=3
    ).map(tuple),
    st.integers(-1, 5000),
    st.integers(-1, 5000),
)
rows = st.lists(annotated, max_size=6)


def columns(images: list[Annotated]) -> BoxColumns:
    """The same as columns."""
    boxes = [box for image in images for box in image.boxes]
    return BoxColumns(
        np.cumsum([0, *(len(image.boxes) for image in images)]),
        np.array([box[:4] for box in boxes], np.float32).reshape(-1, 4),
        np.array([box.label for box in boxes], np.int32),
        np.array([image.width for image in images], np.int32),
        np.array([image.height for image in images], np.int32),
    )


@given(rows)
def test_rows_are_what_they_were_made_of(images: list[Annotated]) -> None:
    """Each row gives back its image's boxes."""
    made = columns(images)
    assert [made.of(row) for row in range(len(made))] == images


@given(rows, st.data())
def test_some_rows_in_another_order(images: list[Annotated], data: st.DataObject) -> None:
    """Rows can be taken in any order, again, and where there are none."""
    chosen = data.draw(st.lists(st.integers(-1, len(images) - 1), max_size=8))
    taken = columns(images).take(np.array(chosen, np.int64))
    wanted = [Annotated() if row < 0 else images[row] for row in chosen]
    assert [taken.of(row) for row in range(len(taken))] == wanted


@given(rows)
def test_parquet_keeps_them(images: list[Annotated]) -> None:
    """The columns of the plan hold the same bits, and tell an image without boxes from none."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns(images).to_arrow()), sink)
    table = pq.read_table(io.BytesIO(sink.getvalue()))
    assert table.schema.field("box_xmin").type == pa.list_(pa.float32())
    assert table.schema.field("box_label").type == pa.list_(pa.int32())
    found = BoxColumns.from_arrow(table)
    assert found is not None
    assert [found.of(row) for row in range(len(found))] == images


def test_a_plan_without_boxes() -> None:
    """Has no such columns, and none are read."""
    assert BoxColumns.from_arrow(pa.table({"source": ["a"]})) is None


def test_no_boxes_at_all() -> None:
    """Rows of images without any."""
    assert [none_of(2).of(row) for row in range(2)] == [Annotated(), Annotated()]


def test_half_a_million_boxes_are_columns() -> None:
    """ILSVRC's boxes stay below 30 MB, and a row is found without looking at the others."""
    count = 544_546
    starts = np.arange(count + 1, dtype=np.int64)
    sides = np.zeros((count, 4), np.float32)
    made = BoxColumns(starts, sides, *(np.ones(count, np.int32) for _ in range(3)))
    arrays = (made.starts, made.sides, made.labels, made.widths, made.heights)
    assert sum(array.nbytes for array in arrays) < 30e6
    assert made.of(count - 1).boxes == (Box(0.0, 0.0, 0.0, 0.0, 1),)
