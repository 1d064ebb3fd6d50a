"""The shards of a job are divided among its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.job.parts import Part


@given(shards=st.integers(0, 300), count=st.integers(1, 20))
def test_every_shard_belongs_to_one_part(shards: int, count: int) -> None:
    """Each shard belongs to one part, and parts differ by one shard at most."""
    dealt = [Part(number, count).of(range(shards)) for number in range(count)]
    assert sorted(shard for part in dealt for shard in part) == list(range(shards))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(count=st.integers(1, 1000), data=st.data())
def test_a_part_is_read_as_it_is_written(count: int, data: st.DataObject) -> None:
    """Reading ``I/N`` gives the part that is written so."""
    part = Part(data.draw(st.integers(0, count - 1)), count)
    assert Part.parse(str(part)) == part


@pytest.mark.parametrize("text", ["", "1", "3/3", "-1/3", "0/0", "1/", "a/b", "0/3/4", "0.5/2"])
def test_no_part(text: str) -> None:
    """Text other than I/N with I below N is refused, and the error shows the right form."""
    with pytest.raises(ConfigError, match="--part 0/4"):
        Part.parse(text)
