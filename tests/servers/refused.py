"""Requests that S3 refuses, each with its code; moto takes them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

Ask = Callable[[Any, str], object]


def digest(data: bytes, name: str = "md5") -> str:
    """As headers have it."""
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


def wrong_md5(s3: Any, bucket: str) -> None:
    """a Content-MD5 of another body"""
    s3.put_object(Bucket=bucket, Key="key", Body=b"sent", ContentMD5=digest(b"meant"))


def second_put(s3: Any, bucket: str) -> None:
    """a second put that is to be the first"""
    for _ in range(2):
        s3.put_object(Bucket=bucket, Key="key", Body=b"x", IfNoneMatch="*")


def short_parts(s3: Any, bucket: str) -> None:
    """parts of a thousand bytes, where S3 asks for 5 MiB"""
    place = {"Bucket": bucket, "Key": "key"}
    upload = s3.create_multipart_upload(**place)["UploadId"]
    parts = []
    for number in (1, 2):
        part = {"UploadId": upload, "PartNumber": number}
        answer = s3.upload_part(**place, **part, Body=bytes(1000))
        parts.append({"PartNumber": number, "ETag": answer["ETag"]})
    s3.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts})


def signed_by_another(s3: Any, bucket: str) -> None:
    """a signature by another key"""
    s3.list_objects_v2(Bucket=bucket)


REFUSED: Mapping[str, tuple[Ask, str]] = {
    "BadDigest": (wrong_md5, ""),
    "PreconditionFailed": (second_put, ""),
    "EntityTooSmall": (short_parts, ""),
    "SignatureDoesNotMatch": (signed_by_another, "another"),
}
"""By the code: what to ask, and the secret to ask with where it is not the right one."""
