"""What is there is found, nothing is made, and what cannot be looked at is a word, not an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from dataprep.sample import draw_tree
from dataprep.stores import StoreOptions
from iobench.config import BenchConfig
from iobench.data.making import Maker
from iobench.forecast import Facts
from iobench.forecast.bounds import exactly
from iobench.plan import trials
from iobench.stored import stored
from iobench.survey import another_server, survey
from iobench.trial import Place
from tests.commandline import files
from tests.iobench.small_runs import loaders

S3 = [{"label": "s3", "uri": "s3://bucket/x"}]


def surveyed(**values: Any) -> Facts:
    """What a config would find."""
    config = BenchConfig.model_validate({"repeats": 1, **values})
    return survey(config, trials(config))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server and no region of the environment."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_made(tmp_path: Path) -> None:
    """Estimates of what will be drawn, and of what is made of it."""
    data = {"folder": str(tmp_path / "data"), "images": 50}
    found = surveyed(data=data, loaders=loaders("raw", data=["shards@disk", "files@s3"]))
    assert set(found.data) == {"photos@disk", "shards@disk", "files@disk", "files@s3"}
    assert found.photographs is not None
    assert found.photographs.drawn
    assert found.data["shards@disk"].samples == exactly(50)
    assert found.data["files@s3"].store == "bucket"
    assert found.stores["bucket"].server == "the run's own server"
    assert not any(each.made for each in found.data.values())
    assert list(tmp_path.iterdir()) == []


def test_what_was_made_before_is_counted(small_data: dict[str, Any]) -> None:
    """By its manifest, to the byte."""
    config = BenchConfig.model_validate({"data": small_data})
    maker = Maker(config.data, lambda: Place("", "empty"), lambda line: None)
    shards = stored(maker.place("shards@disk"), "tfrecord")
    found = surveyed(data=small_data, loaders=loaders("raw"))
    there = found.data["shards@disk"]
    assert there.made
    assert (there.samples, there.bytes) == (exactly(shards.samples), exactly(shards.bytes))
    folder = Path(maker.place("shards@disk").uri)
    every = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in every) in there.all_bytes
    assert len(every) in there.all_objects


def test_files_of_shards_that_are_there(small_data: dict[str, Any], tmp_path: Path) -> None:
    """Given or made: as many as there are samples, of at most as many bytes."""
    config = BenchConfig.model_validate({"data": small_data})
    maker = Maker(config.data, lambda: Place("", "empty"), lambda line: None)
    shards = maker.place("shards@disk")
    data = {"shards": shards.uri, "folder": str(tmp_path)}
    found = surveyed(data=data, loaders=loaders("raw", data=["files@disk"]))
    assert set(found.data) == {"shards@disk", "files@disk"}
    files_there = stored(maker.place("files@disk"), "files")
    assert found.data["files@disk"].samples == exactly(files_there.samples)
    assert files_there.bytes in found.data["files@disk"].bytes
    assert not found.data["files@disk"].made
    assert found.photographs is None


def test_a_source_is_listed(tmp_path: Path) -> None:
    """How many images, of how many bytes; they are not drawn."""
    tree = draw_tree(tmp_path / "photos", images=6, classes=2)
    data = {"folder": str(tmp_path / "data"), "source": str(tree.root)}
    found = surveyed(data=data, loaders=loaders("raw", data=["photos@disk"]))
    assert found.photographs is not None
    assert (found.photographs.count, found.photographs.bytes) == (exactly(6), exactly(tree.bytes))
    assert found.data["photos@disk"].made
    assert not (tmp_path / "data").exists()


def test_a_far_source_is_listed_where_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a dry run, or where copies of it go to Amazon's S3; else a run does not wait for it."""
    listed: list[str] = []

    def look(uri: str, options: Any) -> Any:
        listed.append(uri)
        raise ConfigError("enough")

    monkeypatch.setattr("iobench.survey.open_source", look)
    monkeypatch.setattr("iobench.data.making.ImageFolder", look)
    data: dict[str, Any] = {"source": "s3://far/photos"}
    values = {"data": data, "loaders": loaders("raw", data=["files@s3"])}
    config = BenchConfig.model_validate({"repeats": 1, **values})
    survey(config, trials(config), thorough=False)
    assert listed == []
    survey(config, trials(config))
    assert listed == ["s3://far/photos"]
    data["bucket"] = {"uri": "s3://bucket/x"}
    config = BenchConfig.model_validate({"repeats": 1, **values})
    survey(config, trials(config), thorough=False)
    assert len(listed) == 2


def test_what_cannot_be_looked_at_is_said(tmp_path: Path) -> None:
    """The rest is predicted all the same."""
    data = {"folder": str(tmp_path), "source": str(tmp_path / "nowhere")}
    found = surveyed(data=data, loaders=loaders("raw"))
    assert "data.source could not be listed" in " ".join(found.problems)
    assert found.data["shards@disk"].bytes.high is None


def test_amazon_is_told_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the endpoint that boto3 would go to; its price by region and class."""
    amazon = surveyed(object_store={"targets": S3}).stores["store/s3"]
    assert amazon.is_amazon
    assert amazon.price is not None
    assert "us-east-1, STANDARD" in amazon.prices
    url = "http://127.0.0.1:9"
    told = [{**S3[0], "store": {"endpoint_url": url}}]
    assert surveyed(object_store={"targets": told}).stores["store/s3"].server == url
    own = [{"label": "s3", "uri": "local"}]
    assert not surveyed(object_store={"targets": own}).stores["store/s3"].is_amazon
    glacier = [{**S3[0], "store": {"storage_class": "GLACIER", "region": "us-east-1"}}]
    assert surveyed(object_store={"targets": glacier}).stores["store/s3"].price is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    assert surveyed(object_store={"targets": S3}).stores["store/s3"].server == url
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hunter2@minio:9000")
    found = surveyed(object_store={"targets": S3}).stores["store/s3"]
    assert found.server == "http://***@minio:9000"  # the forecast is kept in the result


def test_a_profile_that_is_not_there_is_said() -> None:
    """And what it costs is then unknown, as a bill would be Amazon's."""
    odd = [{**S3[0], "store": {"profile": "nobody"}}]
    found = surveyed(object_store={"targets": odd})
    assert "nobody" in " ".join(found.problems)
    assert found.stores["store/s3"].is_amazon


def test_prices_of_ones_own(tmp_path: Path) -> None:
    """From the file that is named; none there is a wrong request."""
    file = tmp_path / "prices.yaml"
    price = "{put_per_1000: 9, get_per_1000: 1, gb_month: 0}"
    file.write_text(f"as_of: 2026\nsource: me\ns3: {{us-east-1: {{STANDARD: {price}}}}}\n")
    found = surveyed(object_store={"targets": S3}, prices=str(file)).stores["store/s3"]
    assert found.price is not None
    assert found.price.put_per_1000 == 9
    with pytest.raises(ConfigError, match="cannot read config file"):
        surveyed(object_store={"targets": S3}, prices=str(tmp_path / "none.yaml"))


def test_only_what_trials_use_is_looked_at(tmp_path: Path) -> None:
    """A loader without data needs none."""
    data = {"source": str(tmp_path / "nowhere"), "folder": str(tmp_path)}
    found = surveyed(data=data, loaders=loaders("null"))
    assert (dict(found.data), found.stores) == ({}, {})
    assert files(tmp_path) == set()


def test_other_forms_are_found_and_estimated(small_data: dict[str, Any], tmp_path: Path) -> None:
    """Shards of originals and of pixels are counted where they lie; else they are estimated."""
    names = ["originals@disk", "pixels@disk"]
    grids = loaders("raw", data=names)
    unmade = surveyed(data={**small_data, "folder": str(tmp_path / "none")}, loaders=grids)
    maker = Maker(
        BenchConfig.model_validate({"data": small_data}).data,
        lambda: Place("", "empty"),
        lambda line: None,
    )
    there = {name: stored(maker.place(name), "tfrecord") for name in names}
    made = surveyed(data=small_data, loaders=grids)
    for name in names:
        assert made.data[name].made
        assert made.data[name].bytes == exactly(there[name].bytes)
        assert not unmade.data[name].made
        assert there[name].bytes in unmade.data[name].bytes


def test_originals_of_given_shards_cannot_be_had(small_data: dict[str, Any]) -> None:
    """Without a source there is nothing to look at; their pixels are of these shards."""
    data = {"shards": "/nowhere", "folder": str(small_data["folder"])}
    found = surveyed(data=data, loaders=loaders("raw", data=["originals@disk", "pixels@disk"]))
    assert set(found.data) == {"shards@disk", "pixels@disk"}


def test_gpus_are_counted_where_a_loop_wants_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for them takes a while."""
    monkeypatch.setattr("iobench.survey.gpus", lambda: [{"name": "NVIDIA H100"}] * 8)
    data = {"folder": str(tmp_path / "data"), "images": 50}
    assert surveyed(data=data, training=[{"devices": "all"}]).gpus == 8
    assert surveyed(data=data, training=[{"devices": 4}]).gpus == 0


def test_another_server_is_told_from_amazons(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the endpoint that boto3 would go to, whoever names it."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    options = StoreOptions(region="eu-west-1")
    assert another_server("s3://bucket/x", options) is None
    told = StoreOptions(endpoint_url="https://minio.amazonaws.com.example:9000")
    assert another_server("s3://bucket", told) == told.endpoint_url
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    assert another_server("s3://bucket", options) == "http://127.0.0.1:9"
