"""S3, and whatever speaks its protocol, through boto3.

No answer is taken on trust: what is read and what is written is held against its ETag
(``s3_reading``, ``s3_writing``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO

from dataprep.stores.leave import ask
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, Holder, Lease, ObjectInfo, Versioned
from dataprep.stores.s3_answers import require_whole
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import translated
from dataprep.stores.s3_leases import Dated
from dataprep.stores.s3_leases import holders as lease_holders
from dataprep.stores.s3_leases import sweep as sweep_leases
from dataprep.stores.s3_leases import take as take_lease
from dataprep.stores.s3_reading import S3Reader, log_refusal
from dataprep.stores.s3_uploads import abort
from dataprep.stores.s3_writing import S3Writer

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CONNECTIONS = 256
"""As many as ``source_concurrency`` may ask for; only those in use are opened."""


class S3Store:
    """A bucket, and within it a prefix."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._bucket = S3Bucket(uri, options)
        self.options = self._bucket.options
        self._reader = S3Reader(self._bucket, self._client)
        self._writer = S3Writer(self._bucket, self._client, self._reader)
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
        return self._writer.put(key, data)

    def put_hashed(self, key: str, data: Buffer, md5: bytes) -> ObjectInfo:
        """As ``put``, of ``data`` that has this MD5."""
        return self._writer.put_hashed(key, data, md5)

    def create(self, key: str, data: Buffer) -> bool:
        """Store unless the key exists (``If-None-Match: *``), and confirm as ``put`` does."""
        return self._writer.create(key, data)

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
        return self._reader.head(key)

    def delete(self, key: str) -> None:
        """Remove the object."""
        self._writer.delete(key)

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
        """Put ``data`` if the object still has that ETag; the new one, or None."""
        return self._writer.replace(key, data, etag)

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
                # Behind botocore's limiter, which may wait here.
                client.meta.events.register_last("before-send", ask)
                self._clients[attempts] = client
            return self._clients[attempts]


@lru_cache(maxsize=16)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """One store a process for all tasks that bring it along: a client takes 0.2 s to make."""
    return S3Store(uri, options)
