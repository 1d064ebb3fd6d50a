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
_MOST_BYTES = 2**63 - 1


class Copied(NamedTuple):
    """``md5`` of the bytes that were written, in hexadecimal digits, and how many they were."""

    md5: str
    bytes: int


def md5_of(answer: Mapping[str, Any]) -> str | None:
    """Of the whole object, where its ETag looks like one."""
    etag: str = answer.get("ETag", "").strip('"')
    kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
    return None if kms or not _MD5.fullmatch(etag) else etag


def part(answer: Mapping[str, Any], name: str, what: str) -> Any:
    """What an answer about ``what`` holds under ``name``.

    Raises:
        StoreError: it lacks it.
    """
    if name not in answer:
        raise StoreError(f"{what}: the store's answer has no {name}")
    return answer[name]


def require_whole(page: Mapping[str, Any], where: str) -> None:
    """Refuse a page of a listing that is none, or contradicts itself.

    A listing has no checksum; a bit of it must not lose a key, nor all keys that follow. So a page
    is the last or says how to go on, and holds as many keys as it says, each of a size that there
    can be.

    Raises:
        StoreError: it contradicts itself.
    """
    follows = bool(page.get("NextContinuationToken"))
    said, held = page.get("KeyCount"), len(page.get("Contents", ()))
    if "IsTruncated" not in page and said is None and not page.get("Name"):
        raise StoreError(
            f"{where}: what answers there lists no objects: it is no S3 server, or something "
            "between here and there answers for it. Check --endpoint-url and run the same "
            "command again"
        )
    if page.get("IsTruncated") and not follows:
        raise StoreError(
            f"{where}: an answer that lists objects says that more follow, and not how to go on: "
            "the server does not speak ListObjectsV2, or something between here and there changes "
            "data. Run the same command again"
        )
    entries = page.get("Contents", ())
    named = all(part(item, "Key", where) for item in entries)
    possible = named and all(0 <= part(item, "Size", where) <= _MOST_BYTES for item in entries)
    if follows != bool(page.get("IsTruncated")) or said not in (None, held) or not possible:
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
