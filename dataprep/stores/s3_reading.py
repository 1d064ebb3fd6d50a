"""Objects of a bucket, read and held against their ETags."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dataprep.errors import StoreError
from dataprep.stores.attempts import attempts
from dataprep.stores.protocol import Buffer
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.stores.s3_errors import error_code, is_checksum, is_passing, translated
from dataprep.stores.s3_leases import Dated, age_s

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MD5 = re.compile(r"[0-9a-f]{32}")
_READ_ATTEMPTS = 4

_log = logging.getLogger(__name__)
GOT = "GET %s: %d bytes"
"""What is logged (level DEBUG) of each GET that was answered: the key, and how many bytes came."""


class S3Reader:
    """Reads by ``client()``, which may be another in each process."""

    def __init__(self, bucket: S3Bucket, client: Callable[[], S3Client]) -> None:
        self._bucket, self._client = bucket, client

    def holds(self, key: str, data: Buffer) -> bool:
        """Whether the object reads back as ``data``."""
        try:
            return self._fetch(key, {})[0] == data
        except Exception as error:
            if is_checksum(error):
                return False
            raise

    def read(self, key: str, arguments: Mapping[str, Any]) -> bytes:
        """Read, and again after a broken connection or a body that is not what the ETag says.

        An ETag that looks like an MD5 and is none shows by two readings that agree.
        """
        before: bytes | None = None
        with translated(self._bucket.shown(key), self._bucket.options):
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
        try:
            answer: Any = client.get_object(**self._bucket.object(key), **arguments)
        except client.exceptions.ClientError as error:
            if error_code(error) == "InvalidRange":
                return b"", None  # it begins where the object has already ended
            raise
        # Not `with answer["Body"]`: that gives urllib3's stream, past botocore's checks.
        with contextlib.closing(answer["Body"]) as body:
            data: bytes = body.read()
        _log.debug(GOT, key, len(data))
        etag = answer.get("ETag", "").strip('"')
        kms = answer.get("ServerSideEncryption", "").startswith("aws:kms")
        plain = "Range" not in arguments and not kms and _MD5.fullmatch(etag)
        return data, etag if plain else None

    def dated(self, key: str) -> Dated:
        """A small object, and its age by the server's clock."""
        answer: Any = self._client().get_object(**self._bucket.object(key))
        with contextlib.closing(answer["Body"]) as body:
            data: bytes = body.read()
        date = answer["ResponseMetadata"]["HTTPHeaders"]["date"]
        return Dated(data, answer.get("ETag", "").strip('"'), age_s(answer["LastModified"], date))
