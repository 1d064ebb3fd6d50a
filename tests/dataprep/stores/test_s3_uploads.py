"""Tests of dataprep.stores.s3_uploads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from dataprep.stores.protocol import AbortsUploads
from iobench.s3_server import MotoServer
from tests.dataprep.stores.conftest import OpenS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture
def boto(s3_server: MotoServer, bucket: str) -> S3Client:
    """A client of one's own, whose uploads nobody completes."""
    return boto3.client("s3", endpoint_url=s3_server.url)


def begin(boto: S3Client, bucket: str, *keys: str) -> None:
    """An upload in parts of each key, of which one part is there."""
    for key in keys:
        upload = boto.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        boto.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"half")


def begun(boto: S3Client, bucket: str) -> list[str]:
    """Keys of the uploads that are not completed."""
    uploads = boto.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return sorted(upload["Key"] for upload in uploads)


def test_uploads_of_ones_own_keys_are_aborted(open_s3: OpenS3, boto: S3Client, bucket: str) -> None:
    """Each of them, twice begun too; those of other keys and outside the prefix go on."""
    begin(boto, bucket, "prefix/a/1", "prefix/a/1", "prefix/a/2", "prefix/b", "a/1", "prefix2/a/1")
    store = open_s3()
    assert isinstance(store, AbortsUploads)
    store.abort_uploads(lambda key: key.startswith("a/"))
    assert begun(boto, bucket) == ["a/1", "prefix/b", "prefix2/a/1"]


def test_more_than_a_page(
    open_s3: OpenS3, boto: S3Client, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing that comes in pages is read to its end."""
    begin(boto, bucket, *(f"prefix/{number}" for number in range(5)))
    store = open_s3()
    make: Any = BaseClient
    call = make._make_api_call

    def paged(client: BaseClient, operation: str, arguments: dict[str, Any]) -> object:
        more = {"MaxUploads": 2} if operation == "ListMultipartUploads" else {}
        return call(client, operation, {**arguments, **more})

    monkeypatch.setattr(BaseClient, "_make_api_call", paged)
    store.abort_uploads(lambda key: True)
    monkeypatch.undo()
    assert begun(boto, bucket) == []


@pytest.mark.parametrize("code", ["AccessDenied", "NotImplemented"])
def test_what_may_not_be_listed_is_left(
    open_s3: OpenS3, boto: S3Client, bucket: str, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Without the right, or on a server that knows no such listing, nothing happens."""
    begin(boto, bucket, "prefix/a")
    store = open_s3()

    def refuse(client: BaseClient, operation: str, arguments: object) -> object:
        status = {"HTTPStatusCode": 501 if code == "NotImplemented" else 403}
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": status}, operation)  # type: ignore[typeddict-item]

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", refuse)
        store.abort_uploads(lambda key: True)
    assert begun(boto, bucket) == ["prefix/a"]
