"""S3, and whatever speaks its protocol, through boto3.

No answer is taken on trust. A stored object is confirmed by its size and its ETag, which is
the MD5 of the bytes unless the server encrypts with KMS or has ETags of its own kind (S3 API
reference, "Common Response Headers"); then the object is read back. A read object is held
against the same ETag.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dataprep.errors import ObjectNotFound, StoredBytesDiffer, StoreError
from dataprep.stores.attempts import attempts
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, ObjectInfo
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import error_code, is_checksum, is_passing, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MULTIPART_FROM_BYTES = 256 * 2**20
"""One PutObject below; shards always are. Above, parts of 64 MiB."""

PART_BYTES = 64 * 2**20
"""Of those parts, but for the last."""

_MD5 = re.compile(r"[0-9a-f]{32}")
_PUT_ATTEMPTS = 3
_READ_ATTEMPTS = 4
_CONNECTIONS = 256
"""As many as ``source_concurrency`` may ask for; only those in use are opened."""

_log = logging.getLogger(__name__)
GOT = "GET %s: %d bytes, the first after %.6f s, the last after %.6f s"
"""What is logged (level DEBUG) of each GET that was answered: the key, how many bytes came, and the
seconds from asking, attempts before included, until the answer began and until all was there."""

REFUSED = "answered %d"
"""What is logged (level DEBUG) of each answer by which a store asks for fewer requests: its status,
503 or 429, whether it is tried again or not."""

_TOO_MANY = (429, 503)

_EXISTS = ("PreconditionFailed", "ConditionalRequestConflict")


class S3Store:
    """A bucket, and within it a prefix."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._bucket = S3Bucket(uri, options)
        self.options = self._bucket.options
        self._forget()

    def __reduce__(self) -> tuple[Callable[[str, StoreOptions], S3Store], tuple[str, StoreOptions]]:
        return _unpickled, (self.uri, self.options)

    @property
    def uri(self) -> str:
        """``s3://bucket/prefix``."""
        return self._bucket.uri

    def close(self) -> None:
        """Close connections; the next request opens new ones."""
        with self._lock:
            clients = list(self._clients.values())
            self._clients.clear()
        for client in clients:
            client.close()

    def prepare(self) -> None:
        """Ask for the bucket, with few retries, so that a wrong name fails at once."""
        name = self._bucket.name
        with translated(f"s3://{name}", self.options):
            self._client(attempts=2).head_bucket(Bucket=name)

    def free_bytes(self) -> int | None:
        """Not known."""
        return None

    def tidy(self) -> None:
        """Nothing to do: an object is there or not, and failed multipart uploads are aborted."""

    def get(self, key: str) -> bytes:
        """The object's bytes, held against its ETag."""
        return self._read(key, {})

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of an object, by one range request."""
        if length <= 0:
            self.head(key)
            return b""
        return self._read(key, {"Range": f"bytes={offset}-{offset + length - 1}"})

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store, then confirm; what does not match is stored again, then refused."""
        data = _octets(data)
        md5 = hashlib.md5(data, usedforsecurity=False)
        for last in attempts(_PUT_ATTEMPTS, first_wait_s=0.4):
            with translated(self._bucket.shown(key), self.options):
                try:
                    if len(data) >= MULTIPART_FROM_BYTES:
                        self._upload_parts(key, data)
                    else:
                        self._put_object(key, data, md5.digest())
                    info = self._confirmed(key, data, md5.hexdigest())
                except Exception as error:
                    if last or not is_passing(error):
                        raise
                    continue
            if info is not None:
                return info
        raise StoredBytesDiffer(
            f"{self._bucket.shown(key)}: the store holds other bytes than were sent, after "
            f"{_PUT_ATTEMPTS} attempts: something between here and there changes data"
        )

    def create(self, key: str, data: Buffer) -> bool:
        """Store unless the key exists (``If-None-Match: *``), and confirm as ``put`` does.

        Where an answer was lost, the object that the repeated request finds is its own if it
        holds the same bytes. A server that knows no such condition (501) is asked first instead,
        which does not decide between two at the same moment.
        """
        data = _octets(data)
        md5 = hashlib.md5(data, usedforsecurity=False)
        with translated(self._bucket.shown(key), self.options):
            sent = False
            for last in attempts(_PUT_ATTEMPTS, first_wait_s=0.4):
                try:
                    self._put_object(key, data, md5.digest(), IfNoneMatch="*")
                    break
                except Exception as error:
                    if error_code(error) in _EXISTS:
                        return (sent or _was_repeated(error)) and self._holds(key, data)
                    if error_code(error) == "NotImplemented":
                        return self._create_unless_seen(key, data)
                    if last or not is_passing(error):
                        raise
                    sent = True
            if self._confirmed(key, data, md5.hexdigest()) is None:
                self.put(key, data)
        return True

    def _create_unless_seen(self, key: str, data: Buffer) -> bool:
        try:
            self.head(key)
        except ObjectNotFound:
            self.put(key, data)
            return True
        return False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object below, a thousand a request; keys that only mark folders left out."""
        pages = self._client().get_paginator("list_objects_v2")
        with translated(self.uri, self.options):
            below = self._bucket.prefix
            for page in pages.paginate(
                Bucket=self._bucket.name, Prefix=below + prefix, **self._bucket.payer()
            ):
                for item in page.get("Contents", ()):
                    key = item["Key"][len(below) :]
                    if key and not (key.endswith("/") and item["Size"] == 0):
                        yield ObjectInfo(key, item["Size"], item.get("ETag", "").strip('"'))

    def head(self, key: str) -> ObjectInfo:
        """Size and ETag."""
        with translated(self._bucket.shown(key), self.options):
            answer = self._client().head_object(**self._object(key))
        return ObjectInfo(key, answer["ContentLength"], answer.get("ETag", "").strip('"'))

    def delete(self, key: str) -> None:
        """Remove the object."""
        with translated(self._bucket.shown(key), self.options):
            self._client().delete_object(**self._object(key))

    def _object(self, key: str) -> dict[str, Any]:
        bucket = self._bucket
        return {"Bucket": bucket.name, "Key": bucket.prefix + key, **bucket.payer()}

    def _put_object(self, key: str, data: Buffer, md5: bytes, **conditions: Any) -> None:
        body: Any = bytes(data) if isinstance(data, memoryview) else data
        self._client().put_object(
            **self._object(key),
            Body=body,
            ContentMD5=base64.b64encode(md5).decode(),
            ChecksumAlgorithm="SHA256",
            ChecksumSHA256=base64.b64encode(hashlib.sha256(data).digest()).decode(),
            **self._bucket.put_arguments(),
            **conditions,
        )

    def _upload_parts(self, key: str, data: Buffer) -> None:
        from boto3.s3.transfer import TransferConfig  # slow to import, rarely needed

        self._client().upload_fileobj(
            io.BytesIO(data),
            self._bucket.name,
            self._bucket.prefix + key,
            ExtraArgs={
                "ChecksumAlgorithm": "SHA256",
                **self._bucket.put_arguments(),
                **self._bucket.payer(),
            },
            Config=TransferConfig(multipart_chunksize=PART_BYTES, max_concurrency=4),
        )

    def _confirmed(self, key: str, data: Buffer, md5: str) -> ObjectInfo | None:
        """What HEAD says if it agrees with ``data``; None where the stored bytes differ."""
        info = self.head(key)
        if info.bytes != len(data):
            return None
        return info if info.etag == md5 or self._holds(key, data) else None

    def _holds(self, key: str, data: Buffer) -> bool:
        """Whether the object reads back as ``data``."""
        try:
            return self._fetch(key, {})[0] == data
        except Exception as error:
            if is_checksum(error):
                return False
            raise

    def _read(self, key: str, arguments: Mapping[str, Any]) -> bytes:
        """Read, and again after a broken connection or a body that is not what the ETag says.

        An ETag that looks like an MD5 and is none shows by two readings that agree.
        """
        before: bytes | None = None
        with translated(self._bucket.shown(key), self.options):
            for last in attempts(_READ_ATTEMPTS, first_wait_s=0.2):
                try:
                    data, md5 = self._fetch(key, arguments)
                except Exception as error:
                    if last or not is_passing(error):
                        raise
                    continue
                if md5 is None or data == before:
                    return data
                if hashlib.md5(data, usedforsecurity=False).hexdigest() == md5:
                    return data
                before = data
        raise StoreError(
            f"{self._bucket.shown(key)}: {_READ_ATTEMPTS} readings differ from each other and from "
            "the ETag: something between here and the store changes data"
        )

    def _fetch(self, key: str, arguments: Mapping[str, Any]) -> tuple[bytes, str | None]:
        """The body of one GET, and its MD5 where the answer gives one."""
        client = self._client()
        asked_s = time.monotonic()
        try:
            answer: Any = client.get_object(**self._object(key), **arguments)
        except client.exceptions.ClientError as error:
            if error_code(error) == "InvalidRange":
                return b"", None  # it begins where the object has already ended
            raise
        begun_s = time.monotonic()
        # Not `with answer["Body"]`: that gives urllib3's stream, past botocore's checks.
        with contextlib.closing(answer["Body"]) as body:
            data: bytes = body.read()
        _log.debug(GOT, key, len(data), begun_s - asked_s, time.monotonic() - asked_s)
        etag = answer.get("ETag", "").strip('"')
        kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
        plain = "Range" not in arguments and not kms and _MD5.fullmatch(etag)
        return data, etag if plain else None

    def _forget(self) -> None:
        self._process = os.getpid()
        self._clients: dict[int | None, S3Client] = {}
        self._lock = threading.Lock()

    def _client(self, attempts: int | None = None) -> S3Client:
        if self._process != os.getpid():
            self._forget()  # forked: connections, and perhaps a locked lock, are the parent's
        with self._lock:
            if attempts not in self._clients:
                # Content-MD5 and the confirmation guard the payload, which is not signed.
                client = self._bucket.connect(attempts=attempts, connections=_CONNECTIONS)
                client.meta.events.register("needs-retry.s3", _log_refusal)
                self._clients[attempts] = client
            return self._clients[attempts]


@lru_cache(maxsize=16)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """One store a process for all tasks that bring it along: a client takes 0.2 s to make."""
    return S3Store(uri, options)


def _octets(data: Buffer) -> Buffer:
    """The same memory, of which ``len`` counts bytes."""
    return memoryview(data).cast("B") if isinstance(data, memoryview) else data


def _log_refusal(response: tuple[Any, Any] | None = None, **_: Any) -> None:
    """Asked by botocore after each attempt whether to try again; says nothing to that."""
    status = getattr(response[0], "status_code", None) if response else None
    if status in _TOO_MANY:
        _log.debug(REFUSED, status)


def _was_repeated(error: BaseException) -> bool:
    response = getattr(error, "response", None) or {}
    return bool(response.get("ResponseMetadata", {}).get("RetryAttempts"))
