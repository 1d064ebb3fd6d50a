"""The object store behind contests speaks enough of S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

from dataprep.errors import ObjectNotFound
from dataprep.stores import Store, StoreOptions, open_store
from iobench.faults import FaultProxy
from iobench.faults.bucket import Bucket
from iobench.s3_server import MotoServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any will do."""
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def url() -> Iterator[str]:
    """Where an empty one listens."""
    bucket = Bucket()
    with FaultProxy(lambda: bucket) as proxy:
        yield proxy.url


@pytest.fixture
def store(url: str) -> Store:
    """This package's own client of it."""
    return open_store("s3://b/below", StoreOptions(endpoint_url=url))


def test_objects(store: Store) -> None:
    """What is put is there, in whole and in parts, until it is deleted."""
    store.prepare()
    info = store.put("a b/c", b"0123456789")
    assert store.head("a b/c") == info
    assert store.get("a b/c") == b"0123456789"
    assert store.get_range("a b/c", 3, 4) == b"3456"
    assert store.get_range("a b/c", 8, 9) == b"89"
    assert store.get_range("a b/c", 10, 1) == b""
    store.delete("a b/c")
    with pytest.raises(ObjectNotFound):
        store.get("a b/c")


def test_create(store: Store) -> None:
    """A key that exists is not created again."""
    assert store.create("one", b"first")
    assert not store.create("one", b"second")
    assert store.get("one") == b"first"


def test_pages(store: Store) -> None:
    """Listings go on after a thousand keys, hold nothing twice, and know prefixes."""
    names = [f"k/{i:04} &" for i in range(1003)]
    for name in names:
        store.put(name, name.encode())
    store.put("l", b"")
    found = list(store.list("k/"))
    assert [info.key for info in found] == names
    assert {info.bytes for info in found} == {8}
    assert len(list(store.list())) == 1004


def test_a_wrong_checksum(url: str) -> None:
    """Bytes that are not what Content-MD5 says are refused."""
    client = boto3.client("s3", endpoint_url=url)
    with pytest.raises(ClientError, match="BadDigest"):
        client.put_object(Bucket="b", Key="k", Body=b"x", ContentMD5="1B2M2Y8AsgTpgAmY7PhCfg==")


def test_what_it_does_not_know(url: str) -> None:
    """Requests of other kinds are answered with 501, not with something made up."""
    client = boto3.client("s3", endpoint_url=url)
    with pytest.raises(ClientError, match="NotImplemented"):
        client.create_multipart_upload(Bucket="b", Key="k")
    with pytest.raises(ClientError, match="NotImplemented"):
        client.list_objects(Bucket="b")


def test_fill(tmp_path: Path) -> None:
    """Files of a folder become objects under their paths."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").write_bytes(b"hello")
    bucket = Bucket()
    bucket.fill("b", tmp_path)
    with FaultProxy(lambda: bucket) as proxy:
        store = open_store("s3://b", StoreOptions(endpoint_url=proxy.url))
        assert store.get("sub/x") == b"hello"
