"""One trial: requests of one kind to one store, timed."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from dataprep.counted import counted
from dataprep.errors import DataprepError
from dataprep.ordered import in_order
from dataprep.stores import Store
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.probes.object_store import pool
from iobench.probes.object_store.clients import (
    CLIENTS,
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)
from iobench.probes.object_store.copies import copies
from iobench.probes.object_store.figures import copy_metrics, metrics, require_success
from iobench.probes.object_store.reach import OVERLOADED, overload_said, reach
from iobench.probes.object_store.settings import Operation
from iobench.probes.object_store.streams import Bounds, Request, attempt
from iobench.trial import Cold, Context, Outcome, Place, TrialSpec

_READS = ("get", "range_get")
_DELETES_AT_ONCE = 8
_SERVER_CACHE = Cold("not applicable", "server cache unknown", why="a store's cache is its own")


class _Asked(BaseModel):
    """A trial's params."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    store: str
    client: str
    operation: Operation
    object_bytes: int
    connections: int
    seconds: float = 3.0
    max_requests: int = 20_000
    pool_bytes: int = 256_000_000
    part_bytes: int = 8 * 2**20


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``object``: see ``figures.metrics`` for what comes out.

    Objects to read are put first where they are missing; what was written is deleted at the
    end. Each connection is opened with a request that does not count.

    Raises:
        Unavailable: no client, no credentials, no bucket, no answer.
        TrialFailed: not one request succeeded, or the store refuses requests for now.
        PermissionRefused: the bucket may not be listed or written.
    """
    asked = _Asked(**cast("dict[str, Any]", spec.params))
    place = context.places.get(f"store/{asked.store}")
    if place is None:
        raise Unavailable(f"no object store is called {asked.store!r}: name it under targets")
    kind = _kind(asked.client, place)
    with overload_said():
        store = reach(place)
        client = made(
            CLIENTS,
            asked.client,
            CopyClient if hasattr(kind, "copy") else ObjectClient,
            lambda: kind(place, asked.connections, context.clock),
        )
        if isinstance(client, CopyClient):
            return _copied(asked, client, store, context)
        with contextlib.closing(client):
            return _measured(asked, context, place, client, store)


def _kind(name: str, place: Place) -> type[ObjectClient] | type[CopyClient]:
    """A client's class, if it speaks to such a place.

    Raises:
        Unavailable: it speaks S3 only.
    """
    if not place.uri.startswith("s3://") and not CLIENTS.origin(name):
        raise Unavailable(
            f"client {name!r} speaks S3, and {place.uri} is none: name a client of the package "
            "that brings this store"
        )
    return CLIENTS.load(name)


def _copied(asked: _Asked, client: CopyClient, store: Store, context: Context) -> Outcome:
    if asked.operation != "get":
        raise Unavailable(f"{asked.client} copies whole objects: it takes part in get alone")
    objects = pool.to_get(asked.object_bytes, asked.pool_bytes)
    pool.provide(store, objects)
    limits = (asked.seconds, asked.max_requests)
    done = copies(client, objects, *limits, context.clock, context.progress)
    return Outcome(copy_metrics(done, client.notes), cold=_SERVER_CACHE)


def _measured(
    asked: _Asked, context: Context, place: Place, client: ObjectClient, store: Store
) -> Outcome:
    notes: list[str] = []
    with _requests(asked, client, store, notes) as request:
        _open_connections(client, store, asked.connections)
        before, refused = client.retries, _refused(client)
        cpu_s = time.process_time()
        bounds = Bounds(asked.connections, asked.seconds, asked.max_requests)
        attempts = attempt(request, bounds, context.clock, _telling(client, context.progress))
        after, cpu_s = client.retries, time.process_time() - cpu_s
        refused_after = _refused(client)
    require_success(attempts, place.uri)
    found = metrics(
        attempts,
        retries=_since(before, after),
        refused=_since(refused, refused_after),
        cpu_s=cpu_s,
        notes=[*notes, *client.notes],
    )
    return Outcome(found, cold=_SERVER_CACHE if asked.operation in _READS else None)


def _refused(client: ObjectClient) -> int | None:
    """Answers that asked for fewer requests so far; None of a client that does not count them."""
    return getattr(client, "refused", None)


def _since(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _telling(
    client: ObjectClient, progress: Callable[[float, str], None]
) -> Callable[[float, str], None]:
    """``progress``, and a line in the trial's log for requests that are sent again.

    If the trial is killed over them, that line is its reason.
    """
    said = client.retries or 0

    def tell(done: float, unit: str) -> None:
        nonlocal said
        now = client.retries or 0
        if now > said:
            said = now
            sys.stderr.write(f"{counted(now, 'request')} sent again: {OVERLOADED}\n")
            sys.stderr.flush()
        progress(done, unit)

    return tell


def _requests(
    asked: _Asked, client: ObjectClient, store: Store, notes: list[str]
) -> contextlib.AbstractContextManager[Request]:
    """The requests of a trial, while what they need is there."""
    if asked.operation in _READS:
        return contextlib.nullcontext(_reading(asked, client, store))
    return _writing(asked, client, store, notes)


def _reading(asked: _Asked, client: ObjectClient, store: Store) -> Request:
    size, streams = asked.object_bytes, asked.connections
    if asked.operation == "get":
        objects = pool.to_get(size, asked.pool_bytes)
        pool.provide(store, objects)
        return lambda stream, turn: client.get(objects.key(stream + turn * streams))
    objects = pool.to_range(size, asked.pool_bytes)
    pool.provide(store, objects)

    def get_range(stream: int, turn: int) -> Timing:
        number = stream + turn * streams
        return client.get_range(objects.key(number), pool.offset(number, objects.bytes, size), size)

    return get_range


@contextlib.contextmanager
def _writing(
    asked: _Asked, client: ObjectClient, store: Store, notes: list[str]
) -> Iterator[Request]:
    operation, bodies = asked.operation, pool.payloads(asked.object_bytes)
    ring = pool.ring(asked.object_bytes, asked.pool_bytes, asked.connections)
    keys: set[str] = set()

    def write(stream: int, turn: int) -> Timing:
        key, body = pool.written_key(operation, stream, turn, ring), bodies[turn % len(bodies)]
        keys.add(key)
        if operation == "put":
            return client.put(key, body)
        return client.multipart(key, body, asked.part_bytes)

    try:
        yield write
    finally:
        try:
            for _ in in_order(store.delete, sorted(keys), _DELETES_AT_ONCE):
                pass
        except DataprepError as error:
            notes.append(f"what was written could not be deleted: {error}")


def _open_connections(client: ObjectClient, store: Store, connections: int) -> None:
    """One byte for each stream at the same time, so that none is timed while it connects."""
    pool.provide_warm_up(store)

    def read(_: int) -> None:
        with contextlib.suppress(RequestFailed):
            client.get_range(pool.WARM_UP, 0, 1)

    with ThreadPoolExecutor(connections) as threads:
        for _ in threads.map(read, range(connections)):
            pass
