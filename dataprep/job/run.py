"""shard(config): from a source to complete, confirmed splits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from dataprep.config import ShardConfig, allowed_failures
from dataprep.job.cluster import Engine, engine_of, require_reachable
from dataprep.job.finish import already_complete, finish, finished_summary, too_many
from dataprep.job.lock import Locks
from dataprep.job.output_state import complete_shards, shards_with_receipt
from dataprep.job.prepare import Prepared, prepare
from dataprep.job.report import Display, PartSummary, Summary
from dataprep.job.worker import ShardResult, ShardTask
from dataprep.names import escape
from dataprep.split_plan import Part


def shard(
    config: ShardConfig,
    *,
    overwrite: bool = False,
    retry_failed: bool = False,
    takeover: bool = False,
    display: Display | None = None,
) -> tuple[Summary, ...]:
    """Shard a source as ``config`` says, or resume where an earlier run stopped.

    One summary a split. Work that is stored and confirmed is never repeated; a complete split
    is left as it is.

    Args:
        config: what to make of what, and where.
        overwrite: remove this output's split first.
        retry_failed: make those shards again in which a sample failed, from the stored plan.
        takeover: do not wait for another run of this output, but take over from it at once.
        display: receives the progress; without one nothing is shown.

    Raises:
        ConfigError, SourceError, OutputConflict: refused before anything was written.
        TooManyFailures: more samples failed than ``config.max_failures``; no manifest.
        StoreError, SourceChanged, WorkerLost: stopped; running again resumes.
    """
    return tuple(each_split(config, overwrite, retry_failed, takeover, display or Display()))


def each_split(
    config: ShardConfig, overwrite: bool, retry_failed: bool, takeover: bool, display: Display
) -> Iterator[Summary]:
    """``shard``, a split at a time: what came before an error is known."""
    how = {"overwrite": overwrite, "retry_failed": retry_failed, "takeover": takeover}
    with _prepared(config, display, **how) as (prepared, engine):
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
    """Make one part's shards of each split; ``finalize`` completes what all parts have made.

    The first part to come writes the plan, the others find it or write the same. A part stops as
    soon as it alone has more failures than ``config.max_failures`` allows the whole split.
    ``takeover`` is that of ``shard``.

    Raises:
        ConfigError, SourceError, OutputConflict: refused before anything was written.
        TooManyFailures: see above.
        StoreError, SourceChanged, WorkerLost: stopped; running again resumes.
    """
    return tuple(each_part(config, part, takeover, display or Display()))


def each_part(
    config: ShardConfig, part: Part, takeover: bool, display: Display
) -> Iterator[PartSummary]:
    """``shard_part``, a split at a time."""
    with _prepared(config, display, part=part, takeover=takeover) as (prepared, engine):
        for split in prepared.jobs:
            yield _run_part(prepared, split, part, engine, display)


@contextmanager
def _prepared(
    config: ShardConfig, display: Display, **how: Any
) -> Iterator[tuple[Prepared, Engine]]:
    """Start or connect to the workers and prepare the job; ``how`` are options of ``prepare``."""
    require_reachable(config.dask)
    with (
        ExitStack() as running,  # locks are released last, when the workers have ended
        closing(engine_of(config, display.advance, display.note)) as engine,
    ):
        prepared = prepare(config, running=running, note=display.note, engine=engine, **how)
        running.callback(_keep_locks_of_tasks, prepared.locks, engine)
        yield prepared, engine


def _keep_locks_of_tasks(locks: Locks, engine: Engine) -> None:
    """Let the locks expire if tasks may still write; called when the engine is closed."""
    if engine.tasks_may_run:
        locks.leave_to_expire()


def _run_split(prepared: Prepared, split: str, engine: Engine, display: Display) -> Summary:
    started_s = time.monotonic()
    job, store, config = prepared.jobs[split], prepared.store, prepared.config
    kept = complete_shards(store, job)
    complete = prepared.manifests.get(split)
    if complete is not None and len(kept) == job.shards:
        return already_complete(store, complete, len(kept), started_s, display.note)
    made = _make_shards(prepared, split, range(job.shards), kept, engine, display)
    finished, table = finish(
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
        started_s=started_s,
        check=prepared.locks.check,
    )
    samples = sum(result.samples for result in made)
    return finished_summary(
        store,
        finished,
        table,
        started_s,
        len(made),
        len(kept),
        samples,
        prepared.plans,
        prepared.label_space,
    )


def _run_part(
    prepared: Prepared, split: str, part: Part, engine: Engine, display: Display
) -> PartSummary:
    started_s = time.monotonic()
    job, store = prepared.jobs[split], prepared.store
    mine = part.of(range(job.shards))
    kept = complete_shards(store, job, mine)
    made = _make_shards(prepared, split, mine, kept, engine, display)
    seconds = time.monotonic() - started_s
    # The other parts may run: their receipts are counted, not read.
    lacking = job.shards - len({*mine} | shards_with_receipt(store, job))
    return PartSummary(
        split=split,
        output=store.uri,
        part=part,
        shards=job.shards,
        made_shards=len(made),
        kept_shards=len(mine) - len(made),
        lacking_shards=lacking,
        complete=split in prepared.manifests and not lacking,
        samples=sum(result.samples for result in made),
        failed=sum(result.failed for result in made),
        seconds=seconds,
        failures=_examples(made),
        understood=prepared.understood,
    )


def _make_shards(
    prepared: Prepared,
    split: str,
    shards: Sequence[int],
    kept: Sequence[int],
    engine: Engine,
    display: Display,
) -> list[ShardResult]:
    """Make those of ``shards`` that are not kept; stop early where too many samples fail."""
    missing = sorted({*shards} - {*kept})
    if not missing:
        return []
    plan, limit = prepared.plans[split], prepared.config.max_failures
    refused = [
        (escape(name), reason)
        for name, status, reason in zip(plan.names, plan.statuses, plan.reasons, strict=True)
        if status == "failed"
    ]
    failed, allowed = len(refused), allowed_failures(limit, len(plan.names))
    if failed > allowed:
        raise too_many(failed, allowed, limit, refused, "nothing was converted")
    made: list[ShardResult] = []

    def on_result(result: ShardResult) -> None:
        nonlocal failed
        failed += result.failed
        made.append(result)
        if failed > allowed:
            known = dict.fromkeys([*result.examples, *refused, *_examples(made)])
            raise too_many(failed, allowed, limit, [*known], "stopped")

    total = sum(map(plan.samples_in, shards))
    done = total - sum(map(plan.samples_in, missing))

    def on_ready() -> None:
        prepared.changes.begin()  # from now on workers store shards
        display.start(split, total, done)

    tasks = [partial(_task, prepared, split, shard) for shard in missing]
    try:
        engine.run(tasks, on_result, on_ready)
    finally:
        display.stop()
    return made


def _examples(made: Sequence[ShardResult]) -> tuple[tuple[str, str], ...]:
    return tuple(example for result in made for example in result.examples)


def _task(prepared: Prepared, split: str, shard: int) -> ShardTask:
    job, plan = prepared.jobs[split], prepared.plans[split]
    rows = plan.rows_of(shard)
    return ShardTask(
        fingerprint=job.fingerprint,
        versions=tuple(job.versions.items()),
        split=split,
        shard=shard,
        shards=job.shards,
        first_number=rows.start,
        items=plan.items(rows),
        label_space=prepared.label_space,
        policy=prepared.config.image,
        label_offsets=tuple(job.label_offsets.items()),
        source=prepared.source,
        store=prepared.store,
        layout=prepared.config.record_options.layout,
        boxes=prepared.config.boxes,
        limit=prepared.config.sample_limit,
        check_lock=prepared.locks.check_of(split),
    )
