"""Copy a complete output to a host: all of it, or the host's share of its shards.

A share is whole shards. They are dealt out by size, the largest first, each to the host that has
the fewest bytes so far (Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on
Applied Mathematics 17, 1969): every host computes the same division without asking the others.

What is copied has its old names and sample numbers. The manifest of a share lists its shards, and
how many samples each share has. Shards come first, then their receipts, then the manifest: killed
at any point, the same command goes on.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dataprep import keys
from dataprep.counted import counted
from dataprep.dataset import open_split, splits_in
from dataprep.errors import ConfigError, DatasetError, FormatMissing, OutputConflict
from dataprep.formats import format_names
from dataprep.job.finish import read_back
from dataprep.job.jobfile import JobFile
from dataprep.job.lock import Locks
from dataprep.job.planning import lack_of_space
from dataprep.job.report import Display
from dataprep.job.resume import (
    keys_of_shard,
    stored_job,
    stored_labels,
    stored_manifest,
    stored_plan,
    stored_shards,
)
from dataprep.job.worker import Progress
from dataprep.manifest import (
    Manifest,
    Receipt,
    Share,
    StoredFile,
    StoredShard,
    TableEntry,
    format_entries,
)
from dataprep.ordered import in_order
from dataprep.plan import Part
from dataprep.snapshot import Snapshot
from dataprep.stores import Store, StoreOptions, location, open_store

_SHARDS_AT_ONCE = 4
_PIECES_AT_ONCE = 4
_PIECE_BYTES = 16 * 2**20
_UNEVEN = 0.02
_ENOUGH_SHARDS = 50  # of a host, so that one more or less is 2 % of its data


@dataclass(frozen=True, slots=True)
class Staged:
    """What a host has of one split.

    ``samples`` and ``bytes`` are those of ``shards``; ``copied_bytes`` were copied by this run, the
    rest before. ``share`` is None where all was copied.
    """

    split: str
    dest: str
    shards: int
    samples: int
    bytes: int
    copied_bytes: int
    seconds: float
    share: Share | None
    advice: str

    def __str__(self) -> str:
        rate = self.copied_bytes / max(self.seconds, 1e-9) / 1e6
        what = f"share {self.share.number}/{self.share.count}, " if self.share else ""
        lines = [
            f"{self.split}: {what}{counted(self.shards, 'shard')} with "
            f"{counted(self.samples, 'sample')}, {self.bytes / 1e6:,.1f} MB -> {self.dest}",
            f"  {self.copied_bytes / 1e6:,.1f} MB copied in {self.seconds:,.1f} s, "
            f"{rate:,.0f} MB/s",
        ]
        if self.share:
            few, most = min(self.share.samples), max(self.share.samples)
            lines.append(
                f"  shares have {few:,} to {most:,} samples: equal steps leave out "
                f"{self.share.left_out:.1%} of all"
            )
        return "\n".join([*lines, *filter(None, [self.advice])])

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)


def stage(
    output: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    split: str | None = None,
    format: str | None = None,
    host: Part | None = None,
    options: StoreOptions | None = None,
    display: Display | None = None,
) -> tuple[Staged, ...]:
    """Copy an output, or a host's share of it, to a folder; run again to resume.

    Args:
        output: a path or URI.
        dest: a folder on a local disk, a RAM disk or a shared file system.
        split: one split; all by default.
        format: one of its formats; all by default.
        host: this host's number, and how many hosts there are; None for everything.
        options: endpoint, profile and other options of the store.
        display: receives the progress, in bytes.

    Raises:
        ManifestMissing: a split does not exist or is not complete.
        FormatMissing: a split has no such format.
        ConfigError: there are fewer shards than hosts, or ``dest`` is the output.
        OutputConflict: ``dest`` holds something else.
        StoreFull: there is too little room; nothing was written.
        DatasetChanged: the output was made anew meanwhile.
        DatasetError: an object of the output is damaged.
        StoreError: something could not be read or written; running again resumes.
    """
    source, target = open_store(output, options), open_store(dest)
    if source.uri.rstrip("/") == target.uri.rstrip("/"):
        raise ConfigError(f"{target.uri} is the output itself: name another place")
    splits = [split] if split else splits_in(source)
    shown = display or Display()
    return tuple(_staged(source, target, name, format, host, shown) for name in splits)


def divided(sizes: Sequence[int], hosts: int) -> list[list[int]]:
    """The numbers of the shards of each host, by the sizes of all shards in bytes."""
    shares: list[list[int]] = [[] for _ in range(hosts)]
    heap = [(0, host) for host in range(hosts)]
    for number in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        held, host = heap[0]
        shares[host].append(number)
        heapq.heapreplace(heap, (held + sizes[number], host))
    return [sorted(share) for share in shares]


def _staged(
    source: Store, target: Store, split: str, format: str | None, host: Part | None, shown: Display
) -> Staged:
    started_s = time.monotonic()
    manifest, snapshot = open_split(source, split)
    if format not in (None, *manifest.formats):
        raise FormatMissing(
            f"{split} has no format {format!r}: it has {', '.join(manifest.formats)}"
        )
    job = stored_job(source, split)
    if job is None or manifest.share is not None:
        raise ConfigError(
            f"{source.uri} is a share, or lacks {keys.job(split)}: stage the whole one"
        )
    offsets = {n: offset for n, offset in job.label_offsets.items() if format in (None, n)}
    job = replace(job, label_offsets=offsets)
    entries = {name: manifest.formats[name].shards for name in offsets}
    sizes = [sum(shard.bytes for shard in shards) for shards in zip(*entries.values(), strict=True)]
    numbers, share, advice = list(range(job.shards)), None, ""
    if host is not None:
        if host.count > job.shards:
            raise ConfigError(
                f"{split} has {counted(job.shards, 'shard')}, too few for {host.count} hosts: copy "
                "all of it (without --host), or make smaller shards"
            )
        shares = divided(sizes, host.count)
        numbers = shares[host.number]
        one = next(iter(entries.values()))
        samples = tuple(sum(one[number].records for number in each) for each in shares)
        share = Share(host.number, host.count, samples)
        advice = _advice(share, sum(sizes), len(entries))
    total = sum(sizes[number] for number in numbers)
    with Locks(target, None, shown.note) as locks:
        target.prepare()
        locks.take([split])
        _require_own(target, job, numbers)
        stored = stored_shards(target, job, numbers)
        missing = sorted({*numbers} - {*stored})
        needed = sum(sizes[number] for number in missing)
        if (lacking := lack_of_space(target, needed)) is not None:
            raise lacking
        complete = stored_manifest(target, split, job)
        if missing or complete is None or complete.share != share:
            target.tidy()
            target.delete(keys.manifest(split))
            labels = snapshot.get(keys.LABELS)
            if not target.create(keys.LABELS, labels) and target.get(keys.LABELS) != labels:
                raise OutputConflict(f"{target.uri} has the labels of another output: name another")
            target.put(keys.plan(split), snapshot.get(keys.plan(split)))
            target.put(keys.job(split), job.to_json())
            shown.start(split, total, total - needed)
            try:
                copy = partial(_copy_shard, snapshot, target, job, manifest, shown)
                for _ in in_order(copy, missing, _SHARDS_AT_ONCE):
                    pass
            finally:
                shown.stop()
            snapshot.check()
            complete = _completed(source, target, job, manifest, numbers, share)
    return Staged(
        split,
        target.uri,
        shards=len(numbers),
        samples=complete.samples.written,
        bytes=total,
        copied_bytes=needed,
        seconds=time.monotonic() - started_s,
        share=share,
        advice=advice,
    )


def _advice(share: Share, size: int, formats: int) -> str:
    """What to do about shares that differ much; empty where they do not."""
    if share.left_out <= _UNEVEN:
        return ""
    wanted = size / formats / (share.count * _ENOUGH_SHARDS)
    return (
        f"warning: shares differ by more than {_UNEVEN:.0%}, since each has few shards: shard with "
        f"--shard-size {max(1.2, wanted // 1e5 / 10):g}MB for {share.count} hosts"
    )


def _require_own(target: Store, job: JobFile, numbers: Sequence[int]) -> None:
    """Refuse a folder that holds another job, or shards of another share."""
    there = stored_job(target, job.split)
    own = {each(job.split) for each in (keys.job, keys.plan, keys.samples, keys.manifest)}
    for number in numbers:
        own |= {keys.receipt(job.split, number, job.shards), *keys_of_shard(job, number)}
    found = {info.key for info in target.list()}
    strange = {key for key in found if keys.belongs_to(job.split, key, format_names())} - own
    if strange or (there is not None and there.fingerprint != job.fingerprint):
        what = f"such as {min(strange)}" if strange else keys.job(job.split)
        raise OutputConflict(
            f"{target.uri} holds another data set or share of split {job.split!r}, {what}: name "
            "another folder, or remove that one"
        )


def _copy_shard(
    snapshot: Snapshot,
    target: Store,
    job: JobFile,
    manifest: Manifest,
    shown: Display,
    number: int,
) -> None:
    """Copy the objects of a shard, then write its receipt."""
    key = keys.receipt(job.split, number, job.shards)
    receipt = Receipt.from_json(snapshot.get(key), key)
    formats = {}
    for name in job.label_offsets:
        stored, entry = receipt.formats[name], manifest.formats[name].shards[number]
        file = replace(stored.file, bytes=entry.bytes, sha256=entry.sha256)
        files = [_copied(snapshot, target, each, shown) for each in (file, *stored.indexes)]
        formats[name] = StoredShard(files[0], stored.records, tuple(files[1:]))
    samples = replace(
        receipt.samples, records={name: receipt.samples.records[name] for name in formats}
    )
    own = replace(receipt, fingerprint=job.fingerprint, formats=formats, samples=samples)
    target.put(key, own.to_json())


def _copied(snapshot: Snapshot, target: Store, file: StoredFile, shown: Display) -> StoredFile:
    """Copy an object, in pieces that are fetched side by side."""
    data, digest = bytearray(file.bytes), hashlib.sha256()
    starts = range(0, file.bytes, _PIECE_BYTES)

    def fetch(start: int) -> bytes:
        return snapshot.get_range(file.key, start, min(_PIECE_BYTES, file.bytes - start))

    for start, piece in zip(starts, in_order(fetch, starts, _PIECES_AT_ONCE), strict=True):
        digest.update(piece)
        data[start : start + len(piece)] = piece
        if not file.key.startswith("index/"):
            shown.advance(Progress(source_bytes=len(piece)))
    if len(data) != file.bytes or digest.hexdigest() != file.sha256:
        raise DatasetError(
            f"{location(snapshot.store, file.key)} is damaged: its SHA-256 is not the one of its "
            f"manifest; dataprep verify {snapshot.store.uri} lists all faults"
        )
    return replace(file, etag=target.put(file.key, data).etag)


def _completed(
    source: Store,
    target: Store,
    job: JobFile,
    manifest: Manifest,
    numbers: Sequence[int],
    share: Share | None,
) -> Manifest:
    """Write the table of samples and the manifest."""
    others = None
    if share is None:  # what is in no shard
        labels = stored_labels(target, {job.split: job})
        others = stored_plan(target, job.split, job).others(labels)
    receipts, table = read_back(target, job, numbers, others)
    formats = format_entries(receipts, job.label_offsets)
    content = table.to_parquet()
    completed = replace(
        manifest,
        fingerprint=job.fingerprint,
        run={**manifest.run, "staged_from": source.uri},
        formats=formats,
        samples=table.counts,
        warnings=table.warnings(formats),
        table=TableEntry(len(content), hashlib.sha256(content).hexdigest()),
        share=share,
    )
    target.put(keys.samples(job.split), content)
    target.put(keys.manifest(job.split), completed.to_json())
    return completed
