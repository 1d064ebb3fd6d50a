"""forecast(config): what a job will make, take and cost; nothing is written."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, StoreError
from dataprep.forecast import (
    Duration,
    Forecast,
    Machine,
    Outcome,
    SplitForecast,
    Trial,
    failure_warning,
    fate,
    outcome,
    reader_warning,
    working_s,
)
from dataprep.job.calibration import calibrate
from dataprep.job.charges import cost_of, requests_of
from dataprep.job.engine import uses_workers
from dataprep.job.in_process import InProcess
from dataprep.job.planning import boxes_for
from dataprep.job.plans import label_offsets, make_plans, sample_rows
from dataprep.job.remarks import lack_of_space, oddities
from dataprep.job.request import Request, checked, label_space_for, requested
from dataprep.job.split_plan import SplitPlan
from dataprep.job.trial import timed_trial
from dataprep.job.worker import Outcome as SampleOutcome
from dataprep.job.worker import Progress
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import BoxColumns
from dataprep.names import escape
from dataprep.prices import read_prices
from dataprep.shares import allowed_failures
from dataprep.sources import Located
from dataprep.stores import open_store

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
    prices = read_prices(checked(config).plan.prices)
    begun_s = time.perf_counter()
    request = requested(config, note or _silent)
    listing_s = time.perf_counter() - begun_s
    label_space, there = _looked_at(request, remarks)
    begun_s = time.perf_counter()
    boxes = boxes_for(request, label_space, note or _silent)
    boxes_s = time.perf_counter() - begun_s
    trial = timed_trial(request, label_space, boxes)
    begun_s = time.perf_counter()
    plans = _planned(request, label_space, boxes)
    planning_s = boxes_s + time.perf_counter() - begun_s

    samples = sum(plan.samples for plan in plans.values())
    expected = outcome(trial.rows, samples, config.format)
    splits = tuple(
        _split(split, plan, trial, expected, config.max_failures) for split, plan in plans.items()
    )
    remarks.warnings += oddities(request, label_space)
    _room(config, plans, remarks)
    for one in splits:
        if said := failure_warning(one, config.max_failures):
            remarks.warnings.append(said)
        largest = max(one.bytes_by_format.values())
        if said := reader_warning(one.split, one.shards, largest, config.plan.readers):
            remarks.warnings.append(said)
    machine = _machine(config, remarks)
    requests = requests_of(request, plans, there, remarks.assumptions.append)
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
            _starting_s(request, remarks),
            _converting_s(trial, splits, machine),
            _storing_s(config, splits, machine, remarks),
        ),
        requests=requests,
        cost=cost_of(config, requests, splits, prices, remarks.assumptions.append),
        assumptions=tuple(remarks.assumptions),
        warnings=tuple(remarks.warnings),
    )


def _looked_at(request: Request, remarks: _Remarks) -> tuple[LabelSpace, int]:
    """The labels that the output would have, and how many keys it has."""
    store = open_store(request.config.output, request.config.store)
    own = request.own_labels()
    try:
        stored = [info.key for info in store.list()]
        taken = sorted(keys.splits(stored) & {*request.splits})
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
    return label_space, len(stored)


def _planned(
    request: Request, label_space: LabelSpace, boxes: BoxColumns | None
) -> dict[str, SplitPlan]:
    """The plan that ``shard`` would store, with all the work that it would be."""
    listing, config = request.listing, request.config
    engine = InProcess(config.dask, _unheard)

    def convert(items: Sequence[Located]) -> Iterable[SampleOutcome]:
        return engine.outcomes(request.source, items, config.image, config.sample_limit)

    calibration = calibrate(listing, sample_rows(listing), config, convert)
    plans = make_plans(listing, label_space, calibration, config, boxes)
    listing.digest()
    for plan in plans.values():
        plan.to_parquet()
    return plans


def _room(config: ShardConfig, plans: Mapping[str, SplitPlan], remarks: _Remarks) -> None:
    with contextlib.suppress(OSError):  # an output that cannot be looked at is remarked
        lacking = lack_of_space(open_store(config.output, config.store), plans, config)
        if lacking is not None:
            remarks.warnings.append(f"shard would refuse: {lacking}")


def _split(
    split: str, plan: SplitPlan, trial: Trial, expected: Outcome, limit: int | str
) -> SplitForecast:
    shares = {
        name: total * plan.samples // expected.samples
        for name, total in expected.bytes_by_format.items()
    }
    rows, exact = trial.rows, expected.trial == expected.samples
    if exact:
        own = {escape(name) for name in plan.names[: plan.samples]}
        rows = [row for row in rows if row.source in own]
    found = fate(
        rows,
        plan.samples,
        exact=exact,
        entries=len(plan.names),
        refused=sum(status == "failed" for status in plan.statuses),
        allowed=allowed_failures(limit, len(plan.names)),
    )
    return SplitForecast(split, plan.samples, plan.shard_count, shares, found)


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


def _starting_s(request: Request, remarks: _Remarks) -> float:
    """Worker processes, or a cluster, are started once."""
    dask = request.config.dask
    if dask.scheduler or dask.cluster:
        remarks.assumptions.append(f"the cluster is ready after {CLUSTER_START_S:.0f} s")
    return CLUSTER_START_S if uses_workers(dask) else 0.0


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


def _silent(line: str) -> None:
    """Say nothing."""


def _unheard(progress: Progress) -> None:
    """Progress is not shown."""
