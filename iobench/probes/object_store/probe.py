"""One trial of the object-store probe: requests of one kind to one store, timed."""

from __future__ import annotations

import contextlib
import itertools
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from dataprep.counted import counted
from dataprep.errors import DataprepError
from dataprep.ordered import in_order
from dataprep.schema import typed
from dataprep.stores import Store
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import made
from iobench.probes.object_store import pool
from iobench.probes.object_store.clients import (
    CLIENTS,
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)
from iobench.probes.object_store.figures import (
    OVERLOADED,
    Attempts,
    metrics,
    rates,
    require_success,
)
from iobench.probes.settings import ObjectTrial
from iobench.trial import Cold, Context, Metrics, Outcome, Place, TrialSpec

_SERVER_CACHE = Cold("not applicable", "server cache unknown", why="a store's cache is its own")
_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of its own is made in it
_PROGRESS_S = 0.2
_HOPELESS = 20
_COPY_NOTE = "a process for all objects, its start included, into memory"


Request = Callable[[int, int], Timing]
"""``request(stream, turn)``: the ``turn``-th of that stream, both from 0."""


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``object``: see ``figures.metrics`` for the figures.

    Objects to read are put first where they are missing; what was written is deleted at the
    end. Each connection is opened with a request that does not count.

    Raises:
        Unavailable: no client, no credentials, no bucket, no answer.
        TrialFailed: not one request succeeded, or the store refuses requests for now.
        PermissionRefused: the bucket may not be listed or written.
    """
    trial = typed(ObjectTrial, spec.params)
    place = context.places.get(f"store/{trial.store}")
    if place is None:
        raise Unavailable(f"no object store is called {trial.store!r}: name it under targets")
    if not place.uri.startswith("s3://") and not CLIENTS.origin(trial.client):
        raise Unavailable(
            f"client {trial.client!r} speaks S3, and {place.uri} is none: name a client of the "
            "package that brings this store"
        )
    kind = CLIENTS.load(trial.client)
    protocol = CopyClient if hasattr(kind, "copy") else ObjectClient
    with pool.overload_explained():
        store = pool.reach(place)
        client = made(
            *(CLIENTS, trial.client, protocol),
            lambda: kind(place, trial.connections, context.clock),
        )
        if isinstance(client, CopyClient):
            return Outcome(_copied(trial, client, store, context), cold=_SERVER_CACHE)
        with contextlib.closing(client):
            found = _measured(trial, client, store, place, context)
        return Outcome(found, cold=_SERVER_CACHE if trial.reads else None)


def _measured(
    trial: ObjectTrial, client: ObjectClient, store: Store, place: Place, context: Context
) -> Metrics:
    notes: list[str] = []
    written: set[str] = set()
    request = _reader(trial, client, store) if trial.reads else _writer(trial, client, written)
    try:
        _open_connections(client, store, trial.connections)
        retries, refused = client.retries, getattr(client, "refused", None)
        cpu_s = time.process_time()
        attempts = attempt(request, trial, context.clock, _progress(client, context))
        cpu_s = time.process_time() - cpu_s
        retries = _difference(client.retries, retries)
        refused = _difference(getattr(client, "refused", None), refused)
    finally:
        try:
            list(in_order(store.delete, sorted(written), pool.AT_ONCE))
        except DataprepError as error:
            notes.append(f"what was written could not be deleted: {error}")
    require_success(attempts, place.uri)
    notes += client.notes
    return metrics(attempts, retries=retries, refused=refused, cpu_s=cpu_s, notes=notes)


def _difference(after: int | None, before: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _progress(client: ObjectClient, context: Context) -> Callable[[float, str], None]:
    """Report progress, and log a line for requests that are sent again.

    If the trial is killed over them, that line is its reason.
    """
    reported = client.retries or 0

    def progress(done: float, unit: str) -> None:
        nonlocal reported
        now = client.retries or 0
        if now > reported:
            reported = now
            sys.stderr.write(f"{counted(now, 'request')} sent again: {OVERLOADED}\n")
            sys.stderr.flush()
        context.progress(done, unit)

    return progress


def attempt(
    request: Request,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None] = lambda done, unit: None,
) -> Attempts:
    """Send requests on as many threads as the trial has connections.

    Each starts at least one request, and no other after the trial's seconds or its number of
    requests. A request that fails is counted, and its stream goes on. Where nothing but failures
    came in so far, it ends after 20 of them or one a stream, whichever is more.

    Raises:
        Exception: whatever ``request`` raises beside ``RequestFailed``.
    """
    attempts, lock = Attempts(), threading.Lock()
    deadline_s = clock.now_s() + trial.seconds
    started = 0

    def may_start(turn: int) -> bool:
        nonlocal started
        with lock:
            failed = attempts.errors.total()
            hopeless = failed >= max(_HOPELESS, trial.connections) and not attempts.timings
            is_over = started >= trial.max_requests or clock.now_s() >= deadline_s
            if turn and (hopeless or is_over):
                return False
            started += 1
            return True

    def stream(number: int) -> None:
        for turn in itertools.count():
            if not may_start(turn):
                return
            start_s = clock.now_s()
            try:
                outcome: Timing | RequestFailed = request(number, turn)
            except RequestFailed as error:
                outcome = error
            end_s = clock.now_s()
            with lock:
                attempts.note(outcome, start_s, end_s)

    with ThreadPoolExecutor(trial.connections) as threads:
        streams = [threads.submit(stream, number) for number in range(trial.connections)]
        running = set(streams)
        while running:
            running = wait(running, timeout=_PROGRESS_S).not_done
            progress(attempts.bytes, "bytes")
        for each in streams:
            each.result()
    return attempts


def _reader(trial: ObjectTrial, client: ObjectClient, store: Store) -> Request:
    """Read objects in turn, put first where they are missing."""
    size = trial.object_bytes
    whole = trial.operation == "get"
    objects = (pool.to_get if whole else pool.to_range)(size, trial.pool_bytes)
    pool.provide(store, objects)

    def read(stream: int, turn: int) -> Timing:
        number = stream + turn * trial.connections
        key = objects.key(number)
        if whole:
            return client.get(key)
        return client.get_range(key, pool.offset(number, objects.bytes, size), size)

    return read


def _writer(trial: ObjectTrial, client: ObjectClient, written: set[str]) -> Request:
    """Overwrite a ring of keys for each stream, and note them in ``written``."""
    bodies = pool.payloads(trial.object_bytes)
    ring = pool.ring(trial.object_bytes, trial.pool_bytes, trial.connections)

    def write(stream: int, turn: int) -> Timing:
        key = f"{pool.PREFIX}{trial.operation}/{stream:05d}-{turn % ring:05d}"
        body = bodies[turn % len(bodies)]
        written.add(key)
        if trial.operation == "put":
            return client.put(key, body)
        return client.multipart(key, body, trial.part_bytes)

    return write


def _open_connections(client: ObjectClient, store: Store, connections: int) -> None:
    """One byte for each stream at the same time, so that none is timed while it connects."""
    store.put(pool.WARM_UP, b"0")

    def read(_: int) -> None:
        with contextlib.suppress(RequestFailed):
            client.get_range(pool.WARM_UP, 0, 1)

    with ThreadPoolExecutor(connections) as threads:
        list(threads.map(read, range(connections)))


def _copied(trial: ObjectTrial, client: CopyClient, store: Store, context: Context) -> Metrics:
    if trial.operation != "get":
        raise Unavailable(f"{trial.client} copies whole objects: it takes part in get alone")
    objects = pool.to_get(trial.object_bytes, trial.pool_bytes)
    pool.provide(store, objects)
    found = copies(client, objects, trial, context.clock, context.progress)
    notes = [_COPY_NOTE, *client.notes]
    return {**found, "errors": {}, "retries": None, "refused": None, "notes": notes}


def copies(
    client: CopyClient,
    objects: pool.Objects,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None],
) -> Metrics:
    """Copy all ``objects`` into memory, at least once, and again until time or number is up.

    Removing them is not in the time; a program's start is.

    Raises:
        TrialFailed: the program failed, or not all objects were there afterwards.
    """
    taken_s = used_s = 0.0
    count = 0
    while not count or (taken_s < trial.seconds and count < trial.max_requests):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
            folder = Path(name)
            start_s, before_s = clock.now_s(), _cpu_s()
            client.copy(objects.prefix, folder)
            taken_s += clock.now_s() - start_s
            used_s += _cpu_s() - before_s
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        if sizes != [objects.bytes] * objects.count:
            raise TrialFailed(
                f"{len(sizes)} files with {sum(sizes):,} bytes came of {objects.count} objects of "
                f"{objects.bytes:,}"
            )
        count += objects.count
        progress(count * objects.bytes, "bytes")
    return rates(count * objects.bytes, count, taken_s, used_s)


def _cpu_s() -> float:
    """Processor time of this process, and of those that it has started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
