"""Which blocks are touched."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.probes.disk import offsets

pytestmark = pytest.mark.slow

block_counts = st.integers(0, 500)
processes = st.integers(1, 40)
BLOCK = 4096


@given(block_counts, st.integers(0, BLOCK - 1), processes)
def test_sequential_regions_follow_each_other(blocks: int, rest: int, count: int) -> None:
    """Together they are the file from its start, less what does not divide evenly."""
    parts = offsets.sequential(blocks * BLOCK + rest, BLOCK, count)
    assert len(parts) == count
    assert len({len(part) for part in parts}) == 1
    whole = list(itertools.chain(*parts))
    assert whole == list(range(0, len(whole) * BLOCK, BLOCK))
    assert blocks - count < len(whole) <= blocks


@given(block_counts, processes, st.integers(0, 600), st.integers(0, 5))
def test_random_blocks_are_whole_and_come_once(
    blocks: int, count: int, at_most: int, seed: int
) -> None:
    """No process reads what another does, nor anything twice."""
    parts = offsets.random(blocks * BLOCK, BLOCK, count, at_most=at_most, seed=seed)
    assert len(parts) == count
    whole = list(itertools.chain(*parts))
    assert len(set(whole)) == len(whole) == min(blocks, at_most) // count * count
    assert all(offset % BLOCK == 0 and 0 <= offset < blocks * BLOCK for offset in whole)
    assert parts == offsets.random(blocks * BLOCK, BLOCK, count, at_most=at_most, seed=seed)


def test_another_seed_is_another_order() -> None:
    """Repeats do not read the same order."""
    first, second = (offsets.random(2**22, BLOCK, 1, at_most=9999, seed=seed) for seed in (0, 1))
    assert sorted(first[0]) == sorted(second[0])
    assert first != second != offsets.sequential(2**22, BLOCK, 1)


def test_repeated_goes_round_and_ends() -> None:
    """As often as there is time, and not for ever."""
    assert list(offsets.repeated([1, 2], 5)) == [1, 2, 1, 2, 1]
    assert list(offsets.repeated([], 5)) == []
