"""boto3 through the proxy to moto: the calls we use, and how each fault looks from there."""

from __future__ import annotations

import http.client
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    FlexibleChecksumError,
    IncompleteReadError,
    ResponseStreamingError,
)

from iobench.faults import (
    Fault,
    FaultProxy,
    FlipByte,
    Match,
    Reset,
    Rule,
    SetHeader,
    Status,
    Truncate,
)
from iobench.faults.kinds import Point

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MIB = 2**20
BODY = os.urandom(300_000)
SLOW_DOWN = Status(503, "SlowDown", "Please reduce your request rate.")


def use(proxy: FaultProxy, match: Match, fault: Fault) -> None:
    """Disturb the matching requests, and forget those so far."""
    proxy.clear()
    proxy.replace_rules([Rule(match, fault)])


def calls(proxy: FaultProxy) -> list[tuple[str, int | None]]:
    """The method and status of every request."""
    return [(request.method, request.status) for request in proxy.requests]


def test_objects_pass_byte_exact(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """put, head, get, ranged get, list and delete behave as without the proxy."""
    key = "a b/ü+%2F?&=.bin"
    s3.put_object(Bucket="data", Key=key, Body=BODY, Metadata={"kind": "test"})
    head = s3.head_object(Bucket="data", Key=key)
    assert (head["ContentLength"], head["Metadata"]) == (len(BODY), {"kind": "test"})
    assert s3.get_object(Bucket="data", Key=key)["Body"].read() == BODY
    part = s3.get_object(Bucket="data", Key=key, Range="bytes=10-99")
    assert part["ContentRange"] == f"bytes 10-99/{len(BODY)}"
    assert part["Body"].read() == BODY[10:100]
    listed = s3.list_objects_v2(Bucket="data", Prefix="a b/")
    assert [entry["Key"] for entry in listed["Contents"]] == [key]
    with pytest.raises(ClientError, match="Not Modified"):
        s3.get_object(Bucket="data", Key=key, IfNoneMatch=head["ETag"])
    s3.delete_object(Bucket="data", Key=key)
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="data", Key=key)
    methods = ["PUT", "HEAD", "GET", "GET", "GET", "GET", "DELETE", "GET"]
    statuses = [200, 200, 200, 206, 200, 304, 204, 404]
    assert calls(moto_proxy) == list(zip(methods, statuses, strict=True))


def test_multipart_upload_passes_byte_exact(s3: S3Client) -> None:
    """An upload in parts is stored as their concatenation."""
    parts = [os.urandom(5 * MIB), b"tail"]
    upload_id = s3.create_multipart_upload(Bucket="data", Key="parts")["UploadId"]
    etags = [
        s3.upload_part(Bucket="data", Key="parts", UploadId=upload_id, PartNumber=n, Body=part)
        for n, part in enumerate(parts, 1)
    ]
    s3.complete_multipart_upload(
        Bucket="data",
        Key="parts",
        UploadId=upload_id,
        MultipartUpload={
            "Parts": [{"ETag": one["ETag"], "PartNumber": n} for n, one in enumerate(etags, 1)]
        },
    )
    assert s3.get_object(Bucket="data", Key="parts")["Body"].read() == b"".join(parts)


def test_streamed_upload_in_aws_chunks_is_decoded(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """A chunked request with aws-chunked content and a checksum trailer is stored decoded."""
    client = http.client.HTTPConnection(urlsplit(moto_proxy.url).netloc)
    client.request(
        "PUT",
        "/data/streamed",
        body=iter([b"5\r\nhello\r\n", b"0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"]),
        headers={
            "Content-Encoding": "aws-chunked",
            "Transfer-Encoding": "chunked",
            "X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            "X-Amz-Decoded-Content-Length": "5",
            "X-Amz-Trailer": "x-amz-checksum-crc32",
        },
        encode_chunked=True,
    )
    assert client.getresponse().status == 200
    client.close()
    assert s3.get_object(Bucket="data", Key="streamed")["Body"].read() == b"hello"


def test_retry_after_slow_down_succeeds(patient_s3: S3Client, moto_proxy: FaultProxy) -> None:
    """boto3 repeats an upload that was refused with 503, and sends its whole body again."""
    use(moto_proxy, Match("PUT", times=1), SLOW_DOWN)
    patient_s3.put_object(Bucket="data", Key="key", Body=BODY)
    assert calls(moto_proxy) == [("PUT", 503), ("PUT", 200)]
    assert [request.request_bytes for request in moto_proxy.requests] == [len(BODY)] * 2
    assert patient_s3.get_object(Bucket="data", Key="key")["Body"].read() == BODY


@pytest.mark.parametrize(
    ("status", "tries"),
    [
        (Status(500, "InternalError", "We encountered an internal error."), 2),
        (SLOW_DOWN, 2),
        (Status(403, "AccessDenied", "Access Denied"), 1),
        (Status(400, "ExpiredToken", "The provided token has expired."), 1),
    ],
)
def test_refusals_keep_their_code(
    patient_s3: S3Client, moto_proxy: FaultProxy, status: Status, tries: int
) -> None:
    """boto3 reports the injected code and message, and repeats only what can get better."""
    use(moto_proxy, Match("GET"), status)
    with pytest.raises(ClientError) as caught:
        patient_s3.get_object(Bucket="data", Key="key")
    error = caught.value.response["Error"]
    assert (error["Code"], error["Message"]) == (status.s3_code, status.message)
    assert calls(moto_proxy) == [("GET", status.code)] * tries


def test_refused_head_has_only_its_status(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """A refused HEAD has no XML, as with S3, so boto3 knows the status and no more."""
    use(moto_proxy, Match("HEAD"), Status(403, "AccessDenied"))
    with pytest.raises(ClientError) as caught:
        s3.head_object(Bucket="data", Key="key")
    assert caught.value.response["Error"]["Code"] == "403"


def test_flipped_upload_stores_other_bytes(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """A flipped upload stores one other byte, which ETag and checksum show."""
    honest = s3.put_object(Bucket="data", Key="key", Body=BODY)["ETag"]
    use(moto_proxy, Match("PUT"), FlipByte(-1, "upload"))
    assert s3.put_object(Bucket="data", Key="key", Body=BODY)["ETag"] != honest
    with pytest.raises(FlexibleChecksumError):  # the checksum that was sent has been stored too
        s3.get_object(Bucket="data", Key="key")["Body"].read()
    unchecked = s3.get_object(Bucket="data", Key="key", Range="bytes=1-")
    assert unchecked["Body"].read() == BODY[1:-1] + bytes([BODY[-1] ^ 1])


def test_flipped_download_fails_its_checksum(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """boto3 finds a flipped byte in a whole object, for it compares the stored checksum."""
    s3.put_object(Bucket="data", Key="key", Body=BODY)
    use(moto_proxy, Match("GET"), FlipByte(1234))
    with pytest.raises(FlexibleChecksumError):
        s3.get_object(Bucket="data", Key="key")["Body"].read()


def test_flipped_range_passes_unnoticed(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """boto3 cannot find a flipped byte in a range, which has no checksum of its own."""
    s3.put_object(Bucket="data", Key="key", Body=BODY)
    use(moto_proxy, Match("GET"), FlipByte(0, mask=0xFF))
    part = s3.get_object(Bucket="data", Key="key", Range="bytes=10-19")["Body"].read()
    assert part == bytes([BODY[10] ^ 0xFF]) + BODY[11:20]


def test_truncated_download_raises(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """A truncated download is an error of reading its body, not of the call."""
    s3.put_object(Bucket="data", Key="key", Body=BODY)
    use(moto_proxy, Match("GET"), Truncate(100_000))
    body = s3.get_object(Bucket="data", Key="key")["Body"]
    with pytest.raises((IncompleteReadError, ResponseStreamingError)):
        body.read()
    assert moto_proxy.requests[0].response_bytes == 100_000


@pytest.mark.parametrize("at", ["request", "response"])
def test_reset_raises_or_is_repeated(
    s3: S3Client, patient_s3: S3Client, moto_proxy: FaultProxy, at: Point
) -> None:
    """boto3 reports a reset as a closed connection, or repeats the request where it may."""
    s3.put_object(Bucket="data", Key="key", Body=BODY)
    use(moto_proxy, Match("GET", times=2), Reset(at))
    with pytest.raises(ConnectionClosedError):
        s3.get_object(Bucket="data", Key="key")
    assert patient_s3.get_object(Bucket="data", Key="key")["Body"].read() == BODY
    assert calls(moto_proxy) == [("GET", None), ("GET", None), ("GET", 200)]


def test_wrong_etag_reaches_the_caller(s3: S3Client, moto_proxy: FaultProxy) -> None:
    """A rewritten ETag is what boto3 returns, while the object is stored as sent."""
    use(moto_proxy, Match("PUT"), SetHeader("ETag", '"0123"'))
    assert s3.put_object(Bucket="data", Key="key", Body=BODY)["ETag"] == '"0123"'
    assert s3.get_object(Bucket="data", Key="key")["Body"].read() == BODY
