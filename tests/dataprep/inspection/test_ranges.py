"""Parts of an object in blocks."""

from __future__ import annotations

import secrets

from hypothesis import given
from hypothesis import strategies as st

from dataprep.inspection.ranges import Ranges
from tests.dataprep.inspection.held import Counting

DATA = bytes(range(256)) * 5


def opened(block_bytes: int = 100) -> tuple[Ranges, Counting]:
    """A reader of ``DATA``."""
    store = Counting(f"memory://{secrets.token_hex(6)}")
    store.put("x", DATA)
    return Ranges(store, "x", len(DATA), block_bytes), store


@given(
    st.lists(st.tuples(st.integers(0, len(DATA) + 9), st.integers(0, 400)), max_size=12),
    st.integers(1, 300),
)
def test_any_order(reads: list[tuple[int, int]], block_bytes: int) -> None:
    """Whatever is read in whatever order is what lies there."""
    ranges, store = opened(block_bytes)
    for offset, length in reads:
        assert ranges.read(offset, length) == DATA[offset : offset + length]
    assert ranges.requests == len(store.ranges)
    assert ranges.bytes_read == sum(min(length, len(DATA) - at) for _, at, length in store.ranges)


def test_one_request_serves_reads_that_lie_close() -> None:
    """Reads within a block are one request; a block further on is another."""
    ranges, store = opened()
    for offset in range(0, 90, 10):
        ranges.read(offset, 10)
    assert store.ranges == [("x", 0, 100)]
    ranges.read(95, 10)
    assert store.ranges[1:] == [("x", 95, 100)]
    ranges.read(0, 10)
    assert len(store.ranges) == 2


def test_nothing_beyond_the_end_is_asked_for() -> None:
    """The last block ends where the object does."""
    ranges, store = opened()
    assert ranges.read(len(DATA) - 5, 50) == DATA[-5:]
    assert ranges.read(len(DATA), 50) == b""
    assert store.ranges == [("x", len(DATA) - 5, 5)]
