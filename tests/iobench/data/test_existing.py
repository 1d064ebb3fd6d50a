"""Existing data: the images or the shards that a config names."""

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
    """A data set on a store and the folder that holds the same data set."""

    uri: str
    folder: Path
    options: StoreOptions


@pytest.mark.parametrize("location", ["missing", ".", "file"])
def test_shards_that_are_no_data_set(tmp_path: Path, location: str) -> None:
    """A missing location, another folder and a file are refused."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.shards: no complete split 'train'"):
        check_existing_data(DataSettings(shards=str(tmp_path / location)))


def test_a_source_without_images(tmp_path: Path) -> None:
    """A source needs a folder with at least one image; without a source, images are drawn."""
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
    """A missing bucket and a prefix without objects are refused."""
    options = StoreOptions(endpoint_url=s3_server.url)
    with pytest.raises(ConfigError, match=r"data\.source: s3://no-such-one.*no such bucket"):
        check_existing_data(DataSettings(source="s3://no-such-one/photos", store=options))
    data_settings = DataSettings(source=f"s3://{bucket}/photos of mine", store=options)
    with pytest.raises(ConfigError, match=r"no files in 's3://.*/photos of mine'"):
        check_existing_data(data_settings)
    open_store(f"s3://{bucket}/photos of mine", options).put("a/b.jpg", b"bytes")
    check_existing_data(data_settings)


def test_folders_of_what_is_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only local folders are listed, and ``~`` is replaced by the home folder."""
    monkeypatch.setenv("HOME", "/home/me")
    settings = DataSettings(folder="~/made", shards="file:///data/shards", source="s3://bucket/p")
    expected = {"data": Path("/home/me/made"), "shards": Path("/data/shards")}
    assert local_folders(settings) == expected
    assert set(local_folders(DataSettings(source="photos"))) == {"data", "source"}
    assert expand_home("s3://bucket/~") == "s3://bucket/~"


class TestMount:
    """``data.mount``: a path that holds the same shards as a store."""

    @pytest.fixture
    def shards(self, tree: Path, tmp_path: Path, s3_server: MotoServer, bucket: str) -> Mounted:
        """Return a data set on S3 and the folder from which it was copied."""
        output = tmp_path / "made"
        config = {"source": str(tree), "output": str(output), "shard_size": "2MB"}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        options = StoreOptions(endpoint_url=s3_server.url)
        store = open_store(f"s3://{bucket}/out", options)
        for path in output.rglob("*"):
            if path.is_file():
                store.put(str(path.relative_to(output)), path.read_bytes())
        return Mounted(f"s3://{bucket}/out", output, options)

    def test_it_has_to_hold_the_same_output(self, shards: Mounted, tmp_path: Path) -> None:
        """The mount is read in place if it holds the data set of the store, and else refused."""
        on_store: dict[str, Any] = {"shards": shards.uri, "store": shards.options}
        folder = tmp_path / "data"
        settings = DataSettings(**on_store, mount=str(shards.folder), folder=str(folder))
        check_existing_data(settings)
        maker = DataMaker(settings, lambda: nullcontext(Location("", "empty")), lambda line: None)
        assert maker.location("shards@disk") == Location(str(shards.folder), "shards")
        assert maker.location("shards@s3").uri == shards.uri
        assert not folder.exists()
        assert local_folders(settings)["mount"] == shards.folder
        with pytest.raises(ConfigError, match=r"data\.mount: no complete split 'train'"):
            check_existing_data(DataSettings(**on_store, mount=str(tmp_path / "elsewhere")))
        manifest = shards.folder / "train.manifest.json"
        manifest.write_text(re.sub(r'("created": ")\d{4}', r"\g<1>1999", manifest.read_text()))
        with pytest.raises(ConfigError, match="holds another output than s3://"):
            check_existing_data(DataSettings(**on_store, mount=str(shards.folder)))

    @pytest.mark.parametrize("shards_at", [None, "/data/shards"])
    def test_it_is_of_shards_on_a_store(self, shards_at: str | None) -> None:
        """A mount is refused unless the shards are on a store."""
        with pytest.raises(ValidationError, match="path of shards on a store"):
            DataSettings(shards=shards_at, mount="/mnt/bucket/out")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of sharding 10 drawn images."""
    folder = tmp_path_factory.mktemp("made")
    draw_tree(folder / "photos", images=10, classes=2)
    photos, output = str(folder / "photos"), str(folder / "out")
    config = {"source": photos, "output": output, "image": {"size": 64}}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return folder / "out"


def test_a_manifest_says_how_shards_were_made(shards: Path, tmp_path: Path) -> None:
    """The run has images, seconds and workers; a manifest without seconds gives no run."""
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
def test_locations_without_a_manifest_have_no_run(location: Location) -> None:
    """Locations without a readable manifest have no run, and raise no error."""
    assert sharding_run(location) is None
    assert changed_shards({"shards@disk": "other"}, {"shards@disk": location}) == ""


def test_the_same_shards_made_again_are_the_same(shards: Path, tmp_path: Path) -> None:
    """Shards that were made again are accepted if they are equal, and named if they differ."""
    for name, size in (("same", 64), ("other", 32)):
        photos = str(shards.parent / "photos")
        config = {"source": photos, "output": str(tmp_path / name), "image": {"size": size}}
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
    original = Location(str(shards), "shards")
    same = Location(str(tmp_path / "same"), "shards")
    other = Location(str(tmp_path / "other"), "shards")
    fingerprints: dict[str, str] = {}
    assert changed_shards(fingerprints, {"a": original}) == ""
    assert changed_shards(fingerprints, {"a": same}) == ""
    message = changed_shards(fingerprints, {"b": original, "a": other})
    assert message.startswith(f"a ({tmp_path / 'other'}) were made anew")
    assert fingerprints["a"] == fingerprints["b"]
