"""The objects of the object-store probe: put them into a store, choose them, and remove them.

Each run has its own prefix below the target, so that it does not remove objects of another run.
Below this prefix, the key of an object to read consists of its size and its number, so that later
trials of the run can read the same object. The bytes are random, so that a store cannot compress or
deduplicate them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dataprep.errors import ObjectNotFound, StoreUnreachable
from dataprep.stores import Store, open_store
from dataprep.stores.s3_bucket import S3Bucket
from dataprep.threaded_map import in_order
from iobench.errors import Unavailable
from iobench.results.trial import Location

OVERLOADED = "the store refuses requests for now: try again later, or with fewer connections"
PREFIX = "iobench-probe/"
"""The beginning of the keys of all runs below a target. The run id and a slash follow."""

WARM_UP = "warm-up"
"""The key of an object with one byte. A request for this byte opens each connection."""

_OVERLOAD = re.compile(r"\b(?:429|500|502|503|504|SlowDown|ServiceUnavailable|InternalError)\b")
_MAX_OBJECTS = 64
"""The largest number of objects of one size that trials read."""
_MAX_WRITTEN_KEYS = 256
"""The largest number of keys that the streams of a trial write, if each has a key."""
_RANGES_PER_OBJECT = 16
"""How many ranges an object has that is read in ranges."""
_MAX_RANGED_OBJECT_BYTES = 64 * 10**6
"""The largest size of an object that is read in ranges, unless one range is larger."""
_MAX_BODIES = 4
"""The largest number of different bodies that a trial writes."""
_IN_MEMORY_BYTES = 64 * 10**6
"""How many bytes of bodies are kept in memory at a time, if one body is not larger."""

AT_ONCE = 8
"""The number of objects that are put or deleted at the same time."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects of equal size, below the prefix of the run.

    Attributes:
        bytes: the size of each object.
        count: the number of objects.
    """

    bytes: int
    count: int

    def key(self, number: int) -> str:
        """Return the key that request ``number`` reads. Requests read all keys in turn."""
        return f"{self.prefix}{number % self.count:05d}"

    @property
    def prefix(self) -> str:
        """The beginning of the keys of these objects. No other objects have it."""
        return f"read/{self.bytes}/"


def whole_objects(object_bytes: int, pool_bytes: int) -> Objects:
    """Return objects to read as a whole: as many as ``pool_bytes`` allow, from 1 to 64."""
    count = max(1, min(_MAX_OBJECTS, pool_bytes // object_bytes))
    return Objects(object_bytes, count)


def ranged_objects(length: int, pool_bytes: int) -> Objects:
    """Return objects to read in ranges of ``length`` bytes.

    Each object has the size of 16 ranges, but at most 64 MB and ``pool_bytes``. It is never smaller
    than one range.
    """
    object_bytes = min(_RANGES_PER_OBJECT * length, _MAX_RANGED_OBJECT_BYTES, pool_bytes)
    return whole_objects(max(length, object_bytes), pool_bytes)


def range_offset(number: int, object_bytes: int, length: int) -> int:
    """Return the offset of the range that request ``number`` reads, in bytes.

    The offsets are distributed evenly over the object. They are not in ascending order.
    """
    # Multiples of the golden ratio, modulo 1, fill an interval evenly (Weyl).
    return int((number * 0.6180339887498949) % 1 * (object_bytes - length + 1))


def keys_per_stream(object_bytes: int, pool_bytes: int, connections: int) -> int:
    """Return the number of keys that each stream writes in turn.

    All streams together write at most 256 keys and ``pool_bytes``. But each stream writes at least
    one key, which may be more.
    """
    all_keys = min(_MAX_WRITTEN_KEYS, pool_bytes // object_bytes)
    return max(1, all_keys // connections)


def random_body(object_bytes: int, number: int) -> bytes:
    """Return random bytes for an object. They depend only on its size and its number."""
    return np.random.default_rng([object_bytes, number]).bytes(object_bytes)


def bodies_to_write(object_bytes: int) -> Sequence[bytes]:
    """Return up to four different bodies. They are written in turn, so that objects differ."""
    count = max(1, min(_MAX_BODIES, _IN_MEMORY_BYTES // object_bytes))
    return [random_body(object_bytes, number) for number in range(count)]


def put_missing(store: Store, objects: Objects) -> None:
    """Put the objects that the store does not have yet into the store."""
    existing = {info.key for info in store.list(objects.prefix) if info.bytes == objects.bytes}
    missing = [number for number in range(objects.count) if objects.key(number) not in existing]

    def put(number: int) -> None:
        store.put(objects.key(number), random_body(objects.bytes, number))

    threads = max(1, min(AT_ONCE, _IN_MEMORY_BYTES // objects.bytes))
    list(in_order(put, missing, threads))


def location_of_run(target: Location, run: str) -> Location:
    """Return the location below a target that has only the objects of one run.

    Args:
        target: the location of the target.
        run: the name of the run (``run_id`` of ``iobench.runner.locations.Locations``).

    Raises:
        ValueError: ``run`` is empty. The result would be the location of all runs.
    """
    if not run:
        raise ValueError("a run without a name has no objects of its own")
    return replace(target, uri=f"{target.uri.rstrip('/')}/{PREFIX}{run}")


def clean(target: Location, run: str) -> int:
    """Delete the objects of one run, abort its uploads, and return the number of objects.

    Raises:
        StoreError: the objects cannot be listed or deleted, or the store is overloaded.
    """
    location = location_of_run(target, run)
    store = open_store(location.uri, location.store)
    store.prepare()
    keys = [info.key for info in store.list()]
    list(in_order(store.delete, keys, AT_ONCE))
    if not location.uri.startswith("s3://"):
        return len(keys)
    from botocore.exceptions import BotoCoreError, ClientError

    bucket = S3Bucket(location.uri, location.store)
    # A killed trial leaves parts of uploads, which cost money and are in no listing of objects. If
    # the permission to list uploads is missing, they remain in the store.
    with (
        contextlib.suppress(BotoCoreError, ClientError),
        contextlib.closing(bucket.connect()) as client,
    ):
        pages = client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket.name, Prefix=bucket.prefix):
            for upload in page.get("Uploads", ()):
                # The prefix is checked again, since some servers ignore it in this request.
                if upload["Key"].startswith(bucket.prefix):
                    client.abort_multipart_upload(
                        Bucket=bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
    return len(keys)


def open_reachable(location: Location) -> Store:
    """Open the store at a location, and check that it answers.

    Raises:
        Unavailable: there are no credentials, the bucket does not exist, or the store does not
            answer.
        PermissionRefused: the bucket exists, but access is refused.
        StoreError: the store answers with another error.
    """
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        is_s3 = location.uri.startswith("s3://")
        if is_s3 and boto3.Session(profile_name=location.store.profile).get_credentials() is None:
            raise Unavailable(
                f"{location.uri}: no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or run with a role that has them"
            )
        store = open_store(location.uri, location.store)
        store.prepare()
    except BotoCoreError as error:
        raise Unavailable(f"{location.uri}: no usable AWS credentials: {error}") from None
    except ObjectNotFound as error:
        raise Unavailable(str(error)) from None
    except StoreUnreachable:
        where = location.store.endpoint_url or "S3"
        raise Unavailable(
            f"{location.uri}: no answer from {where}: check the target's endpoint_url, its region "
            "and the network"
        ) from None
    return store


def is_overload(reason: str) -> bool:
    """Return whether an error is a temporary failure of the store: 429, 500, 502, 503 or 504.

    Args:
        reason: the message or the status of the error.
    """
    return _OVERLOAD.search(reason) is not None
