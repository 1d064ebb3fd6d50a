"""The store that a trial uses: whether it can be reached, its objects, and their removal.

All objects are below one prefix. Those to read are named by their size and number, so that the
next trial finds them. Their bytes are random: nothing on the way can make them smaller or fewer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dataprep.errors import ObjectNotFound, StoreError, StoreUnreachable
from dataprep.ordered import in_order
from dataprep.stores import Store, open_store
from dataprep.stores.s3_bucket import S3Bucket, without_advice
from iobench.errors import TrialFailed, Unavailable
from iobench.probes.object_store.figures import OVERLOADED, is_overload
from iobench.trial import Place

PREFIX = "iobench-probe/"
WARM_UP = PREFIX + "warm-up"

_MOST_OBJECTS = 64
_MOST_WRITTEN = 256
_RANGES = 16
_RANGED_BYTES = 64 * 10**6
_PAYLOADS = 4
_IN_MEMORY_BYTES = 64 * 10**6
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Objects:
    """``count`` objects of ``bytes`` each, below the prefix."""

    bytes: int
    count: int

    def key(self, number: int) -> str:
        """The object that a request reads: one after the other, again and again."""
        return f"{self.prefix}{number % self.count:05d}"

    @property
    def prefix(self) -> str:
        """The beginning of their keys, and of no others."""
        return f"{PREFIX}read/{self.bytes}/"


def to_get(object_bytes: int, pool_bytes: int) -> Objects:
    """Objects to read whole: up to 64 of them and ``pool_bytes`` together, at least one."""
    return Objects(object_bytes, max(1, min(_MOST_OBJECTS, pool_bytes // object_bytes)))


def to_range(length: int, pool_bytes: int) -> Objects:
    """Objects to read ranges of: 16 times as large as a range, or 64 MB where that is less."""
    wanted = max(length, min(_RANGES * length, _RANGED_BYTES, pool_bytes))
    return to_get(wanted, pool_bytes)


def offset(number: int, object_bytes: int, length: int) -> int:
    """The start of a request's range: spread evenly, never two neighbours in a row."""
    # Multiples of the golden ratio, modulo 1, fill an interval evenly (Weyl).
    return int((number * 0.6180339887498949) % 1 * (object_bytes - length + 1))


def ring(object_bytes: int, pool_bytes: int, connections: int) -> int:
    """How many keys each stream may write: 256 and ``pool_bytes`` over all, at least one."""
    return max(1, min(_MOST_WRITTEN, pool_bytes // object_bytes) // connections)


def content(object_bytes: int, number: int) -> bytes:
    """Random bytes, always the same."""
    return np.random.default_rng([object_bytes, number]).bytes(object_bytes)


def payloads(object_bytes: int) -> Sequence[bytes]:
    """Bodies to write in turn: up to four, so that equal bytes do not follow each other."""
    count = max(1, min(_PAYLOADS, _IN_MEMORY_BYTES // object_bytes))
    return [content(object_bytes, number) for number in range(count)]


def provide(store: Store, objects: Objects) -> None:
    """Put those of ``objects`` that are not there yet."""
    there = {info.key for info in store.list(objects.prefix) if info.bytes == objects.bytes}
    missing = [number for number in range(objects.count) if objects.key(number) not in there]

    def put(number: int) -> None:
        store.put(objects.key(number), content(objects.bytes, number))

    threads = max(1, min(AT_ONCE, _IN_MEMORY_BYTES // objects.bytes))
    list(in_order(put, missing, threads))


def clean(place: Place) -> int:
    """Delete every object below the probes' prefix, and abort uploads; how many objects.

    A store that refuses requests for now is given up at once: a run that has ended should end.

    Raises:
        StoreError: they may not be listed or deleted.
    """
    store = open_store(place.uri, place.store)
    store.prepare()
    keys = [info.key for info in store.list(PREFIX)]
    list(in_order(store.delete, keys, AT_ONCE))
    if place.uri.startswith("s3://"):
        _abort_uploads(S3Bucket(place.uri, place.store))
    return len(keys)


def _abort_uploads(bucket: S3Bucket) -> None:
    """Parts of a trial that was killed: seen in no listing of objects, and paid for."""
    from botocore.exceptions import BotoCoreError, ClientError

    # Listing uploads is a permission of its own, which the probe does not need.
    with (
        contextlib.suppress(BotoCoreError, ClientError),
        contextlib.closing(bucket.connect()) as client,
    ):
        pages = client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket.name, Prefix=bucket.prefix + PREFIX):
            for upload in page.get("Uploads", ()):
                client.abort_multipart_upload(
                    Bucket=bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                )


def reach(place: Place) -> Store:
    """The store at ``place``.

    Raises:
        Unavailable: no credentials, no such bucket, no answer: the target is not there.
        PermissionRefused: it is there, and may not be used.
        StoreError: it answers, and refuses.
    """
    if place.uri.startswith("s3://"):
        _require_credentials(place)
    store = open_store(place.uri, place.store)
    try:
        store.prepare()
    except ObjectNotFound as error:
        raise Unavailable(str(error)) from None
    except StoreUnreachable:
        where = place.store.endpoint_url or "S3"
        raise Unavailable(
            f"{place.uri}: no answer from {where}: check the target's endpoint_url, its region "
            "and the network"
        ) from None
    return store


def _require_credentials(place: Place) -> None:
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        credentials = boto3.Session(profile_name=place.store.profile).get_credentials()
    except BotoCoreError as error:
        raise Unavailable(f"{place.uri}: no usable AWS credentials: {error}") from None
    if credentials is None:
        raise Unavailable(
            f"{place.uri}: no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role gives them"
        )


@contextlib.contextmanager
def overload_explained() -> Iterator[None]:
    """Add advice to the error of a store that refuses requests for now.

    Raises:
        TrialFailed: in place of the store's error.
    """
    try:
        yield
    except StoreError as error:
        if type(error) is not StoreError or not is_overload(str(error)):
            raise
        said = without_advice(str(error)).rstrip(".")
        raise TrialFailed(f"{said}: {OVERLOADED}") from None
