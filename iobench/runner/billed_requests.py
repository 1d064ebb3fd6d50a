"""Estimate how many requests to Amazon's S3 a run sends at most. Amazon bills these requests.

The estimate assumes that:

- a probe ends after its seconds or its ``max_requests``;
- a loader or a training loop ends when its rate is known and its minimum duration is over, or after
  ``trial_timeout_s``;
- a connection has one request in flight, and S3 takes at least 10 ms to answer (20 ms were measured
  within a region), so that a connection sends at most 100 requests per second;
- a loader of another package has at most two connections for each worker;
- loaders start at most 10 s before their measurement;
- no sample is read twice in an epoch.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dataprep.config.prices import Price, read_prices, storage_price
from dataprep.reading.record_reader import RANGES_AT_ONCE
from dataprep.stores import StoreOptions
from iobench.analysis.store_limits import connections_of
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import location_names
from iobench.data.expected_size import ExpectedData
from iobench.data.settings import AS_FILES, DataSettings, split_name
from iobench.loaders.samples_in_memory import MAX_THREADS
from iobench.machine.object_stores import describe_store, endpoint_of
from iobench.probes.object_store import objects as probe_objects
from iobench.results.trial import Params, TrialSpec
from iobench.trials.ladder import PRELOADED_RUNGS
from iobench.trials.window import MIN_EPOCHS

_MAX_REQUESTS_PER_S = 100
"""The largest number of requests that one connection sends in a second."""
_CONNECTIONS_PER_WORKER = 2
"""The number of connections of a worker in a loader of another package."""
_START_S = 10.0
"""Loaders start at most this long before their measurement."""
_GETS_TO_OPEN = 4
"""The assumed number of GET and HEAD requests that open a data set: for its manifest, its labels
and its table of samples, and to check that the manifest has not changed."""
_KEYS_PER_LISTING = 1_000
"""The number of keys in one answer of S3 to LIST."""
_MAX_IMAGE_BYTES = 1_000_000
"""The assumed maximum size of an image in a shard."""

_OBJECTS_PER_SHARD = 6
"""A shard that a run makes has a TFRecord file with one index, a RecordIO file with two indexes,
and a receipt."""

_OBJECTS_PER_DATA_SET = 5
"""A data set has a manifest, a job file, a plan, labels and a table of samples."""

_PART_BYTES = 5 * 2**20
"""The assumed size of the parts in which ``_COPY_CLIENTS`` and awscrt read large objects. Their
parts are not smaller."""

_COPY_CLIENTS = ("s5cmd", "awscli", "s3torchconnector")
"""The clients that copy objects in rounds. Each round lists all objects and copies all of them."""

_MAX_DEVICES = 16
"""The assumed number of devices for ``devices: all``."""


@dataclass(frozen=True, slots=True)
class BilledStore:
    """A store whose requests Amazon bills.

    Attributes:
        uri: its address.
        price: the price of requests; None if it is unknown.
        source: the file of the price, or ``example prices``, with a remark about the price.
    """

    uri: str
    price: Price | None
    source: str


RequestCounts: TypeAlias = Counter[str]
"""Numbers of requests by kind: ``puts``, ``gets`` and ``lists``. HEAD counts as GET, because both
have the same price."""


def max_requests_by_store(
    config: BenchConfig, specs: Sequence[TrialSpec], data: ExpectedData
) -> dict[BilledStore, RequestCounts]:
    """The maximum numbers of requests of the trials to each store on Amazon's S3.

    Args:
        config: the config of the run.
        specs: the trials to measure.
        data: the data that the trials read.

    Raises:
        ConfigError: the file of prices cannot be read.
    """
    stores = _billed_stores(config, specs)
    is_data_on_s3 = any("@s3" in name for name in stores)
    samples = data.samples if is_data_on_s3 else 0
    counts: dict[BilledStore, RequestCounts] = defaultdict(Counter)
    for name, store in stores.items():
        objects = 0
        if "@s3" in name and own_store_uri(name, config.data) is None:
            objects = _copied_objects(name, config.data, samples)
        # Each object is confirmed by a HEAD request after its PUT.
        counts[store] += RequestCounts(puts=objects, gets=objects)
    for spec in specs:
        for name in stores.keys() & set(location_names(spec)):
            store = stores[name]
            if spec.kind == "object":
                counts[store] += _probe_requests(spec.params)
            else:
                counts[store] += _reading_requests(name, spec, samples, config.trial_timeout_s)
    return counts


def _copied_objects(name: str, data: DataSettings, samples: int) -> int:
    """The number of objects that are copied to the store before they are read."""
    form, shard_bytes, _ = split_name(name)
    if form in AS_FILES:
        return samples
    shard_bytes = shard_bytes or int(data.shard_size)
    shards = samples * _MAX_IMAGE_BYTES // shard_bytes + 1
    return _OBJECTS_PER_SHARD * min(shards, samples) + _OBJECTS_PER_DATA_SET


def _probe_requests(params: Params) -> RequestCounts:
    """The maximum numbers of requests of a trial of the probe of object stores.

    The trial checks the bucket with a HEAD request, sends two listings, writes and confirms an
    object of one byte, and opens each connection with a GET of it. After that it sends requests for
    ``seconds``, or until it has sent ``max_requests``. Before objects are read, they are written
    and confirmed. In the worst case every trial does this.
    """
    object_bytes, connections = params["object_bytes"], int(params["connections"])
    objects = probe_objects.whole_objects(object_bytes, params["pool_bytes"]).count
    # Each connection sends at least one request.
    max_requests = max(params["max_requests"], connections)
    count = min(max_requests, _requests_in(params["seconds"], connections))
    other_requests = RequestCounts(puts=1, gets=2 + connections, lists=2)
    if params["client"] in _COPY_CLIENTS:
        count += objects
        parts_of_copies = count * (1 + object_bytes // _PART_BYTES)
        other_requests += RequestCounts(gets=parts_of_copies, lists=count)
    elif params["client"] == "awscrt" and params["operation"] == "get":
        further_parts = count * (object_bytes // _PART_BYTES)
        other_requests += RequestCounts(gets=further_parts)
    if params["operation"] in ("get", "range_get"):
        return other_requests + RequestCounts(puts=objects, gets=count + objects)
    parts = 1
    if params["operation"] == "multipart":
        # The first and the last request begin and end the upload.
        parts = math.ceil(object_bytes / params["part_bytes"]) + 2
    return other_requests + RequestCounts(puts=count * parts)


def _reading_requests(name: str, spec: TrialSpec, samples: int, timeout_s: float) -> RequestCounts:
    """The maximum numbers of requests of a loader, a training loop or a layout probe."""
    params = spec.params
    processes = int(params.get("processes", 1))
    workers = int(params.get("workers", params.get("parallelism", 1)))
    devices = params.get("accelerators") or params.get("devices", 1)
    ranks = _MAX_DEVICES if devices == "all" else int(devices)
    connections = _process_connections(spec, max(1, workers)) * processes * ranks
    if params.get("input") in PRELOADED_RUNGS or params.get("access") == "file":
        # Threads read the samples, or copy the files, before the measurement.
        connections = max(connections, MAX_THREADS)
    max_gets = _requests_in(timeout_s, connections)
    if spec.kind == "layout":
        max_gets = _requests_in(params["seconds"] + _START_S, connections)
    else:
        gets = _max_samples(params, samples, ranks)  # In the worst case, one GET for each sample.
        if "seconds" in params and not params.get("epochs"):
            # The loader goes on until the seconds are over, also if its rate is known long before.
            gets += _requests_in(params["seconds"] + _START_S, connections)
        max_gets = min(max_gets, gets)
    keys = samples if split_name(name)[0] in AS_FILES else 0
    lists = (1 + keys // _KEYS_PER_LISTING) * (1 + processes)
    return RequestCounts(gets=max_gets + _GETS_TO_OPEN * (1 + connections), lists=lists)


def _process_connections(spec: TrialSpec, workers: int) -> int:
    """The maximum number of connections of one process with its workers."""
    if spec.kind == "layout":
        # A layout probe has one connection for each process. The second one is a margin.
        return 2 * workers
    connections = connections_of(spec.params)
    if connections is None:
        return _CONNECTIONS_PER_WORKER * workers
    # ``connections_of`` counts the windows that these loaders fetch at a time. The samples of a
    # window can be fetched in several ranges.
    reads_windows = spec.params.get("loader") in ("torch-iterable", "tf-data")
    return connections * RANGES_AT_ONCE if reads_windows else connections


def _max_samples(params: Params, samples: int, ranks: int) -> int:
    """The maximum number of samples that a trial reads until it ends by itself."""
    samples_of_epochs = max(MIN_EPOCHS, int(params.get("epochs") or 1)) * samples
    if "steps" not in params:
        return samples_of_epochs
    # The trial may stop within an epoch. Up to half of the samples of each epoch do not count.
    counted_samples = int(params["steps"]) * int(params["batch_size"]) * ranks
    return samples_of_epochs + samples + 2 * counted_samples


def _requests_in(seconds: float, connections: int) -> int:
    """The maximum number of requests that connections send in a time."""
    return int(connections * (seconds * _MAX_REQUESTS_PER_S + 1))


def own_store_uri(name: str, data: DataSettings) -> str | None:
    """The address of data on the user's own store; None if the trials read a copy of the data."""
    uri = {"shards@s3": data.shards, "photos@s3": data.source}.get(name) or ""
    return uri if "://" in uri else None


def _address(name: str, config: BenchConfig) -> tuple[str, StoreOptions]:
    """The address of data or of a target, and the options of its store; empty if it has no store.

    Args:
        name: the name of the data, or ``store/LABEL`` for a target.
        config: the config of the run.
    """
    data = config.data
    if "@s3" in name:
        own_uri = own_store_uri(name, data)
        if own_uri:
            return own_uri, data.store
        return data.bucket.uri, data.bucket.store
    targets = config.object_store.targets if config.object_store else ()
    for target in targets:
        if name == f"store/{target.label}":
            return target.uri, target.store
    return "", StoreOptions()


def _billed_stores(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, BilledStore]:
    """The stores on Amazon's S3, by the names of the data and targets on them.

    Stores at other endpoints are left out, since their requests have no known price.
    """
    names: dict[str, None] = {}  # a set that keeps the order
    for spec in specs:
        names |= dict.fromkeys(location_names(spec))
    billed = {}
    prices_path = Path(config.prices).expanduser() if config.prices else None
    for name in names:
        uri, options = _address(name, config)
        # A store without a known endpoint is assumed to be Amazon's.
        endpoint = endpoint_of(options)[0] or "https://amazonaws.com"
        if describe_store(uri, endpoint)["kind"].startswith("aws-s3"):
            price, remark = storage_price(read_prices(prices_path), options)
            source = config.prices or "example prices, to be edited"
            billed[name] = BilledStore(uri, price, f"{source}: {remark}")
    return billed
