"""Tests of iobench.data.given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

import dataprep
from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions, open_store
from iobench.data.given import expanded, local_folders, require_given
from iobench.data.making import Maker
from iobench.data.settings import DataSettings
from iobench.s3_server import MotoServer
from iobench.trial import Place


class Mounted(NamedTuple):
    """One output, by both of its ways."""

    uri: str
    folder: Path
    options: StoreOptions


def test_a_home_is_followed_in_paths_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address on a store has no home."""
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/shards") == "/home/me/shards"
    assert expanded("s3://bucket/~") == "s3://bucket/~"


def test_nothing_given_is_nothing_wrong() -> None:
    """It is drawn."""
    require_given(DataSettings())


@pytest.mark.parametrize("place", ["missing", ".", "file"])
def test_shards_that_are_no_data_set(tmp_path: Path, place: str) -> None:
    """Neither a place that is not there, nor a folder or a file of something else."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.shards: no complete split 'train'"):
        require_given(DataSettings(shards=str(tmp_path / place)))


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_source_that_is_no_folder(tmp_path: Path, place: str) -> None:
    """It is refused before anything is made of it."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.source: no folder"):
        require_given(DataSettings(source=str(tmp_path / place)))


def test_a_source_with_nothing_in_it(tmp_path: Path) -> None:
    """Folders without a file are nothing, nor are texts; the first image is enough."""
    (tmp_path / "class").mkdir()
    with pytest.raises(ConfigError, match=r"^data\.source: no files in .*$"):
        require_given(DataSettings(source=str(tmp_path)))
    (tmp_path / "class" / "readme.txt").write_text("no image")
    with pytest.raises(ConfigError, match=r"^data\.source: no class folders with images in"):
        require_given(DataSettings(source=str(tmp_path)))
    (tmp_path / "class" / "image.jpg").touch()
    require_given(DataSettings(source=str(tmp_path)))


def test_a_source_on_a_store_is_asked_for_too(s3_server: MotoServer, bucket: str) -> None:
    """A bucket that is not there, and a prefix below which nothing lies."""
    options = StoreOptions(endpoint_url=s3_server.url)
    with pytest.raises(ConfigError, match=r"data\.source: s3://no-such-one.*no such bucket"):
        require_given(DataSettings(source="s3://no-such-one/photos", store=options))
    given = DataSettings(source=f"s3://{bucket}/photos of mine", store=options)
    with pytest.raises(ConfigError, match=r"no files in 's3://.*/photos of mine'"):
        require_given(given)
    open_store(f"s3://{bucket}/photos of mine", options).put("a/b.jpg", b"bytes")
    require_given(given)


def test_folders_of_what_is_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are none; the home is followed, as everywhere."""
    monkeypatch.setenv("HOME", "/home/me")
    given = DataSettings(folder="~/made", shards="file:///data/shards", source="s3://bucket/p")
    assert local_folders(given) == {
        "data": Path("/home/me/made"),
        "shards": Path("/data/shards"),
    }
    assert set(local_folders(DataSettings(source="photos"))) == {"data", "source"}


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
        """Not another one, nor none."""
        given: dict[str, Any] = {"shards": shards.uri, "store": shards.options}
        require_given(DataSettings(**given, mount=str(shards.folder)))
        with pytest.raises(ConfigError, match=r"data\.mount: no complete split 'train'"):
            require_given(DataSettings(**given, mount=str(tmp_path / "elsewhere")))
        manifest = shards.folder / "train.manifest.json"
        manifest.write_text(re.sub(r'("created": ")\d{4}', r"\g<1>1999", manifest.read_text()))
        with pytest.raises(ConfigError, match="holds another output than s3://"):
            require_given(DataSettings(**given, mount=str(shards.folder)))

    def test_names_on_a_disk_are_read_there(self, shards: Mounted, tmp_path: Path) -> None:
        """Nothing is copied."""
        settings = DataSettings(
            shards=shards.uri,
            store=shards.options,
            mount=str(shards.folder),
            folder=str(tmp_path / "data"),
        )
        maker = Maker(settings, lambda: Place("", "empty"), lambda line: None)
        assert maker.place("shards@disk") == Place(str(shards.folder), "shards")
        assert maker.place("shards@s3").uri == shards.uri
        assert not (tmp_path / "data").exists()
        assert local_folders(settings)["mount"] == shards.folder

    @pytest.mark.parametrize("shards_at", [None, "/data/shards"])
    def test_it_is_of_shards_on_a_store(self, shards_at: str | None) -> None:
        """What is a path already needs no other."""
        with pytest.raises(ValidationError, match="where shards on a store are files"):
            DataSettings(shards=shards_at, mount="/mnt/bucket/out")
