"""Run a job: ``shard`` makes all shards of each split, and ``shard_part`` makes a part of them.

The functions ``run_splits`` and ``run_parts`` do the same, and yield the summary of each split as
soon as it ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial

from dataprep.config.shard_config import ShardConfig, allowed_failures
from dataprep.errors import TooManyFailures
from dataprep.job.cluster import Engine, engine_of
from dataprep.job.dask_connection import require_reachable
from dataprep.job.finish import (
    finish,
    summarize,
    summarize_complete_split,
    too_many_failures_error,
)
from dataprep.job.lock import Locks
from dataprep.job.output_state import complete_shards, shards_with_receipt
from dataprep.job.parts import Part
from dataprep.job.prepare import Prepared, prepare
from dataprep.job.report import Display, PartSummary, Summary
from dataprep.job.shard_task import ShardResult, ShardTask
from dataprep.job.split_plan import SplitPlan
from dataprep.name_encoding import escape


def shard(
    config: ShardConfig,
    *,
    overwrite: bool = False,
    retry_failed: bool = False,
    takeover: bool = False,
    display: Display | None = None,
) -> tuple[Summary, ...]:
    """Make the shards that ``config`` describes, or resume where an earlier run stopped.

    Complete shards of an earlier run are kept. A complete split does not change, except by
    ``overwrite`` or ``retry_failed``.

    Args:
        config: the source, the output, and how images become records.
        overwrite: remove the splits of the job from the output first.
        retry_failed: make each shard that has failed samples again, from the stored plan.
        takeover: take over the locks of another run of this output at once, instead of waiting.
        display: receives the progress; None to show nothing.

    Returns:
        A summary of each split.

    Raises:
        ConfigError, SourceError, OutputConflict: the request was refused. If the attribute
            ``exit_code`` of the error is 2, nothing was written.
        TooManyFailures: more samples failed than ``config.max_failures``. No manifest was written.
        StoreError, SourceChanged, JobError: the job stopped; run it again to resume.
    """
    return tuple(run_splits(config, overwrite, retry_failed, takeover, display or Display()))


def run_splits(
    config: ShardConfig, overwrite: bool, retry_failed: bool, takeover: bool, display: Display
) -> Iterator[Summary]:
    """Make each split of a job, and yield its summary when the split is complete.

    Therefore the caller has the summaries of complete splits even if a later split fails.

    The arguments and errors are those of ``shard``.
    """
    require_reachable(config.dask)
    with _running_engine(config, display) as (cleanup, engine):
        prepared = prepare(
            config,
            overwrite=overwrite,
            retry_failed=retry_failed,
            takeover=takeover,
            cleanup=cleanup,
            note=display.note,
            engine=engine,
        )
        cleanup.callback(_keep_locks_while_tasks_run, prepared.locks, engine)
        for split in prepared.jobs:
            summary = _run_split(prepared, split, engine, display)
            yield replace(summary, understood=prepared.understood)


def shard_part(
    config: ShardConfig,
    part: Part,
    *,
    takeover: bool = False,
    display: Display | None = None,
) -> tuple[PartSummary, ...]:
    """Make the shards of one part of each split. ``finalize`` completes the splits.

    The first part that runs stores the plan, and the other parts read it. If two parts start at the
    same time, both make the same plan. A part stops as soon as more samples have failed than
    ``config.max_failures`` allows for the whole split. It counts the failures of the plan and of
    its own shards.

    Args:
        config: the source, the output, and how images become records.
        part: the part to make.
        takeover: take over the locks of another run of this part at once, instead of waiting.
        display: receives the progress; None to show nothing.

    Returns:
        A summary of the part in each split.

    Raises:
        ConfigError, SourceError, OutputConflict: the request was refused. If the attribute
            ``exit_code`` of the error is 2, nothing was written.
        TooManyFailures: more samples failed than ``config.max_failures``.
        StoreError, SourceChanged, JobError: the job stopped; run it again to resume.
    """
    return tuple(run_parts(config, part, takeover, display or Display()))


def run_parts(
    config: ShardConfig, part: Part, takeover: bool, display: Display
) -> Iterator[PartSummary]:
    """Make the part of each split, and yield its summary when the part is complete.

    The arguments and errors are those of ``shard_part``.
    """
    require_reachable(config.dask)
    with _running_engine(config, display) as (cleanup, engine):
        prepared = prepare(
            config,
            part=part,
            takeover=takeover,
            cleanup=cleanup,
            note=display.note,
            engine=engine,
        )
        cleanup.callback(_keep_locks_while_tasks_run, prepared.locks, engine)
        for split in prepared.jobs:
            yield _run_part(prepared, split, part, engine, display)


@contextmanager
def _running_engine(config: ShardConfig, display: Display) -> Iterator[tuple[ExitStack, Engine]]:
    """Yield a stack for the locks of the run, and the engine that makes the shards.

    At the end, the engine is closed before the stack. Therefore the locks are released after the
    workers of this run have ended.
    """
    with (
        ExitStack() as cleanup,
        closing(engine_of(config, display.advance, display.note)) as engine,
    ):
        yield cleanup, engine


def _keep_locks_while_tasks_run(locks: Locks, engine: Engine) -> None:
    """Let the locks expire if tasks may still write, instead of releasing them.

    This is called after the engine was closed, and before the locks would be released.
    """
    if engine.tasks_may_run:
        locks.leave_to_expire()


def _run_split(prepared: Prepared, split: str, engine: Engine, display: Display) -> Summary:
    """Make the missing shards of a split, then its table of samples and its manifest.

    Nothing is written if the split is complete already.
    """
    start_s = time.monotonic()
    job, store, config = prepared.jobs[split], prepared.store, prepared.config
    kept_shards = complete_shards(store, job)
    manifest = prepared.manifests.get(split)
    # A split can have its manifest but lack shards, if files were lost since.
    if manifest is not None and len(kept_shards) == job.shards:
        return summarize_complete_split(store, manifest, len(kept_shards), start_s, display.note)
    results = _make_shards(prepared, split, range(job.shards), kept_shards, engine, display)
    finished = finish(
        store,
        job,
        prepared.plans[split],
        prepared.label_space,
        max_failures=config.max_failures,
        run={
            "source": prepared.source.uri,
            "output": store.uri,
            "endpoint_url": config.store.endpoint_url,
            "workers": config.dask.worker_count,
            "scheduler": config.dask.scheduler or config.dask.cluster or "local",
        },
        start_s=start_s,
        check_lock=prepared.locks.check,
    )
    return summarize(
        store,
        finished,
        prepared.plans,
        prepared.label_space,
        start_s=start_s,
        made_shards=len(results),
        kept_shards=len(kept_shards),
        made_samples=sum(result.samples for result in results),
    )


def _run_part(
    prepared: Prepared, split: str, part: Part, engine: Engine, display: Display
) -> PartSummary:
    """Make the missing shards of one part of a split."""
    start_s = time.monotonic()
    job, store = prepared.jobs[split], prepared.store
    shards_of_part = part.of(range(job.shards))
    kept_shards = complete_shards(store, job, shards_of_part)
    results = _make_shards(prepared, split, shards_of_part, kept_shards, engine, display)
    seconds = time.monotonic() - start_s
    # Other parts may be running. Their receipts are counted, but not read. The shards of this part
    # are stored, even if the listing does not contain their receipts yet.
    stored_shards = shards_with_receipt(store, job).union(shards_of_part)
    missing_count = job.shards - len(stored_shards)
    return PartSummary(
        split=split,
        output=store.uri,
        part=part,
        shards=job.shards,
        made_shards=len(results),
        kept_shards=len(shards_of_part) - len(results),
        lacking_shards=missing_count,
        complete=split in prepared.manifests and missing_count == 0,
        samples=sum(result.samples for result in results),
        failed=sum(result.failed for result in results),
        seconds=seconds,
        failures=tuple(_failure_examples(results)),
        understood=prepared.understood,
    )


class _ShardResults:
    """Collects the results of shards, and raises an error once too many samples have failed.

    Failures in shards that earlier runs made are not counted here, but when the split is finished.

    Args:
        plan: the plan of the split. Its entries that failed during planning count, too.
        max_failures: the number or share of the plan's entries that may fail.

    Attributes:
        results: the results of the shards that this run has made.
    """

    def __init__(self, plan: SplitPlan, max_failures: int | str) -> None:
        self.results: list[ShardResult] = []
        self._max_failures = max_failures
        self._allowed_count = allowed_failures(max_failures, len(plan.names))
        self._failures_of_plan = []  # names and reasons
        for name, status, reason in zip(plan.names, plan.statuses, plan.reasons, strict=True):
            if status == "failed":
                self._failures_of_plan.append((escape(name), reason))
        self._failed = len(self._failures_of_plan)  # the number of failures so far

    def check_failures_of_plan(self) -> None:
        """Raise TooManyFailures if too many entries failed during planning."""
        if self._failed > self._allowed_count:
            raise self._error(self._failures_of_plan, "nothing was converted")

    def add(self, result: ShardResult) -> None:
        """Add the result of a shard. Raise TooManyFailures if there are too many failures now."""
        self.results.append(result)
        self._failed += result.failed
        if self._failed > self._allowed_count:
            # The latest failures come first, so that the message shows them.
            examples = [*result.examples, *self._failures_of_plan]
            examples += _failure_examples(self.results)
            without_repetitions = list(dict.fromkeys(examples))
            raise self._error(without_repetitions, "stopped")

    def _error(self, examples: Sequence[tuple[str, str]], state: str) -> TooManyFailures:
        return too_many_failures_error(
            self._failed, self._allowed_count, self._max_failures, examples, state
        )


def _failure_examples(results: Sequence[ShardResult]) -> list[tuple[str, str]]:
    """The names and reasons of a few failed samples of each shard, in the order of the results."""
    examples: list[tuple[str, str]] = []
    for result in results:
        examples.extend(result.examples)
    return examples


def _make_shards(
    prepared: Prepared,
    split: str,
    shards: Sequence[int],
    kept_shards: Sequence[int],
    engine: Engine,
    display: Display,
) -> list[ShardResult]:
    """Make the missing shards of a split.

    Args:
        prepared: the job.
        split: the name of the split.
        shards: the numbers of the shards that this run must provide.
        kept_shards: the numbers of the shards among them that are complete already.
        engine: makes the shards.
        display: receives the progress.

    Returns:
        The results of the shards that were made, in the order in which they were completed.

    Raises:
        TooManyFailures: more samples failed than allowed; the job has stopped early.
    """
    missing_shards = sorted(set(shards) - set(kept_shards))
    if not missing_shards:
        return []
    plan = prepared.plans[split]
    collected = _ShardResults(plan, prepared.config.max_failures)
    collected.check_failures_of_plan()
    all_samples = sum(plan.samples_in(shard) for shard in shards)
    missing_samples = sum(plan.samples_in(shard) for shard in missing_shards)

    def on_ready() -> None:
        prepared.changes.begin()  # from here on, workers store shards
        display.start(split, all_samples, all_samples - missing_samples)

    # A task is built when it is needed, because it contains all its samples.
    task_builders = [partial(_build_task, prepared, split, shard) for shard in missing_shards]
    try:
        engine.run(task_builders, collected.add, on_ready)
    finally:
        display.stop()
    return collected.results


def _build_task(prepared: Prepared, split: str, shard: int) -> ShardTask:
    """Build the task of one shard."""
    job, plan = prepared.jobs[split], prepared.plans[split]
    rows = plan.rows_of(shard)
    return ShardTask(
        fingerprint=job.fingerprint,
        versions=tuple(job.versions.items()),
        split=split,
        shard=shard,
        shards=job.shards,
        first_number=rows.start,
        samples=plan.planned_samples(rows),
        label_space=prepared.label_space,
        policy=prepared.config.image,
        label_offsets=tuple(job.label_offsets.items()),
        source=prepared.source,
        store=prepared.store,
        layout=prepared.config.record_options.layout,
        boxes=prepared.config.boxes,
        sample_limit=prepared.config.sample_limit,
        check_lock=prepared.locks.check_of(split),
    )
