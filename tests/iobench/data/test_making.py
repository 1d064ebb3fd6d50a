"""Data by name: made once, used again, whole or made anew."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError, DataprepError, StoreFull
from dataprep.reading.dataset import open_dataset
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from iobench.data import making
from iobench.data.making import DataMaker
from iobench.data.settings import DataSettings
from iobench.results.trial import Location
from iobench.servers.moto_server import MotoServer

DRAWN = {"images": 60, "classes": 2, "size": 256, "shard_size": "2MB"}
NAMES = (
    *("shards@disk", "shards-1MB@disk", "files@disk"),
    *("originals@disk", "pixels@disk", "photos@disk"),
)


def nowhere() -> Any:
    """For tests in which no store may be asked for."""
    raise AssertionError("no bucket is needed")


class Made:
    """A maker, and what it said."""

    def __init__(
        self,
        folder: Path,
        bucket: Any = nowhere,
        formats: Any = None,
        **given: Any,
    ) -> None:
        self.notes: list[str] = []
        settings = DataSettings.model_validate({**DRAWN, "folder": str(folder), **given})
        self.maker = DataMaker(
            settings, lambda: nullcontext(bucket()), self.notes.append, lambda name: formats
        )

    def location(self, name: str) -> Location:
        """By name."""
        return self.maker.location(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where everything was made once: shards of two sizes, and their files. Read only."""
    root = tmp_path_factory.mktemp("making") / "data"
    maker = Made(root)
    for name in NAMES:
        maker.location(name)
    assert maker.notes == [
        "drawing 60 images",
        "sharding at 2 MB",
        "sharding at 1 MB",
        "writing the images of the shards as files",
        "sharding at 2 MB, not resized",
        "writing the images of the shards as pixels",
    ]
    return root


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(folder, tmp_path / "data"))


def images(location: Location) -> list[tuple[str, str]]:
    """Class, as files of shards are sorted into, and digest of every image."""
    if location.holds == "files":
        actual = [
            (p.parent.name, p.read_bytes()) for p in Path(location.uri).rglob("*") if p.is_file()
        ]
    else:
        dataset = open_dataset(location.uri, location.split, options=location.store)
        actual = [(f"{sample.label:06d}", bytes(sample.image)) for sample in dataset]
    return sorted((name, hashlib.sha256(data).hexdigest()) for name, data in actual)


def images_on_store(location: Location) -> list[tuple[str, str]]:
    """The same of files or shards on a store."""
    if location.holds == "shards":
        return images(location)
    store = open_store(location.uri, location.store)
    actual = [(info.key.split("/")[0], store.get(info.key)) for info in store.list()]
    return sorted((name, hashlib.sha256(data).hexdigest()) for name, data in actual)


def stamps(folder: Path) -> dict[str, int]:
    """When each file was written."""
    return {str(p): p.stat().st_mtime_ns for p in sorted(folder.rglob("*")) if p.is_file()}


class TestMade:
    def test_what_was_made_is_used_again(self, folder: Path) -> None:
        """A later run says nothing and writes nothing."""
        before = stamps(folder)
        again = Made(folder)
        for name in NAMES:
            again.location(name)
        assert again.location("shards-2MB@disk") == again.location("shards@disk")
        assert again.notes == []
        assert stamps(folder) == before

    def test_shards_of_two_sizes_hold_the_same_images(self, folder: Path) -> None:
        """In more of them where they are smaller."""
        maker = Made(folder)
        two, one = maker.location("shards@disk"), maker.location("shards-1MB@disk")
        assert two.uri != one.uri
        assert images(two) == images(one)
        counts = []
        for location in (one, two):
            with open_dataset(location.uri, location.split) as dataset:
                counts.append(len(dataset.manifest.formats["tfrecord"].shards))
                assert len(dataset) == 60
                assert set(dataset.manifest.formats) == {"tfrecord", "recordio"}
        assert counts[0] > counts[1]

    def test_other_sides_are_shards_of_their_own(self, copied: Path) -> None:
        """The same images, smaller: as a config of that size makes them, and found by it again."""
        maker = Made(copied)
        small = maker.location("shards-64px@disk")
        assert maker.notes == ["sharding at 2 MB"]
        with open_dataset(small.uri, small.split) as dataset:
            sides = {min(sample.width, sample.height) for sample in dataset}
            assert max(sides) == 64  # a smaller image is not enlarged
            assert len(dataset) == 60
        assert Made(copied, size=64).location("shards@disk") == small
        assert maker.location("shards-256px@disk") == maker.location("shards@disk")
        with pytest.raises(ConfigError, match=r"images of other sizes are made from data\.source"):
            Made(copied, shards=small.uri).location("shards-128px@disk")

    def test_originals_are_the_photos_in_shards(self, folder: Path) -> None:
        """Byte by byte: what is compared differs in resizing alone."""
        maker = Made(folder)
        photos, originals = maker.location("photos@disk"), maker.location("originals@disk")
        digests = [
            sorted(digest for _, digest in images(location)) for location in (photos, originals)
        ]
        assert digests[0] == digests[1]
        assert maker.location("originals-2MB@disk") == originals
        shards, pixels = maker.location("shards@disk"), maker.location("pixels@disk")
        assert images(originals) != images(shards)
        # That images are resized to is nothing to originals.
        assert Made(folder, size=64).location("originals@disk") == originals
        assert (pixels.holds, pixels.decoded, shards.decoded) == ("shards", True, False)

    @pytest.mark.parametrize("changed", [{"seed": 1}, {"size": 64}, {"quality": 50}])
    def test_other_settings_are_other_data(self, folder: Path, changed: dict[str, Any]) -> None:
        """Nothing that was made otherwise is taken for them."""
        plans: list[str] = []

        class Planned(DataMaker):
            def _make_once(self, key: str, note: str, make: Any) -> Path:
                plans.append(key)
                return folder / key

        for given in ({}, changed):
            settings = DataSettings.model_validate({**DRAWN, "folder": str(folder), **given})
            Planned(settings, nowhere, print).location("shards@disk")
        assert plans[0] != plans[1]


def interrupted(folder: Path) -> None:
    """A run that is stopped halfway through unpacking."""
    write_image_files = making.write_image_files

    def half(source: Location, dest: Path) -> None:
        write_image_files(source, dest)
        next(path for path in dest.rglob("*.jpg")).unlink()
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(making, "write_image_files", half)
        with pytest.raises(KeyboardInterrupt):
            Made(folder).location("files@disk")


class TestInterrupted:
    def test_half_made_data_are_made_anew(self, copied: Path) -> None:
        """What an interrupted run left, or was removed, is no data; its marker is nothing."""
        files = Path(Made(copied).location("files@disk").uri)
        marker = files.with_name(f"{files.name}.complete")
        assert marker.exists()
        shutil.rmtree(files)
        interrupted(copied)
        assert not marker.exists()
        maker = Made(copied)
        location = maker.location("files@disk")
        assert maker.notes == ["writing the images of the shards as files"]
        assert images(location) == images(maker.location("shards@disk"))


@pytest.mark.parametrize("form", ["files", "pixels"])
class TestUnpacked:
    def test_too_little_room_is_said_before_the_first_byte(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        """How much is needed, where, and what to do; nothing is written."""
        shards = Made(folder).location("shards@disk")
        written = Made(folder).location(f"{form}@disk")
        needed_bytes = sum(path.stat().st_size for path in Path(written.uri).rglob("*.*"))
        monkeypatch.setattr(LocalStore, "free_bytes", lambda self: needed_bytes // 2)
        data = tmp_path / "data"
        match = rf"{form}: about .+ would be written to {data}/.*: set another data\.folder"
        with pytest.raises(StoreFull, match=match):
            Made(data, shards=shards.uri).location(f"{form}@disk")
        assert [path for path in data.rglob("*") if path.suffix != ".lock"] == []

    def test_no_shard_is_held_whole(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        """Single records are read, several at a time."""
        shards = Made(folder).location("shards-1MB@disk")
        read, numbers, both = LocalStore.get_versioned, itertools.count(), threading.Barrier(2)

        def of_records(store: Any, key: str, offset: int = 0, length: int | None = None) -> Any:
            if key.startswith("tfrecord/"):
                assert length is not None
                if next(numbers) < 2:
                    both.wait(10)
            return read(store, key, offset, length)

        with monkeypatch.context() as patched:
            patched.setattr("os.sched_getaffinity", lambda process: {0, 1})
            patched.setattr(LocalStore, "get_versioned", of_records)
            location = Made(tmp_path / "data", shards=shards.uri).location(f"{form}@disk")
        assert len(images(location)) == 60


class TestGiven:
    """An output of ``dataprep shard``, or class folders."""

    def test_shards_are_read_where_they_are(self, folder: Path, tmp_path: Path) -> None:
        """Other sizes and photographs need a source; files of them are written elsewhere."""
        shards = Made(folder).location("shards@disk")
        before = stamps(folder)
        maker = Made(tmp_path / "data", shards=shards.uri)
        assert maker.location("shards@disk") == shards
        for name in ("shards-4MB@disk", "photos@disk", "originals@disk"):
            with pytest.raises(ConfigError, match=r"data\.source"):
                maker.location(name)
        assert not (tmp_path / "data").exists()
        files = maker.location("files@disk")
        assert Path(files.uri).is_relative_to(tmp_path)
        assert images(files) == images(shards)
        assert stamps(folder) == before

    def test_class_folders_are_sharded(self, tree: Path, tmp_path: Path) -> None:
        """In their own classes."""
        maker = Made(tmp_path / "data", source=str(tree), size=64)
        assert maker.location("photos@disk").uri == str(tree)
        shards = images(maker.location("shards@disk"))
        assert len(shards) == 120
        assert {name for name, _ in shards} == {f"{label:06d}" for label in range(6)}
        assert maker.notes == ["sharding at 2 MB"]

    @pytest.mark.parametrize("given", [{"source": "missing"}, {"shards": "missing"}])
    def test_what_is_not_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
    ) -> None:
        """Is an error that names it, and leaves no marker."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DataprepError, match="missing"):
            Made(tmp_path / "data", **given).location("files@disk")
        assert not list(tmp_path.rglob("*.complete"))


class TestRemote:
    @pytest.fixture
    def store(self, s3_server: MotoServer, bucket: str) -> Location:
        """Where copies go."""
        options = StoreOptions(endpoint_url=s3_server.url)
        return Location(f"s3://{bucket}/some/prefix/", "empty", options)

    @pytest.mark.parametrize("name", [name.replace("@disk", "@s3") for name in NAMES[:-1]])
    def test_copies_hold_the_same(self, folder: Path, store: Location, name: str) -> None:
        """Every object of what lies on the disk, below the prefix, in its form."""
        maker = Made(folder, lambda: store)
        remote, local = maker.location(name), maker.location(name.replace("@s3", "@disk"))
        assert remote.uri.startswith(store.uri + "iobench-data/")
        assert (remote.holds, remote.decoded) == (local.holds, local.decoded)
        assert remote.is_remote
        there, here = open_store(remote.uri, remote.store), open_store(local.uri)
        actual = {info.key: there.get(info.key) for info in there.list()}
        assert actual == {info.key: here.get(info.key) for info in here.list()}

    def test_what_is_there_is_not_copied_again(
        self, folder: Path, store: Location, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only what is missing, or has another size."""
        first = Made(folder, lambda: store).location("files@s3")
        there = open_store(first.uri, first.store)
        keys = sorted(info.key for info in there.list())
        there.delete(keys[0])
        there.put(keys[1], b"short")
        copied: list[str] = []
        put = type(there).put

        def counting(self: Any, key: str, *given: Any, **options: Any) -> Any:
            copied.append(key)
            return put(self, key, *given, **options)

        monkeypatch.setattr(type(there), "put", counting)
        Made(folder, lambda: store).location("files@s3")
        assert sorted(copied) == keys[:2]

    @pytest.mark.parametrize("name", ["shards@s3", "files@s3"])
    def test_no_object_is_held_whole(
        self, folder: Path, store: Location, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Files are mapped, not read into memory, and several are sent at a time."""
        maker = Made(folder, lambda: store)
        local = maker.location(name.replace("@s3", "@disk"))
        put, numbers, both = S3Store.put, itertools.count(), threading.Barrier(2)

        def refused(self: LocalStore, key: str) -> bytes:
            raise AssertionError(key)

        def two_at_once(self: S3Store, key: str, data: Any) -> Any:
            if next(numbers) < 2:
                both.wait(10)
            return put(self, key, data)

        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "get", refused)
            patched.setattr(S3Store, "put", two_at_once)
            remote = maker.location(name)
        assert images_on_store(remote) == images(local)

    def test_only_what_trials_read_is_copied(
        self, folder: Path, store: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Shards of one format with their indexes; a later run adds those of another."""

        def refused(self: S3Store, key: str) -> bytes:
            raise AssertionError(f"{key} is held whole")

        remote = Made(folder, lambda: store).location("shards@s3")
        settings = {"shards": remote.uri, "store": remote.store.model_dump()}
        data = tmp_path / "data"
        monkeypatch.setattr(S3Store, "get", refused)
        actual: list[set[str]] = []
        for formats in ({""}, {"tfrecord"}, {"tfrecord", "recordio"}):
            maker = Made(data, formats=frozenset(formats), **settings)
            local = Path(maker.location("shards@disk").uri)
            paths = [path.relative_to(local) for path in local.rglob("*") if path.is_file()]
            actual.append({str(path.parent) for path in paths})
            assert bool(maker.notes) == (formats != {"tfrecord"})
        tables = {".", "index/tfrecord", "tfrecord"}
        assert actual == [tables, tables, {*tables, "index/recordio", "recordio"}]
        for name in ("tfrecord", "recordio"):
            with open_dataset(local, format=name) as dataset:
                assert sum(1 for _ in dataset) == 60
        shutil.rmtree(local)
        maker = Made(data, formats=frozenset({"recordio"}), **settings)
        assert {path.name for path in Path(maker.location("shards@disk").uri).iterdir()} >= {
            "recordio"
        }
        assert not (local / "tfrecord").exists()

    def test_copies_to_a_store_leave_other_formats_out(self, folder: Path, store: Location) -> None:
        """Those that no trial reads there."""
        remote = Made(folder, lambda: store, frozenset({"recordio"})).location("shards@s3")
        names = {info.key.partition("/")[0] for info in open_store(remote.uri, remote.store).list()}
        assert "recordio" in names
        assert "tfrecord" not in names

    def test_shards_on_a_store_are_read_there(
        self, folder: Path, store: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And copied here once where a trial wants them on the disk, if there is room for them."""
        remote = Made(folder, lambda: store).location("shards@s3")
        settings = {"shards": remote.uri, "store": remote.store.model_dump()}
        maker = Made(tmp_path / "data", **settings)
        assert maker.location("shards@s3") == remote
        with monkeypatch.context() as full:
            full.setattr(LocalStore, "free_bytes", lambda self: 1000)
            with pytest.raises(StoreFull, match=r"1 kB are free: set another data\.folder"):
                maker.location("shards@disk")
            assert not list((tmp_path / "data").glob("copy-*/tfrecord"))
        local = maker.location("shards@disk")
        assert not local.is_remote
        assert images(local) == images(remote)
        again = Made(tmp_path / "data", **settings)
        again.location("shards@disk")
        assert again.notes == []
