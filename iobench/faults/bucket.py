"""Objects in memory, and what S3 answers of them: the server behind a limited store.

Requests are those that boto3 and s5cmd send to write, read, list and delete. A server that does
more costs more: moto takes milliseconds of a processor for each request, which would be what is
measured.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import threading
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote
from xml.sax.saxutils import escape

from iobench.faults.answers import s3_error
from iobench.faults.kinds import Status
from iobench.faults.wire import Body, Head

_WHEN = "Mon, 01 Jan 2024 00:00:00 GMT"
_WHEN_LISTED = "2024-01-01T00:00:00.000Z"
_PAGE = 1000

Answer = tuple[Head, Body]


class Stored(NamedTuple):
    """An object's bytes and their MD5."""

    data: bytes
    etag: str


class Bucket:
    """Buckets by any name, all of them there; keys are ``bucket/key``."""

    def __init__(self) -> None:
        self._objects: dict[str, Stored] = {}
        self._lock = threading.Lock()

    def fill(self, bucket: str, folder: Path) -> None:
        """Every file below a folder, under its path from there."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self._keep(f"{bucket}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def forward(self, head: Head, blocks: Iterable[bytes], body: Body) -> Answer:
        """Answer one request, whose body ``blocks`` hold."""
        method, target = head.method_and_path
        data = b"".join(blocks)
        path, _, query = target.partition("?")
        name = unquote(path.lstrip("/"))
        if "/" not in name.rstrip("/"):
            return self._of_bucket(method, name.rstrip("/"), query)
        answer = self._methods.get(method)
        if answer is None or "aws-chunked" in (head.get("content-encoding") or ""):
            return s3_error(Status(501, "NotImplemented"), method)
        return answer(self, name, head, data)

    def release(self, answer: Head, body: Body) -> None:
        """Nothing is held for an answer."""

    def close(self) -> None:
        """Nothing to close."""

    def _keep(self, name: str, data: bytes) -> Stored:
        stored = Stored(data, hashlib.md5(data, usedforsecurity=False).hexdigest())
        with self._lock:
            self._objects[name] = stored
        return stored

    def _put(self, name: str, head: Head, data: bytes) -> Answer:
        there, wanted = self._objects.get(name), head.get("if-match")
        if head.get("if-none-match") == "*" and there is not None:
            return s3_error(Status(412, "PreconditionFailed"), "PUT")
        if wanted is not None and (there is None or wanted.strip('"') != there.etag):
            return s3_error(Status(412, "PreconditionFailed"), "PUT")
        stored = self._keep(name, data)
        told = head.get("content-md5")
        if told and base64.b64decode(told).hex() != stored.etag:
            return s3_error(Status(400, "BadDigest"), "PUT")
        return _answer(200, ETag=f'"{stored.etag}"')

    def _get(self, name: str, head: Head, _: bytes) -> Answer:
        method = head.method_and_path[0]
        stored = self._objects.get(name)
        if stored is None:
            return s3_error(Status(404, "NoSuchKey"), method)
        size, asked = len(stored.data), head.get("range")
        start, end = _span(asked, size) if asked else (0, size)
        if asked and start >= size:
            return s3_error(Status(416, "InvalidRange"), method)
        fields = {"ETag": f'"{stored.etag}"', "Last-Modified": _WHEN, "Date": _WHEN}
        fields["Accept-Ranges"] = "bytes"
        if asked:
            fields["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        answer, _empty = _answer(206 if asked else 200, length=end - start, **fields)
        if method == "HEAD":
            return answer, Body(BytesIO(), 0)
        reader = BytesIO(stored.data)  # shares the bytes
        reader.seek(start)
        return answer, Body(reader, end - start)

    def _delete(self, name: str, _head: Head, _: bytes) -> Answer:
        with self._lock:
            self._objects.pop(name, None)
        return _answer(204)

    _methods: dict[str, Callable[[Bucket, str, Head, bytes], Answer]] = {  # noqa: RUF012  constant
        "PUT": _put,
        "GET": _get,
        "HEAD": _get,
        "DELETE": _delete,
    }

    def _of_bucket(self, method: str, bucket: str, query: str) -> Answer:
        asked = {name: values[0] for name, values in parse_qs(query, True).items()}
        if method == "GET" and asked.get("list-type") == "2":
            return self._listed(bucket, asked)
        if method in ("HEAD", "PUT"):
            return _answer(200)
        return s3_error(Status(501, "NotImplemented"), method)

    def _listed(self, bucket: str, asked: dict[str, str]) -> Answer:
        prefix, after = asked.get("prefix", ""), asked.get("continuation-token", "")
        with self._lock:
            names = sorted(self._objects)
        start = bisect.bisect_left(names, f"{bucket}/{prefix}")
        if after:
            start = bisect.bisect_right(names, f"{bucket}/{after}")
        found: list[str] = []
        for name in names[start:]:
            if not name.startswith(f"{bucket}/{prefix}") or len(found) > _PAGE:
                break
            found.append(name.partition("/")[2])
        shown, more = found[:_PAGE], len(found) > _PAGE
        encoded = asked.get("encoding-type") == "url"
        parts = [
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult>',
            f"<Name>{escape(bucket)}</Name><KeyCount>{len(shown)}</KeyCount>",
            "<EncodingType>url</EncodingType>" if encoded else "",
            f"<IsTruncated>{str(more).lower()}</IsTruncated>",
            f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else "",
        ]
        for key in shown:
            stored = self._objects[f"{bucket}/{key}"]
            parts.append(
                f"<Contents><Key>{quote(key) if encoded else escape(key)}</Key>"
                f"<LastModified>{_WHEN_LISTED}</LastModified><ETag>&quot;{stored.etag}&quot;</ETag>"
                f"<Size>{len(stored.data)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        xml = "".join([*parts, "</ListBucketResult>"]).encode()
        head, _ = _answer(200, length=len(xml), **{"Content-Type": "application/xml"})
        return head, Body(BytesIO(xml), len(xml))


def _answer(status: int, *, length: int = 0, **fields: str) -> Answer:
    phrase = {200: "OK", 204: "No Content", 206: "Partial Content"}[status]
    pairs = dict(fields) if status == 204 else {**fields, "Content-Length": str(length)}
    return Head(f"HTTP/1.1 {status} {phrase}", tuple(pairs.items())), Body(BytesIO(), 0)


def _span(asked: str, size: int) -> tuple[int, int]:
    """``bytes=FIRST-LAST`` and ``bytes=FIRST-`` as a start and an end."""
    first, _, last = asked.removeprefix("bytes=").partition("-")
    return int(first), min(int(last) + 1 if last else size, size)
