"""plan(config): what a job will make, take and cost; nothing is written."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from itertools import chain

import psutil

from dataprep import keys
from dataprep.config import ShardConfig, allowed_failures
from dataprep.counted import counted
from dataprep.errors import ObjectNotFound, StoreError
from dataprep.formats import get_format
from dataprep.job.in_process import InProcess
from dataprep.job.planning import (
    Request,
    boxes_for,
    bytes_to_write,
    calibrate,
    label_space_for,
    lack_of_space,
    preflight_warnings,
    requested,
    understood,
)
from dataprep.job.report import Understood
from dataprep.job.worker import ShardTask, converted, encoded
from dataprep.labels import LabelSpace
from dataprep.manifest import Row, quirk_name
from dataprep.prices import (
    Prices,
    instance_price_per_h,
    instance_type,
    machine_region,
    read_prices,
    region_of,
    storage_price,
)
from dataprep.processors import usable_processors
from dataprep.split_plan import (
    SMALLEST_TARGET,
    SplitPlan,
    label_offsets,
    make_plans,
    pick,
    pick_runs,
    sample_rows,
    sample_size,
    used_labels,
)
from dataprep.stores import open_store
from dataprep.stores.memory import MemoryStore
from dataprep.versions import determining

TRIAL_SAMPLES = 200
START_S = 1.5
S3_MB_PER_S = 85
"""Of one connection: Amazon S3's performance guidelines reckon with 85 to 90 MB/s."""

_WORKER_BYTES = 150_000_000
_FEW_SHARDS = 8


@dataclass(frozen=True)
class Requests:
    """Requests to an object store by price: ``gets`` has HEAD as well."""

    puts: int
    gets: int
    lists: int


@dataclass(frozen=True)
class Cost:
    """In ``currency``: the requests of the job, and a month of keeping the shards.

    ``machine`` is what ``instance`` costs while the job runs; None if its price is not known.
    """

    requests: float
    month: float
    machine: float | None
    instance: str
    currency: str
    prices: str


@dataclass(frozen=True)
class Outcome:
    """What samples become, estimated from ``trial`` of them.

    ``met`` is a kind, as the manifest counts it, to how many samples show it; ``failed`` and
    ``skipped`` are numbers of samples, ``passthrough`` and ``reencoded`` shares of them.
    """

    samples: int
    trial: int
    bytes_by_format: Mapping[str, int]
    passthrough: float
    reencoded: float
    failed: int
    skipped: int
    met: Mapping[str, int]


def outcome(rows: Sequence[Row], record_bytes: Mapping[str, int], samples: int) -> Outcome:
    """What ``samples`` become, if ``rows`` (at least one) of them became what they are.

    ``record_bytes`` is the size of all records of the trial, by format.
    """
    count = len(rows)
    actions = Counter(row.action for row in rows)
    statuses = Counter(row.status for row in rows)
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds.update(note for note in row.notes.split(",") if note)
        if row.status == "failed":
            kinds[f"failed_{row.kind}"] += 1

    def scaled(seen: int) -> int:
        return (2 * seen * samples + count) // (2 * count)

    return Outcome(
        samples=samples,
        trial=count,
        bytes_by_format={name: size * samples // count for name, size in record_bytes.items()},
        passthrough=(actions["passthrough"] + actions["retagged"]) / count,
        reencoded=actions["reencoded"] / count,
        failed=scaled(statuses["failed"]),
        skipped=scaled(statuses["skipped"]),
        met={kind: scaled(seen) for kind, seen in sorted(kinds.items())},
    )


@dataclass(frozen=True)
class SplitEstimate:
    """One split: its samples and shards in each format, their bytes, and what will fail.

    ``entries`` are all of its entries, of which ``failures`` fail and ``allowed`` may.
    """

    split: str
    samples: int
    shards: int
    bytes_by_format: Mapping[str, int]
    entries: int
    failures: int
    allowed: int


@dataclass(frozen=True)
class Estimate:
    """All that ``dataprep plan`` says. Times in seconds, sizes in bytes.

    ``understood`` is what the source was taken for; ``refused`` a reason to how many entries are no
    samples because of it; ``duration`` the parts of a run; ``memory_bytes`` of all workers beside
    ``machine_bytes``; ``requests`` those of ``source`` and ``output``, where they are on S3.
    """

    source: str
    output: str
    entries: int
    refused: Mapping[str, int]
    classes: int
    splits: tuple[SplitEstimate, ...]
    label_offsets: Mapping[str, int]
    outcome: Outcome
    workers: int
    duration: Mapping[str, float]
    memory_bytes: int
    machine_bytes: int
    requests: Mapping[str, Requests]
    cost: Cost | None
    warnings: tuple[str, ...]
    understood: Understood
    unlabelled: bool = False

    def to_json(self) -> str:
        """One JSON object."""
        content = asdict(self)
        content["duration"]["total"] = sum(self.duration.values())
        return json.dumps(content)

    def to_text(self) -> str:
        """What a person reads before a job."""
        found = self.outcome
        about = "" if found.trial == found.samples else "about "
        lines = self.understood.lines
        for one in self.splits:
            lost = f" ({about}{one.failures:,} of {one.entries:,} fail)" if one.failures else ""
            lines.append(
                f"{one.split}: {counted(one.samples, 'photo')} would become "
                f"{counted(one.shards, 'shard')} per format in {self.output}{lost}"
            )
            for name, size in one.bytes_by_format.items():
                each = f"{size / one.shards / 1e6:,.1f} MB each"
                offset = self.label_offsets[name]
                labels = "no labels" if self.unlabelled else f"labels from {offset}"
                lines.append(f"  {name:<10} {size / 1e6:,.1f} MB, {each}; {labels}")
        parts = ", ".join(f"{step} {s:,.1f} s" for step, s in self.duration.items() if s >= 0.05)
        total = timedelta(seconds=math.ceil(sum(self.duration.values())))
        time = f"about {total} with {counted(self.workers, 'worker')}"
        lines.append(f"  time       {time} ({parts})")
        gigabytes = f"{self.memory_bytes / 1e9:,.1f} GB of {self.machine_bytes / 1e9:,.0f} GB"
        lines.append(f"  memory     about {gigabytes}")
        shares = f"{found.reencoded:.0%} re-encoded, {found.passthrough:.0%} stored unchanged"
        lines.append(f"  images     {shares} (from {found.trial:,} conversions)")
        quirks = ", ".join(f"{quirk_name(kind)} {count:,}" for kind, count in found.met.items())
        lines.append(f"  quirks     {quirks or 'none'}")
        lines += [f"  refused    {reason}: {n:,}" for reason, n in self.refused.items()]
        for place, sent in self.requests.items():
            shown = f"{sent.puts:,} PUT, {sent.gets:,} GET and HEAD, {sent.lists:,} LIST"
            lines.append(f"  requests   {place}: {shown}")
        if self.cost is not None:
            money = f"{self.cost.requests:,.4g} {self.cost.currency} for requests"
            month = f"{self.cost.month:,.4g} {self.cost.currency} a month for storage"
            lines.append(f"  cost       {money}, {month} ({self.cost.prices})")
            if self.cost.machine is not None:
                hours = f"{self.cost.machine:,.4g} {self.cost.currency}"
                lines.append(f"  machine    {hours} for this time on {self.cost.instance}")
        others = [line for line in self.warnings if line not in self.understood.notes]
        lines += [f"warning: {line}" for line in others]
        return "\n".join([*lines, "Nothing was written."])


def plan(config: ShardConfig, *, note: Callable[[str], None] | None = None) -> Estimate:
    """Say what ``shard`` would do with this config, from a few conversions; nothing is written.

    Args:
        config: what to make of what, and where.
        note: called with messages for the user.

    Raises:
        ConfigError, SourceError: as ``shard`` would.
        OutputConflict: the classes do not fit the output's.
        StoreError: the source cannot be read.
    """
    note = note or (lambda line: None)
    prices = read_prices(config.plan.prices)
    begun_s = time.perf_counter()
    request = requested(config, note)
    duration = {"listing": time.perf_counter() - begun_s}
    warnings: list[str] = []
    label_space, there = _output(request, warnings)
    begun_s = time.perf_counter()
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.outcomes, request.source, config.image, config.sample_limit)
    boxes = boxes_for(request, label_space, note)
    calibration = calibrate(request.listing, sample_rows(request.listing), config, convert)
    plans = make_plans(request.listing, label_space, calibration, config, boxes)
    duration["planning"] = time.perf_counter() - begun_s
    samples = sum(plan.samples for plan in plans.values())
    found, each_s = _trial(request, label_space, plans, samples)
    splits = tuple(_split(split, plan, found, config) for split, plan in plans.items())
    stored = sum(found.bytes_by_format.values())
    shards = sum(one.shards for one in splits)
    workers = config.dask.worker_count
    machine = workers if config.dask.scheduler else min(workers, usable_processors())
    duration["starting"] = START_S if config.dask.uses_workers else 0.0
    duration["converting"] = seconds_of(each_s * samples, shards, machine)
    duration["storing"] = 0.0
    if config.plan.upload_mb_per_s or config.output.startswith("s3://"):
        rate = 1e6 * (config.plan.upload_mb_per_s or S3_MB_PER_S)
        duration["storing"] = seconds_of(stored / rate, shards, workers)
    requests = _requests(request, plans, there)
    warnings += preflight_warnings(request, label_space)
    warnings += _missing_classes(plans, label_space)
    warnings += _obstacles(config, plans, splits)
    warnings += _elsewhere(config)
    cost = _cost(config, requests, stored, prices, sum(duration.values()))
    if cost is not None and cost.machine is None and config.plan.instance:
        region = region_of(prices, config.store)
        warnings.append(f"the price file has no price for {config.plan.instance} in {region}")
    problems = request.listing.problems.values()
    return Estimate(
        source=request.source.uri,
        output=open_store(config.output, config.store).uri,
        entries=len(request.listing),
        refused=dict(Counter(f"{problem.status}: {problem.reason}" for problem in problems)),
        classes=len(label_space.labels),
        splits=splits,
        label_offsets=label_offsets(config, label_space),
        outcome=found,
        workers=workers,
        duration=duration,
        memory_bytes=workers * (_WORKER_BYTES + 2 * stored // max(shards, 1)),
        machine_bytes=psutil.virtual_memory().total,
        requests=requests,
        cost=cost,
        warnings=tuple(warnings),
        understood=understood(request, label_space, plans),
        unlabelled=config.unlabelled,
    )


def _output(request: Request, warnings: list[str]) -> tuple[LabelSpace, int]:
    """The labels that the output would have, and how many keys it has."""
    config = request.config
    store = open_store(config.output, config.store)
    try:
        stored = [info.key for info in store.list()]
        taken = sorted(keys.splits(stored) & {*request.splits})
        label_space = label_space_for(request, store)
    except ObjectNotFound:
        return request.own_labels(), 0  # there is no output yet
    except StoreError as error:
        warnings.append(f"the output cannot be read: {error}")
        return request.own_labels(), 0
    if taken:
        warnings.append(
            f"the output holds a job of {', '.join(taken)} already: shard would resume or refuse "
            "it; the figures are those of a new one"
        )
    return label_space, len(stored)


def _trial(
    request: Request, label_space: LabelSpace, plans: Mapping[str, SplitPlan], samples: int
) -> tuple[Outcome, float]:
    """Convert samples of every size to records in memory; what all become, and seconds of one."""
    config = request.config
    rows: list[Row] = []
    sizes = dict.fromkeys(config.format, 0)
    begun_s = time.perf_counter()
    for plan in plans.values():
        count = min(plan.samples, max(1, TRIAL_SAMPLES * plan.samples // samples))
        sizes_of_plan = plan.sizes[: plan.samples]
        if request.listing.in_runs:
            chosen = pick_runs(plan.containers[: plan.samples], sizes_of_plan, count).tolist()
        else:
            chosen = sorted(pick(sizes_of_plan, count).tolist())
        items = chain.from_iterable(plan.items(slice(row, row + 1)) for row in chosen)
        task = ShardTask(
            fingerprint="",
            versions=determining(same_everywhere=config.image.same_everywhere),
            split=config.split,
            shard=0,
            shards=1,
            first_number=0,
            items=tuple(items),
            label_space=label_space,
            policy=config.image,
            label_offsets=tuple(label_offsets(config, label_space).items()),
            source=request.source,
            store=MemoryStore("memory://trial"),
            layout=config.record_options.layout,
            boxes=config.boxes,
        )
        for chunk in encoded(task, converted(task, lambda progress: None)):
            rows += chunk.rows
            for name, records in chunk.records.items():
                sizes[name] += sum(records.lengths)
    each_s = (time.perf_counter() - begun_s) / len(rows)
    return outcome(rows, sizes, samples), each_s


def _split(split: str, plan: SplitPlan, found: Outcome, config: ShardConfig) -> SplitEstimate:
    share = plan.samples / found.samples
    refused = sum(status == "failed" for status in plan.statuses)
    return SplitEstimate(
        split=split,
        samples=plan.samples,
        shards=plan.shard_count,
        bytes_by_format={name: int(size * share) for name, size in found.bytes_by_format.items()},
        entries=len(plan.names),
        failures=refused + round(found.failed * share),
        allowed=allowed_failures(config.max_failures, len(plan.names)),
    )


def _missing_classes(plans: Mapping[str, SplitPlan], label_space: LabelSpace) -> Iterator[str]:
    """Splits that would lack classes of the job."""
    used = used_labels(plans.values())
    for split, plan in plans.items():
        if missing := sorted(used - used_labels([plan])):
            first = label_space.synset_of(missing[0])
            yield f"{split}: {counted(len(missing), 'class')} without a photo, such as {first!r}"


def _obstacles(
    config: ShardConfig, plans: Mapping[str, SplitPlan], splits: Sequence[SplitEstimate]
) -> Iterator[str]:
    """What ``shard`` or the readers of its shards would meet."""
    store = open_store(config.output, config.store)
    lacking = lack_of_space(store, bytes_to_write(plans, config))
    if lacking is not None:
        yield f"shard would refuse: {lacking}"
    for one in splits:
        if one.failures > one.allowed:
            yield (
                f"{one.split}: shard would stop: {one.failures:,} of {one.entries:,} fail, "
                f"--max-failures {config.max_failures} allows {one.allowed:,}; give --max-failures "
                f"{100 * one.failures // one.entries + 1}%"
            )
        readers = config.plan.readers or _FEW_SHARDS
        largest = max(one.bytes_by_format.values())
        said = f"{one.split}: {counted(one.shards, 'shard')} cannot be shared by {readers} readers"
        if one.shards < readers and largest >= readers * SMALLEST_TARGET:
            yield f"{said}; --shard-size {largest // readers // 100_000 / 10:g}MB gives enough"
        elif one.shards < readers and config.plan.readers:
            yield f"{said}; so few photos make at most {largest // SMALLEST_TARGET + 1}"


def _requests(request: Request, plans: Mapping[str, SplitPlan], there: int) -> dict[str, Requests]:
    """Requests to the source and to an output that has ``there`` keys, where they are on S3.

    A listing has 1,000 keys each, and each image is read by one GET; of a source that is read in
    runs it is each run of a shard. Each object is stored by a
    PUT and confirmed by a HEAD, and the lock is read before. Each receipt is read back in the end.
    Six more objects and three listings are those of a split itself.
    """
    config, found = request.config, {}
    if request.source.uri.startswith("s3://"):
        samples = sum(plan.samples for plan in plans.values())
        listed = config.kind in ("imagefolder", "flat")
        lists = len(request.listing) // 1_000 + 1 if listed else 0
        gets = samples + sample_size(samples)
        if request.listing.in_runs:
            gets = _reads_of_runs(request, plans)
        found["source"] = Requests(0, gets, lists)
    if config.output.startswith("s3://"):
        indexes = sum(len(get_format(name).indexes([])) for name in config.format)
        shards = sum(plan.shard_count for plan in plans.values())
        objects = shards * (1 + len(config.format) + indexes) + 6 * len(plans)
        lists = 3 * len(plans) * ((there + objects) // 1_000 + 1)
        found["output"] = Requests(objects, 2 * objects + shards + 6 * len(plans), lists)
    return found


def _reads_of_runs(request: Request, plans: Mapping[str, SplitPlan]) -> int:
    """Requests for each container when it is listed, and for each run of each shard."""
    reads = len({*request.listing.containers} - {""})
    for plan in plans.values():
        shards = plan.shards[: plan.samples].tolist()
        reads += len({*zip(shards, plan.containers[: plan.samples], strict=True)})
    return reads


def _cost(
    config: ShardConfig,
    requests: Mapping[str, Requests],
    stored: int,
    prices: Prices,
    seconds: float,
) -> Cost | None:
    """What the requests, a month of keeping the shards, and the machine cost on AWS."""
    elsewhere = config.store.endpoint_url or os.environ.get("AWS_ENDPOINT_URL")
    price, origin = storage_price(prices, config.store)
    if not requests or elsewhere or price is None:
        return None
    instance = config.plan.instance or instance_type()
    hour = instance_price_per_h(prices, region_of(prices, config.store), instance)
    machine = None if hour is None else hour * seconds / 3600
    month = price.month_cost(stored) if "output" in requests else 0.0
    paid = sum(price.requests_cost(one.puts, one.gets, one.lists) for one in requests.values())
    name = str(config.plan.prices) if config.plan.prices else "example prices"
    return Cost(paid, month, machine, instance, prices.currency, f"{name}: {origin}")


def _elsewhere(config: ShardConfig) -> Iterator[str]:
    """Warnings about buckets in another region than this machine's."""
    from dataprep.stores.s3 import S3Store  # here, since boto3 is slow to import

    here = machine_region()
    if not here or config.store.endpoint_url:
        return
    for place in dict.fromkeys((config.source, config.output)):
        if not place.startswith("s3://"):
            continue
        with contextlib.suppress(StoreError):  # reported where the place is read
            region = S3Store(place, config.store).region()
            if region != here:
                yield (
                    f"{place} is in {region}, this machine in {here}: traffic between regions is "
                    "slow and costs money; use a machine in the bucket's region"
                )


def seconds_of(work_s: float, shards: int, workers: int) -> float:
    """How long ``workers`` take for what one takes ``work_s`` for: the last shards are shared."""
    return work_s / max(1, min(workers, shards * 32))
