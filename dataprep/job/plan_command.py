"""``dataprep plan``: predict the shards, the duration and the cost of a job. Nothing is written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import psutil

from dataprep.config.prices import read_prices
from dataprep.config.shard_config import ShardConfig, allowed_failures
from dataprep.errors import ObjectNotFound, StoreError
from dataprep.job.calibration import calibrate, choose_evenly, choose_run_starts
from dataprep.job.in_process import InProcess
from dataprep.job.plan_costs import (
    cost_on_aws,
    region_of_prices,
    region_warnings,
    requests_by_location,
)
from dataprep.job.plan_report import Estimate, SplitEstimate, TrialEstimate
from dataprep.job.planning import bytes_to_write, not_enough_space, read_boxes
from dataprep.job.request import Request, label_space_for, open_request
from dataprep.job.sample_labels import label_offsets, rows_of_samples
from dataprep.job.shard_bounds import SMALLEST_TARGET
from dataprep.job.shard_making import convert_task, encode_batches
from dataprep.job.shard_task import ShardTask
from dataprep.job.source_notes import describe_source, preflight_warnings
from dataprep.job.split_plan import SplitPlan, used_labels
from dataprep.job.split_planning import make_plans
from dataprep.labels import LabelSpace
from dataprep.machine.processors import usable_processors
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.output.receipt import Row
from dataprep.output.versions import versions_that_determine_bytes
from dataprep.stores import open_store
from dataprep.stores.memory import MemoryStore

TRIAL_SAMPLES = 200
"""The approximate number of samples that are converted for the estimate."""

START_S = 1.5
"""How long worker processes take to start."""

S3_MB_PER_S = 85
"""The rate of one connection to S3. Amazon's performance guidelines assume 85 to 90 MB/s."""

_WORKER_BYTES = 150_000_000
"""The memory of a worker without its shards."""

_MIN_READERS = 8
"""The number of readers that should be able to share the shards, unless the config has a number."""

_PARALLEL_CHUNKS_PER_SHARD = 32
"""The number of workers that can share one shard."""


def plan(config: ShardConfig, *, note: Callable[[str], None] | None = None) -> Estimate:
    """Predict what ``shard`` would do with a config, by converting a few samples.

    Nothing is written.

    Args:
        config: the config of the job.
        note: called with messages for the user.

    Returns:
        The predicted shards, failures, duration, memory, requests and cost, with warnings.

    Raises:
        ConfigError, SourceError: as ``shard`` would raise them.
        OutputConflict: the classes of the source do not fit the labels of the output.
        StoreError: the source cannot be read.
    """
    if note is None:
        note = _discard
    prices = read_prices(config.plan.prices)
    start_s = time.perf_counter()
    request = open_request(config, note)
    listed_s = time.perf_counter()
    warnings: list[str] = []
    label_space, output_key_count = _labels_and_key_count_of_output(request, warnings)
    planning_start_s = time.perf_counter()
    plans = _make_plans(request, label_space, note)
    duration = {
        "listing": listed_s - start_s,
        "planning": time.perf_counter() - planning_start_s,
    }
    trial = _run_trial(request, label_space, plans)
    splits = tuple(
        _estimate_split(split, split_plan, trial.estimate, config)
        for split, split_plan in plans.items()
    )
    stored_bytes = sum(trial.estimate.bytes_by_format.values())
    shards = sum(split.shards for split in splits)
    workers = config.dask.worker_count
    duration |= _job_duration(config, trial, stored_bytes, shards)
    requests = requests_by_location(request, plans, output_key_count)
    warnings += preflight_warnings(request, label_space)
    warnings += _missing_class_warnings(plans, label_space)
    warnings += _problem_warnings(config, plans, splits)
    warnings += region_warnings(config)
    cost = cost_on_aws(config, requests, stored_bytes, prices, sum(duration.values()))
    if cost is not None and cost.machine is None and config.plan.instance:
        region = region_of_prices(config, prices)
        warnings.append(f"the price file has no price for {config.plan.instance} in {region}")
    refused: Counter[str] = Counter()
    for problem in request.listing.problems.values():
        refused[f"{problem.status}: {problem.reason}"] += 1
    # A worker holds a shard that is made and a shard that is stored, each in all formats.
    two_shards_bytes = 2 * stored_bytes // max(shards, 1)
    return Estimate(
        source=request.source.uri,
        output=open_store(config.output, config.store).uri,
        entries=len(request.listing),
        refused=dict(refused),
        classes=len(label_space.labels),
        splits=splits,
        label_offsets=label_offsets(config, label_space),
        outcome=trial.estimate,
        workers=workers,
        duration=duration,
        memory_bytes=workers * (_WORKER_BYTES + two_shards_bytes),
        machine_bytes=psutil.virtual_memory().total,
        requests=requests,
        cost=cost,
        warnings=tuple(warnings),
        understood=describe_source(request, label_space, plans),
        unlabelled=config.unlabelled,
    )


def _discard(line: str) -> None:
    """Discard a message, because the caller gave no callback."""


def _labels_and_key_count_of_output(
    request: Request, warnings: list[str]
) -> tuple[LabelSpace, int]:
    """Return the labels that the output would have, and the number of its keys.

    Problems with the output are appended to ``warnings``.
    """
    config = request.config
    store = open_store(config.output, config.store)
    try:
        stored_keys = [info.key for info in store.list()]
        label_space = label_space_for(request, store)
    except ObjectNotFound:
        return request.own_labels(), 0  # the output does not exist yet
    except StoreError as error:
        warnings.append(f"the output cannot be read: {error}")
        return request.own_labels(), 0
    existing_splits = sorted(keys.splits(stored_keys).intersection(request.splits))
    if existing_splits:
        warnings.append(
            f"the output already has a job of {', '.join(existing_splits)}: shard would resume "
            "it or refuse to run. The figures are for a new job"
        )
    return label_space, len(stored_keys)


def _make_plans(
    request: Request, label_space: LabelSpace, note: Callable[[str], None]
) -> dict[str, SplitPlan]:
    """Make the plan of each split, as ``plan_job`` does for a job. Samples are converted here."""
    config, listing = request.config, request.listing
    engine = InProcess(config.dask, lambda progress: None)
    convert = partial(engine.convert_samples, request.source, config.image, config.sample_limit)
    boxes = read_boxes(request, label_space, note)
    calibration = calibrate(listing, rows_of_samples(listing), config, convert)
    return make_plans(listing, label_space, calibration, config, boxes)


class _Trial(NamedTuple):
    """The result of converting a few samples.

    Attributes:
        estimate: the estimate for all samples of the job.
        sample_s: the mean time for reading, converting and encoding one sample, in seconds.
    """

    estimate: TrialEstimate
    sample_s: float


def _run_trial(request: Request, label_space: LabelSpace, plans: Mapping[str, SplitPlan]) -> _Trial:
    """Convert samples of all sizes to records in memory, and estimate the job from them.

    Each split takes part with about its share of ``TRIAL_SAMPLES``, but at least one sample.
    """
    samples = sum(split_plan.samples for split_plan in plans.values())
    rows: list[Row] = []
    record_bytes = dict.fromkeys(request.config.format, 0)
    start_s = time.perf_counter()
    for split_plan in plans.values():
        count = min(split_plan.samples, max(1, TRIAL_SAMPLES * split_plan.samples // samples))
        task = _trial_task(request, label_space, split_plan, count)
        for batch in encode_batches(task, convert_task(task, lambda progress: None)):
            rows += batch.rows
            for name, records in batch.records.items():
                record_bytes[name] += sum(records.lengths)
    sample_s = (time.perf_counter() - start_s) / len(rows)
    return _Trial(estimate_from_trial(rows, record_bytes, samples), sample_s)


def _trial_task(
    request: Request, label_space: LabelSpace, split_plan: SplitPlan, count: int
) -> ShardTask:
    """A task that converts about ``count`` samples of a split, which are spread over all sizes."""
    config = request.config
    sizes = split_plan.sizes[: split_plan.samples]
    if request.listing.in_runs:
        containers = split_plan.containers[: split_plan.samples]
        chosen_rows = choose_run_starts(containers, sizes, count).tolist()
    else:
        chosen_rows = sorted(choose_evenly(sizes, count).tolist())
    samples = chain.from_iterable(
        split_plan.planned_samples(slice(row, row + 1)) for row in chosen_rows
    )
    return ShardTask(
        fingerprint="",
        versions=versions_that_determine_bytes(same_everywhere=config.image.same_everywhere),
        split=config.split,
        shard=0,
        shards=1,
        first_number=0,
        samples=tuple(samples),
        label_space=label_space,
        policy=config.image,
        label_offsets=tuple(label_offsets(config, label_space).items()),
        source=request.source,
        store=MemoryStore("memory://trial"),
        layout=config.record_options.layout,
        boxes=config.boxes,
    )


def estimate_from_trial(
    rows: Sequence[Row], record_bytes: Mapping[str, int], samples: int
) -> TrialEstimate:
    """Estimate the result of the job from the samples that were converted.

    Args:
        rows: the rows of the converted samples, at least one.
        record_bytes: the bytes of their records, by format.
        samples: the number of samples of the job.
    """
    trial_samples = len(rows)
    actions = Counter(row.action for row in rows)
    statuses = Counter(row.status for row in rows)
    quirks: Counter[str] = Counter()
    for row in rows:
        quirks.update(note for note in row.notes.split(",") if note)
        if row.status == "failed":
            quirks[f"failed_{row.kind}"] += 1

    def scale(count: int) -> int:
        """Scale a count of the trial to all samples, rounded to the nearest whole number."""
        return (2 * count * samples + trial_samples) // (2 * trial_samples)

    bytes_by_format = {}
    for name, size_bytes in record_bytes.items():
        bytes_by_format[name] = size_bytes * samples // trial_samples
    unchanged = actions["passthrough"] + actions["retagged"]
    return TrialEstimate(
        samples=samples,
        trial=trial_samples,
        bytes_by_format=bytes_by_format,
        passthrough=unchanged / trial_samples,
        reencoded=actions["reencoded"] / trial_samples,
        failed=scale(statuses["failed"]),
        skipped=scale(statuses["skipped"]),
        met={quirk: scale(count) for quirk, count in sorted(quirks.items())},
    )


def _estimate_split(
    split: str, split_plan: SplitPlan, estimate: TrialEstimate, config: ShardConfig
) -> SplitEstimate:
    """Predict the content of a split from its share of all samples."""
    share = split_plan.samples / estimate.samples
    refused = sum(status == "failed" for status in split_plan.statuses)
    bytes_by_format = {name: int(size * share) for name, size in estimate.bytes_by_format.items()}
    return SplitEstimate(
        split=split,
        samples=split_plan.samples,
        shards=split_plan.shard_count,
        bytes_by_format=bytes_by_format,
        entries=len(split_plan.names),
        failures=refused + round(estimate.failed * share),
        allowed=allowed_failures(config.max_failures, len(split_plan.names)),
    )


def _job_duration(
    config: ShardConfig, trial: _Trial, stored_bytes: int, shards: int
) -> dict[str, float]:
    """The seconds for starting workers, for converting and for storing, by the name of the step.

    Storing counts if the output is on S3, or if the config has an upload rate.
    """
    workers = config.dask.worker_count
    converting_workers = workers
    if not config.dask.is_external:  # the workers share the processors of this machine
        converting_workers = min(workers, usable_processors())
    converting_s = trial.sample_s * trial.estimate.samples
    storing_s = 0.0
    if config.plan.upload_mb_per_s or config.output.startswith("s3://"):
        bytes_per_s = 1e6 * (config.plan.upload_mb_per_s or S3_MB_PER_S)
        storing_s = seconds_with_workers(stored_bytes / bytes_per_s, shards, workers)
    return {
        "starting": START_S if config.dask.uses_workers else 0.0,
        "converting": seconds_with_workers(converting_s, shards, converting_workers),
        "storing": storing_s,
    }


def seconds_with_workers(work_s: float, shards: int, workers: int) -> float:
    """Return the duration with several workers of work that one worker does in ``work_s``.

    The workers share the last shards, so that more workers than shards can be busy.

    Args:
        work_s: the seconds that one worker needs.
        shards: the number of shards.
        workers: the number of workers.
    """
    parallel = min(workers, shards * _PARALLEL_CHUNKS_PER_SHARD)
    return work_s / max(1, parallel)


def _missing_class_warnings(
    plans: Mapping[str, SplitPlan], label_space: LabelSpace
) -> Iterator[str]:
    """Warn about splits without a sample of some classes of the job."""
    job_labels = used_labels(plans.values())
    for split, split_plan in plans.items():
        missing = sorted(job_labels - used_labels([split_plan]))
        if missing:
            example = label_space.synset_of(missing[0])
            yield f"{split}: {counted(len(missing), 'class')} without a photo, such as {example!r}"


def _problem_warnings(
    config: ShardConfig, plans: Mapping[str, SplitPlan], splits: Sequence[SplitEstimate]
) -> Iterator[str]:
    """Warn about problems for ``shard``, or for the readers of its shards."""
    store = open_store(config.output, config.store)
    space_error = not_enough_space(store, bytes_to_write(plans, config))
    if space_error is not None:
        yield f"shard would refuse: {space_error}"
    for split in splits:
        if split.failures > split.allowed:
            sufficient_percent = 100 * split.failures // split.entries + 1
            yield (
                f"{split.split}: shard would stop: {split.failures:,} of {split.entries:,} fail, "
                f"--max-failures {config.max_failures} allows {split.allowed:,}; give "
                f"--max-failures {sufficient_percent}%"
            )
        readers = config.plan.readers or _MIN_READERS
        if split.shards >= readers:
            continue
        problem = (
            f"{split.split}: {counted(split.shards, 'shard')} cannot be shared by {readers} readers"
        )
        max_bytes = max(split.bytes_by_format.values())
        if max_bytes >= readers * SMALLEST_TARGET:
            shard_megabytes = max_bytes // readers // 100_000 / 10  # rounded down to 0.1 MB
            yield f"{problem}; --shard-size {shard_megabytes:g}MB gives enough"
        elif config.plan.readers:
            max_shards = max_bytes // SMALLEST_TARGET + 1
            yield f"{problem}; these photos make at most {counted(max_shards, 'shard')}"
