"""The base of the S3 clients (timing, retries, the server's address), and boto3's client."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.probes.object_store.clients import RequestFailed, Timing
from iobench.trial import Place

_PASSING = {"408", "429", "500", "502", "503", "504", "connection", "timeout"}
_REFUSED = {"429", "503"}
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 15.0
_CHUNK_BYTES = 2**20


class Address(NamedTuple):
    """Where a bucket is; ``endpoint`` is None for Amazon's, ``in_path`` of the bucket's name."""

    session: Any
    region: str
    endpoint: str | None
    in_path: bool


def address_of(bucket: S3Bucket) -> Address:
    """The address by the options and then by the environment, as boto3 reads them."""
    options = bucket.options
    session = boto3.Session(profile_name=options.profile, region_name=options.region)
    environment = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    endpoint = options.endpoint_url or environment or None
    # Other servers have no host names of buckets; a host name with dots has no certificate.
    in_path = endpoint is not None or "." in bucket.name
    return Address(session, session.region_name or "us-east-1", endpoint, in_path)


class Moved(NamedTuple):
    """Bytes of one request; ``first_s`` is when the first of a body came, if that is known."""

    bytes: int
    first_s: float | None = None


class S3Client(ABC):
    """A client of an S3 bucket; a subclass sends single requests, without retries of its own.

    Requests are sent again after an answer that may pass, up to ``max_attempts`` in all. The
    waits double and are cut short at random, like those of the Rust library ``object_store``.

    Attributes:
        retries: requests that were sent again so far.
        refused: answers 503 and 429 so far, by which a store asks for fewer requests.
        errors: the exceptions of its library.
    """

    notes: Sequence[str] = ()
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        self._bucket = S3Bucket(place.uri, place.store)
        self._clock = clock
        self._lock = threading.Lock()
        self._client: Any = None
        self.retries = self.refused = 0

    def get(self, key: str) -> Timing:
        """Read a whole object."""
        return self._timed(lambda: self._get(key, None))

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read part of an object, by one request."""
        return self._timed(lambda: self._get(key, range(offset, offset + length)))

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""
        return self._timed(lambda: self._put(key, data))

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object part by part; an upload that fails is aborted, and begun again."""
        return self._timed(lambda: self._put_parts(key, data, part_bytes))

    def close(self) -> None:
        """Let go of the client: its connections and threads end by themselves."""
        self._client = None

    @abstractmethod
    def _get(self, key: str, span: range | None) -> Moved:
        """Read an object, or a span of its bytes, by one request."""

    @abstractmethod
    def _put(self, key: str, data: bytes) -> Moved:
        """Send one PUT."""

    @abstractmethod
    def _put_parts(self, key: str, data: bytes, part_bytes: int) -> Moved:
        """Upload an object in parts, one after the other."""

    @staticmethod
    @abstractmethod
    def failure(error: Any) -> RequestFailed:
        """PURE. One of ``errors`` as a failed request."""

    def _timed(self, request: Callable[[], Moved]) -> Timing:
        start_s = self._clock.now_s()
        attempt = 1
        while True:
            try:
                moved = request()
                break
            except RequestFailed as error:
                failed = error
            except self.errors as error:
                failed = self.failure(error)
            again = failed.status in _PASSING and attempt < self._bucket.options.max_attempts
            with self._lock:
                self.retries += again
                self.refused += failed.status in _REFUSED
            if not again:
                raise failed from None
            wait_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S)
            self._clock.sleep(random.uniform(_FIRST_WAIT_S, wait_s))
            attempt += 1
        end_s = self._clock.now_s()
        first_byte_s = None if moved.first_s is None else moved.first_s - start_s
        return Timing(end_s - start_s, moved.bytes, first_byte_s)


def require_all(count: int, expected: int) -> int:
    """Refuse a body that is shorter than announced."""
    if count != expected:
        raise RequestFailed("truncated", f"{count} of {expected} bytes arrived")
    return count


class Boto3Client(S3Client):
    """boto3: one client, a connection and a thread for each stream.

    Bodies are read into a buffer that each thread uses again; their checksums are left out.
    """

    errors = (BotoCoreError, ClientError, OSError)

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        super().__init__(place, connections, clock)
        self._client = self._bucket.connect(
            attempts=1,
            connections=connections,
            response_checksum_validation="when_required",
        )
        self._thread = threading.local()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _get(self, key: str, span: range | None) -> Moved:
        if not hasattr(self._thread, "buffer"):
            self._thread.buffer = memoryview(bytearray(_CHUNK_BYTES))
        buffer = self._thread.buffer
        asked = {"Range": f"bytes={span[0]}-{span[-1]}"} if span else {}
        answer = self._client.get_object(**self._bucket.object(key), **asked)
        with contextlib.closing(answer["Body"]) as body:
            count = body.readinto(buffer[:1])
            first_s = self._clock.now_s()
            while more := body.readinto(buffer):
                count += more
        return Moved(require_all(count, len(span) if span else answer["ContentLength"]), first_s)

    def _put(self, key: str, data: bytes) -> Moved:
        written = self._bucket.put_arguments()
        self._client.put_object(**self._bucket.object(key), Body=data, **written)
        return Moved(len(data))

    def _put_parts(self, key: str, data: bytes, part_bytes: int) -> Moved:
        client, upload = self._client, self._bucket.object(key)
        begun = client.create_multipart_upload(**upload, **self._bucket.put_arguments())
        upload["UploadId"] = begun["UploadId"]
        try:
            parts = []
            for number, start in enumerate(range(0, len(data), part_bytes), 1):
                body = data[start : start + part_bytes]
                answer = client.upload_part(PartNumber=number, Body=body, **upload)
                parts.append({"ETag": answer["ETag"], "PartNumber": number})
            client.complete_multipart_upload(MultipartUpload={"Parts": parts}, **upload)
        except BaseException:
            with contextlib.suppress(Exception):
                client.abort_multipart_upload(**upload)
            raise
        return Moved(len(data))

    @staticmethod
    def failure(error: Any) -> RequestFailed:
        """PURE. An error of botocore as a failed request."""
        if isinstance(error, ClientError):
            answer: Any = error.response
            said = answer.get("Error", {})
            code, words = said.get("Code", ""), said.get("Message") or "no message"
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return RequestFailed(str(status or code), f"{status} {code}: {words}")
        if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
            return RequestFailed("timeout", str(error))
        if isinstance(error, IncompleteReadError | ResponseStreamingError):
            return RequestFailed("truncated", f"the body broke off: {error}")
        return RequestFailed("connection", str(error))
