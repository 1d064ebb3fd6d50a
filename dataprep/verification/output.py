"""Verify the splits of an output: every object, and every source sample exactly once."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from dataprep import keys
from dataprep.dataset import splits_in
from dataprep.errors import (
    DatasetError,
    ManifestMissing,
    ObjectNotFound,
    RecordError,
    SchemaTooNew,
)
from dataprep.formats import format_names
from dataprep.job.jobfile import JobFile
from dataprep.job.resume import keys_of_shard, noted
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, Receipt, Row, StoredFile, format_entries
from dataprep.names import escape, escape_all
from dataprep.ordered import in_order
from dataprep.plan import SplitPlan
from dataprep.samples import SampleTable
from dataprep.snapshot import Snapshot
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.verification.duplicates import COLUMNS, Duplicates, within
from dataprep.verification.result import Depth, Fault, Verification, limited
from dataprep.verification.shards import ShardCheck

Content = TypeVar("Content")


def verify(
    output: str | os.PathLike[str],
    split: str | None = None,
    *,
    depth: Depth = "full",
    workers: int = 1,
    options: StoreOptions | None = None,
) -> tuple[Verification, ...]:
    """Verify one split of an output, or all.

    ``quick`` compares sizes and ETags and reads receipts and tables. ``full`` also reads every
    shard: hashes, framing, checksums, indexes, labels. ``deep`` also decodes every image.

    Args:
        output: a path or URI.
        split: the name of a split; all by default.
        depth: how much is read.
        workers: threads; each has one shard in memory.
        options: endpoint, profile and other options of the store.

    Raises:
        ManifestMissing: there is no such split, or no output.
        DatasetChanged: a split was made anew meanwhile, so that it has no result.
        StoreError: the store cannot be read.
    """
    store = open_store(output, options)
    splits = splits_in(store)
    if split is not None and split not in splits:
        raise ManifestMissing(f"no split {split!r} in {store.uri!r}: it has {', '.join(splits)}")
    chosen = splits if split is None else [split]
    return tuple(_verify(store, name, depth, workers) for name in chosen)


def _verify(store: Store, split: str, depth: Depth, workers: int) -> Verification:
    faults: list[Fault] = []
    key = keys.job(split)
    job = _load(key, faults, lambda: JobFile.from_json(store.get(key), key))
    if job is None:
        faults = [Fault(key, f"{one.what}; restore it, or use --overwrite") for one in faults]
        return Verification(
            store.uri, split, depth, (), 0, 0, 0, tuple(faults), Duplicates(split, "", ())
        )
    opened = _load(keys.manifest(split), faults, lambda: Snapshot.open(store, split), "")
    manifest, snapshot = opened or (None, None)
    check = _SplitCheck(store, job, depth, faults)
    receipts: list[Receipt] = []
    table = SampleTable(list(job.label_offsets))
    for receipt, found in in_order(check.shard, range(job.shards), workers if workers > 1 else 0):
        faults += found
        if receipt is not None:
            table.add(receipt.samples, receipt.shard)
            receipts.append(receipt.without_rows())
    samples = table.table().select(COLUMNS).to_pandas(use_threads=False)
    if manifest and len(receipts) == job.shards:
        faults += check.table_faults(manifest, receipts, table)
    faults += check.strangers()
    if snapshot is not None:
        snapshot.check()
    shards = [stored.file.bytes for receipt in receipts for stored in receipt.formats.values()]
    return Verification(
        output=store.uri,
        split=split,
        depth=depth,
        formats=tuple(job.label_offsets),
        shards=len(receipts),
        samples=table.counts.written,
        bytes=sum(shards),
        faults=tuple(faults),
        duplicates=within(split, samples),
    )


def _load(
    key: str, faults: list[Fault], read: Callable[[], Content], remedy: str | None = None
) -> Content | None:
    """What ``read`` returns; None, and a fault of ``key``, if that is missing or damaged.

    ``remedy`` repairs a damaged object.
    """
    try:
        return read()
    except ObjectNotFound:
        is_planned = key == keys.LABELS or key.endswith(".plan.parquet")
        faults.append(Fault(key, "missing", remedy=None if is_planned else ""))
    except (DatasetError, RecordError) as error:
        what = str(error).removeprefix(f"{key}: ")
        helps = None if isinstance(error, SchemaTooNew) else remedy
        faults.append(Fault(key, what, remedy=helps))
    return None


class _SplitCheck:
    """Compares the objects of a split with its job, its plan and each other.

    Faults of the plan, of labels.json and of the note of retried samples go to ``faults``.
    """

    def __init__(self, store: Store, job: JobFile, depth: Depth, faults: list[Fault]) -> None:
        self._store, self._job, self._depth = store, job, depth
        plan, labels = keys.plan(job.split), keys.LABELS
        self._plan = _load(
            plan,
            faults,
            lambda: SplitPlan.from_parquet(self._planned(plan, job.plan_sha256), plan),
        )
        self._labels = _load(
            labels,
            faults,
            lambda: LabelSpace.from_json(self._planned(labels, job.labels_sha256), labels),
        )
        # Samples within archives or records may have file names of their own.
        self._named = self._plan is not None and not self._plan.containers
        retried = _load(keys.retried(job.split), faults, lambda: noted(store, job))
        self._retried: Mapping[str, int] = retried or {}
        names = format_names()
        self._listed = {
            info.key: info for info in store.list() if keys.belongs_to(job.split, info.key, names)
        }

    def _planned(self, key: str, sha256: str) -> bytes:
        """An object that was written with the job file."""
        data = self._store.get(key)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DatasetError(
                "is not the one that the job was planned with: restore it, or use --overwrite"
            )
        return data

    def shard(self, shard: int) -> tuple[Receipt | None, list[Fault]]:
        """The receipt of a shard, if it can be used, and everything wrong in that shard."""
        faults: list[Fault] = []
        job, key = self._job, self._receipt_key(shard)
        receipt = _load(
            key, faults, lambda: Receipt.from_json(self._store.get(key), key), remedy=key
        )
        if receipt is None:
            return None, faults
        wanted = job.fingerprint, job.split, shard, {*keys_of_shard(job, shard)}
        files = [file for stored in receipt.formats.values() for file in stored.files]
        found = receipt.fingerprint, receipt.split, receipt.shard, {file.key for file in files}
        if found != wanted:
            return None, [Fault(key, "belongs to another job or shard", remedy=key)]
        problems = [Fault(key, what, remedy=key) for what in self._account(receipt)]
        content: list[Fault] = []
        for name in receipt.formats if self._depth != "quick" else ():
            check = ShardCheck(self._store, job, receipt, name, named=self._named)
            content += check.faults(deep=self._depth == "deep", trusted=not problems)
        listing = self._listing_faults(files, etags=not content)
        return receipt, [*listing, *content, *limited(problems)]

    def table_faults(
        self, manifest: Manifest, receipts: Sequence[Receipt], table: SampleTable
    ) -> Iterator[Fault]:
        """Manifest and table of samples against the receipts, whose rows ``table`` has."""
        if self._plan is None or self._labels is None:
            return
        table.add(self._plan.others(self._labels), None)
        job, key = self._job, keys.manifest(self._job.split)
        formats = format_entries(receipts, job.label_offsets)
        for name, wanted in (
            ("split", job.split),
            ("fingerprint", job.fingerprint),
            ("config", job.config),
            ("versions", {**manifest.versions, **job.versions}),
            ("formats", formats),
            ("samples", table.counts),
            ("warnings", table.warnings(formats)),
        ):
            if getattr(manifest, name) != wanted:
                yield Fault(key, f"its {name!r} does not match the receipts", remedy=key)
        key, entry = keys.samples(job.split), manifest.table
        try:
            data = self._store.get(key)
        except ObjectNotFound:
            yield Fault(key, "missing", remedy="")
            return
        intact = entry is not None and entry.sha256 == hashlib.sha256(data).hexdigest()
        agrees = table.agrees_with(data)
        differing = table.differing_shards(data) if intact and not agrees else []
        for receipt in map(self._receipt_key, differing):
            yield Fault(receipt, f"its samples are not those of {key}", remedy=receipt)
        if not differing and not agrees:
            yield Fault(key, "does not match the receipts", remedy=key)
        elif entry and not intact:
            yield Fault(key, "checksum does not match the manifest", remedy=key)

    def strangers(self) -> list[Fault]:
        """Objects among those of the split that do not belong to it."""
        job, split = self._job, self._job.split
        expected = {keys.job(split), keys.plan(split), keys.samples(split), keys.manifest(split)}
        for shard in range(job.shards):
            expected |= {self._receipt_key(shard), *keys_of_shard(job, shard)}
        strangers = sorted(self._listed.keys() - expected - {keys.retried(split)})
        return [Fault(key, "does not belong to this data set", remedy=key) for key in strangers]

    def _listing_faults(self, files: Sequence[StoredFile], *, etags: bool) -> Iterator[Fault]:
        """Sizes against the receipt, and ETags if they are wanted and the store has them."""
        for file in files:
            info = self._listed.get(file.key)
            if info is None:
                yield Fault(file.key, "missing", remedy="")
            elif info.bytes != file.bytes:
                what = f"has {info.bytes:,} bytes, its receipt says {file.bytes:,}"
                yield Fault(file.key, what, remedy="")
            elif etags and info.etag and file.etag and info.etag != file.etag:
                what = f"its ETag is {info.etag}, its receipt says {file.etag}"
                yield Fault(file.key, what, remedy="")

    def _account(self, receipt: Receipt) -> Iterator[str]:
        """How a receipt differs from the plan, which has every source sample exactly once."""
        written = sum(row.status == "written" for row in receipt.rows)
        for name, stored in receipt.formats.items():
            placed = sum(name in (row.records or {}) for row in receipt.rows)
            if not stored.records == placed == written:
                yield f"{written:,} samples written, {placed:,} of {stored.records:,} in {name}"
        if self._plan is None or self._labels is None:
            return
        place = self._plan.rows_of(receipt.shard)
        planned = Counter(escape_all(self._plan.names[place]))
        found = Counter(row.source for row in receipt.rows)
        for name in sorted(planned.keys() | found.keys()):
            if planned[name] != found[name]:
                yield f"{name} is {found[name]} times in it, {planned[name]} times in the plan"
        if planned == found:
            yield from self._rows(receipt.rows, self._plan, self._labels, place)

    def _rows(
        self, rows: Sequence[Row], plan: SplitPlan, labels: LabelSpace, place: slice
    ) -> Iterator[str]:
        """How rows differ from the plan if it has the same samples."""
        sizes, numbers = plan.sizes[place].tolist(), range(place.start, place.stop)
        planned = zip(plan.names[place], numbers, plan.labels[place].tolist(), sizes, strict=True)
        for row, (name, number, label, size) in zip(rows, planned, strict=True):
            wanted = escape(name), number, label, escape(labels.labels[label].synset)
            found = row.source, row.number, row.label, row.synset
            if found != wanted:
                yield f"name, number, label and class are {found}, planned {wanted}"
            elif row.source_bytes not in (size, self._retried.get(name)):
                yield f"{row.source} had {row.source_bytes:,} bytes, the plan says {size:,}"

    def _receipt_key(self, shard: int) -> str:
        return keys.receipt(self._job.split, shard, self._job.shards)
