"""Data by name: they are made once and used again, and half-made data are made again."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import ConfigError, DataprepError, StoreFull
from dataprep.reading.dataset import open_dataset
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from iobench.data import making
from iobench.data.data_summary import summarize_data
from iobench.data.making import DataMaker
from iobench.data.settings import DataSettings
from iobench.results.trial import Location
from iobench.servers.moto_server import MotoServer

DRAWN = {"images": 60, "classes": 2, "size": 256, "shard_size": "2MB"}
NAMES = (
    "shards@disk",
    "shards-1MB@disk",
    "files@disk",
    "originals@disk",
    "pixels@disk",
    "photos@disk",
)


def nowhere() -> Any:
    """Fail, for tests in which no store may be used."""
    raise AssertionError("no bucket is needed")


class NotedMaker:
    """A maker of data, and the notes that it wrote."""

    def __init__(
        self,
        folder: Path,
        bucket: Any = nowhere,
        formats: Any = None,
        **values: Any,
    ) -> None:
        self.notes: list[str] = []
        settings = DataSettings.model_validate({**DRAWN, "folder": str(folder), **values})
        self.maker = DataMaker(
            settings, lambda: nullcontext(bucket()), self.notes.append, lambda name: formats
        )

    def location(self, name: str) -> Location:
        """Return the location of the data with this name."""
        return self.maker.location(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all data of ``NAMES``, made once; tests only read it."""
    root = tmp_path_factory.mktemp("making") / "data"
    maker = NotedMaker(root)
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
    """Return a copy of ``folder``, which a test may change."""
    return Path(shutil.copytree(folder, tmp_path / "data"))


def images(location: Location) -> list[tuple[str, str]]:
    """Return the class and the SHA-256 of each image, sorted; classes are written as by folders."""
    if location.holds == "files":
        paths = [path for path in Path(location.uri).rglob("*") if path.is_file()]
        encoded = [(path.parent.name, path.read_bytes()) for path in paths]
    else:
        dataset = open_dataset(location.uri, location.split, options=location.store)
        encoded = [(f"{sample.label:06d}", bytes(sample.image)) for sample in dataset]
    return sorted((name, hashlib.sha256(data).hexdigest()) for name, data in encoded)


def images_on_store(location: Location) -> list[tuple[str, str]]:
    """Return the same for files or shards on a store."""
    if location.holds == "shards":
        return images(location)
    store = open_store(location.uri, location.store)
    encoded = [(info.key.split("/")[0], store.get(info.key)) for info in store.list()]
    return sorted((name, hashlib.sha256(data).hexdigest()) for name, data in encoded)


def change_times_ns(folder: Path) -> dict[str, int]:
    """Return the time of the last change of each file, in nanoseconds."""
    return {str(p): p.stat().st_mtime_ns for p in sorted(folder.rglob("*")) if p.is_file()}


class TestMade:
    """Data that are made from drawn images."""

    def test_made_data_are_used_again(self, folder: Path) -> None:
        """A second maker writes neither notes nor files."""
        before = change_times_ns(folder)
        again = NotedMaker(folder)
        for name in NAMES:
            again.location(name)
        assert again.location("shards-2MB@disk") == again.location("shards@disk")
        assert again.notes == []
        assert change_times_ns(folder) == before

    def test_shards_of_two_sizes_hold_the_same_images(self, folder: Path) -> None:
        """Smaller shards hold the same images in more files."""
        maker = NotedMaker(folder)
        large, small = maker.location("shards@disk"), maker.location("shards-1MB@disk")
        assert large.uri != small.uri
        assert images(large) == images(small)
        counts = []
        for location in (small, large):
            with open_dataset(location.uri, location.split) as dataset:
                counts.append(len(dataset.manifest.formats["tfrecord"].shards))
                assert len(dataset) == 60
                assert set(dataset.manifest.formats) == {"tfrecord", "recordio"}
        assert counts[0] > counts[1]

    def test_other_sides_are_shards_of_their_own(self, copied: Path) -> None:
        """A name with a side gives resized images, which a config with that size finds again."""
        maker = NotedMaker(copied)
        small = maker.location("shards-64px@disk")
        assert maker.notes == ["sharding at 2 MB"]
        with open_dataset(small.uri, small.split) as dataset:
            sides = {min(sample.width, sample.height) for sample in dataset}
            assert max(sides) == 64  # Smaller images are not enlarged.
            assert len(dataset) == 60
        assert NotedMaker(copied, size=64).location("shards@disk") == small
        assert maker.location("shards-256px@disk") == maker.location("shards@disk")
        with pytest.raises(ConfigError, match=r"images of other sizes are made from data\.source"):
            NotedMaker(copied, shards=small.uri).location("shards-128px@disk")

    def test_originals_are_the_photos_in_shards(self, folder: Path) -> None:
        """Originals hold the photos byte by byte, whatever the size of other shards is."""
        maker = NotedMaker(folder)
        photos, originals = maker.location("photos@disk"), maker.location("originals@disk")
        photo_digests = sorted(digest for _, digest in images(photos))
        assert sorted(digest for _, digest in images(originals)) == photo_digests
        assert maker.location("originals-2MB@disk") == originals
        shards, pixels = maker.location("shards@disk"), maker.location("pixels@disk")
        assert images(originals) != images(shards)
        # Originals do not depend on the size to which other images are resized.
        assert NotedMaker(folder, size=64).location("originals@disk") == originals
        assert (pixels.holds, pixels.decoded, shards.decoded) == ("shards", True, False)

    @pytest.mark.parametrize("changed", [{"seed": 1}, {"size": 64}, {"quality": 50}])
    def test_other_settings_are_other_data(self, folder: Path, changed: dict[str, Any]) -> None:
        """Data that were made with other settings are not used."""
        plans: list[str] = []

        class Planned(DataMaker):
            def _make_once(self, key: str, note: str, make: Any) -> Path:
                plans.append(key)
                return folder / key

        for values in ({}, changed):
            settings = DataSettings.model_validate({**DRAWN, "folder": str(folder), **values})
            Planned(settings, nowhere, print).location("shards@disk")
        assert plans[0] != plans[1]


def test_image_files_are_named_by_their_content(tmp_path: Path) -> None:
    """Images of PNG and WebP shards become files with these endings, which the loaders read."""
    photos = draw_tree(tmp_path / "photos", images=6, classes=2).root
    for encoding in ("png", "webp"):
        config = {
            "source": str(photos),
            "output": str(tmp_path / encoding),
            "image": {"mode": "exact", "size": 32, "encoding": encoding},
        }
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        maker = NotedMaker(tmp_path / "data", shards=str(tmp_path / encoding))
        location = maker.location("files@disk")
        files = [path for path in Path(location.uri).rglob("*") if path.is_file()]
        assert {path.suffix for path in files} == {f".{encoding}"}
        assert summarize_data(location, "files").samples == len(files) > 0


def interrupted(folder: Path) -> None:
    """Run a maker that is interrupted halfway through writing files."""
    write_image_files = making.write_image_files

    def half(source: Location, dest: Path) -> None:
        write_image_files(source, dest)
        next(path for path in dest.rglob("*.jpg")).unlink()
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(making, "write_image_files", half)
        with pytest.raises(KeyboardInterrupt):
            NotedMaker(folder).location("files@disk")


class TestInterrupted:
    """Data that are incomplete."""

    def test_half_made_data_are_made_anew(self, copied: Path) -> None:
        """Incomplete and removed data are made again, also if their marker is there."""
        files = Path(NotedMaker(copied).location("files@disk").uri)
        marker = files.with_name(f"{files.name}.complete")
        assert marker.exists()
        shutil.rmtree(files)
        interrupted(copied)
        assert not marker.exists()
        maker = NotedMaker(copied)
        location = maker.location("files@disk")
        assert maker.notes == ["writing the images of the shards as files"]
        assert images(location) == images(maker.location("shards@disk"))


@pytest.mark.parametrize("form", ["files", "pixels"])
class TestUnpacked:
    """Images of shards that are written as files or as pixels."""

    def test_too_little_room_is_an_error_before_the_first_byte(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        """The message has the size, the place and what to do, and nothing is written."""
        shards = NotedMaker(folder).location("shards@disk")
        written = NotedMaker(folder).location(f"{form}@disk")
        needed_bytes = sum(path.stat().st_size for path in Path(written.uri).rglob("*.*"))
        monkeypatch.setattr(LocalStore, "free_bytes", lambda self: needed_bytes // 2)
        data = tmp_path / "data"
        match = rf"{form}: about .+ would be written to {data}/.*: set another data\.folder"
        with pytest.raises(StoreFull, match=match):
            NotedMaker(data, shards=shards.uri).location(f"{form}@disk")
        assert [path for path in data.rglob("*") if path.suffix != ".lock"] == []

    def test_no_shard_is_held_whole(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        """Single records are read, two at a time on two CPUs."""
        shards = NotedMaker(folder).location("shards-1MB@disk")
        read, numbers, both = LocalStore.get_versioned, itertools.count(), threading.Barrier(2)

        def read_record(store: Any, key: str, offset: int = 0, length: int | None = None) -> Any:
            if key.startswith("tfrecord/"):
                assert length is not None
                if next(numbers) < 2:
                    both.wait(10)
            return read(store, key, offset, length)

        with monkeypatch.context() as patched:
            patched.setattr("os.sched_getaffinity", lambda process: {0, 1})
            patched.setattr(LocalStore, "get_versioned", read_record)
            location = NotedMaker(tmp_path / "data", shards=shards.uri).location(f"{form}@disk")
        assert len(images(location)) == 60


class TestGiven:
    """Data of the user: an output of ``dataprep shard``, or class folders."""

    def test_shards_are_read_where_they_are(self, folder: Path, tmp_path: Path) -> None:
        """Other sizes and photos need a source; files of the images are written elsewhere."""
        shards = NotedMaker(folder).location("shards@disk")
        before = change_times_ns(folder)
        maker = NotedMaker(tmp_path / "data", shards=shards.uri)
        assert maker.location("shards@disk") == shards
        for name in ("shards-4MB@disk", "photos@disk", "originals@disk"):
            with pytest.raises(ConfigError, match=r"data\.source"):
                maker.location(name)
        assert not (tmp_path / "data").exists()
        files = maker.location("files@disk")
        assert Path(files.uri).is_relative_to(tmp_path)
        assert images(files) == images(shards)
        assert change_times_ns(folder) == before

    def test_class_folders_are_sharded(self, tree: Path, tmp_path: Path) -> None:
        """Images keep the classes of their folders."""
        maker = NotedMaker(tmp_path / "data", source=str(tree), size=64)
        assert maker.location("photos@disk").uri == str(tree)
        shards = images(maker.location("shards@disk"))
        assert len(shards) == 120
        assert {name for name, _ in shards} == {f"{label:06d}" for label in range(6)}
        assert maker.notes == ["sharding at 2 MB"]

    @pytest.mark.parametrize("values", [{"source": "missing"}, {"shards": "missing"}])
    def test_missing_data(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str]
    ) -> None:
        """The error names the missing data, and no marker is left."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DataprepError, match="missing"):
            NotedMaker(tmp_path / "data", **values).location("files@disk")
        assert not list(tmp_path.rglob("*.complete"))


class TestRemote:
    """Data on a store."""

    @pytest.fixture
    def store(self, s3_server: MotoServer, bucket: str) -> Location:
        """Return the location on S3 to which data are copied."""
        options = StoreOptions(endpoint_url=s3_server.url)
        return Location(f"s3://{bucket}/some/prefix/", "empty", options)

    @pytest.mark.parametrize("name", [name.replace("@disk", "@s3") for name in NAMES[:-1]])
    def test_copies_hold_the_same(self, folder: Path, store: Location, name: str) -> None:
        """The copy has each object of the local data below its own prefix."""
        maker = NotedMaker(folder, lambda: store)
        remote, local = maker.location(name), maker.location(name.replace("@s3", "@disk"))
        assert remote.uri.startswith(store.uri + "iobench-data/")
        assert (remote.holds, remote.decoded) == (local.holds, local.decoded)
        assert remote.is_remote
        copies, originals = open_store(remote.uri, remote.store), open_store(local.uri)
        content = {info.key: copies.get(info.key) for info in copies.list()}
        assert content == {info.key: originals.get(info.key) for info in originals.list()}

    def test_equal_objects_are_not_copied_again(
        self, folder: Path, store: Location, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only objects that are missing or have another size are copied."""
        first = NotedMaker(folder, lambda: store).location("files@s3")
        there = open_store(first.uri, first.store)
        keys = sorted(info.key for info in there.list())
        there.delete(keys[0])
        there.put(keys[1], b"short")
        copied: list[str] = []
        put = type(there).put

        def counting(self: Any, key: str, *arguments: Any, **options: Any) -> Any:
            copied.append(key)
            return put(self, key, *arguments, **options)

        monkeypatch.setattr(type(there), "put", counting)
        NotedMaker(folder, lambda: store).location("files@s3")
        assert sorted(copied) == keys[:2]

    @pytest.mark.parametrize("name", ["shards@s3", "files@s3"])
    def test_no_object_is_held_whole(
        self, folder: Path, store: Location, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Files are mapped instead of read into memory, and two are sent at a time."""
        maker = NotedMaker(folder, lambda: store)
        local = maker.location(name.replace("@s3", "@disk"))
        put, numbers, both = S3Store.put, itertools.count(), threading.Barrier(2)

        def refused(self: LocalStore, key: str) -> bytes:
            raise AssertionError(f"{key} is read into memory")

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
        """One format is copied with its indexes, and a later run adds those of another."""

        def refused(self: S3Store, key: str) -> bytes:
            raise AssertionError(f"{key} is read into memory")

        remote = NotedMaker(folder, lambda: store).location("shards@s3")
        settings = {"shards": remote.uri, "store": remote.store.model_dump()}
        data = tmp_path / "data"
        monkeypatch.setattr(S3Store, "get", refused)
        folders: list[set[str]] = []
        for formats in ({""}, {"tfrecord"}, {"tfrecord", "recordio"}):
            maker = NotedMaker(data, formats=frozenset(formats), **settings)
            local = Path(maker.location("shards@disk").uri)
            paths = [path.relative_to(local) for path in local.rglob("*") if path.is_file()]
            folders.append({str(path.parent) for path in paths})
            assert bool(maker.notes) == (formats != {"tfrecord"})
        of_tfrecord = {".", "index/tfrecord", "tfrecord"}
        of_both = {*of_tfrecord, "index/recordio", "recordio"}
        assert folders == [of_tfrecord, of_tfrecord, of_both]
        for name in ("tfrecord", "recordio"):
            with open_dataset(local, format=name) as dataset:
                assert sum(1 for _ in dataset) == 60
        shutil.rmtree(local)
        maker = NotedMaker(data, formats=frozenset({"recordio"}), **settings)
        copy = Path(maker.location("shards@disk").uri)
        assert (copy / "recordio").exists()
        assert not (local / "tfrecord").exists()

    def test_copies_to_a_store_leave_other_formats_out(self, folder: Path, store: Location) -> None:
        """Formats that no trial reads from the store are not copied."""
        remote = NotedMaker(folder, lambda: store, frozenset({"recordio"})).location("shards@s3")
        copies = open_store(remote.uri, remote.store).list()
        names = {info.key.partition("/")[0] for info in copies}
        assert "recordio" in names
        assert "tfrecord" not in names

    def test_shards_on_a_store_are_read_there(
        self, folder: Path, store: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are copied once if a trial reads them from the disk, and if there is room."""
        remote = NotedMaker(folder, lambda: store).location("shards@s3")
        settings = {"shards": remote.uri, "store": remote.store.model_dump()}
        maker = NotedMaker(tmp_path / "data", **settings)
        assert maker.location("shards@s3") == remote
        with monkeypatch.context() as full:
            full.setattr(LocalStore, "free_bytes", lambda self: 1000)
            with pytest.raises(StoreFull, match=r"1 kB are free: set another data\.folder"):
                maker.location("shards@disk")
            assert not list((tmp_path / "data").glob("copy-*/tfrecord"))
        local = maker.location("shards@disk")
        assert not local.is_remote
        assert images(local) == images(remote)
        again = NotedMaker(tmp_path / "data", **settings)
        again.location("shards@disk")
        assert again.notes == []
