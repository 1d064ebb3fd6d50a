"""Looking into data on S3 over HTTP, with every request and every byte counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

import dataprep
from dataprep.cli.main import app
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.s3 import S3Store
from iobench.faults import FaultProxy
from iobench.s3_server import MotoServer

pytestmark = pytest.mark.slow

JOB = {"image": {"size": 256}, "shard_size": "1.2MB", "dask": {"workers": 2, "processes": False}}


class Remote(NamedTuple):
    """An output on S3, and what stands between it and its readers."""

    uri: str
    options: StoreOptions
    proxy: FaultProxy

    def asked(self) -> list[tuple[str, str, int]]:
        """Method, key and bytes of each request since the last call; listings without a key."""
        found = [
            (request.method, self._key(request.path), request.response_bytes)
            for request in self.proxy.requests
        ]
        self.proxy.clear()
        return found

    def _key(self, path: str) -> str:
        return unquote(urlsplit(path).path).removeprefix(f"/{self.uri.removeprefix('s3://')}/")

    def inspect(self, target: str, *arguments: str) -> tuple[int, str]:
        """``dataprep inspect`` by way of the proxy: exit code and stdout."""
        command = ["inspect", target, "--endpoint-url", str(self.options.endpoint_url), *arguments]
        result = CliRunner().invoke(app, command)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout


@pytest.fixture
def remote(tree: Path, bucket: str, s3_server: MotoServer) -> Iterator[Remote]:
    """The drawn tree in both formats on S3."""
    uri = f"s3://{bucket}/out"
    config = {
        "source": str(tree),
        "output": uri,
        "format": ("tfrecord", "recordio"),
        "store": {"endpoint_url": s3_server.url},
        **JOB,
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    with FaultProxy(s3_server.url) as proxy:
        yield Remote(uri, StoreOptions(endpoint_url=proxy.url), proxy)


def test_a_summary_reads_two_objects(remote: Remote) -> None:
    """Of a split that is named, manifest and table are read; nothing is listed."""
    code, out = remote.inspect(remote.uri, "--split", "train")
    assert code == 0
    assert out.startswith("train: 120 of 120 samples")
    read = [key for method, key, _ in remote.asked() if method == "GET"]
    assert sorted(read) == ["train.manifest.json", "train.samples.parquet"]


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_a_record_is_one_range_request(remote: Remote, form: str, tmp_path: Path) -> None:
    """Of the shards, one request gets exactly the record's bytes."""
    arguments = ("--split", "train", "--format", form, "--record", "77", "--json")
    code, out = remote.inspect(remote.uri, *arguments, "--save", str(tmp_path / "x.jpg"))
    found = json.loads(out)
    shards = [request for request in remote.asked() if request[1].startswith(f"{form}/")]
    assert code == 0
    assert shards == [("GET", found["uri"].removeprefix(f"{remote.uri}/"), found["length"])]
    image = dataprep.open(remote.uri, format=form, options=remote.options)[77].image
    assert (tmp_path / "x.jpg").read_bytes() == image


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_a_table_reads_its_shard_once(remote: Remote, form: str) -> None:
    """A shard is read in a few large ranges, which overlap by one record at most."""
    dataset = dataprep.open(remote.uri, format=form, options=remote.options)
    shard = dataset.shards()[0]
    remote.asked()
    code, out = remote.inspect(f"{remote.uri}/{shard.key}", "--json")
    asked = remote.asked()
    found = json.loads(out)
    assert code == 0
    places = [(line["offset"], line["length"]) for line in found["records"]]
    assert places == [dataset.place(number)[1:] for number in shard.samples]
    assert {key for method, key, _ in asked if method == "GET"} == {shard.key}
    sizes = [size for method, _, size in asked if method == "GET"]
    assert len(sizes) <= 3
    assert sum(sizes) < 1.2 * shard.bytes


def test_a_contact_sheet_reads_its_images(remote: Remote, tmp_path: Path) -> None:
    """As many requests as there are images on it, each of its own record."""
    sheet = tmp_path / "sheet.png"
    code, _ = remote.inspect(remote.uri, "--contact-sheet", str(sheet), "--images", "7")
    shards = [r for r in remote.asked() if r[1].startswith("tfrecord/")]
    dataset = dataprep.open(remote.uri, options=remote.options)
    lengths = dataset.written["tfrecord_length"]
    assert code == 0
    assert sorted(size for _, _, size in shards) == sorted(
        int(lengths[(2 * i + 1) * 120 // 14]) for i in range(7)
    )


def test_leakage_reads_two_objects(remote: Remote) -> None:
    """Two tables are fetched, and nothing else."""
    store = open_store(remote.uri, remote.options)
    store.put("test.samples.parquet", store.get("train.samples.parquet"))
    remote.proxy.clear()
    command = ["verify", remote.uri, "--split", "train", "--against", "test", "--fail-on-leakage"]
    url = str(remote.options.endpoint_url)
    result = CliRunner().invoke(app, [*command, "--endpoint-url", url])
    assert result.exit_code == 1
    assert "leakage: 120 samples of train also in test" in result.stdout
    assert sorted(key for _, key, _ in remote.asked()) == [
        "test.samples.parquet",
        "train.samples.parquet",
    ]


def test_iteration_fetches_each_shard_once(remote: Remote) -> None:
    """One request a shard, some of them at a time, and none for the table of samples.

    RecordIO without its check as well, which needs the table.
    """
    options: dict[str, Any] = {"format": "recordio", "check": False, "options": remote.options}
    with dataprep.open(remote.uri, **options) as dataset:
        remote.asked()
        assert sum(1 for _ in dataset) == 120
        asked = sorted((method, key) for method, key, _ in remote.asked())
        gets = [("GET", shard.key) for shard in dataset.shards()]
        looks = [("HEAD", "train.manifest.json")] * len(gets)  # whether it is still the one
        assert asked == sorted(gets + looks)


def test_nothing_there(remote: Remote, bucket: str) -> None:
    """A prefix without a data set, and a bucket that does not exist: exit code 2."""
    assert remote.inspect(f"s3://{bucket}/nothing/here") == (2, "")
    assert remote.inspect(f"s3://{bucket}-nope/x") == (2, "")


def test_a_closed_store_connects_again(remote: Remote) -> None:
    """Closing lets go of connections; the store itself stays of use."""
    store = open_store(remote.uri, remote.options)
    assert isinstance(store, S3Store)
    before = store.get("labels.json")
    client = store._client()
    store.close()
    assert store.get("labels.json") == before
    assert store._client() is not client
