"""The store that a trial uses: reach it, put objects there, remove them.

Each run has a prefix of its own below the target, and trials get that as their place: what one run
removes belongs to no other. Objects to read are named by their size and number, so that the next
trial finds them. Their bytes are random, so that they cannot be compressed or deduplicated.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dataprep.errors import ObjectNotFound, StoreUnreachable
from dataprep.ordered import in_order
from dataprep.stores import Store, open_store
from dataprep.stores.s3_bucket import S3Bucket
from iobench.errors import Unavailable
from iobench.trial import Place

OVERLOADED = "the store refuses requests for now: try again later, or with fewer connections"
PREFIX = "iobench-probe/"
"""Begins the keys of all runs below a target; then comes the name of the run and a slash."""

WARM_UP = "warm-up"

_OVERLOAD = re.compile(r"\b(?:429|500|502|503|504|SlowDown|ServiceUnavailable|InternalError)\b")
_MOST_OBJECTS = 64
_MOST_WRITTEN = 256
_RANGES = 16
_RANGED_BYTES = 64 * 10**6
_PAYLOADS = 4
_IN_MEMORY_BYTES = 64 * 10**6
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Objects:
    """``count`` objects of ``bytes`` each, below the prefix of the run."""

    bytes: int
    count: int

    def key(self, number: int) -> str:
        """Return the key that a request reads: all keys in turn, then again from the first."""
        return f"{self.prefix}{number % self.count:05d}"

    @property
    def prefix(self) -> str:
        """The beginning of the keys of these objects only."""
        return f"read/{self.bytes}/"


def to_get(object_bytes: int, pool_bytes: int) -> Objects:
    """Return objects to read whole: at least one, at most 64, and ``pool_bytes`` in total."""
    return Objects(object_bytes, max(1, min(_MOST_OBJECTS, pool_bytes // object_bytes)))


def to_range(length: int, pool_bytes: int) -> Objects:
    """Return objects to read ranges of: 16 times as large as a range, but at most 64 MB."""
    return to_get(max(length, min(_RANGES * length, _RANGED_BYTES, pool_bytes)), pool_bytes)


def offset(number: int, object_bytes: int, length: int) -> int:
    """Return the start of a request's range: spread evenly over the object, not in order."""
    # Multiples of the golden ratio, modulo 1, fill an interval evenly (Weyl).
    return int((number * 0.6180339887498949) % 1 * (object_bytes - length + 1))


def ring(object_bytes: int, pool_bytes: int, connections: int) -> int:
    """Return how many keys each stream may write: at least one, 256 and ``pool_bytes`` in all."""
    return max(1, min(_MOST_WRITTEN, pool_bytes // object_bytes) // connections)


def content(object_bytes: int, number: int) -> bytes:
    """Return random bytes that depend on size and number only."""
    return np.random.default_rng([object_bytes, number]).bytes(object_bytes)


def payloads(object_bytes: int) -> Sequence[bytes]:
    """Return up to four bodies to write in turn, so that consecutive objects differ."""
    count = max(1, min(_PAYLOADS, _IN_MEMORY_BYTES // object_bytes))
    return [content(object_bytes, number) for number in range(count)]


def provide(store: Store, objects: Objects) -> None:
    """Put those of ``objects`` that are not in the store yet."""
    there = {info.key for info in store.list(objects.prefix) if info.bytes == objects.bytes}
    missing = [number for number in range(objects.count) if objects.key(number) not in there]

    def put(number: int) -> None:
        store.put(objects.key(number), content(objects.bytes, number))

    threads = max(1, min(AT_ONCE, _IN_MEMORY_BYTES // objects.bytes))
    list(in_order(put, missing, threads))


def place_of_run(target: Place, run: str) -> Place:
    """The prefix below a target that holds the objects of one run, and nothing else.

    Raises:
        ValueError: ``run`` is empty: that would be the prefix of all runs.
    """
    if not run:
        raise ValueError("a run without a name has no objects of its own")
    return replace(target, uri=f"{target.uri.rstrip('/')}/{PREFIX}{run}")


def clean(target: Place, run: str) -> int:
    """Delete the objects of one run, abort its uploads, and return how many objects.

    Raises:
        StoreError: they cannot be listed or deleted, or the store refuses requests for now.
    """
    place = place_of_run(target, run)
    store = open_store(place.uri, place.store)
    store.prepare()
    keys = [info.key for info in store.list()]
    list(in_order(store.delete, keys, AT_ONCE))
    if not place.uri.startswith("s3://"):
        return len(keys)
    from botocore.exceptions import BotoCoreError, ClientError

    bucket = S3Bucket(place.uri, place.store)
    # A killed trial leaves parts that cost money and are in no list of objects. Listing uploads
    # needs an extra permission, which is optional here.
    with (
        contextlib.suppress(BotoCoreError, ClientError),
        contextlib.closing(bucket.connect()) as client,
    ):
        pages = client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket.name, Prefix=bucket.prefix):
            for upload in page.get("Uploads", ()):
                # Checked again, since some servers ignore the prefix of this request.
                if upload["Key"].startswith(bucket.prefix):
                    client.abort_multipart_upload(
                        Bucket=bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
    return len(keys)


def reach(place: Place) -> Store:
    """Open the store at ``place``.

    Raises:
        Unavailable: no credentials, no such bucket or no answer.
        PermissionRefused: the bucket exists, but access is refused.
        StoreError: the store answers with another error.
    """
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        is_s3 = place.uri.startswith("s3://")
        if is_s3 and boto3.Session(profile_name=place.store.profile).get_credentials() is None:
            raise Unavailable(
                f"{place.uri}: no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or run with a role that has them"
            )
        store = open_store(place.uri, place.store)
        store.prepare()
    except BotoCoreError as error:
        raise Unavailable(f"{place.uri}: no usable AWS credentials: {error}") from None
    except ObjectNotFound as error:
        raise Unavailable(str(error)) from None
    except StoreUnreachable:
        where = place.store.endpoint_url or "S3"
        raise Unavailable(
            f"{place.uri}: no answer from {where}: check the target's endpoint_url, its region "
            "and the network"
        ) from None
    return store


def is_overload(reason: str) -> bool:
    """Whether an error means that a store refuses requests temporarily."""
    return _OVERLOAD.search(reason) is not None
