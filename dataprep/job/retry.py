"""Shards that lack samples, made again from the plan that is stored.

The plan stays as it is: no other shard changes. A mended file may have another size than the
plan says, so what was tried again is noted beside it, in ``SPLIT.retried.json``, with its size of
that time; later runs then know the source again. The note is written first, the manifest goes
next, then the receipts of the shards: killed at any point, the split is resumed, and never taken
to be complete.

Schema history of the note: 1, the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dataprep import keys
from dataprep.counted import counted
from dataprep.errors import (
    CorruptRecord,
    DatasetError,
    ObjectNotFound,
    TooManyFailures,
)
from dataprep.job.jobfile import JobFile
from dataprep.json_types import require, typed
from dataprep.manifest import Manifest
from dataprep.names import escape, unescape
from dataprep.ordered import in_order
from dataprep.plan import SplitPlan
from dataprep.receipt import Receipt, Row
from dataprep.schema import malformed_as, parse
from dataprep.shares import allowed_failures
from dataprep.sources import Listing
from dataprep.stores import Store

SCHEMA = 1
_THREADS = 16


@dataclass(frozen=True, slots=True)
class _Note:
    fingerprint: str
    samples: Mapping[str, int]


@dataclass(frozen=True)
class Retries:
    """What of one split was tried again before, and what is to be now.

    Attributes:
        sizes: of samples that were tried again before, the bytes of their files then.
        shards: the shards to make again.
        names: the samples in them that failed, and those that were refused when it was planned.
        refused: how many were; no shard has a place for them.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[int, ...] = ()
    names: frozenset[str] = frozenset()
    refused: int = 0

    def __bool__(self) -> bool:
        return bool(self.sizes or self.names)


def retries(store: Store, job: JobFile, plan: SplitPlan, *, failed: bool) -> Retries:
    """What is noted of a split, and with ``failed`` what its receipts say failed."""
    sizes = noted(store, job)
    if not failed:
        return Retries(sizes)
    shards = []
    names: set[str] = set()
    for shard, lost in enumerate(in_order(_failed_of(store, job), range(job.shards), _THREADS)):
        if lost:
            shards.append(shard)
            names.update(unescape(row.source) for row in lost)
    refused = {
        plan.names[i] for i in range(plan.samples, len(plan.names)) if plan.statuses[i] == "failed"
    }
    return Retries(sizes, tuple(shards), frozenset(names | refused), len(refused))


def require_limit(store: Store, found: Mapping[str, Retries], limit: int | str) -> None:
    """Refuse to take a finished split apart that would not be finished if its samples fail again.

    Raises:
        TooManyFailures: more samples failed than ``limit`` allows; nothing was changed.
    """
    for split, again in found.items():
        try:
            counts = Manifest.from_json(store.get(keys.manifest(split)), split).samples
        except (ObjectNotFound, DatasetError):
            continue
        allowed = allowed_failures(limit, counts.total)
        if again.shards and counts.failed > allowed:
            error = TooManyFailures(
                f"{split} is complete with {counted(counts.failed, 'failed sample')}, and "
                f"--max-failures {limit} allows {allowed:,}: if they failed again it would be "
                f"complete no more. Nothing was changed; give --max-failures {counts.failed}"
            )
            error.exit_code = 2
            raise error


def forget(
    store: Store, job: JobFile, found: Retries, listing: Listing, note: Callable[[str], None]
) -> None:
    """Note what is tried again, then remove the manifest and the receipts of its shards."""
    split = job.split
    if found.refused:
        note(
            f"{split}: {counted(found.refused, 'entry was')} refused when the job "
            "was planned and have no place in a shard: only --overwrite can take them in"
        )
    if not found.shards:
        note(f"{split}: no sample of a stored shard failed, nothing to retry")
        return
    now = zip(listing.names, listing.sizes.tolist(), strict=True)
    sizes = {**found.sizes, **{name: size for name, size in now if name in found.names}}
    store.put(keys.retried(split), _to_json(job, sizes))
    store.delete(keys.manifest(split))
    for shard in found.shards:
        store.delete(keys.receipt(split, shard, job.shards))
    lost = counted(len(found.names) - found.refused, "sample")
    note(f"{split}: {lost} to try again in {counted(len(found.shards), 'shard')}")


def located(plan: SplitPlan, listing: Listing) -> SplitPlan:
    """The plan with the sizes and places that its samples have now."""
    rows_by_name = {name: row for row, name in enumerate(listing.names)}
    rows = np.array([rows_by_name[name] for name in plan.names[: plan.samples]], dtype=np.int64)
    sizes = np.concatenate([listing.sizes[rows], plan.sizes[plan.samples :]])
    if not plan.containers:
        return replace(plan, sizes=sizes)
    return replace(
        plan,
        sizes=sizes,
        containers=[
            *(listing.containers[row] for row in rows.tolist()),
            *plan.containers[plan.samples :],
        ],
        offsets=np.concatenate([listing.offsets[rows], plan.offsets[plan.samples :]]),
    )


def _failed_of(store: Store, job: JobFile) -> Callable[[int], list[Row]]:
    def read(shard: int) -> list[Row]:
        key = keys.receipt(job.split, shard, job.shards)
        try:
            rows = Receipt.from_json(store.get(key), key).rows
        except (ObjectNotFound, CorruptRecord):  # that shard is made again anyway
            return []
        return [row for row in rows if row.status == "failed"]

    return read


def noted(store: Store, job: JobFile) -> dict[str, int]:
    """Samples that were tried again, with the bytes of their files then.

    Raises:
        DatasetError: the note cannot be read.
    """
    key = keys.retried(job.split)
    try:
        data = store.get(key)
    except ObjectNotFound:
        return {}
    with malformed_as(DatasetError, f"{key}: not a note of retried samples"):
        content = parse(data, key, SCHEMA)
        note = typed(_Note, content)
        if note.fingerprint != job.fingerprint:
            return {}
        require(min(note.samples.values(), default=0) >= 0, "'samples' has a size below 0")
        return {unescape(name): size for name, size in note.samples.items()}


def _to_json(job: JobFile, sizes: Mapping[str, int]) -> bytes:
    samples = {escape(name): size for name, size in sorted(sizes.items())}
    content = {"schema": SCHEMA, "fingerprint": job.fingerprint, "samples": samples}
    return json.dumps(content, indent=1).encode() + b"\n"
