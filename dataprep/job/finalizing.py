"""finalize(output): complete what several parts have made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from dataprep import keys
from dataprep.counted import counted
from dataprep.errors import ManifestMissing, ShardsMissing
from dataprep.job.finish import finish, read_back, stored_shards
from dataprep.job.jobfile import JobFile
from dataprep.job.lock import Locks
from dataprep.job.stored import stored_job, stored_labels, stored_manifest, stored_plan
from dataprep.job.summary import Summary
from dataprep.manifest import Manifest
from dataprep.sample_table import SampleTable
from dataprep.stores import Store, StoreOptions, open_store

_SHOWN = 10


def finalize(
    output: str | os.PathLike[str],
    split: str,
    *,
    max_failures: int | str = "1%",
    parts: int | None = None,
    options: StoreOptions | None = None,
    note: Callable[[str], None] | None = None,
) -> Summary:
    """Build the table of samples and the manifest from the receipts that are stored.

    No source is needed. A split that is complete already is left as it is.

    Args:
        output: a path or URI.
        split: which one.
        max_failures: how many samples of the whole split may have failed.
        parts: in how many parts it was made, to name those whose shards lack.
        options: endpoint, profile and the like.
        note: told what is worth a line.

    Raises:
        ManifestMissing: there is no job of this split.
        OutputConflict: a part is under way.
        ShardsMissing: shards lack; they are named.
        TooManyFailures: more samples failed than allowed; no manifest.
    """
    started_s = time.monotonic()
    store = open_store(output, options)
    job = stored_job(store, split)
    if job is None:
        raise ManifestMissing(
            f"no {keys.job(split)} in {store.uri!r}: no part has begun, or it lies elsewhere"
        )
    kept = stored_shards(store, job)
    lacking = sorted(set(range(job.shards)) - set(kept))
    if lacking:
        raise _missing(store, job, lacking, parts)
    complete = stored_manifest(store, split, job)
    if complete is not None:
        if note:
            note(f"{split}: complete already, nothing to do ({store.uri})")
        seconds = time.monotonic() - started_s
        return Summary(split, store.uri, complete, seconds, 0, len(kept), 0, ())
    with Locks(store, None, note or _unheard) as locks:
        locks.take([split])
        finished, table = _finished(store, job, max_failures, options, started_s, locks.check)
    seconds = time.monotonic() - started_s
    failures, skips = tuple(table.failures), dict(table.skip_reasons.most_common())
    return Summary(split, store.uri, finished, seconds, 0, len(kept), 0, failures, skips)


def _unheard(line: str) -> None:
    """Nobody asked to be told."""


def _finished(
    store: Store,
    job: JobFile,
    max_failures: int | str,
    options: StoreOptions | None,
    started_s: float,
    check: Callable[[], None],
) -> tuple[Manifest, SampleTable]:
    label_space = stored_labels(store, {job.split: job})
    receipts, table = read_back(store, job, stored_plan(store, job.split, job), label_space)
    run = {
        "output": store.uri,
        "endpoint_url": options.endpoint_url if options else None,
        "finalized": True,
        "seconds": round(time.monotonic() - started_s, 3),
    }
    return finish(store, job, receipts, table, max_failures, run, check), table


def _missing(
    store: Store, job: JobFile, lacking: Sequence[int], parts: int | None
) -> ShardsMissing:
    shown = ", ".join(str(shard) for shard in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN:,} more" if len(lacking) > _SHOWN else ""
    whose = ""
    if parts:
        numbers = sorted({shard % parts for shard in lacking})
        whose = f", of part {', '.join(f'{number}/{parts}' for number in numbers[:_SHOWN])}"
        whose += f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return ShardsMissing(
        f"{job.split}: {len(lacking):,} of {counted(job.shards, 'shard')} are not stored in "
        f"{store.uri}, or not whole: number {shown}{more}{whose}. Wait for these parts, or run "
        "them again: what is stored whole is kept"
    )
