"""S3 and servers with its protocol, through boto3.

boto3 sends each request up to ``store.max_attempts`` times, in its adaptive mode. An object is sent
no more often than that in all, also where a server stores other bytes than were sent.
What is read and what is written is compared with its ETag. That is the MD5 of the bytes, unless the
server encrypts with KMS, the object was uploaded in parts, or the server has ETags of its own kind
(S3 API reference, "Common Response Headers"): then an object that was written is read back.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, StoredBytesDiffer, StoreError
from dataprep.stores.options import StoreOptions
from dataprep.stores.protocol import Buffer, KeepsLocks, ObjectInfo, Upload, Versioned
from dataprep.stores.s3_bucket import S3Bucket, error_code, is_passing, one_line, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

GOT = "GET %s: %d bytes, the first after %.6f s, the last after %.6f s"
"""What is logged (level DEBUG) of each GET that was answered: the key, how many bytes came, and the
seconds from asking, attempts before included, until the answer began and until all was there."""

REFUSED = "answered %d"
"""What is logged (level DEBUG) of each answer by which a store asks for fewer requests: its status,
503 or 429, whether it is tried again or not."""

SENT_AGAIN = "%s is sent again, attempt %d of %d: %s"
"""What is logged (level WARNING) of each repetition of a PUT: the address of the object, the
attempts, and why the one before did not succeed."""

_CONNECTIONS = 256
"""As many as ``source_concurrency`` may ask for; only those in use are opened."""

_READ_ATTEMPTS = 4
_PIECE_BYTES = 2**20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 20.0
_MD5_DIGITS = 32
_NOT_MET = ("PreconditionFailed", "404", "NoSuchKey")
_UNKNOWN = "NotImplemented"
_CONFLICT = ("ConditionalRequestConflict", "OperationAborted")
_OTHER_BYTES = "the store holds other bytes than were sent"

_log = logging.getLogger(__name__)


class S3Store(KeepsLocks):
    """A bucket, and within it a prefix."""

    def __init__(self, uri: str, options: StoreOptions | None = None) -> None:
        self._bucket = S3Bucket(uri, options)
        self.uri, self.options = self._bucket.uri, self._bucket.options
        self._etags_are_md5s = False
        self._opened: S3Client | None = None
        self._process, self._lock = os.getpid(), threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.uri, self.options)

    def close(self) -> None:
        """Close connections; the next request opens new ones."""
        client, self._opened = self._opened, None
        if client is not None:
            client.close()

    def prepare(self) -> None:
        """Ask for the bucket, with few retries, so that a wrong name fails at once."""
        name = self._bucket.name
        with (
            translated(f"s3://{name}", self.options),
            contextlib.closing(self._bucket.connect(attempts=2)) as client,
        ):
            client.head_bucket(Bucket=name)

    def region(self) -> str:
        """Return the region of the bucket."""
        with translated(f"s3://{self._bucket.name}", self.options):
            answer = self._client().head_bucket(Bucket=self._bucket.name)
        return str(answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", ""))

    def get_to(self, key: str, file: BinaryIO) -> None:
        """Write the object's bytes to ``file`` as they come, compared with its ETag."""
        self._copy(key, file, {})

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return all of an object, compared with its ETag, or part of it by one range request."""
        arguments = {}
        if offset or length is not None:
            last = "" if length is None else offset + max(length, 1) - 1
            arguments["Range"] = f"bytes={offset}-{last}"
        data = io.BytesIO()
        version = self._copy(key, data, arguments)
        return Versioned(data.getvalue()[:length], version)

    def version(self, key: str) -> str:
        """Return the ETag."""
        return self.head(key).etag or ""

    def age_s(self, key: str) -> float:
        """Return the seconds from ``Last-Modified`` to the server's ``Date``, of one answer."""
        with self._bucket.translated(key):
            answer = self._client().head_object(**self._bucket.object(key))
            now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
            return (now - answer["LastModified"]).total_seconds()

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Store, then confirm; what does not match is stored again, then refused."""
        with self._bucket.translated(key):
            return self._put_always(Upload(key, data))

    def create(self, key: str, data: Buffer) -> bool:
        """Store unless the key exists (``If-None-Match: *``), and confirm as ``put`` does."""
        return self.create_upload(Upload(key, data)) is not None

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """As ``create``; the confirmed object, or None where ``create`` returns False."""
        with self._bucket.translated(upload.key):
            return self._put_if(upload, None)

    def replace(self, key: str, data: Buffer, version: str) -> bool:
        """Store if the object still has that ETag (``If-Match``), and confirm as ``put`` does."""
        return self.replace_upload(Upload(key, data), version) is not None

    def replace_upload(self, upload: Upload, version: str) -> ObjectInfo | None:
        """As ``replace``; the confirmed object, or None where ``replace`` returns False."""
        with self._bucket.translated(upload.key):
            return self._put_if(upload, version)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object below, a thousand a request; keys that only mark folders left out."""
        below = self._bucket.prefix
        pages = self._client().get_paginator("list_objects_v2")
        with self._bucket.translated(""):
            for page in pages.paginate(
                Bucket=self._bucket.name, Prefix=below + prefix, **self._bucket.payer()
            ):
                if page.get("IsTruncated", True) and not page.get("NextContinuationToken"):
                    raise StoreError(
                        f"{self.uri}: a listing breaks off: the server does not know "
                        "ListObjectsV2. Check --endpoint-url, or use a newer server"
                    )
                for item in page.get("Contents", ()):
                    key = item["Key"].removeprefix(below)
                    if key and not (key.endswith("/") and item["Size"] == 0):
                        yield ObjectInfo(key, item["Size"], item.get("ETag", "").strip('"'))

    def head(self, key: str) -> ObjectInfo:
        """Return size and ETag."""
        with self._bucket.translated(key):
            answer = self._client().head_object(**self._bucket.object(key))
            return ObjectInfo(key, answer["ContentLength"], answer.get("ETag", "").strip('"'))

    def delete(self, key: str) -> None:
        """Remove the object."""
        with self._bucket.translated(key):
            self._client().delete_object(**self._bucket.object(key))

    def _client(self) -> S3Client:
        if self._process != os.getpid():
            # Forked: connections, and perhaps a locked lock, are the parent's.
            self._opened, self._process, self._lock = None, os.getpid(), threading.Lock()
        with self._lock:
            if self._opened is None:
                attempts = self.options.max_attempts
                self._opened = self._bucket.connect(attempts=attempts, connections=_CONNECTIONS)
                events = self._opened.meta.events
                events.register("needs-retry.s3", log_refusal)
                events.register("before-send.s3.PutObject", _before_attempt)
                events.register("needs-retry.s3.PutObject", _after_attempt)
            return self._opened

    def _copy(self, key: str, file: IO[bytes], arguments: Mapping[str, Any]) -> str:
        """Write an object to ``file`` and return its ETag; read again what the ETag contradicts.

        An ETag that looks like an MD5 and is none shows by two readings that agree, in a bucket
        that has shown no other kind.
        """
        at, before = file.tell(), ""
        with self._bucket.translated(key):
            for _ in range(_READ_ATTEMPTS):
                request = partial(self._fetch, key, file, at, arguments)
                etag, md5 = cast(tuple[str, str], _repeated(request, _READ_ATTEMPTS))
                self._etags_are_md5s |= md5 == etag != ""
                if md5 in ("", etag) or (md5 == before and not self._etags_are_md5s):
                    return etag
                before = md5
        raise StoreError(
            f"{self.uri}/{key}: {_READ_ATTEMPTS} readings differ from each other or from "
            "the ETag: it is damaged in the store, or something on the way changes data"
        )

    def _fetch(
        self, key: str, file: IO[bytes], at: int, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        """ETag of one GET, and the MD5 of the bytes where that should be the same, else empty."""
        file.seek(at)
        file.truncate()
        asked_s = time.monotonic()
        try:
            answer = self._client().get_object(**self._bucket.object(key), **arguments)
        except Exception as error:
            if error_code(error) == "InvalidRange":
                # It begins where the object has already ended, whatever version that is.
                return "", ""
            raise
        begun_s = time.monotonic()
        etag = answer.get("ETag", "").strip('"')
        kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
        compared = not arguments and not kms and len(etag) == _MD5_DIGITS
        md5 = hashlib.md5(usedforsecurity=False)
        # Not `with answer["Body"]`: that gives urllib3's stream, past botocore's checks.
        with contextlib.closing(answer["Body"]) as body:
            for piece in body.iter_chunks(_PIECE_BYTES):
                file.write(piece)
                if compared:
                    md5.update(piece)
        _log.debug(GOT, key, file.tell() - at, begun_s - asked_s, time.monotonic() - asked_s)
        return etag, md5.hexdigest() if compared else ""

    def _put_always(self, upload: Upload) -> ObjectInfo:
        """Store whatever is there, until the store is found to hold these bytes."""
        while True:
            self._send(upload)
            info = self.head(upload.key)
            if self._is_confirmed(info, upload):
                return info
            self._note_other_bytes(upload)

    def _put_if(self, upload: Upload, version: str | None) -> ObjectInfo | None:
        """Store if the object has ``version``; None: if there is none. None where that is not so.

        A server that knows no such condition, or refuses each one, is asked for the version
        instead, which does not decide between two callers at the same moment.
        """
        conditions = [{"IfNoneMatch": "*"}]
        if version is not None:
            # Ceph's gateway (16.2) compares the quotes along.
            conditions = [{"IfMatch": f'"{version}"'}, {"IfMatch": version}]
        for condition in conditions:
            try:
                etag = self._send(upload, **condition)
            except Exception as error:
                code = error_code(error)
                if code not in (*_NOT_MET, _UNKNOWN):
                    raise
                upload.attempts -= 1  # it was answered, and is not repeated
                current = None
                with contextlib.suppress(ObjectNotFound):
                    current = self.version(upload.key)
                if current != version or (version is None and code != _UNKNOWN):
                    return None
            else:
                return self._settled(upload, etag)
        return self._put_always(upload)

    def _settled(self, upload: Upload, etag: str) -> ObjectInfo | None:
        """Confirm an object that was sent and got ``etag``, or replace it if it is damaged.

        None where another run's object is there meanwhile, or none.
        """
        try:
            info = self.head(upload.key)
        except ObjectNotFound:
            return None
        if self._is_confirmed(info, upload):
            return info
        if info.etag != etag:
            return None
        self._note_other_bytes(upload)
        return self._put_if(upload, etag)

    def _is_confirmed(self, info: ObjectInfo, upload: Upload) -> bool:
        """Whether ETag or content of a stored object are those of the upload."""
        if info.etag == upload.md5.hex():
            self._etags_are_md5s = True
            return True
        content = io.BytesIO()
        _repeated(partial(self._fetch, upload.key, content, 0, {}), _READ_ATTEMPTS)
        return content.getbuffer() == upload.data

    def _note_other_bytes(self, upload: Upload) -> None:
        """Note why an upload is sent again, or remove what is stored if it was the last attempt."""
        upload.reason = _OTHER_BYTES
        if upload.attempts < self.options.max_attempts:
            return
        with contextlib.suppress(StoreError):
            upload.check_lock()
            self.delete(upload.key)
        raise StoredBytesDiffer(
            f"{self.uri}/{upload.key}: {_OTHER_BYTES}, after {counted(upload.attempts, 'attempt')}:"
            " something between here and there changes data. Remove the object if it is still "
            "there; run the same command again once that is mended"
        )

    def _send(self, upload: Upload, **conditions: str) -> str:
        """Send an object until the server has answered for good; the ETag that it gives.

        boto3 repeats what a server refuses for a while, and lost connections. A body that arrived
        damaged, and a conflict with another request, are repeated here.
        """
        most, pause_s = self.options.max_attempts, _FIRST_PAUSE_S
        where = f"{self.uri}/{upload.key}"
        while True:
            before = upload.attempts
            try:
                answer = self._client().put_object(
                    **self._bucket.object(upload.key),
                    Body=cast(IO[bytes], _Body(upload, where, most)),
                    ContentMD5=base64.b64encode(upload.md5).decode(),
                    **self._bucket.put_arguments(),
                    **cast(Any, conditions),
                )
                return str(answer.get("ETag", "")).strip('"')
            except _NoAttemptsLeft as error:
                raise StoreError(f"{where}: not stored {error}") from None
            except Exception as error:
                is_repeated = is_passing(error) or error_code(error) in _CONFLICT
                upload.attempts = max(upload.attempts, before + 1)
                if not is_repeated or upload.attempts >= most:
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


class _NoAttemptsLeft(Exception):
    """An object was sent as often as it may be."""


class _Body:
    """An upload as the file that botocore asks for, without a copy of its bytes."""

    def __init__(self, upload: Upload, where: str, most: int) -> None:
        self.upload, self._where, self._most, self._at = upload, where, most, 0

    def __len__(self) -> int:
        return len(self.upload.data)

    def read(self, size: int) -> memoryview:
        """Return the next bytes."""
        self._at += size
        return self.upload.data[self._at - size : self._at]

    def seek(self, offset: int) -> None:
        """Begin again, for another attempt."""
        self._at = offset

    def count_attempt(self) -> None:
        """Count an attempt that begins, and log it if it is a repetition.

        Raises:
            _NoAttemptsLeft: there were as many as there may be.
        """
        upload = self.upload
        if upload.attempts >= self._most:
            raise _NoAttemptsLeft(f"after {counted(self._most, 'attempt')}: {upload.reason}")
        upload.attempts += 1
        if upload.attempts > 1:
            _log.warning(SENT_AGAIN, self._where, upload.attempts, self._most, upload.reason)


def _before_attempt(request: Any, **_: Any) -> None:
    """Count each attempt of a PUT, those of boto3 as well."""
    if isinstance(request.body, _Body):
        request.body.count_attempt()


def _after_attempt(
    request_dict: Mapping[str, Any],
    response: tuple[Any, Mapping[str, Any]] | None = None,
    caught_exception: Exception | None = None,
    **_: Any,
) -> None:
    """Note why an attempt of a PUT has failed: botocore asks after each whether to repeat it."""
    body = request_dict.get("body")
    if not isinstance(body, _Body):
        return
    if caught_exception is not None:
        body.upload.reason = one_line(caught_exception)
    elif response is not None and "Error" in response[1]:
        error = response[1]["Error"]
        body.upload.reason = one_line(f"{error.get('Code', '')} {error.get('Message', '')}")


@lru_cache(maxsize=16)
def _unpickled(uri: str, options: StoreOptions) -> S3Store:
    """One store a process for all tasks that bring it along: a client takes 0.2 s to make."""
    return S3Store(uri, options)


def log_refusal(response: tuple[Any, Any] | None = None, **_: Any) -> None:
    """Log an attempt that is answered 429 or 503: botocore asks after each whether to repeat it."""
    status = getattr(response[0], "status_code", None) if response else None
    if status in (429, 503):
        _log.debug(REFUSED, status)


def _repeated(request: Callable[[], Any], most: int) -> Any:
    """Call until there is no error that may pass, ``most`` times, after waits that double."""
    for number in range(most - 1):
        try:
            return request()
        except Exception as error:
            if not is_passing(error):
                raise
        time.sleep(0.2 * 2**number)
    return request()
