"""Tests of dataprep.stores.options, and of open_store."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from dataprep.stores.s3 import S3Store


def test_defaults_ask_for_nothing_special() -> None:
    """Without options the endpoint is AWS, nothing is paid for, and requests are repeated."""
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
    """A limit out of range, an unknown encryption, no http URL and an unknown key are refused."""
    with pytest.raises(ValidationError, match=next(iter(bad))):
        StoreOptions(**bad)


@pytest.mark.parametrize(
    "url",
    ["http://me:hunter2@minio:9000", "https://hunter2@minio", "https://me:hunter2@minio/path"],
)
def test_credentials_in_an_endpoint_are_refused_and_not_repeated(url: str) -> None:
    """An endpoint with a user or password is refused, and the message does not show it."""
    with pytest.raises(ValidationError, match="must not carry a user, password") as caught:
        StoreOptions(endpoint_url=url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:5000", "https://minio.example/a@b"])
def test_plain_endpoints_are_taken(url: str) -> None:
    """A URL without credentials is taken as it is, also with an @ in its path."""
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
        ("memory://x", MemoryStore),
        ("s3://bucket", S3Store),
        ("s3://bucket/prefix", S3Store),
    ],
)
def test_the_scheme_chooses_the_store(uri: str, kind: type) -> None:
    """A path or the scheme of a URI says which store is opened."""
    assert type(open_store(uri)) is kind


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    """An unknown scheme raises ConfigError, which lists those that are known."""
    with pytest.raises(ConfigError, match="no store 'gs': use one of file, memory, s3") as caught:
        open_store("gs://bucket/x")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("uri", ["s3://", "s3:///prefix"])
def test_s3_needs_a_bucket(uri: str) -> None:
    """An S3 URI without a bucket raises ConfigError, which says how to write one."""
    with pytest.raises(ConfigError, match="s3://BUCKET/PREFIX"):
        open_store(uri)


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
    """The URI of a store ends without a slash, however it was given."""
    assert open_store(uri).uri == expected


def test_credentials_in_an_s3_uri_are_refused_and_not_repeated() -> None:
    """An S3 URI with a user and password is refused, and the message does not show them."""
    with pytest.raises(ConfigError, match="not carry a user, password") as caught:
        open_store("s3://AKIAEXAMPLE:hunter2@bucket/prefix")
    assert "hunter2" not in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)
