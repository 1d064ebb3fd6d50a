"""Which access mode is possible for which loader and which data."""

from __future__ import annotations

from typing import get_args

import pytest

from iobench.loaders.access import DIRECT, MODES, SETTINGS, Access, can_read, data_of, readers_of
from iobench.loaders.capabilities import loaders_with


@pytest.mark.parametrize("mode", MODES)
def test_loaders_that_read_nothing_have_no_mode(mode: str) -> None:
    """Loaders that read no data have direct access only."""
    loaders = loaders_with(lambda capabilities: not capabilities.reads_data)
    assert loaders == ["mock", "null"]
    assert not any(can_read(name, mode) for name in loaders)
    assert all(can_read(name, DIRECT) for name in loaders)


def test_streams_and_single_samples_have_loaders_of_their_own() -> None:
    """Files on a disk can be read by all loaders, also by those of a third party."""
    names = ("raw", "torch-map", "mine", "tf-data")
    assert [name for name in names if can_read(name, "pipe")] == ["tf-data"]
    assert can_read("torch-map", "lazy")
    assert not can_read("torch-iterable", "lazy")
    assert all(can_read("mine", mode) for mode in ("file", "mount"))
    assert readers_of("pipe") == "tf-data or torch-iterable"
    assert readers_of("file") == "any that reads"


def test_each_mode_has_its_data() -> None:
    """A mount reads the same form at a path; other modes need a store."""
    assert data_of("mount", "shards-4MB@s3") == "shards-4MB@disk"
    assert data_of("mount", "files@disk") == "files@disk"
    assert data_of("file", "shards@s3") == "shards@s3"
    assert data_of("lazy", "shards@disk") is None
    assert data_of(DIRECT, "shards@disk") == "shards@disk"


def test_every_mode_is_known() -> None:
    """The config accepts exactly the modes that are described."""
    assert {*MODES, DIRECT} == set(get_args(Access))
    assert set(SETTINGS) < set(MODES)
