"""Tests of dataprep.sources.ranges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.sources.ranges import Ranges

DATA = bytes(range(256)) * 2
steps = st.lists(st.tuples(st.integers(0, 600), st.integers(0, 90)), max_size=12)


@pytest.mark.parametrize("ahead", [0, 3])
@given(steps=steps, chunk_bytes=st.integers(1, 70))
def test_every_range_is_that_of_the_object(
    ahead: int, steps: list[tuple[int, int]], chunk_bytes: int
) -> None:
    """Wherever offsets jump, the bytes are the object's own, and stay so."""
    with ThreadPoolExecutor(2) as pool:
        data = Ranges(
            lambda offset, length: DATA[offset : offset + length],
            chunk_bytes,
            len(DATA),
            pool if ahead else None,
            ahead,
        )
        views = [data.at(offset, length) for offset, length in steps]
        data.close()
    expected = [DATA[offset : offset + length] for offset, length in steps]
    assert [bytes(view) for view in views] == expected


def test_one_request_serves_what_lies_in_a_chunk() -> None:
    """Neighbours come from one request, and nothing is fetched from the end on."""
    asked = []

    def fetch(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return DATA[offset : offset + length]

    data = Ranges(fetch, 100, len(DATA))
    data.at(10, 4)
    data.at(14, 90)
    data.at(500, 40)
    data.at(512, 9)
    assert asked == [(10, 100), (500, 12)]
