"""shard(config): from a source to complete, confirmed splits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from dataprep.config import ShardConfig, allowed_failures
from dataprep.job.cluster import Engine, engine_of, require_reachable
from dataprep.job.finish import finish, read_back, too_many
from dataprep.job.prepare import Prepared, prepare
from dataprep.job.report import Display, PartSummary, Summary
from dataprep.job.request import checked
from dataprep.job.resume import stored_shards
from dataprep.job.worker import ShardResult, ShardTask
from dataprep.names import escape
from dataprep.plan import Part, SplitPlan


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
        overwrite: remove this output's split first, whatever it holds.
        retry_failed: make those shards again in which a sample failed, from the stored plan.
        takeover: do not wait for another run of this output, but take over from it at once.
        display: told of the progress; nothing is shown without one.

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
            yield _run_split(prepared, split, engine, display)


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
    require_reachable(checked(config).dask)
    with (
        ExitStack() as running,  # locks are released last, when the workers have ended
        closing(engine_of(config, display.advance, display.note)) as engine,
    ):
        yield prepare(config, running=running, note=display.note, engine=engine, **how), engine


def _run_split(prepared: Prepared, split: str, engine: Engine, display: Display) -> Summary:
    started_s = time.monotonic()
    job, store = prepared.jobs[split], prepared.store
    kept = stored_shards(store, job)
    complete = prepared.manifests.get(split)
    if complete is not None and len(kept) == job.shards:
        display.note(f"{split}: complete already, nothing to do ({store.uri})")
        seconds = time.monotonic() - started_s
        return Summary(split, store.uri, complete, seconds, 0, len(kept), 0, ())
    work = _Work(prepared, split, range(job.shards), kept)
    work.do(engine, display)
    receipts, table = read_back(store, job, prepared.plans[split], prepared.label_space)
    facts = _run_facts(prepared, time.monotonic() - started_s)
    max_failures, check = prepared.config.max_failures, prepared.locks.check
    finished = finish(store, job, receipts, table, max_failures, facts, check)
    seconds = time.monotonic() - started_s
    return Summary(
        split=split,
        output=store.uri,
        manifest=finished,
        seconds=seconds,
        made_shards=len(work.missing),
        kept_shards=len(kept),
        images_per_s=work.samples / max(seconds, 1e-9),
        failures=tuple(table.failures),
        skips=dict(table.skip_reasons.most_common()),
    )


def _run_part(
    prepared: Prepared, split: str, part: Part, engine: Engine, display: Display
) -> PartSummary:
    started_s = time.monotonic()
    job, store = prepared.jobs[split], prepared.store
    mine = part.of(range(job.shards))
    work = _Work(prepared, split, mine, stored_shards(store, job, mine))
    work.do(engine, display)
    seconds = time.monotonic() - started_s
    lacking = job.shards - len(stored_shards(store, job))
    return PartSummary(
        split=split,
        output=store.uri,
        part=part,
        shards=job.shards,
        made_shards=len(work.missing),
        kept_shards=len(mine) - len(work.missing),
        lacking=lacking,
        complete=split in prepared.manifests and not lacking,
        samples=work.samples,
        failed=work.failed,
        seconds=seconds,
        failures=tuple(work.examples),
    )


@dataclass
class _Work:
    """Shards of one split that are to be there after this run, and how making them went."""

    prepared: Prepared
    split: str
    shards: Sequence[int]
    kept: Sequence[int]
    failed: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    @cached_property
    def missing(self) -> list[int]:
        """The shards that this run makes."""
        return sorted({*self.shards} - {*self.kept})

    @cached_property
    def samples(self) -> int:
        """How many samples those have."""
        return self._width(self.missing)

    @property
    def _plan(self) -> SplitPlan:
        return self.prepared.plans[self.split]

    def _width(self, shards: Sequence[int]) -> int:
        rows = [self._plan.rows_of(shard) for shard in shards]
        return sum(int(part.stop) - int(part.start) for part in rows)

    def do(self, engine: Engine, display: Display) -> None:
        """Run the tasks; stop early where too many samples fail."""
        if not self.missing:
            return
        plan, config = self._plan, self.prepared.config
        refused = [
            (escape(name), reason)
            for name, status, reason in zip(plan.names, plan.statuses, plan.reasons, strict=True)
            if status == "failed"
        ]
        allowed = allowed_failures(config.max_failures, len(plan.names))
        if len(refused) > allowed:
            state = "nothing was converted"
            raise too_many(len(refused), allowed, config.max_failures, refused, state)

        def on_result(result: ShardResult) -> None:
            self.failed += result.failed
            self.examples.extend(result.examples)
            if self.failed + len(refused) > allowed:
                known = [*dict.fromkeys([*result.examples, *refused, *self.examples])]
                failed = self.failed + len(refused)
                raise too_many(failed, allowed, config.max_failures, known, "stopped")

        total = self._width(self.shards)
        start = partial(display.start, self.split, total, total - self.samples)
        try:
            engine.run([partial(self._task, i) for i in self.missing], on_result, start)
        finally:
            display.stop()

    def _task(self, shard: int) -> ShardTask:
        prepared, job, plan = self.prepared, self.prepared.jobs[self.split], self._plan
        rows = plan.rows_of(shard)
        return ShardTask(
            fingerprint=job.fingerprint,
            versions=tuple(job.versions.items()),
            split=self.split,
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
            permit=prepared.locks.permits.get(self.split),
        )


def _run_facts(prepared: Prepared, seconds: float) -> dict[str, Any]:
    dask = prepared.config.dask
    return {
        "source": prepared.source.uri,
        "output": prepared.store.uri,
        "endpoint_url": prepared.config.store.endpoint_url,
        "workers": dask.worker_count,
        "scheduler": dask.scheduler or dask.cluster or "local",
        "seconds": round(seconds, 3),
    }
