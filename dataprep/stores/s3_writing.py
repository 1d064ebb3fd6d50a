"""Objects of a bucket, written and confirmed.

A stored object is confirmed by its size and its ETag, which is the MD5 of the bytes unless the
server encrypts with KMS or has ETags of its own kind (S3 API reference, "Common Response
Headers"); then the object is read back.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, cast

from dataprep.errors import DataprepError, ObjectNotFound, StoredBytesDiffer, StoreError
from dataprep.stores.attempts import attempts
from dataprep.stores.protocol import Buffer, ObjectInfo
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import error_code, is_passing, translated
from dataprep.stores.s3_reading import S3Reader

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MULTIPART_FROM_BYTES = 256 * 2**20
"""One PutObject below; shards always are. Above, parts of 64 MiB."""

PART_BYTES = 64 * 2**20
"""Of those parts, but for the last."""

_PUT_ATTEMPTS = 3
_GONE = ("404", "NoSuchKey")
_EXISTS = ("PreconditionFailed", "ConditionalRequestConflict")


class S3Writer:
    """Writes by ``client()``, which may be another in each process; confirms by ``reader``."""

    def __init__(self, bucket: S3Bucket, client: Callable[[], S3Client], reader: S3Reader) -> None:
        self._bucket, self._client, self._reader = bucket, client, reader
        self._takes_bare_tags = False

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """``put_hashed`` of what is hashed here."""
        data = _octets(data)
        return self.put_hashed(key, data, hashlib.md5(data, usedforsecurity=False).digest())

    def put_hashed(self, key: str, data: Buffer, md5: bytes) -> ObjectInfo:
        """Store, then confirm; what does not match is stored again, then refused."""
        data = _octets(data)
        for last in attempts(_PUT_ATTEMPTS, first_wait_s=0.4):
            with translated(self._bucket.shown(key), self._bucket.options):
                try:
                    if len(data) >= MULTIPART_FROM_BYTES:
                        self._upload_parts(key, data)
                    else:
                        self._put_object(key, data, md5)
                    info = self._confirmed(key, data, md5.hex())
                except Exception as error:
                    if last or isinstance(error, DataprepError) or not is_passing(error):
                        raise
                    continue
            if info is not None:
                return info
        raise StoredBytesDiffer(
            f"{self._bucket.shown(key)}: the store holds other bytes than were sent, after "
            f"{_PUT_ATTEMPTS} attempts: something between here and there changes data. "
            f"{self._removed(key)}; run the same command again once that is mended"
        )

    def _removed(self, key: str) -> str:
        """Absent rather than damaged; what became of it."""
        try:
            self.delete(key)
        except StoreError:
            return "It could not be removed: remove it"
        return "It was removed"

    def create(self, key: str, data: Buffer) -> bool:
        """Store unless the key exists (``If-None-Match: *``), and confirm as ``put`` does.

        Where an answer was lost, the object that the repeated request finds is its own if it
        holds the same bytes. A server that knows no such condition (501) is asked first instead,
        which does not decide between two at the same moment.
        """
        data = _octets(data)
        md5 = hashlib.md5(data, usedforsecurity=False)
        with translated(self._bucket.shown(key), self._bucket.options):
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
                    if last or isinstance(error, DataprepError) or not is_passing(error):
                        raise
                    sent = True
            if self._confirmed(key, data, md5.hexdigest()) is None:
                self.put(key, data)
        return True

    def _create_unless_seen(self, key: str, data: Buffer) -> bool:
        try:
            self._reader.head(key)
        except ObjectNotFound:
            self.put(key, data)
            return True
        return False

    def delete(self, key: str) -> None:
        """Remove the object."""
        with translated(self._bucket.shown(key), self._bucket.options):
            self._client().delete_object(**self._bucket.object(key))

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
        with translated(self._bucket.shown(key), self._bucket.options):
            try:
                answer = self._put_object(key, data, md5, IfMatch=tag)
            except Exception as error:
                if error_code(error) in (*_EXISTS, *_GONE):
                    return None
                raise
        return str(answer.get("ETag", "")).strip('"')

    def _still_has(self, key: str, etag: str) -> bool:
        try:
            return self._reader.head(key).etag == etag
        except ObjectNotFound:
            return False

    def _put_object(self, key: str, data: Buffer, md5: bytes, **conditions: Any) -> Any:
        return self._client().put_object(
            **self._bucket.object(key),
            Body=cast(IO[bytes], _Body(data)),
            ContentMD5=base64.b64encode(md5).decode(),
            **self._bucket.put_arguments(),
            **conditions,
        )

    def _upload_parts(self, key: str, data: Buffer) -> None:
        from boto3.s3.transfer import TransferConfig  # slow to import, rarely needed

        self._client().upload_fileobj(
            cast(IO[bytes], _Body(data)),
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
        info = self._reader.head(key)
        if info.bytes != len(data):
            return None
        if info.etag == md5:
            self._reader.etags_are_md5s = True
            return info
        return info if self._reader.holds(key, data) else None


class _Body(io.RawIOBase):
    """Bytes in memory as the file that botocore asks for, without a copy of them all."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        part = self._data[self._at : self._at + len(room)]
        room[: len(part)] = part
        self._at += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def _octets(data: Buffer) -> Buffer:
    """The same memory, of which ``len`` counts bytes."""
    return memoryview(data).cast("B") if isinstance(data, memoryview) else data


def _was_repeated(error: BaseException) -> bool:
    response = getattr(error, "response", None) or {}
    return bool(response.get("ResponseMetadata", {}).get("RetryAttempts"))
