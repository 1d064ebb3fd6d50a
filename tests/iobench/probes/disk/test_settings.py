"""What may be asked of a disk."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from iobench.probes.disk import DiskSettings

pytestmark = pytest.mark.slow

blocks = st.lists(st.sampled_from([4096, 2**17, 2**20, 2**22]), min_size=1, max_size=3)
counts = st.lists(st.integers(1, 16), min_size=1, max_size=3)


def test_sizes_may_have_units() -> None:
    """As in other sizes of a config."""
    settings = DiskSettings.model_validate({"file_bytes": "64MiB", "block_bytes": "1 MiB"})
    assert (settings.file_bytes, settings.block_bytes) == (2**26, (2**20,))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"targets": [{"label": "a", "path": "/x"}, {"label": "a", "path": "/y"}]}, "'a'"),
        ({"targets": [{"label": "a/b", "path": "/x"}]}, "label"),
        ({"block_bytes": 5000}, "multiples of 4096"),
        ({"file_bytes": "1MiB"}, "no room for 8 processes"),
        ({"parallelism": 0}, "parallelism"),
        ({"cache": "lukewarm"}, "cache"),
        ({"seconds": 0}, "seconds"),
        ({"layout_data": ["floppies@disk"]}, "floppies@disk"),
        ({"blocksize": 4096}, "blocksize"),
    ],
)
def test_what_cannot_be_is_refused(content: dict[str, Any], message: str) -> None:
    """Before anything is run, with the value or key named."""
    with pytest.raises(ValidationError, match=message):
        DiskSettings.model_validate(content)


@given(blocks, counts)
def test_points_are_two_lines_through_one_point(sizes: list[int], processes: list[int]) -> None:
    """Each point keeps block size or parallelism where it was set, and none comes twice."""
    settings = DiskSettings.model_validate({"block_bytes": sizes, "parallelism": processes})
    points = list(settings.points())
    assert len(points) == len(set(points))
    assert {block for block, _ in points} == {*sizes, settings.at_block_bytes}
    assert {count for _, count in points} == {*processes, settings.at_parallelism}
    assert all(
        block == settings.at_block_bytes or count == settings.at_parallelism
        for block, count in points
    )
