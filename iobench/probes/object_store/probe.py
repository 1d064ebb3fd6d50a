"""One trial of the object-store probe: timed requests of one kind to one store, its figures."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from dataprep.counted import counted
from dataprep.errors import DataprepError, StoreError
from dataprep.ordered import in_order
from dataprep.schema import typed
from dataprep.stores import Store
from dataprep.stores.s3_bucket import without_advice
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import create
from iobench.probes.object_store import pool
from iobench.probes.object_store.clients import (
    CLIENTS,
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)
from iobench.probes.settings import ObjectTrial
from iobench.stats import quantiles
from iobench.trial import Cold, Context, Metrics, Outcome, Place, TrialSpec

_SERVER_CACHE = Cold("not applicable", "server cache unknown", why="a store's cache is its own")
_MEMORY = Path("/dev/shm")  # noqa: S108  a temporary folder is made in it
_PROGRESS_S = 0.2
_HOPELESS = 20
_COPY_NOTE = "one process copies all objects into memory; the time includes its start"


Request = Callable[[int, int], Timing]
"""``request(stream, turn)``: the ``turn``-th of that stream, both from 0."""


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``object``; ``metrics`` describes the figures.

    Missing objects to read are put first; written objects are deleted at the end. Each connection
    is opened by a request that does not count.

    Raises:
        Unavailable: no client, no credentials, no bucket, or no answer.
        TrialFailed: no request succeeded, or the store refuses requests for now.
        PermissionRefused: the bucket cannot be listed or written.
    """
    trial = typed(ObjectTrial, spec.params)
    place = context.places.get(f"store/{trial.store}")
    if place is None:
        raise Unavailable(f"no object store is called {trial.store!r}: name it under targets")
    if not place.uri.startswith("s3://") and not CLIENTS.origin(trial.client):
        raise Unavailable(
            f"client {trial.client!r} works with S3 only, and {place.uri} is another store: name a "
            "client of the package that provides this store"
        )
    client_class = CLIENTS.load(trial.client)
    protocol = CopyClient if hasattr(client_class, "copy") else ObjectClient
    try:
        store = pool.reach(place)
        client = create(
            CLIENTS,
            trial.client,
            protocol,
            lambda: client_class(place, trial.connections, context.clock),
        )
        if isinstance(client, CopyClient):
            if trial.operation != "get":
                raise Unavailable(f"{trial.client} copies whole objects: it supports get only")
            objects = pool.to_get(trial.object_bytes, trial.pool_bytes)
            pool.provide(store, objects)
            context.begin()
            found = copies(client, objects, trial, context.clock, context.progress)
            return Outcome(found, cold=_SERVER_CACHE)
        with contextlib.closing(client):
            found = _measured(trial, client, store, place, context)
        return Outcome(found, cold=_SERVER_CACHE if trial.reads else None)
    except StoreError as error:
        if type(error) is not StoreError or not pool.is_overload(str(error)):
            raise
        said = without_advice(str(error)).rstrip(".")
        raise TrialFailed(f"{said}: {pool.OVERLOADED}") from None


def _measured(
    trial: ObjectTrial, client: ObjectClient, store: Store, place: Place, context: Context
) -> Metrics:
    notes: list[str] = []
    written: set[str] = set()
    request = _reader(trial, client, store) if trial.reads else _writer(trial, client, written)
    try:
        store.put(pool.WARM_UP, b"0")
        # One byte on each stream at the same time, so that no timed request has to connect.
        once = replace(trial, max_requests=1)
        attempt(lambda stream, turn: client.get_range(pool.WARM_UP, 0, 1), once, context.clock)
        retries, refused = client.retries, getattr(client, "refused", None)
        context.begin()
        cpu_s = time.process_time()
        attempts = attempt(request, trial, context.clock, _progress(client, context))
        cpu_s = time.process_time() - cpu_s
    finally:
        try:
            list(in_order(store.delete, sorted(written), pool.AT_ONCE))
        except DataprepError as error:
            notes.append(f"written objects could not be deleted: {error}")
    require_success(attempts, place.uri)
    return metrics(
        attempts,
        retries=_difference(client.retries, retries),
        refused=_difference(getattr(client, "refused", None), refused),
        cpu_s=cpu_s,
        notes=[*notes, *client.notes],
    )


def _difference(after: int | None, before: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _progress(client: ObjectClient, context: Context) -> Callable[[float, str], None]:
    """Report progress, and log a line when requests are sent again.

    If the trial is killed because they take too long, that line becomes its reason.
    """
    reported = client.retries or 0

    def progress(done: float, unit: str) -> None:
        nonlocal reported
        now = client.retries or 0
        if now > reported:
            reported = now
            sys.stderr.write(f"{counted(now, 'request')} sent again: {pool.OVERLOADED}\n")
            sys.stderr.flush()
        context.progress(done, unit)

    return progress


@dataclass(slots=True)
class Attempts:
    """The outcome of all requests of a trial."""

    timings: list[Timing] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    first_start_s: float = float("inf")
    last_end_s: float = float("-inf")

    @property
    def seconds(self) -> float:
        """Time from the first start to the last end; 0 without requests."""
        return max(0.0, self.last_end_s - self.first_start_s)

    def note(self, outcome: Timing | RequestFailed, start_s: float, end_s: float) -> None:
        """Add one request."""
        self.first_start_s = min(self.first_start_s, start_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if isinstance(outcome, Timing):
            self.timings.append(outcome)
            self.bytes += outcome.bytes
        else:
            self.errors[outcome.status] += 1
            self.reasons.setdefault(outcome.status, str(outcome))


def attempt(
    request: Request,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None] = lambda done, unit: None,
) -> Attempts:
    """Send requests on as many threads as the trial has connections.

    Each thread starts at least one request, and no further one when the trial's time or number of
    requests is used up. A failed request is counted, and its thread goes on. If no request has
    succeeded after 20 failures (or one per thread, whichever is more), the trial ends.

    Raises:
        Exception: any error of ``request`` except ``RequestFailed``.
    """
    attempts, lock = Attempts(), threading.Lock()
    deadline_s = clock.now_s() + trial.seconds
    most_failures = max(_HOPELESS, trial.connections)
    started = 0

    def stream(number: int) -> None:
        nonlocal started
        for turn in itertools.count():
            with lock:
                is_hopeless = not attempts.timings and attempts.errors.total() >= most_failures
                is_over = started >= trial.max_requests or clock.now_s() >= deadline_s
                if turn and (is_hopeless or is_over):
                    return
                started += 1
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
        while wait(streams, timeout=_PROGRESS_S).not_done:
            progress(attempts.bytes, "bytes")
    progress(attempts.bytes, "bytes")
    for each in streams:
        each.result()
    return attempts


def _reader(trial: ObjectTrial, client: ObjectClient, store: Store) -> Request:
    """Put missing objects, and return a request that reads them in turn."""
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
    """Return a request that overwrites the stream's keys in turn and adds them to ``written``."""
    bodies = pool.payloads(trial.object_bytes)
    ring = pool.ring(trial.object_bytes, trial.pool_bytes, trial.connections)

    def write(stream: int, turn: int) -> Timing:
        key = f"{trial.operation}/{stream:05d}-{turn % ring:05d}"
        body = bodies[turn % len(bodies)]
        written.add(key)
        if trial.operation == "put":
            return client.put(key, body)
        return client.multipart(key, body, trial.part_bytes)

    return write


def copies(
    client: CopyClient,
    objects: pool.Objects,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None],
) -> Metrics:
    """Copy all ``objects`` into memory until time or number of requests is used up.

    They are copied at least once. The time includes the start of a program, but not the removal of
    the copies.

    Raises:
        TrialFailed: the program failed, or copied other than all objects.
    """
    taken_s = used_s = 0.0
    count = 0
    while not count or (taken_s < trial.seconds and count < trial.max_requests):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
            folder = Path(name)
            start_s, before_s = clock.now_s(), sum(os.times()[:4])
            client.copy(objects.prefix, folder)
            taken_s += clock.now_s() - start_s
            used_s += sum(os.times()[:4]) - before_s
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        if sizes != [objects.bytes] * objects.count:
            raise TrialFailed(
                f"{len(sizes)} files with {sum(sizes):,} bytes were copied of {objects.count} "
                f"objects of {objects.bytes:,} bytes"
            )
        count += objects.count
        progress(count * objects.bytes, "bytes")
    found = rates(count * objects.bytes, count, taken_s, used_s)
    notes = [_COPY_NOTE, *client.notes]
    return {**found, "errors": {}, "retries": None, "refused": None, "notes": notes}


def metrics(
    attempts: Attempts,
    *,
    retries: int | None,
    cpu_s: float,
    refused: int | None = None,
    notes: Sequence[str] = (),
) -> Metrics:
    """Compute the figures of a trial; only ``errors`` counts requests that failed.

    ``cpu_cores`` is how many processor cores this process kept busy. If that is close to what the
    client can use (one for pure Python), the client limits the rate, not the store. ``refused``
    counts answers 503 and 429, by which a store asks for fewer requests. ``retries`` and
    ``refused`` are None if the client does not report them.
    """
    done = attempts.timings
    firsts = [one.first_byte_s for one in done if one.first_byte_s is not None]
    bodies = [one.total_s - one.first_byte_s for one in done if one.first_byte_s is not None]
    totals = [one.total_s for one in done]
    found = dict(rates(attempts.bytes, len(done), attempts.seconds, cpu_s))
    for name, values in {"first_byte_s": firsts, "body_s": bodies, "total_s": totals}.items():
        found |= {f"{name}_{quantile}": value for quantile, value in quantiles(values).items()}
    errors = dict(sorted(attempts.errors.items()))
    return {**found, "errors": errors, "retries": retries, "refused": refused, "notes": [*notes]}


def rates(moved_bytes: int, requests: int, seconds: float, cpu_s: float) -> Metrics:
    """Compute the figures that every trial has; ``cpu_s_per_gb``: seconds for 10^9 bytes."""
    return {
        "mb_per_s": moved_bytes / 1e6 / seconds if seconds > 0 else 0.0,
        "requests_per_s": requests / seconds if seconds > 0 else 0.0,
        "bytes": moved_bytes,
        "seconds": seconds,
        "requests": requests,
        "cpu_cores": cpu_s / seconds if seconds > 0 else 0.0,
        "cpu_s_per_gb": cpu_s / moved_bytes * 1e9 if moved_bytes > 0 else 0.0,
    }


def require_success(attempts: Attempts, uri: str) -> None:
    """Require at least one request that succeeded.

    Raises:
        TrialFailed: none did; the message has the most frequent error.
    """
    if attempts.timings:
        return
    status, count = attempts.errors.most_common(1)[0]
    reason = attempts.reasons[status]
    if status in ("401", "403"):
        raise TrialFailed(
            f"{uri}: permission refused ({reason}): check the credentials and the bucket's policy"
        )
    if pool.is_overload(status):
        reason = f"{reason.rstrip('.')}: {pool.OVERLOADED}"
    raise TrialFailed(
        f"{uri}: every request failed, {count} of {attempts.errors.total()} with {reason}"
    )
