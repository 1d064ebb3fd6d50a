"""One trial of the object-store probe: timed requests of one operation, and its figures."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from dataprep.errors import DataprepError, StoreError
from dataprep.message_text import counted
from dataprep.schema import typed
from dataprep.stores import Store
from dataprep.stores.s3_bucket import without_advice
from dataprep.threaded_map import in_order
from iobench.clock import Clock
from iobench.errors import TrialFailed, Unavailable
from iobench.plug_ins import create
from iobench.probes.object_store import objects as probe_objects
from iobench.probes.object_store.clients import (
    CLIENTS,
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)
from iobench.probes.settings import ObjectTrial
from iobench.results.statistics import quantiles
from iobench.results.trial import Cold, Context, Location, Metrics, Outcome, TrialSpec

_SERVER_CACHE = Cold("not applicable", "server cache unknown", why="a store's cache is its own")
"""The label of trials that read. It is unknown whether the store had the objects in its cache."""

_MEMORY = Path("/dev/shm")  # noqa: S108  a temporary folder is made in it
"""A folder in memory for copies of objects, so that no disk limits the rate."""
_PROGRESS_S = 0.2
"""Seconds between two reports of progress."""
_MIN_FAILURES = 20
"""If all requests of a trial fail, it ends after this many failures, or after one failure for each
connection if that is more."""

Request: TypeAlias = Callable[[int, int], Timing]
"""``request(stream, turn)`` sends the request with the number ``turn`` of a stream.

A stream is a thread that sends one request after another. Streams and turns are numbered from 0.
"""


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``object``; ``metrics`` describes the figures.

    Missing objects to read are put into the store before the measurement. Written objects are
    deleted at the end. Each connection is opened with a request that does not count.

    Raises:
        Unavailable: the client, the credentials or the bucket do not exist, the client does not
            support the store or the operation, or the store does not answer.
        TrialFailed: no request succeeded, a program has failed, or the store is overloaded.
        PermissionRefused: the bucket cannot be listed or written.
    """
    trial = typed(ObjectTrial, spec.params)
    location = context.locations.get(f"store/{trial.store}")
    if location is None:
        raise Unavailable(f"no object store is called {trial.store!r}: name it under targets")
    if not location.uri.startswith("s3://") and not CLIENTS.origin(trial.client):
        raise Unavailable(
            f"client {trial.client!r} works with S3 only, and {location.uri} is another store: "
            "name a client of the package that provides this store"
        )
    client_class = CLIENTS.load(trial.client)
    protocol = CopyClient if hasattr(client_class, "copy") else ObjectClient
    try:
        store = probe_objects.open_reachable(location)
        client = create(
            CLIENTS,
            trial.client,
            protocol,
            lambda: client_class(location, trial.connections, context.clock),
        )
        if isinstance(client, CopyClient):
            return Outcome(_measure_copies(trial, client, store, context), cold=_SERVER_CACHE)
        with contextlib.closing(client):
            figures = _measure(trial, client, store, location, context)
        return Outcome(figures, cold=_SERVER_CACHE if trial.reads else None)
    except StoreError as error:
        if type(error) is not StoreError or not probe_objects.is_overload(str(error)):
            raise
        message = without_advice(str(error)).rstrip(".")
        raise TrialFailed(f"{message}: {probe_objects.OVERLOADED}") from None


def _measure_copies(
    trial: ObjectTrial, client: CopyClient, store: Store, context: Context
) -> Metrics:
    """Put missing objects into the store, copy all objects, and return the figures."""
    if trial.operation != "get":
        raise Unavailable(f"{trial.client} copies whole objects: it supports get only")
    objects = probe_objects.whole_objects(trial.object_bytes, trial.pool_bytes)
    probe_objects.put_missing(store, objects)
    context.begin()
    return copy_objects(client, objects, trial, context.clock, context.progress)


def _measure(
    trial: ObjectTrial, client: ObjectClient, store: Store, location: Location, context: Context
) -> Metrics:
    """Send the requests of a trial, and return its figures."""
    notes: list[str] = []
    written_keys: set[str] = set()
    request = _reader(trial, client, store) if trial.reads else _writer(trial, client, written_keys)
    try:
        store.put(probe_objects.WARM_UP, b"0")
        # Each stream reads one byte at the same time, so that no timed request has to connect. A
        # stream sends its first request in any case, so a maximum of 1 gives one request for each.
        one_request_each = replace(trial, max_requests=1)

        def connect(stream: int, turn: int) -> Timing:
            return client.get_range(probe_objects.WARM_UP, 0, 1)

        send_requests(connect, one_request_each, context.clock)
        retries_before, refused_before = client.retries, getattr(client, "refused", None)
        context.begin()
        cpu_s = time.process_time()
        attempts = send_requests(request, trial, context.clock, _progress(client, context))
        cpu_s = time.process_time() - cpu_s
    finally:
        try:
            list(in_order(store.delete, sorted(written_keys), probe_objects.AT_ONCE))
        except DataprepError as error:
            notes.append(f"written objects could not be deleted: {error}")
    require_success(attempts, location.uri)
    return metrics(
        attempts,
        retries=_difference(client.retries, retries_before),
        refused=_difference(getattr(client, "refused", None), refused_before),
        cpu_s=cpu_s,
        notes=[*notes, *client.notes],
    )


def _difference(after: int | None, before: int | None) -> int | None:
    """Return the growth of a count; None if the client does not report it."""
    return None if before is None or after is None else after - before


def _progress(client: ObjectClient, context: Context) -> Callable[[float, str], None]:
    """Return a function that reports progress, and prints a line when requests are sent again.

    If the trial is killed because the requests take too long, its reason has this line.
    """
    printed_retries = client.retries or 0

    def progress(amount: float, unit: str) -> None:
        nonlocal printed_retries
        retries = client.retries or 0
        if retries > printed_retries:
            printed_retries = retries
            requests = counted(retries, "request")
            sys.stderr.write(f"{requests} sent again: {probe_objects.OVERLOADED}\n")
            sys.stderr.flush()
        context.progress(amount, unit)

    return progress


@dataclass(slots=True)
class Attempts:
    """The outcomes of all requests of a trial.

    Attributes:
        timings: the timings of the requests that succeeded.
        errors: the number of failed requests, by status.
        reasons: the message of the first failed request, by status.
        bytes: the bytes of the requests that succeeded.
        first_start_s, last_end_s: the moments when the first request started, and when the last
            request ended.
    """

    timings: list[Timing] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    first_start_s: float = float("inf")
    last_end_s: float = float("-inf")

    @property
    def seconds(self) -> float:
        """Seconds from the first start to the last end; 0 without requests."""
        return max(0.0, self.last_end_s - self.first_start_s)

    def note(self, outcome: Timing | RequestFailed, start_s: float, end_s: float) -> None:
        """Add one request.

        Args:
            outcome: its timing, or its error.
            start_s, end_s: the moments when it started and ended.
        """
        self.first_start_s = min(self.first_start_s, start_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if isinstance(outcome, Timing):
            self.timings.append(outcome)
            self.bytes += outcome.bytes
        else:
            self.errors[outcome.status] += 1
            self.reasons.setdefault(outcome.status, str(outcome))


def send_requests(
    request: Request,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None] = lambda amount, unit: None,
) -> Attempts:
    """Send requests on as many threads as the trial has connections.

    Each thread sends at least one request. It sends no further request when the time of the trial
    is over, or when all threads together have sent the largest number of requests. A failed request
    is counted, and its thread goes on. If no request has succeeded after ``_MIN_FAILURES`` failures
    (or one failure for each thread, if that is more), the trial ends.

    Args:
        request: sends a request.
        trial: the time, the number of connections and the largest number of requests.
        clock: the clock of all times.
        progress: is called with the bytes so far, at intervals of ``_PROGRESS_S`` and at the end.

    Raises:
        Exception: any error of ``request`` except ``RequestFailed``.
    """
    attempts, lock = Attempts(), threading.Lock()
    deadline_s = clock.now_s() + trial.seconds
    max_failures = max(_MIN_FAILURES, trial.connections)
    started = 0

    def stream(number: int) -> None:
        nonlocal started
        for turn in itertools.count():
            with lock:
                is_hopeless = not attempts.timings and attempts.errors.total() >= max_failures
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
    for future in streams:
        future.result()
    return attempts


def _reader(trial: ObjectTrial, client: ObjectClient, store: Store) -> Request:
    """Put missing objects into the store, and return a function that reads the objects in turn."""
    read_bytes = trial.object_bytes
    is_whole = trial.operation == "get"
    if is_whole:
        objects = probe_objects.whole_objects(read_bytes, trial.pool_bytes)
    else:
        objects = probe_objects.ranged_objects(read_bytes, trial.pool_bytes)
    probe_objects.put_missing(store, objects)

    def read(stream: int, turn: int) -> Timing:
        number = stream + turn * trial.connections
        key = objects.key(number)
        if is_whole:
            return client.get(key)
        offset = probe_objects.range_offset(number, objects.bytes, read_bytes)
        return client.get_range(key, offset, read_bytes)

    return read


def _writer(trial: ObjectTrial, client: ObjectClient, written_keys: set[str]) -> Request:
    """Return a function that writes objects, and adds their keys to ``written_keys``.

    Each stream has its own keys, which it writes in turn. So an object is replaced again and again,
    and all objects together take at most ``pool_bytes`` if each stream can have a key within it.
    """
    bodies = probe_objects.bodies_to_write(trial.object_bytes)
    keys = probe_objects.keys_per_stream(trial.object_bytes, trial.pool_bytes, trial.connections)

    def write(stream: int, turn: int) -> Timing:
        key = f"{trial.operation}/{stream:05d}-{turn % keys:05d}"
        body = bodies[turn % len(bodies)]
        written_keys.add(key)
        if trial.operation == "put":
            return client.put(key, body)
        return client.multipart(key, body, trial.part_bytes)

    return write


def copy_objects(
    client: CopyClient,
    objects: probe_objects.Objects,
    trial: ObjectTrial,
    clock: Clock,
    progress: Callable[[float, str], None],
) -> Metrics:
    """Copy all objects into memory, again and again until the trial is over.

    The trial is over when its time or its number of requests is used up, but not before all objects
    were copied once. If the client is a program, the measured time includes its start. It does not
    include the removal of the copies.

    Raises:
        TrialFailed: the program has failed, or it has not copied exactly these objects.
    """
    wall_s = cpu_s = 0.0
    count = 0
    while not count or (wall_s < trial.seconds and count < trial.max_requests):
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
            folder = Path(name)
            start_s, cpu_before_s = clock.now_s(), sum(os.times()[:4])
            client.copy(objects.prefix, folder)
            wall_s += clock.now_s() - start_s
            cpu_s += sum(os.times()[:4]) - cpu_before_s
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        if sizes != [objects.bytes] * objects.count:
            raise TrialFailed(
                f"{len(sizes)} files with {sum(sizes):,} bytes were copied of {objects.count} "
                f"objects of {objects.bytes:,} bytes"
            )
        count += objects.count
        progress(count * objects.bytes, "bytes")
    figures = rates(count * objects.bytes, count, wall_s, cpu_s)
    return {**figures, "errors": {}, "retries": None, "refused": None, "notes": [*client.notes]}


def metrics(
    attempts: Attempts,
    *,
    retries: int | None,
    cpu_s: float,
    refused: int | None = None,
    notes: Sequence[str] = (),
) -> Metrics:
    """Compute the figures of a trial. Failed requests count only in ``errors``.

    ``cpu_cores`` is the mean number of processor cores that this process kept busy. If it is close
    to the number of cores that the client can use (one for pure Python), the rate is limited by the
    client, not by the store.

    Args:
        attempts: the outcomes of the requests.
        retries: the number of requests sent again; None if the client does not report it.
        cpu_s: the processor time of this process, in seconds.
        refused: the number of answers 503 and 429, with which a store asks for fewer requests; None
            if the client does not report it.
        notes: remarks for readers of the figures.
    """
    return {
        **rates(attempts.bytes, len(attempts.timings), attempts.seconds, cpu_s),
        **_latency_quantiles(attempts.timings),
        "errors": dict(sorted(attempts.errors.items())),
        "retries": retries,
        "refused": refused,
        "notes": [*notes],
    }


def _latency_quantiles(timings: Sequence[Timing]) -> dict[str, float]:
    """Return the quantiles of each part of a request in seconds, such as ``first_byte_s_p50``."""
    latencies: dict[str, list[float]] = {"first_byte_s": [], "body_s": [], "total_s": []}
    for timing in timings:
        latencies["total_s"].append(timing.total_s)
        if timing.first_byte_s is not None:
            latencies["first_byte_s"].append(timing.first_byte_s)
            latencies["body_s"].append(timing.total_s - timing.first_byte_s)
    figures = {}
    for name, values in latencies.items():
        for quantile, value in quantiles(values).items():
            figures[f"{name}_{quantile}"] = value
    return figures


def rates(moved_bytes: int, requests: int, seconds: float, cpu_s: float) -> Mapping[str, float]:
    """Compute the figures that every trial has. Rates are 0 if no time passed.

    ``cpu_s_per_gb`` is the processor time for 10^9 bytes, in seconds.
    """
    mb_per_s = requests_per_s = cpu_cores = cpu_s_per_gb = 0.0
    if seconds > 0:
        mb_per_s = moved_bytes / 1e6 / seconds
        requests_per_s = requests / seconds
        cpu_cores = cpu_s / seconds
    if moved_bytes > 0:
        cpu_s_per_gb = cpu_s / moved_bytes * 1e9
    return {
        "mb_per_s": mb_per_s,
        "requests_per_s": requests_per_s,
        "bytes": moved_bytes,
        "seconds": seconds,
        "requests": requests,
        "cpu_cores": cpu_cores,
        "cpu_s_per_gb": cpu_s_per_gb,
    }


def require_success(attempts: Attempts, uri: str) -> None:
    """Check that at least one request succeeded.

    Raises:
        TrialFailed: all requests have failed. The message has the most frequent error.
    """
    if attempts.timings:
        return
    status, count = attempts.errors.most_common(1)[0]
    reason = attempts.reasons[status]
    if status in ("401", "403"):
        raise TrialFailed(
            f"{uri}: permission refused ({reason}): check the credentials and the bucket's policy"
        )
    if probe_objects.is_overload(status):
        reason = f"{reason.rstrip('.')}: {probe_objects.OVERLOADED}"
    raise TrialFailed(
        f"{uri}: every request failed, {count} of {attempts.errors.total()} with {reason}"
    )
