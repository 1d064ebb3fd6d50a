"""Access ``file``: which objects are downloaded, and when a download is refused."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import dataprep
from dataprep.errors import PermissionRefused
from dataprep.stores import ObjectInfo, open_store
from dataprep.stores.s3 import S3Store
from iobench.errors import Unavailable
from iobench.loaders.access import downloaded
from iobench.results.trial import Location


class Usage(NamedTuple):
    """The result of ``shutil.disk_usage``, in bytes."""

    total: int
    used: int
    free: int


@pytest.mark.parametrize("format", ["tfrecord", "recordio"])
def test_shards_of_one_format_can_be_read(
    locations: Mapping[str, Location], tmp_path: Path, format: str
) -> None:
    """The tables are copied with the shards, but no other format and no index."""
    local = downloaded(locations["shards@s3"], format, tmp_path, connections=4)
    assert (local.uri, local.is_remote) == (str(tmp_path), False)
    original = dataprep.open(locations["shards@disk"].uri, format=format)
    assert list(dataprep.open(tmp_path, format=format)) == list(original)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"labels.json", "train.manifest.json", "train.samples.parquet", format}


def test_files_are_copied_all(locations: Mapping[str, Location], tmp_path: Path) -> None:
    """Each file is copied byte for byte."""
    downloaded(locations["files@s3"], "files", tmp_path, connections=4)
    origin = Path(locations["files@disk"].uri)
    names = [path.relative_to(origin) for path in origin.rglob("*") if path.is_file()]
    assert len(names) >= 120
    assert all((tmp_path / name).read_bytes() == (origin / name).read_bytes() for name in names)


def test_objects_are_written_as_they_come(
    locations: Mapping[str, Location], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No object is held in memory if the store can write into a file."""

    def refused(store: S3Store, key: str) -> bytes:
        raise AssertionError(f"{key} is read into memory")

    monkeypatch.setattr(S3Store, "get", refused)
    downloaded(locations["files@s3"], "files", tmp_path, connections=4)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) >= 120


def test_too_little_room_is_an_error_before_the_first_byte(
    locations: Mapping[str, Location], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the needed and the free size, and nothing is written."""
    usage = Usage(total=10**9, used=10**9 - 1_500_000, free=1_500_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(Unavailable, match=r"about [\d.]+ MB .* where 1\.50 MB are free") as caught:
        downloaded(locations["shards@s3"], "tfrecord", tmp_path, connections=4)
    assert list(tmp_path.iterdir()) == []
    shards_mb = sum(len(shard) for shard in _shards(locations["shards@disk"])) / 1e6
    needed_mb = float(str(caught.value).partition("about ")[2].partition(" MB")[0])
    assert shards_mb <= needed_mb <= 1.2 * shards_mb + 0.1


def test_a_key_stays_within_the_folder(
    locations: Mapping[str, Location], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that leads out of the folder is refused, since a store may hold any key."""
    outside = ObjectInfo("../outside", 4)
    monkeypatch.setattr(S3Store, "list", lambda store, prefix="": iter([outside]))
    with pytest.raises(PermissionRefused, match="would leave"):
        downloaded(locations["files@s3"], "files", tmp_path, connections=1)
    assert not (tmp_path.parent / "outside").exists()


def _shards(location: Location) -> list[bytes]:
    """Return the bytes of each shard."""
    store = open_store(location.uri)
    dataset = dataprep.open(location.uri)
    return [store.get(shard.key) for shard in dataset.shards()]
