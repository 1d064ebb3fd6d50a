"""forecast(config): what a job will make, take and cost; nothing is written."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dataprep.boxes import BoxColumns
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, StoreError
from dataprep.estimate import sample_size
from dataprep.forecast import (
    Cost,
    Duration,
    Forecast,
    Machine,
    Outcome,
    SplitForecast,
    Trial,
    outcome,
    reader_warning,
    working_s,
)
from dataprep.formats import get_format
from dataprep.job.box_plans import find_boxes
from dataprep.job.choice import choose_engine
from dataprep.job.claims import splits_with_jobs
from dataprep.job.cluster import Cluster
from dataprep.job.plans import SplitPlan, calibrate, label_offsets, make_plans, sample_rows
from dataprep.job.request import Request, requested
from dataprep.job.shared_labels import label_space_for
from dataprep.job.trial import timed_trial
from dataprep.labels import LabelSpace
from dataprep.prices import Prices, read_prices
from dataprep.requests import PutRule, Requests, of_output, of_source
from dataprep.stores import open_store
from dataprep.stores.s3 import MULTIPART_FROM_BYTES, PART_BYTES
from dataprep.worker import Progress

_LISTED = ("imagefolder", "flat")
CLUSTER_START_S = 2.0
S3_UPLOAD_MB_PER_S = 85.0
"""Of one connection: Amazon S3's performance guidelines reckon with 85 to 90 MB/s."""


@dataclass
class _Remarks:
    """What is to be said beside the figures."""

    assumptions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def forecast(config: ShardConfig, note: Callable[[str], None] | None = None) -> Forecast:
    """Say what ``shard`` would do with this config, from a few conversions.

    Raises:
        ConfigError, SourceError: as ``shard`` would.
        OutputConflict: the classes do not fit the output's.
        StoreError: the source cannot be read.
    """
    remarks = _Remarks()
    prices = read_prices(config.plan.prices)
    begun_s = time.perf_counter()
    request = requested(config, note or _silent)
    listing_s = time.perf_counter() - begun_s
    label_space, there = _looked_at(request, remarks)
    begun_s = time.perf_counter()
    boxes = find_boxes(config, request.listing, label_space, note or _silent)
    boxes_s = time.perf_counter() - begun_s
    trial = timed_trial(request, label_space, boxes)
    begun_s = time.perf_counter()
    plans = _planned(request, label_space, boxes)
    planning_s = boxes_s + time.perf_counter() - begun_s

    samples = sum(plan.samples for plan in plans.values())
    expected = outcome(trial.rows, samples, config.format)
    splits = tuple(_split(split, plan, expected) for split, plan in plans.items())
    for one in splits:
        largest = max(one.bytes_by_format.values())
        if said := reader_warning(one.split, one.shards, largest, config.plan.readers):
            remarks.warnings.append(said)
    machine = _machine(config, remarks)
    requests = _requests(request, plans, there, remarks)
    problems = request.listing.problems.values()
    return Forecast(
        source=request.source.uri,
        output=open_store(config.output, config.store).uri,
        entries=len(request.listing),
        refused=dict(Counter(f"{problem.status}: {problem.reason}" for problem in problems)),
        classes=len(label_space.labels),
        splits=splits,
        label_offsets=label_offsets(config, label_space),
        outcome=expected,
        machine=machine,
        duration=Duration(
            listing_s,
            planning_s,
            _starting_s(request, plans, remarks),
            _converting_s(trial, splits, machine),
            _storing_s(config, splits, machine, remarks),
        ),
        requests=requests,
        cost=_cost(config, requests, splits, prices, remarks),
        assumptions=tuple(remarks.assumptions),
        warnings=tuple(remarks.warnings),
    )


def _looked_at(request: Request, remarks: _Remarks) -> tuple[LabelSpace, int]:
    """The labels that the output would have, and how many keys it has."""
    store = open_store(request.config.output, request.config.store)
    own = request.own_labels()
    try:
        there = sum(1 for _ in store.list())
        taken = sorted(splits_with_jobs(store) & {*request.splits})
        label_space = label_space_for(request, store, remarks.warnings.append)
    except ObjectNotFound as error:
        if "://" in request.config.output:
            remarks.warnings.append(f"the output is not there yet: {error}")
        return own, 0
    except StoreError as error:
        remarks.warnings.append(f"the output cannot be looked at: {error}")
        return own, 0
    if taken:
        remarks.warnings.append(
            f"the output holds a job of {', '.join(taken)} already: shard would go on with it, or "
            "refuse; the figures are those of a new one"
        )
    return label_space, there


def _planned(
    request: Request, label_space: LabelSpace, boxes: BoxColumns | None
) -> dict[str, SplitPlan]:
    """The plan that ``shard`` would store, with all the work that it would be."""
    listing, config = request.listing, request.config
    calibration = calibrate(listing, sample_rows(listing), request.source, config)
    plans = make_plans(listing, label_space, calibration, config, boxes)
    listing.digest()
    for plan in plans.values():
        plan.to_parquet()
    return plans


def _split(split: str, plan: SplitPlan, expected: Outcome) -> SplitForecast:
    shares = {
        name: total * plan.samples // expected.samples
        for name, total in expected.bytes_by_format.items()
    }
    return SplitForecast(split, plan.samples, plan.shard_count, shares)


def _machine(config: ShardConfig, remarks: _Remarks) -> Machine:
    dask = config.dask
    workers = dask.worker_count
    if dask.scheduler or dask.cluster:
        remarks.assumptions.append(
            f"the cluster has {workers:,} workers (--workers), each as fast as this machine's"
        )
        return Machine(workers, None)
    processors = len(os.sched_getaffinity(0))
    remarks.assumptions.append(
        "every worker is as fast as one alone was just now: processors that share a core, a busy "
        "machine or a disk that cannot serve them all make it longer"
    )
    load = os.getloadavg()[0]
    if load > processors / 2:
        remarks.warnings.append(
            f"this machine was busy (load {load:.1f} on {counted(processors, 'processor')}): the "
            "time holds only while it stays so"
        )
    return Machine(workers, processors)


def _starting_s(request: Request, plans: Mapping[str, SplitPlan], remarks: _Remarks) -> float:
    """Worker processes, or a cluster, started for each split that is not small."""
    dask = request.config.dask
    seconds = 0.0
    for plan in plans.values():
        source_bytes = int(plan.sizes[: plan.samples].sum())
        engine = choose_engine(dask, source_bytes, _unheard, _silent)
        seconds += CLUSTER_START_S if isinstance(engine, Cluster) else 0.0
    if dask.scheduler or dask.cluster:
        remarks.assumptions.append(f"the cluster is ready after {CLUSTER_START_S:.0f} s")
    return seconds


def _converting_s(trial: Trial, splits: Sequence[SplitForecast], machine: Machine) -> float:
    each_s = trial.seconds / len(trial.rows)
    return sum(working_s(each_s * one.samples, one.shards, machine) for one in splits)


def _storing_s(
    config: ShardConfig, splits: Sequence[SplitForecast], machine: Machine, remarks: _Remarks
) -> float:
    """A worker converts nothing while it stores its shard."""
    rate = config.plan.upload_mb_per_s
    if rate is None and not config.output.startswith("s3://"):
        remarks.assumptions.append(
            "storing takes no time: tell another rate with --set plan.upload_mb_per_s=200"
        )
        return 0.0
    rate = rate or S3_UPLOAD_MB_PER_S
    remarks.assumptions.append(
        f"each worker stores {rate:,.0f} MB/s (plan.upload_mb_per_s), and the network carries all "
        f"{machine.workers:,} of them; nothing was uploaded to find out"
    )
    at_once = Machine(machine.workers, None)
    return sum(
        working_s(sum(one.bytes_by_format.values()) / 1e6 / rate, one.shards, at_once)
        for one in splits
    )


def _requests(
    request: Request, plans: Mapping[str, SplitPlan], there: int, remarks: _Remarks
) -> dict[str, Requests]:
    config, found = request.config, {}
    samples = sum(plan.samples for plan in plans.values())
    if request.source.uri.startswith("s3://"):
        listed = config.kind in _LISTED
        reads = samples + sample_size(samples)
        found["source"] = of_source(len(request.listing), reads, listed=listed)
        if not listed:
            remarks.assumptions.append(
                f"requests by which a source of kind {config.kind!r} finds its samples are not "
                "counted"
            )
    if config.output.startswith("s3://"):
        kms = (config.store.sse or "").startswith("aws:kms")
        formats = [get_format(name) for name in config.format]
        objects = 1 + sum(1 + len(form.indexes([])) for form in formats)
        rule = PutRule(MULTIPART_FROM_BYTES, PART_BYTES, reads_back=kms)
        shards = [plan.shard_count for plan in plans.values()]
        found["output"] = of_output(shards, objects, there, rule)
    if found:
        remarks.assumptions.append("no request has to be repeated")
    return found


def _cost(
    config: ShardConfig,
    requests: Mapping[str, Requests],
    splits: Sequence[SplitForecast],
    prices: Prices,
    remarks: _Remarks,
) -> Cost | None:
    if not requests:
        return None
    if config.store.endpoint_url:
        remarks.assumptions.append(f"no cost: {config.store.endpoint_url} is not Amazon's S3")
        return None
    region = config.store.region or os.environ.get("AWS_REGION") or next(iter(prices.s3))
    storage_class = config.store.storage_class or "STANDARD"
    price = prices.find(region, storage_class)
    if price is None:
        remarks.assumptions.append(
            f"no cost: the prices know nothing of {storage_class} in {region}; add it to a copy "
            "of configs/prices.yaml and give --prices"
        )
        return None
    whose = str(config.plan.prices) if config.plan.prices else "example prices, to be edited"
    stored = sum(sum(one.bytes_by_format.values()) for one in splits)
    return Cost(
        requests=sum(price.of_requests(one) for one in requests.values()),
        month=price.of_a_month(stored) if "output" in requests else 0.0,
        currency=prices.currency,
        prices=f"{whose}: {region}, {storage_class}, {prices.source} as of {prices.as_of}",
    )


def _silent(line: str) -> None:
    """Say nothing."""


def _unheard(progress: Progress) -> None:
    """Nobody waits for it."""
