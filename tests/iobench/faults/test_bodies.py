"""Blocks through each stage: what passes, what changes, and when it pauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.faults import Fault, FlipByte, RateLimit, Stall, Truncate
from iobench.faults.bodies import TruncatedError, disturb, flip, stall, truncate
from iobench.faults.kinds import Direction
from iobench.faults.pacing import Pacers

blocks_of_bytes = st.lists(st.binary(min_size=1, max_size=9), max_size=8)


@given(blocks_of_bytes, st.integers(-80, 80), st.integers(1, 255))
def test_flip_changes_that_byte_and_no_other(blocks: list[bytes], offset: int, mask: int) -> None:
    """Flipping changes the byte that Python's indexing names, or none if there is no such byte."""
    expected = bytearray(b"".join(blocks))
    if -len(expected) <= offset < len(expected):
        expected[offset] ^= mask
    assert b"".join(flip(blocks, offset, mask)) == expected


@given(blocks_of_bytes, st.integers(0, 80))
def test_truncate_passes_a_prefix(blocks: list[bytes], after_bytes: int) -> None:
    """Truncating passes the first bytes, and raises only if there were more."""
    whole = b"".join(blocks)
    passed = bytearray()
    cut = False
    try:
        for block in truncate(blocks, after_bytes):
            passed += block
    except TruncatedError:
        cut = True
    assert bytes(passed) == whole[:after_bytes]
    assert cut == (len(whole) > after_bytes)


@given(blocks_of_bytes, st.integers(0, 80))
def test_stall_pauses_between_two_bytes(blocks: list[bytes], after_bytes: int) -> None:
    """A stall passes all bytes, and pauses once, when exactly ``after_bytes`` have passed."""
    passed: list[bytes] = []
    paused_at: list[int] = []
    passed.extend(stall(blocks, after_bytes, lambda: paused_at.append(len(b"".join(passed)))))
    whole = b"".join(blocks)
    assert b"".join(passed) == whole
    assert paused_at == ([after_bytes] if len(whole) > after_bytes else [])


@given(blocks_of_bytes, st.integers(-9, 9), st.integers(0, 20))
def test_no_stage_makes_an_empty_block(blocks: list[bytes], offset: int, after_bytes: int) -> None:
    """No stage passes an empty block, which would end a chunked body."""
    stalled = stall(flip(blocks, offset, 1), after_bytes, lambda: None)
    assert all(stalled)


@pytest.mark.parametrize(
    ("direction", "passed", "sleeps"),
    [("upload", b"abcE", [7.0]), ("download", b"Abc", [5.0])],
)
def test_faults_concern_their_direction(
    direction: Direction, passed: bytes, sleeps: list[float]
) -> None:
    """Each body meets only the faults of its direction, changed first and cut after that."""
    faults: list[Fault] = [
        Stall(7, direction="upload"),
        Stall(5),
        Truncate(3),
        FlipByte(3, "upload", 0x21),
        FlipByte(0, "download", 0x20),
    ]
    slept: list[float] = []
    pacers = Pacers(lambda: 0.0, slept.append)
    out = bytearray()
    try:
        for block in disturb([b"abcd"], faults, direction, sleep=slept.append, pacer=pacers.get):
            out += block
    except TruncatedError:
        assert direction == "download"
    assert bytes(out) == passed
    assert slept == sleeps


def test_rate_limit_concerns_both_directions() -> None:
    """A rate limit paces uploads and downloads, each with a budget of its own."""
    slept: list[float] = []
    pacers = Pacers(lambda: 0.0, slept.append)
    for direction in ("upload", "download"):
        limited = disturb(
            [b"x" * 10], [RateLimit(10)], direction, sleep=slept.append, pacer=pacers.get
        )
        assert b"".join(limited) == b"x" * 10
        assert slept[-1] == pytest.approx(1.0)
