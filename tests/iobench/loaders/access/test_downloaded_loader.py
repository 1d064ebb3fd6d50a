"""Any loader over a copy that its first epoch makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from dataprep.stores.s3 import S3Store
from iobench.loaders.access import DownloadedLoader
from iobench.loaders.protocol import Batch, Framework
from iobench.results.trial import Place


class Noting:
    """A loader that remembers where it read, and whether that was there."""

    framework: Framework = "none"
    reads: str | None = "tfrecord"

    def __init__(self, location: Place) -> None:
        self.place = location
        self.notes: Sequence[str] = ("over a store",) if location.is_remote else ("over a path",)
        self.closed = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """One batch."""
        if number == 7:
            raise RuntimeError("epoch 7 is broken")
        yield Batch(self.place.uri, number, 1)

    def close(self) -> None:
        """Remember."""
        self.closed = True


class Counting(Noting):
    """Knows its batches."""

    def whole_batches(self) -> int:
        """A number of its own."""
        return 77


def loader_of(location: Place, folder: Path, kind: type[Noting] = Noting) -> DownloadedLoader:
    """Over that place, in batches of 16."""
    return DownloadedLoader(location, kind, folder, batch_size=16, connections=2)


def test_nothing_is_copied_before_an_epoch_is_asked_for(
    locations: Mapping[str, Place], tmp_path: Path
) -> None:
    """A download is part of the time to the first batch."""
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


def test_it_is_copied_once(locations: Mapping[str, Place], tmp_path: Path) -> None:
    """A later epoch reads what is there."""
    loader = loader_of(locations["shards@s3"], tmp_path)
    list(loader.epoch(0))
    (tmp_path / "download" / "labels.json").write_text("touched")
    list(loader.epoch(1))
    assert (tmp_path / "download" / "labels.json").read_text() == "touched"
    loader.close()


def test_nothing_is_left_after_close(locations: Mapping[str, Place], tmp_path: Path) -> None:
    """This holds after a failed epoch, too; closing twice does nothing."""
    loader = loader_of(locations["shards@s3"], tmp_path)
    list(loader.epoch(0))
    with pytest.raises(RuntimeError, match="epoch 7 is broken"):
        list(loader.epoch(7))
    loader.close()
    loader.close()
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_fails_leaves_nothing(
    locations: Mapping[str, Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it is removed with the rest."""

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
    locations: Mapping[str, Place], tmp_path: Path
) -> None:
    """Or as all samples cut into whole batches: 120 are 7 of 16."""
    assert loader_of(locations["shards@s3"], tmp_path).whole_batches() == 7
    assert loader_of(locations["shards@s3"], tmp_path, Counting).whole_batches() == 77
