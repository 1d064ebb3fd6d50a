"""boto3: one client, a connection and a thread for each stream."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.probes.object_store.clients.boto3_errors import translated
from iobench.probes.object_store.clients.protocol import RequestFailed, Timing
from iobench.trial import Place

_REFUSED = (429, 503)
_CHUNK_BYTES = 2**20


class Boto3Client:
    """Reads into a buffer that each thread uses again; checksums of bodies are left out."""

    notes: Sequence[str] = ()

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        self._bucket = S3Bucket(place.uri, place.store)
        self._clock = clock
        self._client = self._bucket.connect(
            connections=connections,
            retry_mode="standard",
            response_checksum_validation="when_required",
        )
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._retries = 0
        self._refused = 0
        self._client.meta.events.register("before-send.s3", self._count_send)
        self._client.meta.events.register("needs-retry.s3", self._count_refusal)
        self._written = self._bucket.put_arguments()

    @property
    def retries(self) -> int | None:
        """Requests that were sent again."""
        return self._retries

    @property
    def refused(self) -> int | None:
        """Answers 503 and 429, by which a store asks for fewer requests."""
        return self._refused

    def get(self, key: str) -> Timing:
        """Read a whole object."""
        return self._read(key, None)

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read part of an object."""
        return self._read(key, length, Range=f"bytes={offset}-{offset + length - 1}")

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""
        start_s = self._clock.now_s()
        with translated():
            self._call(self._client.put_object, key, Body=data, **self._written)
        return Timing(self._clock.now_s() - start_s, len(data))

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object part by part; aborted where one fails."""
        start_s = self._clock.now_s()
        with translated():
            begun = self._call(self._client.create_multipart_upload, key, **self._written)
            upload = {"UploadId": begun["UploadId"]}
            try:
                self._upload(key, memoryview(data), part_bytes, upload)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._call(self._client.abort_multipart_upload, key, **upload)
                raise
        return Timing(self._clock.now_s() - start_s, len(data))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _read(self, key: str, length: int | None, **arguments: Any) -> Timing:
        buffer = self._buffer()
        start_s = self._clock.now_s()
        with translated():
            answer = self._call(self._client.get_object, key, **arguments)
            length = answer["ContentLength"] if length is None else length
            with contextlib.closing(answer["Body"]) as body:
                count = body.readinto(buffer[:1])
                first_s = self._clock.now_s()
                while more := body.readinto(buffer):
                    count += more
        end_s = self._clock.now_s()
        if count != length:
            raise RequestFailed("truncated", f"{count} of {length} bytes arrived")
        return Timing(end_s - start_s, count, first_s - start_s)

    def _upload(self, key: str, data: memoryview, part_bytes: int, upload: dict[str, str]) -> None:
        parts = []
        for number, start in enumerate(range(0, len(data), part_bytes), 1):
            body = bytes(data[start : start + part_bytes])
            answer = self._call(
                self._client.upload_part, key, PartNumber=number, Body=body, **upload
            )
            parts.append({"ETag": answer["ETag"], "PartNumber": number})
        complete = {"MultipartUpload": {"Parts": parts}, **upload}
        self._call(self._client.complete_multipart_upload, key, **complete)

    def _call(self, operation: Callable[..., Any], key: str, **arguments: Any) -> Any:
        """One operation; what is sent after its first request are retries."""
        self._thread.sent = 0
        return operation(
            Bucket=self._bucket.name,
            Key=self._bucket.prefix + key,
            **arguments,
            **self._bucket.payer(),
        )

    def _count_send(self, **_: object) -> None:
        """Counted as it is sent: who waits for a request can see that it is tried again."""
        self._thread.sent = getattr(self._thread, "sent", 0) + 1
        if self._thread.sent > 1:
            with self._lock:
                self._retries += 1

    def _count_refusal(self, response: tuple[Any, Any] | None = None, **_: object) -> None:
        """Asked after each attempt whether to try again; says nothing to that."""
        if response and getattr(response[0], "status_code", None) in _REFUSED:
            with self._lock:
                self._refused += 1

    def _buffer(self) -> memoryview:
        if not hasattr(self._thread, "buffer"):
            self._thread.buffer = memoryview(bytearray(_CHUNK_BYTES))
        buffer: memoryview = self._thread.buffer
        return buffer
