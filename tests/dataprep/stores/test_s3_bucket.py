"""A bucket and a prefix in it."""

from __future__ import annotations

import pytest

from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import S3Bucket, another_server


@pytest.mark.parametrize(
    ("uri", "prefix"),
    [("s3://name", ""), ("s3://name/", ""), ("s3://name/a", "a/"), ("s3://name/a/b/", "a/b/")],
)
def test_a_prefix_ends_in_one_slash_or_is_empty(uri: str, prefix: str) -> None:
    """Keys are appended to it."""
    bucket = S3Bucket(uri)
    assert (bucket.name, bucket.prefix, bucket.uri) == ("name", prefix, uri.rstrip("/"))


@pytest.mark.parametrize("uri", ["/mnt/disk", "s3://", "s3:///key", "memory://name"])
def test_what_is_no_bucket_is_refused(uri: str) -> None:
    """The reason says what to write."""
    with pytest.raises(ConfigError, match="write s3://BUCKET/PREFIX"):
        S3Bucket(uri)


def test_a_key_that_begins_with_a_slash_is_not_the_one_without() -> None:
    """Other objects than those that are named are neither read nor replaced."""
    with pytest.raises(ConfigError, match="did you mean 's3://name/a/b'"):
        S3Bucket("s3://name//a/b")
    assert S3Bucket("s3://name//").prefix == ""  # all keys, those that begin with a slash too


def test_a_user_in_the_uri_is_refused() -> None:
    """It would be a secret, and it is not repeated."""
    with pytest.raises(ConfigError, match="not carry a user or password") as caught:
        S3Bucket("s3://user:word@name/prefix")
    assert "word@" not in str(caught.value)


def test_a_key_in_a_message_is_escaped() -> None:
    """A key may hold whatever a terminal obeys."""
    assert S3Bucket("s3://name/a").shown("b\x1b[2J") == "s3://name/a/b\\x1b[2J"


def test_options_become_arguments() -> None:
    """Storage class, encryption and who pays reach every request that they belong to."""
    options = StoreOptions(storage_class="STANDARD_IA", sse="AES256", requester_pays=True)
    bucket = S3Bucket("s3://name", options)
    assert bucket.put_arguments() == {
        "StorageClass": "STANDARD_IA",
        "ServerSideEncryption": "AES256",
    }
    assert bucket.payer() == {"RequestPayer": "requester"}
    assert S3Bucket("s3://name").put_arguments() == {}


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
