"""Labels, plan, table of samples and manifest against the receipts."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence

from dataprep import keys
from dataprep.errors import DataprepError, ObjectNotFound, SchemaTooNew, StoreError
from dataprep.job.jobfile import JobFile
from dataprep.job.resume import keys_of_shard
from dataprep.labels import LabelSpace
from dataprep.manifest import FormatEntry, Manifest, format_entries, in_bounds
from dataprep.plan import SplitPlan
from dataprep.receipt import Receipt
from dataprep.sample_table import SampleTable
from dataprep.stores import Store
from dataprep.verification.faults import Fault


def stored_manifest(store: Store, job: JobFile) -> tuple[Manifest | None, list[Fault]]:
    """The manifest if it is there and can be read, and what is wrong with it."""
    key = keys.manifest(job.split)
    try:
        return Manifest.from_json(store.get(key), key), []
    except ObjectNotFound:
        return None, [Fault(key, "missing: the data set is not complete", remedy="")]
    except (SchemaTooNew, StoreError) as error:
        return None, [Fault.of(error, key)]
    except DataprepError as error:
        return None, [Fault.of(error, key, remedy="")]


def plan_faults(store: Store, job: JobFile) -> Iterator[Fault]:
    """Labels and plan against the job that was written with them."""
    for key, sha256 in (
        (keys.LABELS, job.labels_sha256),
        (keys.plan(job.split), job.plan_sha256),
    ):
        try:
            if hashlib.sha256(store.get(key)).hexdigest() != sha256:
                what = f"is not what {keys.job(job.split)} was written with"
                yield Fault(key, what, remedy=key)
        except ObjectNotFound:
            yield Fault(key, "missing", remedy="")


class TableCheck:
    """Holds table of samples and manifest against the receipts of all shards.

    ``table`` has the rows of all receipts; those that are in no shard are added here. ``damaged``
    are keys of receipts that are known to be wrong: what they say is held against nothing.
    """

    def __init__(
        self,
        store: Store,
        job: JobFile,
        manifest: Manifest,
        table: SampleTable,
        damaged: Collection[str],
    ) -> None:
        self._store = store
        self._job = job
        self._manifest = manifest
        self._key = keys.manifest(job.split)
        self._table = table
        self._damaged = set(damaged)

    def faults(self, receipts: Sequence[Receipt], *, quick: bool) -> Iterator[Fault]:
        """What does not agree, and who of two is wrong where a third can tell."""
        job, manifest = self._job, self._manifest
        try:
            plan = SplitPlan.from_parquet(self._store.get(keys.plan(job.split)))
            label_space = LabelSpace.from_json(self._store.get(keys.LABELS))
        except (DataprepError, OSError, ValueError, KeyError):
            return  # said already
        self._table.add(plan.others(label_space), None)
        yield from self._table_faults()
        formats = format_entries(receipts, job.label_offsets)
        yield from self._format_faults(formats, quick=quick)
        counts = (
            ("samples", manifest.samples, self._table.counts),
            ("warnings", manifest.warnings, self._table.warnings(formats)),
        )
        for name, found, wanted in (
            ("split", manifest.split, job.split),
            ("fingerprint", manifest.fingerprint, job.fingerprint),
            ("versions", manifest.versions, {**manifest.versions, **job.versions}),
            ("config", manifest.config, job.config),
            *(() if self._damaged else counts),
        ):
            if found != wanted:
                what = f"its {name!r} does not agree with the receipts"
                yield Fault(self._key, what, remedy=self._key)

    def _table_faults(self) -> Iterator[Fault]:
        key, entry = keys.samples(self._job.split), self._manifest.table
        try:
            stored = self._store.get(key)
        except ObjectNotFound:
            yield Fault(key, "missing", remedy="")
            return
        sha256 = hashlib.sha256(stored).hexdigest()
        intact = entry is not None and entry.sha256 == sha256
        if self._table.agrees_with(stored):
            if entry is None or intact:
                return
            if hashlib.sha256(self._table.to_parquet()).hexdigest() == sha256:
                what = f"what it says of {key} is not true"
                yield Fault(self._key, what, remedy=self._key)
            else:
                yield Fault(key, "its bytes changed since it was written (SHA-256)", remedy=key)
            return
        wrong = self._table.differing_shards(stored) if intact else []
        for shard in wrong:
            receipt = keys.receipt(self._job.split, shard, self._job.shards)
            if receipt not in self._damaged:
                what = f"its samples are not those of {key}, which is as the manifest says"
                yield Fault(receipt, what, remedy=receipt)
            self._damaged.add(receipt)
        if not wrong:
            resized = entry is not None and entry.bytes != len(stored)
            what = "does not agree with the receipts"
            yield Fault(key, what, remedy="" if resized else key)

    def _format_faults(self, formats: Mapping[str, FormatEntry], *, quick: bool) -> Iterator[Fault]:
        """Where no shard was read, either of receipt and manifest may be the wrong one."""
        stored = self._manifest.formats
        if stored == formats:
            return
        wrong = _differing(stored, formats)
        for shard in wrong:
            receipt = keys.receipt(self._job.split, shard, self._job.shards)
            if receipt not in self._damaged:
                what = f"its 'formats' does not agree with {receipt}"
                yield Fault(self._key, what, remedy=receipt if quick else self._key)
        if not wrong:
            what = "its 'formats' does not agree with the receipts"
            yield Fault(self._key, what, remedy=self._key)


def _differing(one: Mapping[str, FormatEntry], other: Mapping[str, FormatEntry]) -> list[int]:
    """Shards of which two manifests say different things, where they speak of the same ones."""
    if {n: len(e.shards) for n, e in one.items()} != {n: len(e.shards) for n, e in other.items()}:
        return []
    pairs = (zip(one[name].shards, other[name].shards, strict=True) for name in one)
    return sorted({i for both in pairs for i, (mine, theirs) in enumerate(both) if mine != theirs})


def expected_keys(job: JobFile, receipts: Sequence[Receipt]) -> set[str]:
    """Every key that belongs to the split, or will when it is complete."""
    split = job.split
    expected = {keys.job(split), keys.plan(split), keys.samples(split), keys.manifest(split)}
    expected.add(keys.retried(split))
    expected |= {keys.receipt(split, shard, job.shards) for shard in range(job.shards)}
    present = {receipt.shard for receipt in receipts}
    for shard in set(range(job.shards)) - present:
        # Stored before its receipt was: the next run writes it again.
        expected.update(keys_of_shard(job, shard))
    for receipt in receipts:
        for stored in receipt.formats.values():
            expected |= {stored.file.key, *(index.key for index in stored.indexes)}
    return expected


def out_of_bounds(receipts: Sequence[Receipt]) -> Iterator[str]:
    """A remark for each shard that has not 1 to 128 MB."""
    for receipt in receipts:
        largest = max(
            (stored.file for stored in receipt.formats.values()), key=lambda file: file.bytes
        )
        if not in_bounds(largest.bytes):
            yield f"{largest.key} has {largest.bytes:,} bytes, outside 1 to 128 MB"
