"""Stores have options, and addresses choose a store and never contain credentials."""

from __future__ import annotations

import hashlib
import pickle
import secrets
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dataprep.credentials import check_no_credentials, without_credentials
from dataprep.errors import ConfigError, ObjectNotFound
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from dataprep.stores.s3 import S3Store


def test_defaults_ask_for_nothing_special() -> None:
    """By default the endpoint is AWS, nothing is paid for, and requests are repeated."""
    assert StoreOptions().model_dump() == {
        "endpoint_url": None,
        "profile": None,
        "region": None,
        "storage_class": None,
        "sse": None,
        "sse_kms_key_id": None,
        "requester_pays": False,
        "max_attempts": 8,
        "connect_timeout_s": 10.0,
        "read_timeout_s": 60.0,
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"max_attempts": 0},
        {"max_attempts": 51},
        {"connect_timeout_s": 0},
        {"read_timeout_s": -1},
        {"sse": "rot13"},
        {"endpoint_url": "minio:9000"},
        {"endpoint_url": "ftp://minio"},
        {"access_key": "AKIA"},
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused(bad: dict[str, Any]) -> None:
    """A limit out of range, an unknown encryption, a non-HTTP URL and an unknown key are errors."""
    with pytest.raises(ValidationError, match=next(iter(bad))):
        StoreOptions(**bad)


@pytest.mark.parametrize(
    "url",
    ["http://me:hunter2@minio:9000", "https://hunter2@minio", "https://me:hunter2@minio/path"],
)
def test_credentials_in_an_endpoint_are_refused_and_not_repeated(url: str) -> None:
    """An endpoint with a user or password is refused, and the message does not repeat it."""
    with pytest.raises(ValidationError, match="must not carry a user, password") as caught:
        StoreOptions(endpoint_url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:5000", "https://minio.example/a@b"])
def test_plain_endpoints_are_taken(url: str) -> None:
    """A URL without credentials is accepted unchanged, also with an @ in its path."""
    assert StoreOptions(endpoint_url=url).endpoint_url == url


def test_options_cannot_change() -> None:
    """Options are frozen, so that they can be shared."""
    with pytest.raises(ValidationError, match="frozen"):
        StoreOptions().region = "eu-west-1"


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("photos", LocalStore),
        ("/abs/photos", LocalStore),
        ("file:///abs/photos", LocalStore),
        *((path, LocalStore) for path in ("a:b", "./s3:/bucket", "C:/photos", "x/s3:/y")),
        ("memory://x", MemoryStore),
        ("s3://bucket", S3Store),
        ("s3://bucket/prefix", S3Store),
    ],
)
def test_the_scheme_chooses_the_store(uri: str, kind: type) -> None:
    """A path, even with a colon, or the scheme of a URI determines the store."""
    store = open_store(uri)
    assert type(store) is kind
    if isinstance(store, LocalStore):
        assert store.root == Path(uri.removeprefix("file://"))


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("gs://bucket/x", "no store 'gs': use one of file, memory, s3"),
        ("s3://", "s3://BUCKET/PREFIX"),
        ("s3:///prefix", "s3://BUCKET/PREFIX"),
        ("s3:/bucket/x", "'s3:/bucket/x': write s3://"),
        ("s3:bucket/x", "'s3:bucket/x': write s3://"),
        ("file:/data", "'file:/data': write file://"),
        ("memory:/x", "'memory:/x': write memory://"),
        ("s3://AKIAEXAMPLE:hunter2@bucket/prefix", "not carry a user, password"),
    ],
)
def test_an_address_that_is_none_is_refused(uri: str, message: str) -> None:
    """The error says how an address begins, and does not repeat credentials."""
    with pytest.raises(ConfigError, match=message) as caught:
        open_store(uri)
    assert caught.value.exit_code == 2
    assert "hunter2" not in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
    ],
)
def test_s3_uris_are_written_one_way(uri: str, expected: str) -> None:
    """The URI of a store ends without a slash in every notation."""
    assert open_store(uri).uri == expected


@pytest.mark.parametrize(
    "address",
    [
        "https://bucket.s3.amazonaws.com/a?X-Amz-Credential=AKIA&X-Amz-Signature=hunter2",
        "https://bucket.s3.amazonaws.com/a?AWSAccessKeyId=AKIA&Expires=9&Signature=hunter2",
        "https://account.blob.core.windows.net/a?sv=2024&sig=hunter2",
        "s3://bucket/prefix?versionId=1&x-amz-security-token=hunter2",
        "gs://bucket/a#access_token=hunter2",
        "s3://me:hunter2@bucket/a",
        "other://hunter2@bucket?x",
    ],
)
def test_signed_addresses_are_refused_and_not_repeated(address: str) -> None:
    """A signed address is refused, because it would be stored in a manifest or a result."""
    with pytest.raises(ValueError, match=r"must not carry a user") as caught:
        check_no_credentials(address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["/data/x?sig=1", "me@host:/x", "s3://bucket/a@b/c", "s3://bucket/q?a#b", "s3://b/signature=1"],
)
def test_paths_and_keys_may_look_odd(address: str) -> None:
    """A path is no URI, and the key of an object may contain any character."""
    assert check_no_credentials(address) == address


@pytest.mark.parametrize(
    ("message", "secret_free"),
    [
        (
            'Could not connect to the endpoint URL: "http://me:hunter2@127.0.0.1:9/bucket"',
            'Could not connect to the endpoint URL: "http://***@127.0.0.1:9/bucket"',
        ),
        (
            "GET https://h/x?X-Amz-Signature=hunter2&partNumber=1 failed: 403",
            "GET https://h/x?X-Amz-Signature=***&partNumber=1 failed: 403",
        ),
        ("http://a:hunter2@b and https://hunter2@c/x@y", "http://***@b and https://***@c/x@y"),
        ("mail me@example.org, key=1", "mail me@example.org, key=1"),
    ],
)
def test_messages_of_others_are_told_without_credentials(message: str, secret_free: str) -> None:
    """The rest of the message does not change."""
    assert without_credentials(message) == secret_free


@given(st.from_regex(r"[a-z0-9:%]{1,9}", fullmatch=True), st.text(max_size=5), st.text(max_size=5))
def test_no_user_of_an_address_is_told(user: str, before: str, after: str) -> None:
    """The user of an address is removed in each context."""
    secret_free = without_credentials(f"{before} http://{user}@host {after}")
    assert f"http://{user}@" not in secret_free
    assert without_credentials(secret_free) == secret_free


@pytest.fixture
def uri() -> str:
    """A URI that no other test uses."""
    return f"memory://{secrets.token_hex(6)}"


def test_one_name_is_one_store(uri: str) -> None:
    """Stores of one name share their objects, also pickled, and those of another name do not."""
    open_store(uri).put("key", b"data")
    store = MemoryStore(uri)
    assert store.get("key") == b"data"
    pickle.loads(pickle.dumps(store)).put("other", b"more")
    assert store.get("other") == b"more"
    assert list(MemoryStore(uri + "/other").list()) == []


def test_the_etag_is_the_md5(uri: str) -> None:
    """Put, head and list return the MD5 of the bytes, as S3 does."""
    store = MemoryStore(uri)
    md5 = hashlib.md5(b"data").hexdigest()
    assert store.put("key", b"data").etag == md5
    assert store.head("key").etag == md5
    assert [info.etag for info in store.list()] == [md5]


def test_deleting_while_listing_is_no_error(uri: str) -> None:
    """An object that another thread deletes does not end a listing."""
    store = MemoryStore(uri)
    for name in "abc":
        store.put(name, b"x")
    listing = store.list()
    next(listing)
    store.delete("c")
    assert {info.key for info in listing} <= {"a", "b", "c"}


def test_the_error_names_key_and_store_on_one_line(uri: str) -> None:
    """A missing key is named with the store, with its line breaks escaped."""
    with pytest.raises(ObjectNotFound) as caught:
        MemoryStore(uri).get("two\nlines")
    assert str(caught.value) == f"no such object: 'two\\nlines' in {uri}"
