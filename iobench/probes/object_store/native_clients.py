"""S3 clients in native code: awscrt (C) and obstore (Rust).

The libraries do not report their retries. Therefore their retries are switched off, and the base
class sends failed requests again.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from concurrent.futures import wait
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.probes.object_store.clients import RequestFailed
from iobench.probes.object_store.s3_client import Body, S3Client, address_of, require_all
from iobench.results.trial import Location

_ERROR_XML = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.S)
_POLL_S = 0.2
"""Seconds between two checks whether a request of awscrt has ended or receives no more bytes."""


def _error_answer(status: object, text: str) -> RequestFailed:
    """Make a failed request from the status of an error answer and from the XML in ``text``."""
    xml = _ERROR_XML.search(text)
    message = f"{xml[1]}: {xml[2] or 'no message'}" if xml else "no message"
    return RequestFailed(str(status), f"{status} {message}")


class ObstoreClient(S3Client):
    """obstore, which is based on ``object_store`` in Rust. Each stream has a thread."""

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        try:
            import obstore
            from obstore.auth.boto3 import Boto3CredentialProvider
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ImportError:
            raise Unavailable(
                "obstore is not installed: pip install 'dataprep-iobench[bench]'"
            ) from None
        super().__init__(location, connections, clock)
        self.errors = (BaseError, OSError)
        self._obs = obstore
        bucket, options = self._bucket, self._bucket.options
        storage_class = options.storage_class
        self._attributes = {"Storage-Class": storage_class} if storage_class else None
        address = address_of(bucket)
        config = {
            "endpoint": address.endpoint,
            "server_side_encryption": options.sse,
            "sse_kms_key_id": options.sse_kms_key_id,
        }
        set_config: Any = {name: value for name, value in config.items() if value}
        self._client = S3Store(
            bucket.name,
            prefix=bucket.prefix.rstrip("/") or None,
            region=address.region,
            credential_provider=Boto3CredentialProvider(address.session),
            unsigned_payload=True,
            virtual_hosted_style_request=not address.in_path,
            request_payer=options.requester_pays,
            client_options={
                "allow_http": True,
                "connect_timeout": timedelta(seconds=options.connect_timeout_s),
                "read_timeout": timedelta(seconds=options.read_timeout_s),
                "timeout": timedelta(hours=1),  # For a whole request; the default is 30 s.
            },
            retry_config={"max_retries": 0},
            **set_config,
        )

    def _get(self, key: str, span: range | None) -> Body:
        options: Any = {"range": (span.start, span.stop)} if span else None
        answer = self._obs.get(self._client, key, options=options)
        count, first_s = 0, None
        try:
            # With the smallest chunk size, bytes are passed on as soon as they arrive.
            for chunk in answer.stream(min_chunk_size=1):
                first_s = self._clock.now_s() if first_s is None else first_s
                count += len(chunk)
        except self.errors as error:
            raise self.failure(error, in_body=True) from None
        # A server shortens a range that extends beyond the end of the object, so the length of the
        # body is compared with the requested length.
        expected = len(span) if span else answer.meta["size"]
        return require_all(count, expected), first_s or self._clock.now_s()

    def _put(self, key: str, data: bytes, part_bytes: int | None) -> Body:
        self._obs.put(
            self._client,
            key,
            data,
            attributes=self._attributes,
            use_multipart=part_bytes is not None,
            chunk_size=part_bytes or len(data),
            max_concurrency=1,
        )
        return len(data), None

    @staticmethod
    def failure(error: BaseException, *, in_body: bool = False) -> RequestFailed:
        """PURE. Turn an error of obstore into a failed request.

        obstore raises the same class for most failures. The text of the error has the status and
        the XML of the answer, and then a tree of the errors of the Rust libraries.

        Args:
            error: the error.
            in_body: whether the head of the answer had arrived before.
        """
        text = str(error)
        first_line = text.split("\n\nDebug source:")[0]
        if status := re.search(r"status code: (\d{3})", text):
            return _error_answer(status[1], text)
        if "redirect without LOCATION" in text:
            return RequestFailed("301", f"301 the bucket is in another region: {first_line}")
        if "kind: Timeout" in text or "TimedOut" in text:
            return RequestFailed("timeout", f"no answer in time: {first_line}")
        if in_body:
            return RequestFailed("truncated", f"the body broke off: {first_line}")
        return RequestFailed("connection", first_line)


class AwscrtClient(S3Client):
    """awscrt: Amazon's Common Runtime in C, which boto3, Amazon's CLI and Mountpoint can use.

    It reads a large object in several parts at the same time. All requests together have
    ``connections`` connections. awscrt is called directly, because boto3 uses it only for transfers
    of files, and only with Amazon's own endpoints (boto3's issue 4839).
    """

    notes = ("awscrt delivers whole parts, so the time to the first byte is unknown",)

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        try:
            import awscrt.s3
            from awscrt.auth import AwsCredentials, AwsCredentialsProvider
            from awscrt.exceptions import AwsCrtError
        except ImportError:
            raise Unavailable("awscrt is not installed: pip install 'boto3[crt]'") from None
        super().__init__(location, connections, clock)
        self.errors = (AwsCrtError,)
        self._request_types = awscrt.s3.S3RequestType
        self._address = address_of(self._bucket)
        with contextlib.closing(self._bucket.connect()) as resolved:
            self._url = urlsplit(str(resolved.meta.endpoint_url))

        def credentials() -> Any:
            session_credentials = self._address.session.get_credentials()
            return AwsCredentials(*session_credentials.get_frozen_credentials())

        s3, region = awscrt.s3, self._address.region
        tls_mode = s3.S3RequestTlsMode.DISABLED
        if self._url.scheme == "https":
            tls_mode = s3.S3RequestTlsMode.ENABLED
        signing_config = s3.create_default_s3_signing_config(
            region=region, credential_provider=AwsCredentialsProvider.new_delegate(credentials)
        )
        self._client = s3.S3Client(
            region=region,
            tls_mode=tls_mode,
            signing_config=signing_config,
            max_active_connections_override=connections,
            connect_timeout_ms=round(self._bucket.options.connect_timeout_s * 1000),
            retry_config=s3.S3RetryConfig(max_retries=0, retry_mode=s3.S3RetryMode.NONE),
        )

    def _get(self, key: str, span: range | None) -> Body:
        headers = {"Range": f"bytes={span[0]}-{span[-1]}"} if span else {}
        request_type = self._request_types.GET_OBJECT
        if span:
            request_type = self._request_types.DEFAULT
        request = self._request("GET", key, headers)
        count = self._send(request, type=request_type, operation_name="GetObject")
        return require_all(count, len(span) if span else count), None

    def _put(self, key: str, data: bytes, part_bytes: int | None) -> Body:
        options = self._bucket.options
        headers = {
            "Content-Length": str(len(data)),
            "x-amz-storage-class": options.storage_class,
            "x-amz-server-side-encryption": options.sse,
            "x-amz-server-side-encryption-aws-kms-key-id": options.sse_kms_key_id,
        }
        request = self._request("PUT", key, headers, io.BytesIO(data))
        if part_bytes is None:
            self._send(request, type=self._request_types.DEFAULT, operation_name="PutObject")
        else:
            self._send(
                request,
                type=self._request_types.PUT_OBJECT,
                part_size=part_bytes,
                multipart_upload_threshold=part_bytes,
                max_active_connections_override=1,
            )
        return len(data), None

    def _send(self, request: Any, **arguments: Any) -> int:
        """Send a request, and return the number of bytes that arrived.

        awscrt has no read timeout. So the request is cancelled here if no byte arrives within the
        read timeout.
        """
        count, last_s = 0, self._clock.now_s()

        # awscrt calls both functions from its threads, but never at the same time for one request.
        def on_body(chunk: Any, offset: int, **_: object) -> None:
            nonlocal count
            count += len(chunk)

        def on_progress(progress: int, **_: object) -> None:
            nonlocal last_s
            last_s = self._clock.now_s()

        limit_s = self._bucket.options.read_timeout_s
        sent_request = self._client.make_request(
            request=request, on_body=on_body, on_progress=on_progress, **arguments
        )
        while not wait([sent_request.finished_future], min(_POLL_S, limit_s)).done:
            if self._clock.now_s() - last_s > limit_s:
                sent_request.cancel()
                raise RequestFailed("timeout", f"no byte in {limit_s:g} s")
        sent_request.finished_future.result()
        return count

    @staticmethod
    def failure(error: Any) -> RequestFailed:
        """PURE. Turn an error of awscrt into a failed request.

        The status is the status of the answer, or it follows from the name of the error. awscrt
        reports an incomplete body as a closed connection.
        """
        status = getattr(error, "status_code", None)
        if status and status >= 300:
            body = getattr(error, "body", None) or b""
            return _error_answer(status, body.decode(errors="replace"))
        statuses = {"AWS_ERROR_S3_SLOW_DOWN": "503", "AWS_ERROR_S3_INTERNAL_ERROR": "500"}
        default = "timeout" if "TIMEOUT" in error.name else "connection"
        return RequestFailed(statuses.get(error.name, default), f"{error.name}: {error.message}")

    def _request(
        self, method: str, key: str, headers: Mapping[str, str | None], body: Any = None
    ) -> Any:
        """Return a request for an object.

        Args:
            method: the HTTP method.
            key: the key of the object, relative to the location.
            headers: further headers. A header with the value None is left out.
            body: a file object with the body; None without a body.
        """
        from awscrt.http import HttpHeaders, HttpRequest

        bucket, host, root = self._bucket, self._url.netloc, "/"
        if self._address.in_path:
            root = f"/{bucket.name}/"
        else:
            host = f"{bucket.name}.{host}"
        payer = "requester" if bucket.options.requester_pays else None
        all_headers = {"Host": host, **headers, "x-amz-request-payer": payer}
        pairs = [(name, value) for name, value in all_headers.items() if value is not None]
        path = root + quote(bucket.prefix + key)
        return HttpRequest(method, path, HttpHeaders(pairs), body)
