"""The page cache over files, before a trial and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.cachestate import prepared
from iobench.coldness import IN_MEMORY
from iobench.mounts import file_system


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A megabyte on a disk."""
    if file_system(tmp_path) in IN_MEMORY:
        pytest.skip("temporary files lie in memory")
    path = tmp_path / "shard"
    path.write_bytes(bytes(1_000_000))
    return path


def test_eviction_is_real(file: Path) -> None:
    """What the kernel says of a file that was warmed, then evicted, is what is kept."""
    assert prepared("warm", [file]).resident_before in (1.0, None)
    assert prepared("cold", [file]).resident_before in (0.0, None)
    assert prepared("direct", [file]).resident_before in (0.0, None)


def test_a_state_is_judged_by_what_was_read(file: Path) -> None:
    """All of it from storage is cold, half of it is not, and a warm file that stayed is warm."""
    cold = prepared("cold", [file])
    if cold.resident_before is None:
        pytest.skip("this kernel does not tell what is resident")
    assert cold.judged(1.0, sequential=True).label == "cold"
    assert cold.judged(0.5, sequential=True).label == "warm"
    assert cold.judged(None, sequential=True).label == "warm"
    assert cold.judged(None, sequential=False).label == "cold"
    warm = prepared("warm", [file]).judged(0.0, sequential=True)
    assert (warm.label, warm.why, warm.cache_resident) == ("warm", "", True)
