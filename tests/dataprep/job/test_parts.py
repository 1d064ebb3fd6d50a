"""Which shards a part of a job makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.job.parts import Part


@given(shards=st.integers(0, 300), count=st.integers(1, 20))
def test_every_shard_belongs_to_one_part(shards: int, count: int) -> None:
    """Parts have every shard between them, each once, and equally many but for one."""
    dealt = [Part(number, count).of(range(shards)) for number in range(count)]
    assert sorted(shard for part in dealt for shard in part) == list(range(shards))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(count=st.integers(1, 1000), data=st.data())
def test_a_part_is_read_as_it_is_written(count: int, data: st.DataObject) -> None:
    """``I/N`` gives back the part that is shown so."""
    part = Part(data.draw(st.integers(0, count - 1)), count)
    assert Part.parse(str(part)) == part


@pytest.mark.parametrize("text", ["", "1", "3/3", "-1/3", "0/0", "1/", "a/b", "0/3/4", "0.5/2"])
def test_no_part(text: str) -> None:
    """Anything but I/N with I below N is refused, and the right form shown."""
    with pytest.raises(ConfigError, match="--part 0/4"):
        Part.parse(text)
