"""Tests of dataprep.sources.record_sets."""

from __future__ import annotations

import pytest

from dataprep.errors import SourceError
from dataprep.sources.record_sets import require_one_set, require_whole

SIX = [f"a/train-{number:05}-of-00006" for number in range(6)]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ([2], "here lacks 1 of 6 shards, such as 'a/train-00002-of-00006'"),
        ([0], "such as 'a/train-00000-of-00006'"),
        ([3, 5], "here lacks 2 of 6 shards, such as 'a/train-00003-of-00006'"),
    ],
)
def test_missing_shards_are_counted_and_one_is_named(missing: list[int], message: str) -> None:
    """Whichever they are; the way out is named."""
    names = [name for number, name in enumerate(SIX) if number not in missing]
    with pytest.raises(SourceError, match=f"{message}.*incomplete=true"):
        require_whole(names, names, "here")


def test_sets_that_are_whole() -> None:
    """From 0 or from 1, an empty shard among them, each name by itself, others without number."""
    from_one = [f"x_{number:05}-of-00003.tfrecord" for number in (1, 2, 3)]
    require_whole([*SIX[1:], *from_one, "y.rec"], [*SIX, *from_one, "y.rec", "z.txt"], "here")


def test_shards_of_several_sets_are_refused() -> None:
    """Six shards beside the one of an earlier run hold its samples again."""
    require_one_set([*SIX, "b/train-00000-of-00001", "train-00000-of-00002.rec"], "here")
    with pytest.raises(SourceError, match=r"'a/train-00000-of-00006' and 'a/train-00000-of-00001'"):
        require_one_set([*SIX, "a/train-00000-of-00001"], "here")
