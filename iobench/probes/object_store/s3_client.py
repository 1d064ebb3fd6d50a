"""The base class of S3 clients, which measures requests and sends them again; the boto3 client."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import boto3
from boto3.s3.transfer import TransferConfig
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
from iobench.results.trial import Location

_RETRIED = {"408", "429", "500", "502", "503", "504", "connection", "timeout"}
"""The statuses of temporary failures. A request with one of them is sent again."""

_REFUSED = {"429", "503"}
"""The statuses with which a store asks for fewer requests."""

_MIN_WAIT_S = 0.1
"""The shortest wait before a request is sent again, in seconds."""
_MAX_WAIT_S = 15.0
"""The longest wait before a request is sent again, in seconds."""
_CHUNK_BYTES = 2**20
"""The size of the buffer into which boto3's client reads bodies."""


Body: TypeAlias = tuple[int, float | None]
"""The number of bytes in the body of a request, and the moment when the first byte arrived.

The moment is None if it is unknown.
"""


class Address(NamedTuple):
    """The address of a bucket, and the credentials for it.

    Attributes:
        session: the session of boto3, with the credentials.
        region: the region of the bucket.
        endpoint: the URL of the server; None for Amazon.
        in_path: whether the name of the bucket is in the path of a request's URL, not in the host
            name.
    """

    session: Any
    region: str
    endpoint: str | None
    in_path: bool


def address_of(bucket: S3Bucket) -> Address:
    """Find the address of a bucket.

    The region is in the options, or else in the environment or the profile.
    """
    options = bucket.options
    session = boto3.Session(profile_name=options.profile, region_name=options.region)
    endpoint = own_endpoint(bucket)
    # Only Amazon has a host name for each bucket. If the name of a bucket has dots, Amazon's
    # certificate does not cover its host name.
    in_path = endpoint is not None or "." in bucket.name
    return Address(session, session.region_name or "us-east-1", endpoint, in_path)


def own_endpoint(bucket: S3Bucket) -> str | None:
    """Return the configured URL of the server; None if requests go to Amazon's default endpoint.

    It is in the options, or else in the environment or the profile, as boto3 finds it there.

    Raises:
        ConfigError: there is no such profile.
    """
    if bucket.options.endpoint_url:
        return bucket.options.endpoint_url
    with (
        contextlib.closing(bucket.connect()) as client,
        contextlib.closing(bucket.connect(ignore_configured_endpoint_urls=True)) as default_client,
    ):
        endpoint = client.meta.endpoint_url
        return None if endpoint == default_client.meta.endpoint_url else endpoint


class S3Client(ABC):
    """A client of an S3 bucket. A subclass sends single requests, without retries.

    After a temporary failure, a request is sent again, up to ``max_attempts`` times in total. The
    waits between the attempts are random. Their upper limit doubles each time up to
    ``_MAX_WAIT_S``, as in the Rust library ``object_store``.

    Attributes:
        retries: the number of requests sent again so far.
        refused: the number of answers 503 and 429 so far, with which a store asks for fewer
            requests.
        errors: the exceptions that the library raises for failed requests.
        notes: remarks that readers of the figures need.
    """

    notes: Sequence[str] = ()
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        self._bucket = S3Bucket(location.uri, location.store)
        self._clock = clock
        self._lock = threading.Lock()
        self._client: Any = None
        self.retries = self.refused = 0

    def get(self, key: str) -> Timing:
        """Read a whole object."""
        return self._timed(lambda: self._get(key, None))

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read a part of an object with one request."""
        return self._timed(lambda: self._get(key, range(offset, offset + length)))

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object with one PUT."""
        return self._timed(lambda: self._put(key, data, None))

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object part by part. If the upload fails, it is aborted and started again."""
        return self._timed(lambda: self._put(key, data, part_bytes))

    def close(self) -> None:
        """Release the client. Its connections and threads end by themselves."""
        self._client = None

    @abstractmethod
    def _get(self, key: str, span: range | None) -> Body:
        """Read an object with one request, or the bytes at the positions of ``span``."""

    @abstractmethod
    def _put(self, key: str, data: bytes, part_bytes: int | None) -> Body:
        """Store an object with one PUT, or in parts of ``part_bytes``, one after the other."""

    @staticmethod
    @abstractmethod
    def failure(error: Any) -> RequestFailed:
        """PURE. Turn an exception of a type in ``errors`` into a failed request."""

    def _timed(self, request: Callable[[], Body]) -> Timing:
        """Send a request, with retries, and measure its time.

        Raises:
            RequestFailed: the failure is not temporary, or there were ``max_attempts`` attempts.
        """
        start_s = self._clock.now_s()
        for attempt in itertools.count(1):
            try:
                count, first_s = request()
                break
            except RequestFailed as error:
                failure = error
            except self.errors as error:
                failure = self.failure(error)
            has_attempts = attempt < self._bucket.options.max_attempts
            is_retried = has_attempts and failure.status in _RETRIED
            with self._lock:
                self.retries += is_retried
                self.refused += failure.status in _REFUSED
            if not is_retried:
                raise failure from None
            wait_limit_s = min(_MIN_WAIT_S * 2**attempt, _MAX_WAIT_S)
            self._clock.sleep(random.uniform(_MIN_WAIT_S, wait_limit_s))
        end_s = self._clock.now_s()
        first_byte_s = None if first_s is None else first_s - start_s
        return Timing(end_s - start_s, count, first_byte_s)


def require_all(count: int, expected: int) -> int:
    """Return the number of bytes in a body, after a check that the body is complete.

    Raises:
        RequestFailed: the number differs from the expected number.
    """
    if count != expected:
        raise RequestFailed("truncated", f"{count} of {expected} bytes arrived")
    return count


class Boto3Client(S3Client):
    """boto3, with one client for all streams. Each stream has a connection and a thread.

    Each thread reads bodies into one buffer. The checksums of bodies are not computed.
    """

    errors = (BotoCoreError, ClientError, OSError)

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        super().__init__(location, connections, clock)
        self._client = self._bucket.connect(
            attempts=1,
            connections=connections,
            response_checksum_validation="when_required",
        )
        self._thread = threading.local()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _get(self, key: str, span: range | None) -> Body:
        if not hasattr(self._thread, "buffer"):
            self._thread.buffer = memoryview(bytearray(_CHUNK_BYTES))
        buffer = self._thread.buffer
        byte_range = {"Range": f"bytes={span[0]}-{span[-1]}"} if span else {}
        answer = self._client.get_object(**self._bucket.object_arguments(key), **byte_range)
        with contextlib.closing(answer["Body"]) as body:
            count = body.readinto(buffer[:1])  # One byte, to note the moment when it arrives.
            first_s = self._clock.now_s()
            while read_bytes := body.readinto(buffer):
                count += read_bytes
        expected = len(span) if span else answer["ContentLength"]
        return require_all(count, expected), first_s

    def _put(self, key: str, data: bytes, part_bytes: int | None) -> Body:
        address, arguments = self._bucket.object_arguments(key), self._bucket.put_arguments()
        if part_bytes is None:
            self._client.put_object(**address, Body=data, **arguments)
        else:
            config = TransferConfig(
                multipart_threshold=part_bytes, multipart_chunksize=part_bytes, use_threads=False
            )
            bucket, object_key = address.pop("Bucket"), address.pop("Key")
            self._client.upload_fileobj(
                io.BytesIO(data),
                bucket,
                object_key,
                ExtraArgs={**address, **arguments},
                Config=config,
            )
        return len(data), None

    @staticmethod
    def failure(error: Any) -> RequestFailed:
        """PURE. Turn an error of botocore into a failed request."""
        if isinstance(error, ClientError):
            answer: Any = error.response
            details = answer.get("Error", {})
            code, message = details.get("Code", ""), details.get("Message") or "no message"
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return RequestFailed(str(status or code), f"{status} {code}: {message}")
        if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
            return RequestFailed("timeout", str(error))
        if isinstance(error, IncompleteReadError | ResponseStreamingError):
            return RequestFailed("truncated", f"the body broke off: {error}")
        return RequestFailed("connection", str(error))
