"""Numbers with their nouns and units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.counted import counted, size_words


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "shard", "0 shards"),
        (1, "shard", "1 shard"),
        (1200, "shard", "1,200 shards"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
    ],
)
def test_one_is_singular(number: int, noun: str, words: str) -> None:
    """One shard, all other numbers of shards; thousands are told apart."""
    assert counted(number, noun) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (5000, "5 kB"),
        (2**16, "64 KiB"),
        (2**20, "1 MiB"),
        (128_000_000, "128 MB"),
        (2**30, "1 GiB"),
        (3 * 10**9, "3 GB"),
        (4097, "4,097 B"),
        (1024**2 + 1, "1,048,577 B"),
        (0, "0 B"),
    ],
)
def test_sizes_are_exact(count: int, words: str) -> None:
    """The largest unit in which a size is whole: MB and MiB are not mixed up."""
    assert size_words(count) == words


@given(st.integers(1, 2**40))
def test_size_says_exactly_how_many(count: int) -> None:
    """Number times unit is the size."""
    number, unit = size_words(count).split(" ")
    factors = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    assert int(number.replace(",", "")) * factors[unit] == count
