"""shard(config): from a source to complete, confirmed splits."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dataprep import keys, manifest
from dataprep.config import ShardConfig, allowed_failures
from dataprep.counted import counted
from dataprep.errors import JobError, TooManyFailures
from dataprep.formats import get_format
from dataprep.job import progress
from dataprep.job.choice import choose_engine
from dataprep.job.cluster import require_reachable
from dataprep.job.jobfile import JobFile
from dataprep.job.plans import SplitPlan
from dataprep.job.prepare import Prepared, prepare
from dataprep.job.summary import Summary
from dataprep.manifest import Manifest
from dataprep.names import escape
from dataprep.ordered import in_order
from dataprep.receipt import Receipt
from dataprep.sample_table import SampleTable
from dataprep.versions import informing
from dataprep.worker import ShardResult, ShardTask

_STORE_THREADS = 16
_EXAMPLES = 3


def shard(
    config: ShardConfig,
    *,
    overwrite: bool = False,
    display: progress.Display | None = None,
) -> tuple[Summary, ...]:
    """Shard a source as ``config`` says, or resume where an earlier run stopped.

    One summary a split. Work that is stored and confirmed is never repeated; a complete split
    is left as it is.

    Args:
        config: what to make of what, and where.
        overwrite: remove this output's split first, whatever it holds.
        display: told of the progress; nothing is shown without one.

    Raises:
        ConfigError, SourceError, OutputConflict: refused before anything was written.
        TooManyFailures: more samples failed than ``config.max_failures``; no manifest.
        StoreError, SourceChanged, WorkerLost: stopped; running again resumes.
    """
    display = display or progress.Silent()
    require_reachable(config.dask)
    prepared = prepare(config, overwrite=overwrite, note=display.note)
    return tuple(_run_split(prepared, split, display) for split in prepared.jobs)


def _run_split(prepared: Prepared, split: str, display: progress.Display) -> Summary:
    started_s = time.monotonic()
    job, plan = prepared.jobs[split], prepared.plans[split]
    store = prepared.store
    stored = {info.key for info in store.list()}
    kept = [i for i in range(job.shards) if stored.issuperset(_keys_of(job, i))]
    complete = prepared.manifests.get(split)
    if complete is not None and len(kept) == job.shards:
        display.note(f"{split}: complete already, nothing to do ({store.uri})")
        return _summary(prepared, split, complete, started_s, 0, len(kept), 0, ())

    missing = sorted(set(range(job.shards)) - set(kept))
    done = plan.samples - sum(_width(plan, i) for i in missing)
    source_bytes = sum(int(plan.sizes[plan.rows_of(i)].sum()) for i in missing)
    if missing:
        try:
            start = partial(display.start, split, plan.samples, source_bytes, done)
            _make(prepared, split, missing, source_bytes, display, start)
        finally:
            display.stop()
    receipts, table = _read_back(prepared, split)
    finished = _finish(prepared, split, receipts, table, started_s)
    seconds = time.monotonic() - started_s
    return _summary(
        prepared,
        split,
        finished,
        started_s,
        len(missing),
        len(kept),
        (plan.samples - done) / max(seconds, 1e-9),
        tuple(table.failures),
    )


def _keys_of(job: JobFile, shard: int) -> Iterator[str]:
    """Everything that a finished shard leaves in the store."""
    place = (job.split, shard, job.shards)
    yield keys.receipt(*place)
    for name in job.label_offsets:
        record_format = get_format(name)
        yield keys.data(name, record_format.extension, *place)
        for extension in record_format.indexes([]):
            yield keys.index(name, extension, *place)


def _width(plan: SplitPlan, shard: int) -> int:
    rows = plan.rows_of(shard)
    return int(rows.stop) - int(rows.start)


def _make(
    prepared: Prepared,
    split: str,
    missing: Sequence[int],
    source_bytes: int,
    display: progress.Display,
    start: Callable[[], None],
) -> None:
    """Run the tasks of the missing shards; stop early where too many samples fail."""
    plan, config = prepared.plans[split], prepared.config
    refused = [
        (escape(name), reason)
        for name, status, reason in zip(plan.names, plan.statuses, plan.reasons, strict=True)
        if status == "failed"
    ]
    allowed = allowed_failures(config.max_failures, len(plan.names))
    failed = len(refused)
    if failed > allowed:
        raise _too_many(failed, allowed, config, refused[:_EXAMPLES], "nothing was converted")

    def on_result(result: ShardResult) -> None:
        nonlocal failed
        failed += result.failed
        if failed > allowed:
            examples = [*result.examples, *refused][:_EXAMPLES]
            raise _too_many(failed, allowed, config, examples, "stopped")

    chosen = choose_engine(config.dask, source_bytes, display.advance, display.note)
    chosen.run([partial(_task, prepared, split, i) for i in missing], on_result, start)


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
    )


def _read_back(prepared: Prepared, split: str) -> tuple[list[Receipt], SampleTable]:
    """Every receipt as it is stored, its rows in the table."""
    job = prepared.jobs[split]

    def read(shard: int) -> Receipt:
        key = keys.receipt(split, shard, job.shards)
        receipt = Receipt.from_json(prepared.store.get(key), key)
        if receipt.fingerprint != job.fingerprint:
            raise JobError(f"{key} belongs to another job: start anew with --overwrite")
        return receipt

    receipts = []
    table = SampleTable(list(job.label_offsets))
    for receipt in in_order(read, range(job.shards), _STORE_THREADS):
        table.add(receipt.rows, receipt.shard)
        receipts.append(receipt.without_rows())
    table.add(prepared.plans[split].others(prepared.label_space), None)
    return receipts, table


def _finish(
    prepared: Prepared,
    split: str,
    receipts: Sequence[Receipt],
    table: SampleTable,
    started_s: float,
) -> Manifest:
    """Build the tables from stored receipts; the manifest goes last."""
    job, config, store = prepared.jobs[split], prepared.config, prepared.store
    counts = table.counts
    allowed = allowed_failures(config.max_failures, counts.total)
    if counts.failed > allowed:
        raise _too_many(
            counts.failed,
            allowed,
            config,
            table.failures[:_EXAMPLES],
            "every shard is stored, but no manifest",
        )
    if not counts.written:
        examples = (table.failures or table.skips)[:_EXAMPLES]
        raise JobError(
            f"none of {counts.total:,} samples could be written, such as "
            + "; ".join(f"{name}: {reason}" for name, reason in examples)
        )
    formats = manifest.format_entries(receipts, job.label_offsets)
    finished = Manifest(
        split=split,
        created=_now(),
        fingerprint=job.fingerprint,
        config=job.config,
        run=_run_facts(prepared, time.monotonic() - started_s),
        versions={**informing(), **job.versions},
        formats=formats,
        samples=counts,
        warnings=table.warnings(formats),
    )
    store.put(keys.samples(split), table.to_parquet())
    store.put(keys.manifest(split), finished.to_json())
    store.tidy()
    return finished


def _too_many(
    failed: int,
    allowed: int,
    config: ShardConfig,
    examples: Sequence[tuple[str, str]],
    state: str,
) -> TooManyFailures:
    shown = "; ".join(f"{name}: {reason}" for name, reason in examples)
    return TooManyFailures(
        f"{counted(failed, 'sample')} failed, "
        f"--max-failures {config.max_failures} allows {allowed:,}: {state}. Such as {shown}. "
        "To accept them, run again with a higher --max-failures: it resumes"
    )


def _summary(
    prepared: Prepared,
    split: str,
    finished: Manifest,
    started_s: float,
    made: int,
    kept: int,
    images_per_s: float,
    failures: tuple[tuple[str, str], ...],
) -> Summary:
    return Summary(
        split=split,
        output=prepared.store.uri,
        manifest=finished,
        seconds=time.monotonic() - started_s,
        made_shards=made,
        kept_shards=kept,
        images_per_s=images_per_s,
        failures=failures,
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


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
