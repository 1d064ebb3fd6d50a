"""Tests of dataprep.arrow_columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep import arrow_columns
from dataprep.arrow_columns import numbers, texts

pytestmark = pytest.mark.slow

_KINDS = st.sampled_from([np.int8, np.int32, np.int64, np.float32])
_TEXT = st.text(max_size=5)


@given(kind=_KINDS, values=st.lists(st.integers(-100, 100)), data=st.data())
def test_numbers_are_those_that_arrow_makes(
    kind: type[np.generic], values: list[int], data: st.DataObject
) -> None:
    """The same type, values and nulls as from pa.array."""
    array = np.array(values, kind)
    valid = np.array([data.draw(st.booleans()) for _ in values], np.bool_)
    made = numbers(array, valid)
    made.validate(full=True)
    assert made.equals(pa.array(array, mask=~valid))
    assert numbers(array).equals(pa.array(array))


def test_every_second_number_will_do() -> None:
    """Numbers that do not lie beside each other are put there."""
    assert numbers(np.arange(10)[::2]).to_pylist() == [0, 2, 4, 6, 8]


@given(values=st.lists(_TEXT))
def test_texts_are_those_that_arrow_makes(values: list[str]) -> None:
    """The same strings as from pa.array, of any script, with nulls for empty ones if asked."""
    made, nulls = texts(values), texts(values, null_if_empty=True)
    made.validate(full=True)
    nulls.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))
    assert nulls.equals(pa.array([value or None for value in values], pa.string()))


def test_more_text_than_an_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes as Arrow itself makes it, in as many arrays as it takes."""
    monkeypatch.setattr(arrow_columns, "_MOST_BYTES", 5)
    assert texts(["äb", "cde", ""]).to_pylist() == ["äb", "cde", ""]
    assert texts(["äb", "cde", ""], null_if_empty=True).to_pylist() == ["äb", "cde", None]
