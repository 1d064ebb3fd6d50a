"""obstore: Rust's ``object_store``, a thread for each stream."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.probes.object_store.clients.endpoints import endpoint_url
from iobench.probes.object_store.clients.obstore_errors import translated
from iobench.probes.object_store.clients.protocol import RequestFailed, Timing
from iobench.probes.object_store.clients.retrying import Retrying
from iobench.trial import Place

_PARTS_UNSEEN = "obstore does not say how often it sent a part again: retries are not counted"


class ObstoreClient:
    """Retries are this class's own, since obstore does not count its; those of parts are not."""

    notes: Sequence[str] = ()

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        try:
            import obstore
        except ImportError:
            raise Unavailable(
                "obstore is not installed: pip install 'dataprep-iobench[bench]'"
            ) from None
        self._obs = obstore
        self._bucket = S3Bucket(place.uri, place.store)
        self._clock = clock
        options = place.store
        self._retrying = Retrying(options.max_attempts, clock)
        self._store = _connect(self._bucket, retries=0)
        self._patient = _connect(self._bucket, retries=options.max_attempts - 1)
        self._sees_retries = True
        self._attributes = (
            {"Storage-Class": options.storage_class} if options.storage_class else None
        )

    @property
    def retries(self) -> int | None:
        """Requests that were sent again; None once there was a multipart upload."""
        return self._retrying.retries if self._sees_retries else None

    @property
    def refused(self) -> int | None:
        """Answers 503 and 429; None once there was a multipart upload."""
        return self._retrying.refused if self._sees_retries else None

    def get(self, key: str) -> Timing:
        """Read a whole object."""
        return self._read(key, None)

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read part of an object."""
        return self._read(key, (offset, offset + length))

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""
        start_s = self._clock.now_s()
        self._retrying.call(lambda: self._put(self._store, key, data, use_multipart=False))
        return Timing(self._clock.now_s() - start_s, len(data))

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object part by part; obstore aborts where one fails."""
        self._sees_retries, self.notes = False, (_PARTS_UNSEEN,)
        start_s = self._clock.now_s()
        parts = {"use_multipart": True, "chunk_size": part_bytes, "max_concurrency": 1}
        self._put(self._patient, key, data, **parts)
        return Timing(self._clock.now_s() - start_s, len(data))

    def close(self) -> None:
        """Nothing to do: connections end with the store."""

    def _read(self, key: str, span: tuple[int, int] | None) -> Timing:
        options: Any = {"range": span} if span else None
        start_s = self._clock.now_s()
        answer = self._retrying.call(lambda: self._get(key, options))
        # A range that reaches past the object's end is cut by the server.
        length = span[1] - span[0] if span else answer.meta["size"]
        count, first_s = 0, None
        with translated(in_body=True):
            # The smallest chunks: bodies pass as they arrive, and nothing is gathered.
            for chunk in answer.stream(min_chunk_size=1):
                first_s = self._clock.now_s() if first_s is None else first_s
                count += len(chunk)
        end_s = self._clock.now_s()
        if count != length:
            raise RequestFailed("truncated", f"{count} of {length} bytes arrived")
        return Timing(end_s - start_s, count, (first_s or end_s) - start_s)

    def _get(self, key: str, options: Any) -> Any:
        with translated():
            return self._obs.get(self._store, key, options=options)

    def _put(self, store: Any, key: str, data: bytes, **how: Any) -> None:
        with translated():
            self._obs.put(store, key, data, attributes=self._attributes, **how)


def _connect(bucket: S3Bucket, *, retries: int) -> Any:
    import boto3
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import S3Store

    options = bucket.options
    session = boto3.Session(profile_name=options.profile, region_name=options.region)
    endpoint = endpoint_url(options)
    config: dict[str, Any] = {
        "endpoint": endpoint,
        "server_side_encryption": options.sse,
        "sse_kms_key_id": options.sse_kms_key_id,
    }
    return S3Store(
        bucket.name,
        prefix=bucket.prefix.rstrip("/") or None,
        region=session.region_name or "us-east-1",
        credential_provider=Boto3CredentialProvider(session),
        unsigned_payload=True,
        # A host name with dots has no certificate.
        virtual_hosted_style_request=not endpoint and "." not in bucket.name,
        request_payer=options.requester_pays,
        client_options={
            "allow_http": True,
            "connect_timeout": timedelta(seconds=options.connect_timeout_s),
            "read_timeout": timedelta(seconds=options.read_timeout_s),
            "timeout": timedelta(hours=1),  # of a whole request; the default cuts it at 30 s
        },
        retry_config={"max_retries": retries},
        **{name: value for name, value in config.items() if value},
    )
