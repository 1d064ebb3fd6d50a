"""S3 objects in memory, which ``FaultProxy`` serves without a server behind it.

It answers the requests of boto3 and s5cmd that write, list and delete whole objects, and that read
objects or ranges of them that begin at an offset. All other requests get a 501, such as copies,
multipart uploads and requests with an unknown parameter. The server moto answers more requests, but
each takes milliseconds of processor time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from email.message import Message
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

from iobench.servers.fault_proxy import Answer, s3_error

_TIME = "Mon, 01 Jan 2024 00:00:00 GMT"
_TIME_LISTED = "2024-01-01T00:00:00.000Z"

_NAME_OF_OPERATION = "x-id"
"""A parameter that some clients add to every request. It changes no answer."""
_LISTING_PARAMETERS = frozenset(
    {"list-type", "prefix", "max-keys", "encoding-type", "fetch-owner", _NAME_OF_OPERATION}
)
"""The parameters of a listing that are answered. All keys are on one page."""
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
"""The header of a request for the bytes from an offset on."""


class MemoryS3:
    """Objects in memory, by ``bucket/key``. All buckets exist."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        """The bytes and the ETag of each object."""

    def fill(self, bucket: str, folder: Path) -> None:
        """Store every file below ``folder`` under its relative path."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self._store(f"{bucket}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def answer(self, method: str, path: str, headers: Message, body: bytes) -> Answer:
        """Answer a request, given its method, path?query, headers and body."""
        quoted, _, query = path.partition("?")
        name = unquote(quoted).lstrip("/")
        parameters = parse_qs(query, keep_blank_values=True)
        if "/" not in name.rstrip("/"):
            return self._answer_for_bucket(method, name.rstrip("/"), parameters)
        if not parameters.keys() <= {_NAME_OF_OPERATION}:
            return s3_error(501, "NotImplemented")
        is_chunked = "aws-chunked" in headers.get("Content-Encoding", "")
        is_copy = "x-amz-copy-source" in headers
        if method == "PUT" and not is_chunked and not is_copy:
            return self._put(name, headers, body)
        if method in ("GET", "HEAD"):
            return self._get(name, headers.get("Range"))
        if method == "DELETE":
            self._objects.pop(name, None)
            return Answer(204)
        return s3_error(501, "NotImplemented")

    def _put(self, name: str, headers: Message, body: bytes) -> Answer:
        """Store an object, unless a condition of the request fails."""
        _, existing_etag = self._objects.get(name, (b"", None))
        must_be_new = headers.get("If-None-Match") == "*"
        required_etag = headers.get("If-Match", "").strip('"')
        if must_be_new and existing_etag is not None:
            return s3_error(412, "PreconditionFailed")
        if required_etag and required_etag != existing_etag:
            return s3_error(412, "PreconditionFailed")
        return Answer(200, [("ETag", f'"{self._store(name, body)}"')])

    def _store(self, name: str, data: bytes) -> str:
        """Store an object, and return its ETag."""
        etag = hashlib.md5(data, usedforsecurity=False).hexdigest()
        self._objects[name] = (data, etag)
        return etag

    def _get(self, name: str, byte_range: str | None) -> Answer:
        """Return an object, or the range of it in the header ``Range``."""
        if name not in self._objects:
            return s3_error(404, "NoSuchKey")
        data, etag = self._objects[name]
        headers = [("ETag", f'"{etag}"'), ("Last-Modified", _TIME), ("Date", _TIME)]
        if byte_range is None:
            return Answer(200, headers, data)
        match = _RANGE.fullmatch(byte_range)
        if match is None:
            return s3_error(501, "NotImplemented")
        start = int(match[1])
        end = min(int(match[2]) + 1, len(data)) if match[2] else len(data)
        if start >= len(data):
            return s3_error(416, "InvalidRange")
        if start >= end:
            return s3_error(501, "NotImplemented")
        headers.append(("Content-Range", f"bytes {start}-{end - 1}/{len(data)}"))
        return Answer(206, headers, memoryview(data)[start:end])

    def _answer_for_bucket(
        self, method: str, bucket: str, parameters: Mapping[str, Sequence[str]]
    ) -> Answer:
        """Answer a request for a bucket: whether it exists, or a list of its objects."""
        if method in ("HEAD", "PUT") and parameters.keys() <= {_NAME_OF_OPERATION}:
            return Answer(200)
        is_listing = method == "GET" and parameters.get("list-type") == ["2"]
        if not is_listing or not parameters.keys() <= _LISTING_PARAMETERS:
            return s3_error(501, "NotImplemented")
        # All keys are on one page; the limit of the request is ignored.
        prefix = parameters.get("prefix", [""])[0]
        entries = []
        # Other threads may store objects meanwhile, so this loop goes through a copy.
        for name, (data, etag) in sorted(self._objects.copy().items()):
            if name.startswith(f"{bucket}/{prefix}"):
                key = name.removeprefix(f"{bucket}/")
                entries.append(_list_entry(key, len(data), etag))
        xml = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<ListBucketResult><Name>{escape(bucket)}</Name>"
            f"<IsTruncated>false</IsTruncated><KeyCount>{len(entries)}</KeyCount>"
            f"{''.join(entries)}</ListBucketResult>"
        )
        return Answer(200, [("Content-Type", "application/xml")], xml.encode())


def _list_entry(key: str, size_bytes: int, etag: str) -> str:
    """Return an object as an element of the answer to LIST."""
    return (
        f"<Contents><Key>{escape(key)}</Key><Size>{size_bytes}</Size>"
        f"<LastModified>{_TIME_LISTED}</LastModified><ETag>&quot;{etag}&quot;</ETag></Contents>"
    )
