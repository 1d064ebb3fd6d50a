"""Numbers with their nouns and units."""

from __future__ import annotations

import pytest

from dataprep.counted import counted


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
