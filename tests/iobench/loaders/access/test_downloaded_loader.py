"""A loader over a copy that its first epoch downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from dataprep.stores.s3 import S3Store
from iobench.loaders.access import DownloadedLoader
from iobench.loaders.protocol import Batch, Framework
from iobench.results.trial import Location


class Noting:
    """A loader whose batches name the location that it reads."""

    framework: Framework = "none"
    reads: str | None = "tfrecord"

    def __init__(self, location: Location) -> None:
        self.location = location
        self.notes: Sequence[str] = ("over a store",) if location.is_remote else ("over a path",)
        self.closed = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield one batch; epoch 7 fails."""
        if number == 7:
            raise RuntimeError("epoch 7 is broken")
        yield Batch(self.location.uri, number, 1)

    def close(self) -> None:
        """Note that the loader is closed."""
        self.closed = True


class Counting(Noting):
    """A loader that counts its batches itself."""

    def whole_batches(self) -> int:
        """Return a number that no data set here would give."""
        return 77


def loader_of(location: Location, folder: Path, kind: type[Noting] = Noting) -> DownloadedLoader:
    """Return a loader of this kind over a copy of the location, with batches of 16 samples."""
    return DownloadedLoader(location, kind, folder, batch_size=16, connections=2)


def test_nothing_is_copied_before_an_epoch_is_asked_for(
    locations: Mapping[str, Location], tmp_path: Path
) -> None:
    """The download belongs to the time to the first batch."""
    loader = loader_of(locations["shards@s3"], tmp_path)
    batches = loader.epoch(0)
    assert list(tmp_path.iterdir()) == []
    assert loader.notes == ("over a store",)
    (batch,) = batches
    assert batch.images == str(tmp_path / "download")
    assert (tmp_path / "download" / "labels.json").exists()
    assert loader.notes == ("over a path",)
    assert loader.disk_bytes > 1_000_000
    loader.close()


def test_it_is_copied_once(locations: Mapping[str, Location], tmp_path: Path) -> None:
    """A later epoch reads the copy of the first one."""
    loader = loader_of(locations["shards@s3"], tmp_path)
    list(loader.epoch(0))
    (tmp_path / "download" / "labels.json").write_text("touched")
    list(loader.epoch(1))
    assert (tmp_path / "download" / "labels.json").read_text() == "touched"
    loader.close()


def test_it_is_copied_once_without_allocated_blocks(
    locations: Mapping[str, Location], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later epoch reads the copy also on a file system that reports no blocks of its files."""
    stat = Path.stat

    def without_blocks(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat_result(tuple(stat(path, follow_symlinks=follow_symlinks)), {"st_blocks": 0})

    monkeypatch.setattr(Path, "stat", without_blocks)
    loader = loader_of(locations["shards@s3"], tmp_path)
    assert [len(list(loader.epoch(number))) for number in range(2)] == [1, 1]
    assert loader.disk_bytes == 0
    loader.close()


def test_nothing_is_left_after_close(locations: Mapping[str, Location], tmp_path: Path) -> None:
    """The copy is removed, also after a failed epoch, and closing twice does nothing."""
    loader = loader_of(locations["shards@s3"], tmp_path)
    list(loader.epoch(0))
    with pytest.raises(RuntimeError, match="epoch 7 is broken"):
        list(loader.epoch(7))
    loader.close()
    loader.close()
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_fails_leaves_nothing(
    locations: Mapping[str, Location], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the loader removes a download that failed halfway."""

    def broken(store: S3Store, key: str, file: BinaryIO) -> int:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    loader = loader_of(locations["shards@s3"], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(S3Store, "get_to", broken)
        with pytest.raises(OSError, match="No space left"):
            list(loader.epoch(0))
    assert list(tmp_path.rglob("*")) != []
    loader.close()
    assert list(tmp_path.iterdir()) == []


def test_batches_are_counted_as_the_loader_counts_them(
    locations: Mapping[str, Location], tmp_path: Path
) -> None:
    """Without a count of the loader, 120 samples are 7 whole batches of 16."""
    assert loader_of(locations["shards@s3"], tmp_path).whole_batches() == 7
    assert loader_of(locations["shards@s3"], tmp_path, Counting).whole_batches() == 77
