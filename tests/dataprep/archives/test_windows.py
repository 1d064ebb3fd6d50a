"""Tests of dataprep.archives.windows."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.archives.windows import Streamed, Windowed

DATA = bytes(range(256)) * 40
STEPS = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 300)), max_size=30)


@given(steps=STEPS, window=st.integers(1, 2000), probe=st.integers(1, 300))
def test_any_way_of_reading_gives_the_bytes(
    steps: list[tuple[int, int]], window: int, probe: int
) -> None:
    """Rising offsets give the same bytes through windows and from a stream, past the end too."""
    windowed = Windowed(lambda at, length: DATA[at : at + length], len(DATA), window, probe)
    streamed = Streamed(io.BytesIO(DATA), chunk_bytes=probe)
    at = 0
    for step, length in steps:
        at += step
        assert windowed.read(at, length) == DATA[at : at + length]
        assert streamed.read(at, length) == DATA[at : at + length]


@pytest.mark.parametrize(("step", "fetches"), [(100, 7), (5000, 9)])
def test_what_lies_close_is_fetched_together(step: int, fetches: int) -> None:
    """Small steps are served from windows; after a large one only the probe is fetched."""
    asked: list[tuple[int, int]] = []

    def fetch(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return bytes(length)

    source = Windowed(fetch, 10**6, window_bytes=1000, probe_bytes=50)
    for at in range(0, step * (60 if step == 100 else 9), step):
        source.read(at, 10)
    assert len(asked) == fetches
    assert {length for _, length in asked[1:]} == ({1000} if step == 100 else {50})


def test_nothing_is_fetched_past_the_end() -> None:
    """The last window ends with what is read."""
    asked: list[int] = []

    def fetch(offset: int, length: int) -> bytes:
        asked.append(offset + length)
        return DATA[offset : offset + length]

    source = Windowed(fetch, 120, window_bytes=1000, probe_bytes=100)
    assert source.read(0, 10) == DATA[:10]
    assert source.read(110, 50) == DATA[110:120]
    assert source.read(120, 50) == b""
    assert max(asked) <= 120


def test_a_stream_goes_forwards_only() -> None:
    """What a stream has passed cannot be asked for again; its size is known at its end."""
    source = Streamed(io.BytesIO(DATA), chunk_bytes=100)
    source.read(1000, 10)
    assert source.size is None
    with pytest.raises(ValueError, match="byte 5"):
        source.read(5, 1)
    assert source.read(len(DATA), 1) == b""
    assert source.size == len(DATA)
