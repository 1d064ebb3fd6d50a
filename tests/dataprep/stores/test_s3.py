"""The S3 store sends exact requests, and interprets the answers of servers."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import os
import pickle
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import urllib3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.compat import HTTPHeaders
from botocore.httpsession import URLLib3Session
from botocore.paginate import Paginator

from dataprep.errors import ObjectNotFound, StoreError
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, SetHeader, Status
from iobench.servers.moto_server import MotoServer
from tests.dataprep.stores.conftest import OpenS3, Sent

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DATA = bytes(range(256)) * 40
MIB = 2**20


@pytest.fixture
def boto(s3_server: MotoServer, bucket: str) -> S3Client:
    """A boto3 client that examines the bucket directly."""
    return boto3.client("s3", endpoint_url=s3_server.url)


def calls(sent: list[Sent]) -> list[tuple[str, str]]:
    """The method and path of each request."""
    return [(request.method, request.path) for request in sent]


def test_put_is_one_request_and_one_confirmation(
    open_s3: OpenS3, bucket: str, sent: list[Sent]
) -> None:
    """An object is stored by one PutObject with its MD5, then confirmed by one HEAD."""
    info = open_s3().put("a/key", DATA)
    path = f"/{bucket}/prefix/a/key"
    assert calls(sent) == [("PUT", path), ("HEAD", path)]
    headers = sent[0].headers
    assert headers["content-md5"] == base64.b64encode(hashlib.md5(DATA).digest()).decode()
    assert not [name for name in headers if name.startswith("x-amz-checksum")]
    assert headers["content-length"] == str(len(DATA))
    assert "transfer-encoding" not in headers
    assert (info.bytes, info.etag) == (len(DATA), hashlib.md5(DATA).hexdigest())
    special = ("storage-class", "server-side-encryption", "request-payer")
    assert [n for request in sent for n in request.headers if n.endswith(special)] == []


def test_a_put_hashes_the_object_once_and_copies_it_never(
    open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MD5 reads each byte once, no other digest reads any, and the body is not copied."""
    hashed: dict[str, int] = {"md5": 0, "sha256": 0}
    for name in hashed:
        real = getattr(hashlib, name)

        def counting(data: bytes = b"", *, real: Any = real, name: str = name, **more: Any) -> Any:
            hashed[name] += len(data) if len(data) == len(DATA) else 0
            return real(data, **more)

        monkeypatch.setattr(hashlib, name, counting)
    bodies: list[object] = []
    boto: Any = BaseClient
    call = boto._make_api_call

    def noting_body(client: BaseClient, operation: str, arguments: dict[str, Any]) -> object:
        if operation == "PutObject":
            bodies.append(arguments["Body"].read(len(DATA)).obj)
            arguments["Body"].seek(0)
        return call(client, operation, arguments)

    monkeypatch.setattr(BaseClient, "_make_api_call", noting_body)
    open_s3().put("key", memoryview(DATA))
    assert hashed == {"md5": len(DATA), "sha256": 0}
    assert bodies == [DATA]
    assert bodies[0] is DATA


@pytest.mark.parametrize("method", ["put", "create"])
def test_storage_class_and_key_are_sent(
    open_s3: OpenS3, boto: S3Client, bucket: str, sent: list[Sent], method: str
) -> None:
    """Storage class, encryption and KMS key are in the request that stores."""
    store = open_s3(storage_class="STANDARD_IA", sse="aws:kms", sse_kms_key_id="alias/shards")
    getattr(store, method)("key", DATA)
    headers = sent[0].headers
    assert sent[0].method == "PUT"
    assert headers["x-amz-storage-class"] == "STANDARD_IA"
    assert headers["x-amz-server-side-encryption"] == "aws:kms"
    assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "alias/shards"
    assert boto.head_object(Bucket=bucket, Key="prefix/key")["StorageClass"] == "STANDARD_IA"
    assert store.get("key") == DATA


def test_requester_pays_on_every_call(open_s3: OpenS3, sent: list[Sent]) -> None:
    """Each request, including listings, says that the requester pays."""
    store = open_s3(requester_pays=True)
    store.put("key", DATA)
    store.create("other", DATA)
    store.get("key")
    store.get_range("key", 1, 2)
    store.head("key")
    assert len(list(store.list())) == 2
    store.delete("key")
    assert {request.method for request in sent} == {"PUT", "GET", "HEAD", "DELETE"}
    unpaid = [
        request for request in sent if request.headers.get("x-amz-request-payer") != "requester"
    ]
    assert calls(unpaid) == []


def test_a_pickled_store_keeps_its_options(open_s3: OpenS3) -> None:
    """Bucket, prefix and options are pickled. Connections and credentials are not."""
    store = open_s3("a/b", requester_pays=True)
    store.prepare()
    data = pickle.dumps(store)
    copy = pickle.loads(data)
    assert (copy.uri, copy.options) == (store.uri, store.options)
    assert MotoServer.ENVIRONMENT["AWS_SECRET_ACCESS_KEY"].encode() not in data


@pytest.mark.parametrize("prefix", ["", "prefix", "deep/er/"])
def test_keys_lie_below_the_prefix(
    open_s3: OpenS3, boto: S3Client, bucket: str, prefix: str
) -> None:
    """Keys are stored below the prefix and listed without it, and neighbours are not listed."""
    boto.put_object(Bucket=bucket, Key="prefix-of-another/key", Body=b"x")
    store = open_s3(prefix)
    store.put("a/key", DATA)
    full_key = f"{prefix.strip('/')}/a/key".lstrip("/")
    assert boto.get_object(Bucket=bucket, Key=full_key)["Body"].read() == DATA
    listed = {info.key for info in store.list()}
    assert listed == ({"a/key"} if prefix else {"a/key", "prefix-of-another/key"})


def test_listing_goes_on_after_a_thousand_keys(
    open_s3: OpenS3, s3_server: MotoServer, bucket: str, sent: list[Sent]
) -> None:
    """1,200 objects take two requests to list, and each is listed once."""
    keys = [f"{number:04}" for number in range(1200)]

    def put(key: str) -> None:
        url = f"{s3_server.url}/{bucket}/prefix/{key}"
        urllib.request.urlopen(urllib.request.Request(url, b"x", method="PUT")).close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(put, keys))
    assert sorted(info.key for info in open_s3().list()) == keys
    assert [request.method for request in sent] == ["GET", "GET"]
    assert "continuation-token=" in sent[1].query


def test_folder_markers_are_no_objects(open_s3: OpenS3, boto: S3Client, bucket: str) -> None:
    """Empty keys that end in a slash, which consoles make, are not listed, and others are."""
    for key, body in {"prefix/": b"", "prefix/a/": b"", "prefix/b/": b"x", "prefix/c": b""}.items():
        boto.put_object(Bucket=bucket, Key=key, Body=body)
    assert sorted(info.key for info in open_s3().list()) == ["b/", "c"]


def test_create_and_range_ask_the_server(open_s3: OpenS3, sent: list[Sent]) -> None:
    """Create sends If-None-Match with its digest, and a range requests exactly its bytes."""
    store = open_s3()
    store.create("key", DATA)
    assert sent[0].headers["if-none-match"] == "*"
    assert sent[0].headers["content-md5"] == base64.b64encode(hashlib.md5(DATA).digest()).decode()
    sent.clear()
    assert store.get_range("key", 100, 50) == DATA[100:150]
    assert [request.headers["range"] for request in sent] == ["bytes=100-149"]


def test_create_where_the_server_cannot_decide(
    open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server answers 501 to conditions, create checks for the object and then writes."""
    send = URLLib3Session.send

    def without_conditions(session: URLLib3Session, request: AWSPreparedRequest) -> object:
        if not {"If-None-Match", "If-Match"} & {*request.headers}:
            return send(session, request)
        body = b"<Error><Code>NotImplemented</Code></Error>"
        answer = urllib3.HTTPResponse(io.BytesIO(body), {}, 501, preload_content=False)
        return AWSResponse(request.url, 501, HTTPHeaders(), answer)

    monkeypatch.setattr(URLLib3Session, "send", without_conditions)
    store = open_s3()
    assert store.create("key", DATA)
    assert not store.create("key", b"other")
    assert store.get("key") == DATA
    before = store.version("key")
    assert store.replace("key", b"1", before)
    assert not store.replace("key", b"2", before)
    assert store.get("key") == b"1"


def test_a_server_that_refuses_every_if_match_is_asked_and_written(
    open_s3: OpenS3, s3_server: MotoServer
) -> None:
    """If a server refuses every If-Match, ``replace`` compares the version itself and writes."""
    direct = open_s3()
    direct.put("key", DATA)
    version = direct.version("key")
    refused = Rule(Match("PUT", times=2), Status(412, "PreconditionFailed"))
    with FaultProxy(s3_server.url, [refused]) as proxy:
        assert open_s3(endpoint_url=proxy.url).replace("key", b"1", version)
        tags = [request.method for request in proxy.requests]
    assert tags == ["PUT", "HEAD", "PUT", "HEAD", "PUT", "HEAD"]
    assert direct.get("key") == b"1"


def test_the_age_of_an_object_is_between_two_times_of_the_server(
    open_s3: OpenS3, s3_server: MotoServer
) -> None:
    """The clock of this machine has no effect."""
    open_s3().put("key", DATA)
    times = {
        "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT",
        "Date": "Fri, 02 Jan 2026 03:04:35 GMT",
    }
    rules = [Rule(Match(), SetHeader(name, value)) for name, value in times.items()]
    with FaultProxy(s3_server.url, rules) as proxy:
        assert open_s3(endpoint_url=proxy.url).age_s("key") == 30.0


PAGES: list[tuple[dict[str, object], bool]] = [
    ({"IsTruncated": False, "KeyCount": 1, "Contents": [{"Key": "a", "Size": 1}]}, True),
    ({"IsTruncated": False}, True),
    ({"IsTruncated": True, "NextContinuationToken": "more"}, True),
    ({"IsTruncated": True}, False),
    ({}, False),
]


@pytest.mark.parametrize(("page", "complete"), PAGES, ids=str)
def test_a_listing_that_breaks_off_is_refused(
    open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch, page: dict[str, object], complete: bool
) -> None:
    """The pages of a server that knows only ListObjects are not lost: the listing is refused."""
    monkeypatch.setattr(Paginator, "paginate", lambda self, **_: iter([page]))
    store = open_s3()
    if complete:
        assert len(list(store.list())) == page.get("KeyCount", 0)
    else:
        with pytest.raises(StoreError, match="a listing is incomplete"):
            list(store.list())


def test_odd_keys_are_named_in_text_on_one_line(open_s3: OpenS3) -> None:
    """A key with bytes that are not UTF-8 is refused, and a line break is escaped."""
    with pytest.raises(StoreError, match=r"caf\\xe9") as caught:
        open_s3().put("caf\udce9", DATA)
    assert str(caught.value).encode()
    with pytest.raises(ObjectNotFound, match=r"two\\x0alines"):
        open_s3().get("two\nlines")


def test_the_endpoint_is_asked_by_path(open_s3: OpenS3, bucket: str, sent: list[Sent]) -> None:
    """With a custom endpoint, the bucket is in the path and not in the host name."""
    store = open_s3()
    store.prepare()
    store.put("k", b"x")
    assert len(sent) >= 2
    assert all(request.path.startswith(f"/{bucket}") for request in sent)


class FullFile(io.BytesIO):
    """A file on a disk that is full."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_ends_a_download_at_once(open_s3: OpenS3, sent: list[Sent]) -> None:
    """An error of the file that an object is copied to is raised as it is, after one request."""
    store = open_s3()
    store.put("a/key", DATA)
    sent.clear()
    with pytest.raises(OSError, match="No space left") as caught:
        store.get_to("a/key", FullFile())
    assert caught.value.errno == errno.ENOSPC
    assert [request.method for request in sent] == ["GET"]
