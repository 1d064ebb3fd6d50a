"""The object store in memory answers the requests of dataprep's store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from dataprep.errors import ObjectNotFound
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import signed_in

pytestmark = pytest.mark.slow


@pytest.fixture
def objects() -> MemoryS3:
    """Yield an empty store."""
    return MemoryS3()


@pytest.fixture
def url(objects: MemoryS3) -> Iterator[str]:
    """Yield the address of the store."""
    with signed_in(), FaultProxy(objects.answer) as proxy:
        yield proxy.url


@pytest.fixture
def store(url: str) -> S3Store:
    """Yield dataprep's store at that address."""
    return S3Store("s3://b/below", StoreOptions(endpoint_url=url))


def test_objects(store: S3Store) -> None:
    """A stored object can be read, whole or in parts, until it is deleted."""
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


def test_conditional_writes(store: S3Store) -> None:
    """An existing key is not created again; only the expected version is replaced."""
    assert store.create("one", b"first")
    assert not store.create("one", b"second")
    version = store.version("one")
    assert store.replace("one", b"third", version)
    assert not store.replace("one", b"fourth", version)
    assert store.get("one") == b"third"


def test_listings(store: S3Store) -> None:
    """Listings have all keys once, also more than a thousand, and filter by prefix."""
    names = [f"k/{i:04} &" for i in range(1003)]
    for name in names:
        store.put(name, name.encode())
    store.put("l", b"")
    entries = list(store.list("k/"))
    assert [info.key for info in entries] == names
    assert {info.bytes for info in entries} == {8}
    assert len(list(store.list())) == 1004


def test_unknown_requests(url: str) -> None:
    """Other requests are answered with 501."""
    client = boto3.client("s3", endpoint_url=url)
    with pytest.raises(ClientError, match="NotImplemented"):
        client.create_multipart_upload(Bucket="b", Key="k")
    with pytest.raises(ClientError, match="NotImplemented"):
        client.list_objects(Bucket="b")


@pytest.mark.parametrize(
    ("operation", "settings"),
    [
        ("get_object", {"Range": "bytes=-3"}),
        ("get_object", {"Range": "bytes=0-1,3-4"}),
        ("get_object", {"Range": "bytes=4-3"}),
        ("get_object", {"PartNumber": 1}),
        ("get_object_acl", {}),
        ("delete_object_tagging", {}),
        ("copy_object", {"CopySource": "b/other"}),
        ("upload_part", {"UploadId": "1", "PartNumber": 1, "Body": b"part"}),
    ],
)
def test_requests_are_not_answered_as_others(
    store: S3Store, url: str, operation: str, settings: dict[str, Any]
) -> None:
    """A request that looks like a read or a write of an object gets a 501, and changes nothing."""
    store.put("k", b"0123456789")
    call = getattr(boto3.client("s3", endpoint_url=url), operation)
    with pytest.raises(ClientError, match="NotImplemented"):
        call(Bucket="b", Key="below/k", **settings)
    assert store.get("k") == b"0123456789"


def test_a_bucket_has_no_other_settings(url: str) -> None:
    """Listings of folders or from a key on, and settings of a bucket get a 501."""
    client = boto3.client("s3", endpoint_url=url)
    with pytest.raises(ClientError, match="NotImplemented"):
        client.list_objects_v2(Bucket="b", Delimiter="/")
    with pytest.raises(ClientError, match="NotImplemented"):
        client.list_objects_v2(Bucket="b", StartAfter="k")
    with pytest.raises(ClientError, match="NotImplemented"):
        client.put_bucket_tagging(Bucket="b", Tagging={"TagSet": []})


def test_fill(objects: MemoryS3, store: S3Store, tmp_path: Path) -> None:
    """Files of a folder become objects under their paths."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "x").write_bytes(b"hello")
    objects.fill("b", tmp_path)
    assert store.get("x") == b"hello"
