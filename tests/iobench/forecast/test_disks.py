"""Disks: no byte twice, unless it comes from memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.forecast import Facts
from iobench.forecast.bounds import Bounds
from iobench.forecast.disks import disk, layout
from iobench.probes.disk import offsets
from tests.iobench.forecast.made import data

PARAMS = {
    "target": "here",
    "operation": "read",
    "pattern": "sequential",
    "cache": "cold",
    "block_bytes": 4096,
    "parallelism": 2,
    "file_bytes": 2**20,
    "seconds": 2.0,
}
LAYOUT = {"data": "shards@disk", "access": "shards", "cache": "cold", "parallelism": 4}


@given(
    st.sampled_from(["sequential", "random"]),
    st.integers(1, 64).map(lambda n: n * 4096),
    st.integers(1, 16),
    st.integers(1, 500),
)
def test_bounds_hold_what_the_probe_reads(
    pattern: str, block: int, processes: int, blocks: int
) -> None:
    """All blocks of all processes at most, a block of each at least."""
    size = block * processes * blocks + 1234
    params = {
        **PARAMS,
        "pattern": pattern,
        "block_bytes": block,
        "parallelism": processes,
        "file_bytes": size,
    }
    found = disk(params, Facts(), 600.0).disk_read
    if pattern == "sequential":
        work = offsets.sequential(size, block, processes)
    else:
        work = offsets.random(size, block, processes, at_most=10**9)
    assert sum(map(len, work)) * block in found
    assert len(work) * block in found


@pytest.mark.parametrize(
    ("changed", "read", "written"),
    [
        ({}, Bounds(8192, 2**20), Bounds()),
        ({"cache": "warm"}, Bounds(0, 2**20), Bounds()),
        ({"operation": "write", "cache": "direct"}, Bounds(), Bounds(8192, 2**20)),
        ({"operation": "write", "cache": "buffered"}, Bounds(), Bounds(8192, 2**20)),
    ],
)
def test_reads_and_writes(changed: dict[str, Any], read: Bounds, written: Bounds) -> None:
    """A warm trial reads the file once, before it begins."""
    found = disk({**PARAMS, **changed}, Facts(), 600.0)
    assert (found.disk_read, found.disk_written) == (read, written)
    assert found.likely_s == 2.5
    assert found.seconds == Bounds(2.0 if changed == {"cache": "warm"} else 0.0, 600.0)


def test_layouts_read_their_data_once() -> None:
    """As many bytes as are there; where nobody could look, that is said."""
    params = {**LAYOUT, "seconds": 1.0}
    found = layout(params, Facts({"shards@disk": data()}), 600.0)
    assert found.disk_read == Bounds(0.0, 50e6)
    assert found.unknown == ()
    blind = layout(params, Facts(), 600.0)
    assert blind.disk_read.high is None
    assert "shards@disk" in blind.unknown[0]
