"""``inspect`` sends few requests to S3 and reads few bytes; a proxy counts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

import dataprep
from dataprep.stores import StoreOptions, open_store
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.moto_server import MotoServer
from tests.commandline import in_process, make

pytestmark = pytest.mark.slow


class Remote(NamedTuple):
    """An output on S3, and the proxy between it and its readers."""

    uri: str
    options: StoreOptions
    proxy: FaultProxy

    def requests_received(self) -> list[tuple[str, str, int]]:
        """Method, key and bytes of each request since the last call. Listings have no key."""
        requests = [
            (request.method, self._key(request.path), request.response_bytes)
            for request in self.proxy.requests
        ]
        self.proxy.clear()
        return requests

    def _key(self, path: str) -> str:
        """The key of an object in the output, from the path of a request."""
        return unquote(urlsplit(path).path).removeprefix(f"/{self.uri.removeprefix('s3://')}/")

    def inspect(self, target: str, *arguments: str) -> tuple[int, str]:
        """Run ``dataprep inspect`` through the proxy. Return its exit code and stdout."""
        url = str(self.options.endpoint_url)
        done = in_process("inspect", target, "--endpoint-url", url, *arguments)
        return done.code, done.out


@pytest.fixture
def remote(tree: Path, bucket: str, s3_server: MotoServer) -> Iterator[Remote]:
    """The drawn tree in both formats on S3."""
    uri = f"s3://{bucket}/out"
    endpoint = {"endpoint_url": s3_server.url}
    make(tree, uri, image={"size": 256}, store=endpoint)
    with FaultProxy(s3_server.url) as proxy:
        yield Remote(uri, StoreOptions(endpoint_url=proxy.url), proxy)


def test_a_summary_reads_two_objects(remote: Remote) -> None:
    """For a named split, only the manifest and the table are read, and nothing is listed."""
    code, out = remote.inspect(remote.uri, "--split", "train")
    assert code == 0
    assert out.startswith("train: 120 of 120 samples")
    read = [key for method, key, _ in remote.requests_received() if method == "GET"]
    assert sorted(read) == ["train.manifest.json", "train.samples.parquet"]


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_a_record_is_one_range_request(remote: Remote, form: str, tmp_path: Path) -> None:
    """A record is read by one request of exactly its bytes, and a sheet by one for each image."""
    arguments = ("--split", "train", "--format", form, "--record", "77", "--json")
    code, out = remote.inspect(remote.uri, *arguments, "--save", str(tmp_path / "x.jpg"))
    content = json.loads(out)
    shards = [
        request for request in remote.requests_received() if request[1].startswith(f"{form}/")
    ]
    assert code == 0
    assert shards == [("GET", content["uri"].removeprefix(f"{remote.uri}/"), content["length"])]
    dataset = dataprep.open(remote.uri, format=form, options=remote.options)
    assert (tmp_path / "x.jpg").read_bytes() == dataset[77].image
    remote.requests_received()
    sheet = ("--contact-sheet", str(tmp_path / "sheet.png"), "--images", "7", "--format", form)
    assert remote.inspect(remote.uri, *sheet)[0] == 0
    sizes = [size for _, key, size in remote.requests_received() if key.startswith(f"{form}/")]
    lengths = dataset.written[f"{form}_length"]
    assert sorted(sizes) == sorted(int(lengths[(2 * i + 1) * 120 // 14]) for i in range(7))


def test_a_page_asks_once_an_image(remote: Remote, tmp_path: Path) -> None:
    """A page reads only the records of its images from the shards."""
    page = ("--html", str(tmp_path / "x.html"), "--images", "7")
    assert remote.inspect(remote.uri, *page)[0] == 0
    assert (tmp_path / "x.html").read_text().count('src="data:image/jpeg;base64,') == 7
    read = [key for _, key, _ in remote.requests_received() if key.startswith("tfrecord/")]
    assert len(read) == 7


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_a_table_reads_its_shard_once(remote: Remote, form: str) -> None:
    """A shard is read in a few large ranges, which overlap by at most one record."""
    dataset = dataprep.open(remote.uri, format=form, options=remote.options)
    shard = dataset.shards()[0]
    remote.requests_received()
    code, out = remote.inspect(f"{remote.uri}/{shard.key}", "--json")
    requests = remote.requests_received()
    content = json.loads(out)
    assert code == 0
    ranges = [(line["offset"], line["length"]) for line in content["records"]]
    assert ranges == [dataset.place(number)[1:] for number in shard.samples]
    assert {key for method, key, _ in requests if method == "GET"} == {shard.key}
    sizes = [size for method, _, size in requests if method == "GET"]
    assert len(sizes) <= 3
    assert sum(sizes) < 1.2 * shard.bytes


def test_leakage_reads_two_objects(remote: Remote) -> None:
    """Leakage is computed from the two tables, and nothing else is read."""
    store = open_store(remote.uri, remote.options)
    store.put("test.samples.parquet", store.get("train.samples.parquet"))
    remote.proxy.clear()
    command = ("verify", remote.uri, "--split", "train", "--against", "test", "--fail-on-leakage")
    done = in_process(*command, "--endpoint-url", str(remote.options.endpoint_url), code=1)
    assert "leakage: 120 samples of train also in test" in done.out
    assert sorted(key for _, key, _ in remote.requests_received()) == [
        "test.samples.parquet",
        "train.samples.parquet",
    ]


def test_iteration_fetches_each_shard_once(remote: Remote) -> None:
    """Each shard is fetched by one request, several at a time, without the table of samples.

    RecordIO without checksums is read in the same way but needs the table.
    """
    options: dict[str, Any] = {"format": "recordio", "check": False, "options": remote.options}
    with dataprep.open(remote.uri, **options) as dataset:
        remote.requests_received()
        assert sum(1 for _ in dataset) == 120
        ordered = sorted((method, key) for method, key, _ in remote.requests_received())
        gets = [("GET", shard.key) for shard in dataset.shards()]
        looks = [("HEAD", "train.manifest.json")] * len(gets)  # checks whether it is unchanged
        assert ordered == sorted(gets + looks)


def test_nothing_there(remote: Remote, bucket: str) -> None:
    """A prefix without a data set, and a missing bucket, give exit code 2."""
    for uri in (f"s3://{bucket}/nothing/here", f"s3://{bucket}-nope/x"):
        assert remote.inspect(uri) == (2, "")
