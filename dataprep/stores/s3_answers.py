"""What an answer to a GET holds: its body, copied to a file as it comes, its MD5; a listing."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from dataprep.errors import StoreError

_MD5 = re.compile(r"[0-9a-f]{32}")
_PIECE_BYTES = 2**20


class Copied(NamedTuple):
    """``md5`` of the bytes that were written, in hexadecimal digits, and how many they were."""

    md5: str
    bytes: int


def md5_of(answer: Mapping[str, Any]) -> str | None:
    """Of the whole object, where its ETag looks like one."""
    etag: str = answer.get("ETag", "").strip('"')
    kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
    return None if kms or not _MD5.fullmatch(etag) else etag


def require_whole(page: Mapping[str, Any], where: str) -> None:
    """Refuse a page of a listing that says both that it is the last and how to go on.

    A listing has no checksum; a bit of it must not lose all keys that follow.

    Raises:
        StoreError: it contradicts itself.
    """
    if page.get("NextContinuationToken") and not page.get("IsTruncated"):
        raise StoreError(
            f"{where}: an answer that lists objects contradicts itself: something between here and "
            "there changes data, or the server is broken. Run the same command again"
        )


def copied(answer: Mapping[str, Any], file: BinaryIO) -> Copied:
    """The body, written to ``file`` a mebibyte at a time. Raises what botocore does where it ends
    early, or has another checksum than the answer says."""
    md5, size = hashlib.md5(usedforsecurity=False), 0
    # Not `with answer["Body"]`: that gives urllib3's stream, past botocore's checks.
    with contextlib.closing(answer["Body"]) as body:
        for piece in body.iter_chunks(_PIECE_BYTES):
            md5.update(piece)
            size += file.write(piece)
    return Copied(md5.hexdigest(), size)
