"""Copy a complete output to a host: the whole output, or the host's share of the shards.

Shards and samples keep their names and numbers in the copy. The manifest of a share lists its
shards, and the number of samples in each share. A share also has the table of samples of the whole
split, because the ranks of all hosts must know how many samples of a subset each share has.

Shards are copied first, then their receipts, then the manifest. The same command therefore resumes
a copy that was killed at any point.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dataprep.errors import (
    Changes,
    ConfigError,
    DatasetError,
    FormatMissing,
    ObjectNotFound,
    OutputConflict,
)
from dataprep.formats import format_names
from dataprep.job.conversion import Progress
from dataprep.job.finish import read_receipts
from dataprep.job.job_file import JobFile
from dataprep.job.lock import Locks
from dataprep.job.output_state import (
    complete_shards,
    keys_of_shard,
    read_job,
    read_labels,
    read_manifest,
    read_plan,
)
from dataprep.job.parts import Part
from dataprep.job.planning import not_enough_space
from dataprep.job.report import Display
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.output.manifest import Manifest, Share, TableEntry, format_entries
from dataprep.output.receipt import Receipt, StoredFile, StoredShard
from dataprep.output.snapshot import Snapshot
from dataprep.reading.shares import advice_on_shares, share_of_host
from dataprep.reading.splits import open_split, splits_in
from dataprep.stores import Store, StoreOptions, location, open_store
from dataprep.stores.local import LocalStore
from dataprep.threaded_map import in_order

_SHARDS_AT_ONCE = 4
"""Shards that are copied at the same time."""

_PIECES_AT_ONCE = 4
"""Pieces of one object that are fetched at the same time."""

_PIECE_BYTES = 8 * 2**20
"""Size of a piece. Together, the pieces of all shards in memory take less than 200 MiB."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The copy of one split on a host.

    Attributes:
        split: the name of the split.
        dest: the folder of the copy.
        shards: shards in the copy.
        samples: samples in the copy.
        bytes: bytes of all shards in the copy, without their indexes and without other files.
        copied_bytes: bytes of the shards that this run has copied. Earlier runs copied the rest.
        seconds: the duration of this run.
        share: the host's share; None for the whole split.
        advice: what to do if the shares differ much in size; empty if they do not.
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
        share = f"share {self.share.number}/{self.share.count}, " if self.share else ""
        shards, samples = counted(self.shards, "shard"), counted(self.samples, "sample")
        size = f"{self.bytes / 1e6:,.1f} MB"
        lines = [f"{self.split}: {share}{shards} with {samples}, {size} -> {self.dest}"]
        if self.copied_bytes:
            megabytes = self.copied_bytes / 1e6
            megabytes_per_s = megabytes / max(self.seconds, 1e-9)
            duration = f"{self.seconds:,.1f} s, {megabytes_per_s:,.0f} MB/s"
            lines.append(f"  {megabytes:,.1f} MB copied in {duration}")
        else:
            lines.append("  nothing to copy: everything is already there")
        if self.share:
            smallest, largest = min(self.share.samples), max(self.share.samples)
            lines.append(
                f"  shares have {smallest:,} to {largest:,} samples: equal steps on all hosts leave"
                f" out {self.share.left_out:.1%} of all samples"
            )
        if self.advice:
            lines.append(self.advice)
        return "\n".join(lines)


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
    """Copy an output, or a host's share of it, to a folder. Call it again to resume.

    Args:
        output: the path or URI of the output.
        dest: a folder on a local disk, a RAM disk or a shared file system.
        split: the split to copy; None for all splits.
        format: the format to copy; None for all formats.
        host: the number of this host and the number of hosts; None to copy all shards.
        options: endpoint, profile and other options of the store.
        display: receives the progress in bytes.

    Returns:
        The copy of each split.

    Raises:
        ManifestMissing: a split does not exist or is not complete.
        FormatMissing: a split does not have the format.
        ConfigError: there are fewer shards than hosts; ``dest`` is the output, or is not a folder;
            or the output is itself a share, or lacks its job file.
        OutputConflict: ``dest`` has files of another data set or of another share, or another run
            is writing to it.
        StoreFull: there is not enough space for a split; no shard of it was written.
        DatasetChanged: the output was written again while it was copied.
        DatasetError: an object of the output is damaged. ``exit_code`` is 1 if something was
            copied before the error.
        StoreError: an object could not be read or written. Call it again to resume.

    Example:
        >>> (copy,) = dataprep.stage("out", "local-copy", split="train")
        >>> dataset = dataprep.open("local-copy", "train")
        >>> len(dataset) == copy.samples
        True
    """
    source, target = open_store(output, options), open_store(dest)
    if not isinstance(target, LocalStore):
        raise ConfigError(f"{target.uri} is not a folder: give a folder on a disk of this host")
    if source.uri.rstrip("/") == target.uri.rstrip("/"):
        raise ConfigError(f"{target.uri} is the output itself: give another folder")
    splits = [split] if split else splits_in(source)
    changes = Changes()
    with changes.exit_codes():
        # All splits of the output are checked before the first one is copied. The free space is
        # checked before each split.
        copies = [
            _prepared_copy(source, target, name, format, host, display or Display(), changes)
            for name in splits
        ]
        return tuple(copy.run() for copy in copies)


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy of one split from a store to a folder.

    Attributes:
        snapshot: reads the objects of the split.
        manifest: the manifest of the split.
        target: the folder on this host.
        job: the job of the split, with only those formats that are copied.
        numbers: the numbers of the shards that are copied.
        sizes: the bytes of each shard of the whole split, in all copied formats together.
        share: the host's share; None for the whole split.
        advice: what to do if the shares differ much in size; empty if they do not.
        display: receives the progress in bytes.
        changes: whether the command has changed the folder yet.
    """

    snapshot: Snapshot
    manifest: Manifest
    target: LocalStore
    job: JobFile
    numbers: Sequence[int]
    sizes: Sequence[int]
    share: Share | None
    advice: str
    display: Display
    changes: Changes

    def run(self) -> Staged:
        """Copy everything that the folder lacks, and measure the time."""
        started_s = time.monotonic()
        manifest, copied_bytes = self._copy_missing()
        return Staged(
            self.job.split,
            self.target.uri,
            shards=len(self.numbers),
            samples=manifest.samples.written,
            bytes=sum(self.sizes[number] for number in self.numbers),
            copied_bytes=copied_bytes,
            seconds=time.monotonic() - started_s,
            share=self.share,
            advice=self.advice,
        )

    def _copy_missing(self) -> tuple[Manifest, int]:
        """Copy everything that the folder lacks.

        Returns:
            The manifest of the copy, and the bytes of the shards that were copied.
        """
        target, job, sizes = self.target, self.job, self.sizes
        with Locks(target, None, self.display.note) as locks:
            target.prepare()
            locks.take([job.split])
            self._refuse_foreign_files()
            copied_shards = complete_shards(target, job, self.numbers)
            missing = [number for number in self.numbers if number not in copied_shards]
            missing_bytes = sum(sizes[number] for number in missing)
            total_bytes = sum(sizes[number] for number in self.numbers)
            error = not_enough_space(target, missing_bytes)
            if error is not None:
                raise error
            manifest = read_manifest(target, job.split, job)
            is_complete = (
                manifest is not None and manifest.share == self.share and self._has_whole_table()
            )
            if missing or manifest is None or not is_complete:
                self._begin()
                self._copy_shards(missing, missing_bytes, total_bytes)
                manifest = self._complete()
        return manifest, missing_bytes

    def _refuse_foreign_files(self) -> None:
        """Raise OutputConflict if the folder has files of another job or another share."""
        split = self.job.split
        own_keys = {keys.job(split), keys.plan(split), keys.samples(split), keys.manifest(split)}
        if self.share is not None:
            own_keys.add(keys.whole_samples(split))
        for number in self.numbers:
            own_keys.add(keys.receipt(split, number, self.job.shards))
            own_keys.update(keys_of_shard(self.job, number))
        formats = format_names()
        foreign = set()
        for info in self.target.list():
            if info.key not in own_keys and keys.belongs_to(split, info.key, formats):
                foreign.add(info.key)
        job_in_folder = read_job(self.target, split)
        if job_in_folder is not None and job_in_folder.fingerprint != self.job.fingerprint:
            foreign.add(keys.job(split))
        if foreign:
            raise OutputConflict(
                f"{self.target.uri} holds another data set or share of split {split!r}, such as "
                f"{min(foreign)}: give another folder, or remove this folder"
            )

    def _has_whole_table(self) -> bool:
        """Whether the folder has all tables of the whole split that the share needs.

        Only the size of the table is compared. Its SHA-256 is compared when it is copied and read.
        """
        if self.share is None or self.share.table is None:
            return True
        with suppress(ObjectNotFound):
            info = self.target.head(keys.whole_samples(self.job.split))
            return info.bytes == self.share.table.bytes
        return False

    def _copy_whole_table(self) -> None:
        """Copy the table of the whole split, if the share needs it.

        Raises:
            DatasetError: the table is not the one in the manifest.
        """
        if self.share is None or self.share.table is None:
            return
        split, snapshot = self.job.split, self.snapshot
        content = snapshot.get(keys.samples(split))
        digest = hashlib.sha256(content).hexdigest()
        _require_sha256(digest, self.share.table.sha256, snapshot.store, keys.samples(split))
        self.target.put(keys.whole_samples(split), content)

    def _begin(self) -> None:
        """Write labels, plan and job file, and remove an old manifest.

        The manifest is removed before the plan changes. Therefore a folder with a manifest is
        complete at any time.
        """
        target, split = self.target, self.job.split
        target.tidy()
        labels = self.snapshot.get(keys.LABELS)
        if not target.create(keys.LABELS, labels) and target.get(keys.LABELS) != labels:
            raise OutputConflict(
                f"{target.uri} has the labels of another output: give another folder"
            )
        self.changes.begin()
        target.delete(keys.manifest(split))
        target.put(keys.plan(split), self.snapshot.get(keys.plan(split)))
        target.put(keys.job(split), self.job.to_json())

    def _copy_shards(self, missing: Sequence[int], missing_bytes: int, total_bytes: int) -> None:
        """Copy shards, several at the same time, and show the progress.

        Args:
            missing: the numbers of the shards that the folder lacks.
            missing_bytes: the bytes of these shards.
            total_bytes: the bytes of all shards of the copy.

        Raises:
            DatasetError: an object has another SHA-256.
            DatasetChanged: the output was written again since it was opened.
        """
        self.display.start(self.job.split, total_bytes, total_bytes - missing_bytes)
        try:
            for _ in in_order(self._copy_shard, missing, _SHARDS_AT_ONCE):
                pass
        finally:
            self.display.stop()
        self.snapshot.check()

    def _copy_shard(self, number: int) -> None:
        """Copy the objects of a shard, then write its receipt.

        The receipt has only the copied formats. The manifest has the SHA-256 that each shard must
        have.
        """
        job = self.job
        key = keys.receipt(job.split, number, job.shards)
        receipt = Receipt.from_json(self.snapshot.get(key), key)
        formats, records = {}, {}
        for name in job.label_offsets:
            original = receipt.formats[name]
            entry = self.manifest.formats[name].shards[number]
            original_file = replace(original.file, bytes=entry.bytes, sha256=entry.sha256)
            copied_file = self._copy_object(original_file, shows_progress=True)
            copied_indexes = [
                self._copy_object(index, shows_progress=False) for index in original.indexes
            ]
            formats[name] = StoredShard(copied_file, original.records, tuple(copied_indexes))
            records[name] = receipt.samples.records[name]
        samples = replace(receipt.samples, records=records)
        copied_receipt = replace(
            receipt, fingerprint=job.fingerprint, formats=formats, samples=samples
        )
        self.target.put(key, copied_receipt.to_json())

    def _copy_object(self, file: StoredFile, *, shows_progress: bool) -> StoredFile:
        """Copy an object, and compare its SHA-256. Several pieces are fetched at the same time.

        Args:
            file: the object, with its size and the SHA-256 that it must have.
            shows_progress: whether its bytes count in the progress.

        Returns:
            The file in the folder.

        Raises:
            DatasetError: the object has another SHA-256.
        """
        snapshot = self.snapshot

        def fetch(start: int) -> bytes:
            """Read the piece that begins at byte ``start``."""
            return snapshot.get_range(file.key, start, min(_PIECE_BYTES, file.bytes - start))

        def verified_pieces() -> Iterator[bytes]:
            """Yield the pieces of the object. Raise DatasetError at the end if it is damaged."""
            digest = hashlib.sha256()
            for piece in in_order(fetch, range(0, file.bytes, _PIECE_BYTES), _PIECES_AT_ONCE):
                digest.update(piece)
                yield piece
                if shows_progress:
                    self.display.advance(Progress(source_bytes=len(piece)))
            _require_sha256(digest.hexdigest(), file.sha256, snapshot.store, file.key)

        return replace(file, etag=self.target.put_pieces(file.key, verified_pieces()).etag)

    def _complete(self) -> Manifest:
        """Write the table of samples and the manifest; return the manifest."""
        target, job = self.target, self.job
        # Only the table of the whole split has rows for entries that are in no shard.
        entries_in_no_shard = None
        if self.share is None:
            labels = read_labels(target, {job.split: job})
            entries_in_no_shard = read_plan(target, job.split, job).entries_without_shard(labels)
        receipts, table = read_receipts(target, job, self.numbers, entries_in_no_shard)
        formats = format_entries(receipts, job.label_offsets)
        content = table.to_parquet()
        manifest = replace(
            self.manifest,
            fingerprint=job.fingerprint,
            run={**self.manifest.run, "staged_from": self.snapshot.store.uri},
            formats=formats,
            samples=table.counts,
            warnings={**table.warnings(formats), **job.warnings},
            table=TableEntry(len(content), hashlib.sha256(content).hexdigest()),
            share=self.share,
        )
        target.put(keys.samples(job.split), content)
        self._copy_whole_table()
        target.put(keys.manifest(job.split), manifest.to_json())
        return manifest


def _require_sha256(digest: str, expected: str, store: Store, key: str) -> None:
    """Raise DatasetError if the SHA-256 of an object is not the expected one."""
    if digest != expected:
        raise DatasetError(
            f"{location(store, key)} is damaged: its SHA-256 is not the one of its manifest; "
            f"dataprep verify {store.uri} lists all faults"
        )


def _prepared_copy(
    source: Store,
    target: LocalStore,
    split: str,
    format: str | None,
    host: Part | None,
    display: Display,
    changes: Changes,
) -> _Copy:
    """Read the manifest and the job of a split, and choose the shards to copy. Nothing is written.

    The arguments are the same as for ``stage``.

    Raises:
        ManifestMissing: the split does not exist or is not complete.
        FormatMissing: the split does not have the format.
        ConfigError: there are fewer shards than hosts, or the output is a share or lacks its job
            file.
    """
    manifest, snapshot = open_split(source, split)
    job = _job_of_copy(source, manifest, format)
    sizes = [0] * job.shards
    for name in job.label_offsets:
        for number, shard in enumerate(manifest.formats[name].shards):
            sizes[number] += shard.bytes
    numbers: Sequence[int] = range(job.shards)
    share, advice = None, ""
    if host is not None:
        share = share_of_host(manifest, sizes, host)
        numbers = share.shards[host.number]
        advice = advice_on_shares(share, sum(sizes), len(job.label_offsets))
    return _Copy(snapshot, manifest, target, job, numbers, sizes, share, advice, display, changes)


def _job_of_copy(source: Store, manifest: Manifest, format: str | None) -> JobFile:
    """Return the job of a split, with only the chosen format, or with all formats for None.

    Raises:
        FormatMissing: the split does not have the format.
        ConfigError: the output is a share, or lacks the job file.
    """
    split = manifest.split
    if format is not None and format not in manifest.formats:
        raise FormatMissing(
            f"{split} has no format {format!r}: it has {', '.join(manifest.formats)}"
        )
    job = read_job(source, split)
    if job is None or manifest.share is not None:
        raise ConfigError(
            f"{source.uri} is a share, or lacks {keys.job(split)}: stage from the whole output"
        )
    if format is None:
        return job
    return replace(job, label_offsets={format: job.label_offsets[format]})
