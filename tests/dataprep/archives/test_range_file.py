"""Tests of dataprep.archives.range_file."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.archives.range_file import RangeFile

DATA = bytes(range(251)) * 20
START, SIZE = 100, 4000
PART = DATA[START : START + SIZE]


def fetch(offset: int, length: int) -> bytes:
    """Bytes of DATA."""
    return DATA[offset : offset + length]


@pytest.mark.parametrize("ahead", [0, 3])
@given(
    moves=st.lists(st.tuples(st.integers(0, SIZE + 50), st.integers(1, 900)), max_size=12),
    window=st.integers(1, 1500),
)
def test_it_is_the_part(ahead: int, moves: list[tuple[int, int]], window: int) -> None:
    """Read at any place, forwards or back, it is the part as a file of its own."""
    with io.BufferedReader(RangeFile(fetch, START, SIZE, window, ahead)) as file:
        for place, length in moves:
            file.seek(place)
            assert file.read(length) == PART[place : place + length]
            assert file.tell() == max(place, min(place + length, SIZE))
        file.seek(0)
        assert file.read() == PART


def test_places_are_told_in_every_way() -> None:
    """Seeking goes from the beginning, from where one is, and from the end."""
    with RangeFile(fetch, START, SIZE) as file:
        assert file.readable()
        assert file.seekable()
        assert file.seek(-10, os.SEEK_END) == SIZE - 10
        assert file.read(100) == PART[-10:]
        assert file.seek(-5, os.SEEK_CUR) == SIZE - 5
        assert file.read() == PART[-5:]


def test_windows_are_fetched_ahead_and_once() -> None:
    """Read in order, every window is asked for once and nothing outside of the part is."""
    asked: list[tuple[int, int]] = []

    def counted(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return fetch(offset, length)

    with RangeFile(counted, START, SIZE, 300, ahead=2) as file:
        assert file.read(10) == PART[:10]
        file.readall()
    assert sorted(asked) == [(START + at, min(300, SIZE - at)) for at in range(0, SIZE, 300)]
