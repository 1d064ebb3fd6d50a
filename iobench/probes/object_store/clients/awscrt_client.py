"""awscrt: Amazon's Common Runtime in C, which boto3, its CLI and Mountpoint can use below.

boto3 takes it with ``TransferConfig(preferred_transfer_client="crt")``, for transfers of files and
never for another endpoint than Amazon's (boto3's issue 4839). Here it is called by itself.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from typing import Any
from urllib.parse import quote, urlsplit

from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.probes.object_store.clients.awscrt_errors import failed_request
from iobench.probes.object_store.clients.protocol import RequestFailed, Timing
from iobench.probes.object_store.clients.retrying import Retrying
from iobench.trial import Place

_WHOLE = "awscrt hands bodies over part by part: no time to the first byte is told"
_PARTS_UNSEEN = "awscrt does not say how often it sent a part again: retries are not counted"
_LOOK_S = 0.2


class AwscrtClient:
    """A GET of a whole object is its accelerated kind, in parts, side by side where they are many.

    All requests share ``connections``. Retries are this class's own, since awscrt does not count
    its; those of uploaded parts are not.
    """

    notes: Sequence[str] = (_WHOLE,)

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        try:
            import awscrt.s3  # noqa: F401
        except ImportError:
            raise Unavailable("awscrt is not installed: pip install 'boto3[crt]'") from None
        self._bucket = S3Bucket(place.uri, place.store)
        self._clock = clock
        self._address = _Address(self._bucket)
        self._retrying = Retrying(place.store.max_attempts, clock)
        self._connections = connections
        self._client = self._connected(retries=0)
        self._patient: Any = None
        self._lock = threading.Lock()

    @property
    def retries(self) -> int | None:
        """Requests that were sent again; None once there was a multipart upload."""
        return self._retrying.retries if self._patient is None else None

    @property
    def refused(self) -> int | None:
        """Answers 503 and 429; None once there was a multipart upload."""
        return self._retrying.refused if self._patient is None else None

    def get(self, key: str) -> Timing:
        """Read a whole object."""
        from awscrt.s3 import S3RequestType

        start_s = self._clock.now_s()
        count = self._retrying.call(lambda: self._get(key, {}, S3RequestType.GET_OBJECT))
        return Timing(self._clock.now_s() - start_s, count)

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read part of an object, by one request."""
        from awscrt.s3 import S3RequestType

        span = {"Range": f"bytes={offset}-{offset + length - 1}"}
        start_s = self._clock.now_s()
        count = self._retrying.call(lambda: self._get(key, span, S3RequestType.DEFAULT))
        end_s = self._clock.now_s()
        if count != length:
            raise RequestFailed("truncated", f"{count} of {length} bytes arrived")
        return Timing(end_s - start_s, count)

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""
        start_s = self._clock.now_s()
        self._retrying.call(lambda: self._send(self._client, key, data))
        return Timing(self._clock.now_s() - start_s, len(data))

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object part by part; awscrt aborts where one fails."""
        from awscrt.s3 import S3RequestType

        with self._lock:
            self._patient = self._patient or self._connected(retries=self._retrying.attempts - 1)
        self.notes = (_PARTS_UNSEEN,)
        start_s = self._clock.now_s()
        self._send(
            self._patient,
            key,
            data,
            type=S3RequestType.PUT_OBJECT,
            part_size=part_bytes,
            multipart_upload_threshold=part_bytes,
            max_active_connections_override=1,
        )
        return Timing(self._clock.now_s() - start_s, len(data))

    def close(self) -> None:
        """Let go of both: their threads end by themselves."""
        self._client = self._patient = None

    def _connected(self, *, retries: int) -> Any:
        return _connect(self._bucket, self._address, self._connections, retries=retries)

    def _get(self, key: str, headers: dict[str, str], kind: Any) -> int:
        """Bytes that arrived."""
        body = _Body(self._clock)
        with _translated():
            request = self._client.make_request(
                type=kind,
                operation_name="GetObject",
                request=self._address.request("GET", key, headers | self._payer()),
                on_body=body.chunk,
                on_progress=body.progress,
            )
            self._finish(request, body)
        return body.count

    def _send(self, client: Any, key: str, data: bytes, **how: Any) -> None:
        from awscrt.s3 import S3RequestType

        options = self._bucket.options
        written = {
            "Content-Length": str(len(data)),
            "x-amz-storage-class": options.storage_class,
            "x-amz-server-side-encryption": options.sse,
            "x-amz-server-side-encryption-aws-kms-key-id": options.sse_kms_key_id,
        }
        headers = {name: value for name, value in written.items() if value is not None}
        request = self._address.request("PUT", key, headers | self._payer(), io.BytesIO(data))
        plain = {"type": S3RequestType.DEFAULT, "operation_name": "PutObject"}
        body = _Body(self._clock)
        with _translated():
            told = {"on_progress": body.progress, **(how or plain)}
            self._finish(client.make_request(request=request, **told), body)

    def _finish(self, request: Any, body: _Body) -> None:
        """Wait, no longer than the read timeout without a byte."""
        limit_s = self._bucket.options.read_timeout_s
        while not wait([request.finished_future], min(_LOOK_S, limit_s)).done:
            if self._clock.now_s() - body.last_s > limit_s:
                request.cancel()
                raise RequestFailed("timeout", f"no byte in {limit_s:g} s")
        request.finished_future.result()

    def _payer(self) -> dict[str, str]:
        return {"x-amz-request-payer": "requester"} if self._bucket.options.requester_pays else {}


class _Body:
    """How many bytes have arrived, and when something moved. The runtime's threads call it."""

    def __init__(self, clock: Clock) -> None:
        self.count = 0
        self.last_s = clock.now_s()
        self._clock = clock
        self._lock = threading.Lock()

    def chunk(self, chunk: Any, offset: int, **_: object) -> None:
        with self._lock:
            self.count += len(chunk)

    def progress(self, progress: int, **_: object) -> None:
        self.last_s = self._clock.now_s()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    from awscrt.exceptions import AwsCrtError

    try:
        yield
    except AwsCrtError as error:
        raise failed_request(error) from None


class _Address:
    """Where a bucket is, and requests to its objects."""

    def __init__(self, bucket: S3Bucket) -> None:
        import boto3

        options = bucket.options
        session = boto3.Session(profile_name=options.profile, region_name=options.region)
        resolved = bucket.connect()
        with contextlib.closing(resolved):
            url = urlsplit(str(resolved.meta.endpoint_url))
        self.session = session
        self.region = session.region_name or "us-east-1"
        self.is_encrypted = url.scheme == "https"
        # As boto3 does: a host name with dots has no certificate, other servers no such host names.
        in_path = bool(options.endpoint_url) or "." in bucket.name
        self._host = url.netloc if in_path else f"{bucket.name}.{url.netloc}"
        self._root = (f"/{bucket.name}/" if in_path else "/") + quote(bucket.prefix)

    def request(
        self, method: str, key: str, headers: Mapping[str, str], body: io.BytesIO | None = None
    ) -> Any:
        """One to sign and send."""
        from awscrt.http import HttpHeaders, HttpRequest

        told = HttpHeaders([("Host", self._host), *headers.items()])
        return HttpRequest(method, self._root + quote(key), told, body)


def _connect(bucket: S3Bucket, address: _Address, connections: int, *, retries: int) -> Any:
    from awscrt import s3
    from awscrt.auth import AwsCredentials, AwsCredentialsProvider

    def credentials() -> Any:
        found = address.session.get_credentials()
        if found is None:
            raise Unavailable(f"{bucket.uri}: no AWS credentials")
        return AwsCredentials(*found.get_frozen_credentials())

    provider = AwsCredentialsProvider.new_delegate(credentials)
    mode = s3.S3RetryMode.STANDARD if retries else s3.S3RetryMode.NONE
    return s3.S3Client(
        region=address.region,
        tls_mode=s3.S3RequestTlsMode.ENABLED
        if address.is_encrypted
        else s3.S3RequestTlsMode.DISABLED,
        signing_config=s3.create_default_s3_signing_config(
            region=address.region, credential_provider=provider
        ),
        max_active_connections_override=connections,
        connect_timeout_ms=round(bucket.options.connect_timeout_s * 1000),
        retry_config=s3.S3RetryConfig(max_retries=retries, retry_mode=mode),
    )
