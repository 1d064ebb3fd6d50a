"""Objects of a bucket, read and held against their ETags."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from dataprep.errors import StoreError
from dataprep.stores.attempts import attempts
from dataprep.stores.protocol import Buffer, ObjectInfo, Versioned
from dataprep.stores.s3_answers import copied, md5_of, part
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import error_code, is_checksum, is_passing, translated
from dataprep.stores.s3_leases import LARGEST_BYTES, Dated, age_s

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_READ_ATTEMPTS = 4

_log = logging.getLogger(__name__)
GOT = "GET %s: %d bytes, the first after %.6f s, the last after %.6f s"
"""What is logged (level DEBUG) of each GET that was answered: the key, how many bytes came, and the
seconds from asking, attempts before included, until the answer began and until all was there."""

REFUSED = "answered %d"
"""What is logged (level DEBUG) of each answer by which a store asks for fewer requests: its status,
503 or 429, whether it is tried again or not."""

_TOO_MANY = (429, 503)


class S3Reader:
    """Reads by ``client()``, which may be another in each process.

    ``etags_are_md5s`` once one was seen to be: then one that looks like an MD5 is taken for one.
    """

    def __init__(self, bucket: S3Bucket, client: Callable[[], S3Client]) -> None:
        self._bucket, self._client = bucket, client
        self.etags_are_md5s = False

    def head(self, key: str) -> ObjectInfo:
        """Size and ETag."""
        with translated(self._bucket.shown(key), self._bucket.options):
            answer = self._client().head_object(**self._bucket.object(key))
        size = part(answer, "ContentLength", self._bucket.shown(key))
        return ObjectInfo(key, size, answer.get("ETag", "").strip('"'))

    def holds(self, key: str, data: Buffer) -> bool:
        """Whether the object reads back as ``data``."""
        try:
            return self._fetch(key, {})[0].data == data
        except Exception as error:
            if is_checksum(error):
                return False
            raise

    def read(self, key: str, arguments: Mapping[str, Any]) -> Versioned:
        """Read, and again after a broken connection or a body that is not what the ETag says.

        An ETag that looks like an MD5 and is none shows by two readings that agree, in a bucket
        that has shown no other kind.
        """
        before: bytes | None = None
        with translated(self._bucket.shown(key), self._bucket.options):
            for last in attempts(_READ_ATTEMPTS, first_wait_s=0.2):
                try:
                    found, md5 = self._fetch(key, arguments)
                except Exception as error:
                    if last or not is_passing(error):
                        raise
                    continue
                if md5 is None or self._is_whole(
                    md5,
                    hashlib.md5(found.data, usedforsecurity=False).hexdigest(),
                    found.data == before,
                ):
                    return found
                before = found.data
        raise self._changing(key)

    def read_to(self, key: str, file: BinaryIO) -> None:
        """As ``read`` of the whole object, written to ``file`` as it comes.

        What an attempt has written that did not succeed is taken back.
        """
        begun_at, before = file.tell(), ""
        with translated(self._bucket.shown(key), self._bucket.options):
            for last in attempts(_READ_ATTEMPTS, first_wait_s=0.2):
                file.seek(begun_at)
                file.truncate()
                asked_s = time.monotonic()
                try:
                    answer: Any = self._client().get_object(**self._bucket.object(key))
                    begun_s = time.monotonic()
                    found = copied(answer, file)
                except Exception as error:
                    if last or not is_passing(error):
                        raise
                    continue
                whole_s = time.monotonic() - asked_s
                _log.debug(GOT, key, found.bytes, begun_s - asked_s, whole_s)
                md5 = md5_of(answer)
                if md5 is None or self._is_whole(md5, found.md5, found.md5 == before):
                    return
                before = found.md5
        raise self._changing(key)

    def _is_whole(self, etag: str, md5: str, as_before: bool) -> bool:
        """Whether a reading is what was stored, by its ETag or by the reading before."""
        if md5 == etag:
            self.etags_are_md5s = True
        return md5 == etag or (as_before and not self.etags_are_md5s)

    def _changing(self, key: str) -> StoreError:
        return StoreError(
            f"{self._bucket.shown(key)}: {_READ_ATTEMPTS} readings differ from each other or from "
            "the ETag: it is damaged in the store, or something on the way changes data"
        )

    def _fetch(self, key: str, arguments: Mapping[str, Any]) -> tuple[Versioned, str | None]:
        """The body of one GET with its ETag, and its MD5 where the answer gives one."""
        client = self._client()
        asked_s = time.monotonic()
        try:
            answer: Any = client.get_object(**self._bucket.object(key), **arguments)
        except client.exceptions.ClientError as error:
            if error_code(error) == "InvalidRange":
                # It begins where the object has already ended, whatever version that is.
                return Versioned(b"", ""), None
            raise
        begun_s = time.monotonic()
        # Not `with answer["Body"]`: that gives urllib3's stream, past botocore's checks.
        with contextlib.closing(answer["Body"]) as body:
            data: bytes = body.read()
        _log.debug(GOT, key, len(data), begun_s - asked_s, time.monotonic() - asked_s)
        version = answer.get("ETag", "").strip('"')
        return Versioned(data, version), None if "Range" in arguments else md5_of(answer)

    def dated(self, key: str) -> Dated:
        """A small object, and its age by the server's clock; asked again where the answer broke.

        Of one that is too large for a lease no byte is read.
        """
        for last in attempts(_READ_ATTEMPTS, first_wait_s=0.2):
            try:
                answer: Any = self._client().get_object(**self._bucket.object(key))
                with contextlib.closing(answer["Body"]) as body:
                    small = answer.get("ContentLength", 0) <= LARGEST_BYTES
                    data: bytes = body.read() if small else b""
                break
            except Exception as error:
                if last or not is_passing(error):
                    raise
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        put = part(answer, "LastModified", self._bucket.shown(key))
        return Dated(data, answer.get("ETag", "").strip('"'), age_s(put, date))


def log_refusal(response: tuple[Any, Any] | None = None, **_: Any) -> None:
    """Asked by botocore after each attempt whether to try again; says nothing to that."""
    status = getattr(response[0], "status_code", None) if response else None
    if status in _TOO_MANY:
        _log.debug(REFUSED, status)
