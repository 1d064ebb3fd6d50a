"""Existing data: the images or shards that a config names."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions, open_store
from iobench.data.existing import (
    changed_shards,
    check_existing_data,
    expand_home,
    local_folders,
    sharding_run,
)
from iobench.data.making import DataMaker
from iobench.data.settings import DataSettings
from iobench.results.trial import Location
from iobench.servers.moto_server import MotoServer


class Mounted(NamedTuple):
    """One output, by both of its ways."""

    uri: str
    folder: Path
    options: StoreOptions


@pytest.mark.parametrize("location", ["missing", ".", "file"])
def test_shards_that_are_no_data_set(tmp_path: Path, location: str) -> None:
    """Neither a location that is not there, nor a folder or a file of something else."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.shards: no complete split 'train'"):
        check_existing_data(DataSettings(shards=str(tmp_path / location)))


def test_a_source_without_images(tmp_path: Path) -> None:
    """No folder, no file, or texts alone; the first image is enough. Nothing given is drawn."""
    check_existing_data(DataSettings())
    folder = tmp_path / "photos"
    file = folder / "class" / "readme.txt"
    with pytest.raises(ConfigError, match=r"data\.source: no folder"):
        check_existing_data(DataSettings(source=str(folder)))
    file.parent.mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"^data\.source: no files in .*$"):
        check_existing_data(DataSettings(source=str(folder)))
    file.write_text("no image")
    for source in (file, folder):
        with pytest.raises(ConfigError, match=r"^data\.source: no (class )?folder"):
            check_existing_data(DataSettings(source=str(source)))
    (folder / "class" / "image.jpg").touch()
    check_existing_data(DataSettings(source=str(folder)))


def test_a_source_on_a_store_is_asked_for_too(s3_server: MotoServer, bucket: str) -> None:
    """A bucket that is not there, and a prefix below which nothing lies."""
    options = StoreOptions(endpoint_url=s3_server.url)
    with pytest.raises(ConfigError, match=r"data\.source: s3://no-such-one.*no such bucket"):
        check_existing_data(DataSettings(source="s3://no-such-one/photos", store=options))
    data_settings = DataSettings(source=f"s3://{bucket}/photos of mine", store=options)
    with pytest.raises(ConfigError, match=r"no files in 's3://.*/photos of mine'"):
        check_existing_data(data_settings)
    open_store(f"s3://{bucket}/photos of mine", options).put("a/b.jpg", b"bytes")
    check_existing_data(data_settings)


def test_folders_of_what_is_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are none; the home is followed, as everywhere."""
    monkeypatch.setenv("HOME", "/home/me")
    data_settings = DataSettings(
        folder="~/made", shards="file:///data/shards", source="s3://bucket/p"
    )
    assert local_folders(data_settings) == {
        "data": Path("/home/me/made"),
        "shards": Path("/data/shards"),
    }
    assert set(local_folders(DataSettings(source="photos"))) == {"data", "source"}
    assert expand_home("s3://bucket/~") == "s3://bucket/~"


class TestMount:
    """The same shards as files."""

    @pytest.fixture
    def shards(self, tree: Path, tmp_path: Path, s3_server: MotoServer, bucket: str) -> Mounted:
        """An output behind HTTP, and where it is a folder."""
        made = tmp_path / "made"
        config = {"source": str(tree), "output": str(made), "shard_size": "2MB"}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        options = StoreOptions(endpoint_url=s3_server.url)
        store = open_store(f"s3://{bucket}/out", options)
        for path in (path for path in made.rglob("*") if path.is_file()):
            store.put(str(path.relative_to(made)), path.read_bytes())
        return Mounted(f"s3://{bucket}/out", made, options)

    def test_it_has_to_hold_the_same_output(self, shards: Mounted, tmp_path: Path) -> None:
        """Not another one, nor none; names on a disk are read there, and nothing is copied."""
        given: dict[str, Any] = {"shards": shards.uri, "store": shards.options}
        folder = tmp_path / "data"
        settings = DataSettings(**given, mount=str(shards.folder), folder=str(folder))
        check_existing_data(settings)
        maker = DataMaker(settings, lambda: nullcontext(Location("", "empty")), lambda line: None)
        assert maker.location("shards@disk") == Location(str(shards.folder), "shards")
        assert maker.location("shards@s3").uri == shards.uri
        assert not folder.exists()
        assert local_folders(settings)["mount"] == shards.folder
        with pytest.raises(ConfigError, match=r"data\.mount: no complete split 'train'"):
            check_existing_data(DataSettings(**given, mount=str(tmp_path / "elsewhere")))
        manifest = shards.folder / "train.manifest.json"
        manifest.write_text(re.sub(r'("created": ")\d{4}', r"\g<1>1999", manifest.read_text()))
        with pytest.raises(ConfigError, match="holds another output than s3://"):
            check_existing_data(DataSettings(**given, mount=str(shards.folder)))

    @pytest.mark.parametrize("shards_at", [None, "/data/shards"])
    def test_it_is_of_shards_on_a_store(self, shards_at: str | None) -> None:
        """What is a path already needs no other."""
        with pytest.raises(ValidationError, match="path of shards on a store"):
            DataSettings(shards=shards_at, mount="/mnt/bucket/out")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images, sharded."""
    folder = tmp_path_factory.mktemp("made")
    draw_tree(folder / "photos", images=10, classes=2)
    photos, output = str(folder / "photos"), str(folder / "out")
    requested = {"source": photos, "output": output, "image": {"size": 64}}
    dataprep.shard(dataprep.ShardConfig.model_validate(requested))
    return folder / "out"


def test_a_manifest_says_how_shards_were_made(shards: Path, tmp_path: Path) -> None:
    """Images, time and workers; without a time, as one of another program would be, nothing."""
    run = sharding_run(Location(str(shards), "shards"))
    assert run is not None
    assert run.samples == 10
    assert 0 < run.reencoded <= 10
    assert run.seconds > 0
    assert run.workers is not None
    assert run.workers >= 1
    content = json.loads((shards / "train.manifest.json").read_text())
    content["run"].pop("seconds")
    (tmp_path / "train.manifest.json").write_text(json.dumps(content))
    assert sharding_run(Location(str(tmp_path), "shards")) is None


@pytest.mark.parametrize(
    "location",
    [
        Location("/nowhere", "shards"),
        Location("/nowhere", "files"),
        Location("s3://bucket/out", "shards"),
        Location("/nowhere", "shards", decoded=True),
    ],
    ids=["missing", "files", "remote", "decoded"],
)
def test_of_other_locations_nothing_is_known(location: Location) -> None:
    """No error comes of it."""
    assert sharding_run(location) is None
    assert changed_shards({"shards@disk": "other"}, {"shards@disk": location}) == ""


def test_the_same_shards_made_again_are_the_same(shards: Path, tmp_path: Path) -> None:
    """Others are others."""
    for name, size in (("same", 64), ("other", 32)):
        photos = str(shards.parent / "photos")
        requested = {"source": photos, "output": str(tmp_path / name), "image": {"size": size}}
        dataprep.shard(dataprep.ShardConfig.model_validate(requested))
    kept: dict[str, str] = {}
    assert changed_shards(kept, {"a": Location(str(shards), "shards")}) == ""
    assert changed_shards(kept, {"a": Location(str(tmp_path / "same"), "shards")}) == ""
    other = {"b": Location(str(shards), "shards"), "a": Location(str(tmp_path / "other"), "shards")}
    assert changed_shards(kept, other).startswith(f"a ({tmp_path / 'other'}) were made anew")
    assert kept["a"] == kept["b"]
