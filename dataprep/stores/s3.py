"""A store in S3, or on a server with the same protocol, through boto3.

Bytes that are read or written are compared with the ETag of the object. The ETag is the MD5 of the
bytes, except in three cases: the server encrypts with KMS, the object was uploaded in parts, or the
server has another kind of ETags (S3 API reference, "Common Response Headers"). In these cases, an
object is read back after it was written.

``s3_retry.py`` repeats requests, and ``s3_bucket.py`` translates the errors of boto3.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from dataprep.errors import ObjectNotFound, StoredBytesDiffer, StoreError
from dataprep.message_text import counted
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, KeepsLocks, ObjectInfo, Upload, Versioned
from dataprep.stores.s3_bucket import S3Bucket, error_code, translate_s3_errors
from dataprep.stores.s3_retry import (
    READ_ATTEMPTS,
    call_with_retries,
    count_put_attempts,
    send_with_retries,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

GET_MESSAGE = "GET %s: %d bytes, the first after %.6f s, the last after %.6f s"
"""The log message (level DEBUG) for each GET that was answered.

Its arguments are the key, the number of bytes, and the seconds from the request until the answer
began and until all bytes had arrived. The seconds include attempts that boto3 made before, but not
those that ``call_with_retries`` made.
"""

THROTTLED_MESSAGE = "answered %d"
"""The log message (level DEBUG) for each answer with which a store asks for fewer requests.

Its argument is the status, 503 or 429. The message is logged even if the request is not repeated.
"""

_MAX_CONNECTIONS = 256
"""The maximum number of connections, which is the upper limit of ``source_concurrency``.

A connection is opened only when it is needed.
"""

_PIECE_BYTES = 2**20  # the size of the pieces in which an answer is read
_MD5_DIGITS = 32  # of an ETag that may be an MD5

# Answers to a conditional PUT: the condition is not met, or the server does not support conditions.
_CONDITION_NOT_MET_CODES = ("PreconditionFailed", "404", "NoSuchKey")
_NOT_IMPLEMENTED_CODE = "NotImplemented"

_OTHER_BYTES = "the store holds other bytes than were sent"

_log = logging.getLogger(__name__)


class _FileFailed(Exception):
    """The file that an object is copied to cannot be written.

    This is not an OSError, because an OSError may come from the connection and is then repeated.

    Attributes:
        error: the error of the file.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class S3Store(KeepsLocks):
    """The objects of a bucket whose keys begin with a prefix.

    Threads can share a store. Each process opens connections of its own.

    Attributes:
        uri: the address of the bucket and prefix, without a slash at its end.
        options: the endpoint, the profile and other options.
    """

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._bucket = S3Bucket(uri, options)
        self.uri = self._bucket.uri
        self.options = self._bucket.options
        # Whether an ETag of this bucket was the MD5 of the object's bytes.
        self._etags_are_md5s = False
        self._open_client: S3Client | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.uri, self.options)

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        client, self._open_client = self._open_client, None
        if client is not None:
            client.close()

    def prepare(self) -> None:
        """Check that the bucket exists and can be reached, but not that it can be written to.

        There is only one retry, so that a wrong address fails early.
        """
        name = self._bucket.name
        with (
            translate_s3_errors(f"s3://{name}", self.options),
            contextlib.closing(self._bucket.connect(attempts=2)) as client,
        ):
            client.head_bucket(Bucket=name)

    def region(self) -> str:
        """Return the region of the bucket; empty if the server does not name it."""
        with translate_s3_errors(f"s3://{self._bucket.name}", self.options):
            answer = self._client().head_bucket(Bucket=self._bucket.name)
        return str(answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", ""))

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write an object's bytes to ``file`` as they arrive, and compare them with its ETag."""
        try:
            self._copy_to(key, file, {})
        except _FileFailed as failure:
            raise failure.error from None

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all bytes of an object, or part of it by a range request.

        Only all bytes can be compared with the ETag.

        Args:
            key: the key of the object.
            offset: the first byte.
            length: the number of bytes; None for all bytes from the offset.
        """
        arguments = {}
        if offset or length is not None:
            # A range has at least one byte. For a length of 0, it is removed below.
            last_byte = "" if length is None else offset + max(length, 1) - 1
            arguments["Range"] = f"bytes={offset}-{last_byte}"
        content = io.BytesIO()
        version = self._copy_to(key, content, arguments)
        return Versioned(content.getvalue()[:length], version)

    def version(self, key: str) -> str:
        """Return the ETag of an object, without quotes, as its version."""
        return self.head(key).etag or ""

    def age_s(self, key: str) -> float:
        """Return the seconds from ``Last-Modified`` to ``Date`` in one answer of the server.

        Thus the clock of this machine does not matter.
        """
        with self._bucket.translate_s3_errors(key):
            answer = self._client().head_object(**self._bucket.object_arguments(key))
            now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
            return (now - answer["LastModified"]).total_seconds()

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store an object, and confirm it.

        If the store then holds other bytes, the object is sent again. If this happens too often,
        the object is removed, and StoredBytesDiffer is raised.
        """
        with self._bucket.translate_s3_errors(key):
            return self._put_unconditionally(Upload(key, data))

    def create(self, key: str, data: Buffer) -> bool:
        """Store an object unless the key exists (``If-None-Match: *``), and confirm it."""
        return self.create_upload(Upload(key, data)) is not None

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """Do as ``create``; return the confirmed object, or None if ``create`` returns False."""
        with self._bucket.translate_s3_errors(upload.key):
            return self._put_if_version(upload, None)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Store an object if its ETag is still ``version`` (``If-Match``), and confirm it."""
        return self.replace_upload(Upload(key, data), version) is not None

    def replace_upload(self, upload: Upload, version: str) -> ObjectInfo | None:
        """Do as ``replace``; return the confirmed object, or None if ``replace`` returns False."""
        with self._bucket.translate_s3_errors(upload.key):
            return self._put_if_version(upload, version)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys begin with ``prefix``. One request lists a thousand objects.

        Empty objects whose keys end with a slash are left out, because they only mark folders.
        """
        root = self._bucket.prefix
        pages = self._client().get_paginator("list_objects_v2")
        with self._bucket.translate_s3_errors(""):
            for page in pages.paginate(
                Bucket=self._bucket.name, Prefix=root + prefix, **self._bucket.payer_arguments()
            ):
                if page.get("IsTruncated", True) and not page.get("NextContinuationToken"):
                    raise StoreError(
                        f"{self.uri}: a listing is incomplete: the server does not support "
                        "ListObjectsV2. Check --endpoint-url, or use a newer server"
                    )
                for item in page.get("Contents", ()):
                    key = item["Key"].removeprefix(root)
                    marks_folder = key.endswith("/") and item["Size"] == 0
                    if key and not marks_folder:
                        yield ObjectInfo(key, item["Size"], item.get("ETag", "").strip('"'))

    def head(self, key: str) -> ObjectInfo:
        """Return the size and the ETag of an object."""
        with self._bucket.translate_s3_errors(key):
            answer = self._client().head_object(**self._bucket.object_arguments(key))
            return ObjectInfo(key, answer["ContentLength"], answer.get("ETag", "").strip('"'))

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._bucket.translate_s3_errors(key):
            self._client().delete_object(**self._bucket.object_arguments(key))

    def _client(self) -> S3Client:
        """Return the client of this process."""
        if self._process != os.getpid():
            # This process is a fork. The connections belong to the parent, and another thread of
            # the parent may have held the lock.
            self._open_client = None
            self._process = os.getpid()
            self._lock = threading.Lock()
        with self._lock:
            if self._open_client is None:
                client = self._bucket.connect(
                    attempts=self.options.max_attempts, connections=_MAX_CONNECTIONS
                )
                client.meta.events.register("needs-retry.s3", log_throttling)
                count_put_attempts(client)
                self._open_client = client
            return self._open_client

    def _copy_to(self, key: str, file: IO[bytes], arguments: Mapping[str, Any]) -> str:
        """Write an object or a range of it to ``file``, and return its ETag.

        The object is read again if the MD5 of its bytes differs from its ETag. An ETag that looks
        like an MD5 may be of another kind. This is assumed if two readings give the same bytes, and
        no ETag of this bucket has been an MD5 before.

        Raises:
            _FileFailed: the file cannot be written.
        """
        start = file.tell()
        earlier_md5 = ""
        with self._bucket.translate_s3_errors(key):
            for _ in range(READ_ATTEMPTS):
                etag, md5 = call_with_retries(partial(self._get, key, file, start, arguments))
                is_md5 = etag != "" and md5 == etag
                self._etags_are_md5s = self._etags_are_md5s or is_md5
                if is_md5 or not md5:
                    return etag
                if md5 == earlier_md5 and not self._etags_are_md5s:
                    return etag
                earlier_md5 = md5
        raise StoreError(
            f"{self.uri}/{key}: {READ_ATTEMPTS} readings differ from each other or from the ETag: "
            "the object is damaged in the store, or a device or proxy on the way changes data"
        )

    def _get(
        self, key: str, file: IO[bytes], start: int, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        """Write the answer of one GET to ``file`` from position ``start``.

        Args:
            key: the key of the object.
            file: the file to write. Its content from ``start`` on is removed first.
            start: the position in the file, in bytes.
            arguments: further arguments of the request, such as its range.

        Returns:
            The ETag, and the MD5 of the bytes. The MD5 is empty if it cannot be compared with the
            ETag. Both are empty, and nothing is written, if the range begins at or after the end
            of the object.

        Raises:
            _FileFailed: the file cannot be written.
        """
        with _file_errors():
            file.seek(start)
            file.truncate()
        begun_s = time.monotonic()
        try:
            answer = self._client().get_object(**self._bucket.object_arguments(key), **arguments)
        except Exception as error:
            if error_code(error) == "InvalidRange":
                # The range begins at or after the end of the object. The answer has no ETag.
                return "", ""
            raise
        answered_s = time.monotonic()
        etag = answer.get("ETag", "").strip('"')
        has_kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
        is_comparable = not arguments and not has_kms and len(etag) == _MD5_DIGITS
        md5 = hashlib.md5(usedforsecurity=False)
        # `with answer["Body"]` would give the stream of urllib3, without the checks of botocore.
        with contextlib.closing(answer["Body"]) as body:
            for piece in body.iter_chunks(_PIECE_BYTES):
                with _file_errors():
                    file.write(piece)
                if is_comparable:
                    md5.update(piece)
        ended_s = time.monotonic()
        _log.debug(GET_MESSAGE, key, file.tell() - start, answered_s - begun_s, ended_s - begun_s)
        return etag, md5.hexdigest() if is_comparable else ""

    def _put_unconditionally(self, upload: Upload) -> ObjectInfo:
        """Send an object until the store holds its bytes. An existing object is replaced."""
        while True:
            self._send(upload)
            info = self.head(upload.key)
            if self._is_confirmed(info, upload):
                return info
            self._prepare_to_send_again(upload)

    def _put_if_version(self, upload: Upload, version: str | None) -> ObjectInfo | None:
        """Store an object if the current object has ``version``; for None, if there is no object.

        Returns the confirmed object, or None if the condition is not met.

        Some servers do not support the condition, or always refuse it. In that case, this method
        compares the current version itself, and stores the object unconditionally. If two writers
        do this at the same moment, both may store their object.
        """
        conditions = [{"IfNoneMatch": "*"}]
        if version is not None:
            # The gateway of Ceph (16.2) compares the ETag together with its quotes.
            conditions = [{"IfMatch": f'"{version}"'}, {"IfMatch": version}]
        for condition in conditions:
            try:
                etag = self._send(upload, **condition)
            except Exception as error:
                code = error_code(error)
                if code not in (*_CONDITION_NOT_MET_CODES, _NOT_IMPLEMENTED_CODE):
                    raise
                upload.attempts -= 1  # the server answered, and the attempt is not repeated
                current_version = None
                with contextlib.suppress(ObjectNotFound):
                    current_version = self.version(upload.key)
                if current_version != version:
                    return None
                if version is None and code != _NOT_IMPLEMENTED_CODE:
                    return None
            else:
                return self._confirmed(upload, etag)
        return self._put_unconditionally(upload)

    def _confirmed(self, upload: Upload, etag: str) -> ObjectInfo | None:
        """Confirm an object that was sent and has the ETag ``etag``. Replace it if it is damaged.

        Returns None if another run has replaced or removed the object in the meantime.
        """
        try:
            info = self.head(upload.key)
        except ObjectNotFound:
            return None
        if self._is_confirmed(info, upload):
            return info
        if info.etag != etag:
            return None
        self._prepare_to_send_again(upload)
        return self._put_if_version(upload, etag)

    def _is_confirmed(self, info: ObjectInfo, upload: Upload) -> bool:
        """Whether a stored object has the MD5 of the upload as its ETag, or the same content.

        The object is read if its ETag is not the MD5 of the upload.
        """
        if info.etag == upload.md5.hex():
            self._etags_are_md5s = True
            return True
        content = io.BytesIO()
        call_with_retries(partial(self._get, upload.key, content, 0, {}))
        return content.getbuffer() == upload.data

    def _prepare_to_send_again(self, upload: Upload) -> None:
        """Record that the store holds other bytes than were sent.

        If no attempts are left, remove the object, if the run still has its lock.

        Raises:
            StoredBytesDiffer: no attempts are left.
            LeaseLost: no attempts are left, and the run has lost its lock.
        """
        upload.reason = _OTHER_BYTES
        if upload.attempts < self.options.max_attempts:
            return
        with contextlib.suppress(StoreError):
            upload.check_lock()
            self.delete(upload.key)
        raise StoredBytesDiffer(
            f"{self.uri}/{upload.key}: {_OTHER_BYTES}, after {counted(upload.attempts, 'attempt')}:"
            " something between this machine and the store changes data. Remove the object if it "
            "still exists, repair the cause, then run the same command again"
        )

    def _send(self, upload: Upload, **conditions: str) -> str:
        """Send an object, with retries, and return its ETag.

        ``conditions`` are the arguments of a conditional PUT, such as ``IfMatch``.
        """
        arguments = {
            **self._bucket.object_arguments(upload.key),
            **self._bucket.put_arguments(),
            **conditions,
        }
        return send_with_retries(
            self._client(),
            upload,
            arguments,
            address=f"{self.uri}/{upload.key}",
            max_attempts=self.options.max_attempts,
        )


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    """Raise _FileFailed if the block raises an OSError. The block uses only a local file."""
    try:
        yield
    except OSError as error:
        raise _FileFailed(error) from None


@lru_cache(maxsize=16)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """Return the store of a pickle. All tasks in a process share one store for the same address.

    Creating a client takes 0.2 s.
    """
    return S3Store(uri, options)


def log_throttling(response: tuple[Any, Any] | None = None, **_: Any) -> None:
    """Log an answer with status 429 or 503. botocore calls this after each attempt of a request."""
    status = getattr(response[0], "status_code", None) if response else None
    if status in (429, 503):
        _log.debug(THROTTLED_MESSAGE, status)
