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
import os
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from dataprep.errors import ObjectNotFound, StoredBytesDiffer, StoreError
from dataprep.stores.attempts import attempts
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, Holder, Lease, ObjectInfo, Versioned
from dataprep.stores.s3_answers import require_whole
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import error_code, is_passing, translated
from dataprep.stores.s3_leases import Dated
from dataprep.stores.s3_leases import holders as lease_holders
from dataprep.stores.s3_leases import sweep as sweep_leases
from dataprep.stores.s3_leases import take as take_lease
from dataprep.stores.s3_reading import S3Reader, log_refusal
from dataprep.stores.s3_uploads import abort

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MULTIPART_FROM_BYTES = 256 * 2**20
"""One PutObject below; shards always are. Above, parts of 64 MiB."""

PART_BYTES = 64 * 2**20
"""Of those parts, but for the last."""

_PUT_ATTEMPTS = 3
_CONNECTIONS = 256
"""As many as ``source_concurrency`` may ask for; only those in use are opened."""

_GONE = ("404", "NoSuchKey")
_EXISTS = ("PreconditionFailed", "ConditionalRequestConflict")


class S3Store:
    """A bucket, and within it a prefix."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._bucket = S3Bucket(uri, options)
        self.options = self._bucket.options
        self._reader = S3Reader(self._bucket, self._client)
        self._takes_bare_tags = False
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
        """Remove leases of the dead. An object is there or not."""
        sweep_leases(self)

    def abort_uploads(self, ours: Callable[[str], bool]) -> None:
        """Those in parts that a killed writer left; see ``s3_uploads``."""
        abort(self._bucket, self._client(), ours)

    def get(self, key: str) -> bytes:
        """The object's bytes, held against its ETag."""
        return self._reader.read(key, {}).data

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write the object's bytes to ``file`` as they come, held against its ETag."""
        self._reader.read_to(key, file)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Part of an object, by one range request."""
        return self.get_versioned(key, offset, length).data

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """All of an object, or part of it by one range request, and the ETag of that answer."""
        if length is None:
            return self._reader.read(key, {"Range": f"bytes={offset}-"} if offset else {})
        if length <= 0:
            return Versioned(b"", self.version(key))
        return self._reader.read(key, {"Range": f"bytes={offset}-{offset + length - 1}"})

    def version(self, key: str) -> str:
        """The ETag."""
        return self.head(key).etag or ""

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
        with contextlib.suppress(StoreError):  # absent rather than damaged
            self.delete(key)
        raise StoredBytesDiffer(
            f"{self._bucket.shown(key)}: the store holds other bytes than were sent, after "
            f"{_PUT_ATTEMPTS} attempts: something between here and there changes data. It was "
            "removed; run the same command again once that is mended"
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
                        return (sent or _was_repeated(error)) and self._reader.holds(key, data)
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
                require_whole(page, self.uri)
                for item in page.get("Contents", ()):
                    key = item["Key"][len(below) :]
                    if key and not (key.endswith("/") and item["Size"] == 0):
                        yield ObjectInfo(key, item["Size"], item.get("ETag", "").strip('"'))

    def head(self, key: str) -> ObjectInfo:
        """Size and ETag."""
        with translated(self._bucket.shown(key), self.options):
            answer = self._client().head_object(**self._bucket.object(key))
        return ObjectInfo(key, answer["ContentLength"], answer.get("ETag", "").strip('"'))

    def delete(self, key: str) -> None:
        """Remove the object."""
        with translated(self._bucket.shown(key), self.options):
            self._client().delete_object(**self._bucket.object(key))

    def lease(self, key: str, said: str) -> Lease | Holder | None:
        """An object below ``leases/``; see ``s3_leases``."""
        return take_lease(self, key, said)

    def holders(self, prefix: str) -> Iterator[Holder]:
        """By those objects."""
        return lease_holders(self, prefix)

    def dated(self, key: str) -> Dated:
        """A small object, and how long ago the server says that it was put."""
        with translated(self._bucket.shown(key), self.options):
            return self._reader.dated(key)

    def replace(self, key: str, data: bytes, etag: str) -> str | None:
        """Put ``data`` if the object still has that ETag (``If-Match``); the new one.

        None where it has another by now, or is gone. Asked once: whose answer is lost must look.
        Ceph's gateway (16.2) compares the quotes along: a server that refuses although the ETag
        is still the same is asked without them.

        Raises:
            StoreError: it refuses that too, so that nothing can be replaced there.
        """
        for tag in (etag,) if self._takes_bare_tags else (f'"{etag}"', etag):
            new = self._put_if(key, data, tag)
            if new is not None:
                self._takes_bare_tags = tag == etag
                return new
            if not self._still_has(key, etag):
                return None
        raise StoreError(
            f"{self._bucket.shown(key)}: the store refuses If-Match although the object has that "
            "ETag: it cannot keep leases"
        )

    def _put_if(self, key: str, data: bytes, tag: str) -> str | None:
        md5 = hashlib.md5(data, usedforsecurity=False).digest()
        with translated(self._bucket.shown(key), self.options):
            try:
                answer = self._put_object(key, data, md5, IfMatch=tag)
            except Exception as error:
                if error_code(error) in (*_EXISTS, *_GONE):
                    return None
                raise
        return str(answer.get("ETag", "")).strip('"')

    def _still_has(self, key: str, etag: str) -> bool:
        try:
            return self.head(key).etag == etag
        except ObjectNotFound:
            return False

    def _put_object(self, key: str, data: Buffer, md5: bytes, **conditions: Any) -> Any:
        body: Any = bytes(data) if isinstance(data, memoryview) else data
        return self._client().put_object(
            **self._bucket.object(key),
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
            Config=TransferConfig(
                multipart_threshold=MULTIPART_FROM_BYTES,
                multipart_chunksize=PART_BYTES,
                max_concurrency=4,
            ),
        )

    def _confirmed(self, key: str, data: Buffer, md5: str) -> ObjectInfo | None:
        """What HEAD says if it agrees with ``data``; None where the stored bytes differ."""
        info = self.head(key)
        if info.bytes != len(data):
            return None
        if info.etag == md5:
            self._reader.etags_are_md5s = True
            return info
        return info if self._reader.holds(key, data) else None

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
                client.meta.events.register("needs-retry.s3", log_refusal)
                self._clients[attempts] = client
            return self._clients[attempts]


@lru_cache(maxsize=16)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """One store a process for all tasks that bring it along: a client takes 0.2 s to make."""
    return S3Store(uri, options)


def _octets(data: Buffer) -> Buffer:
    """The same memory, of which ``len`` counts bytes."""
    return memoryview(data).cast("B") if isinstance(data, memoryview) else data


def _was_repeated(error: BaseException) -> bool:
    response = getattr(error, "response", None) or {}
    return bool(response.get("ResponseMetadata", {}).get("RetryAttempts"))
