"""Read what an output already holds: job files, plans, labels, receipts and the manifest.

This module writes nothing. It also determines which shards are complete. ``resume.py`` decides
whether a job can be resumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from dataprep.errors import (
    CorruptRecord,
    DatasetError,
    ObjectNotFound,
    OutputConflict,
    SchemaTooNew,
)
from dataprep.formats import get_format
from dataprep.job.job_file import JobFile
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.output.receipt import Receipt, Row
from dataprep.stores import Store
from dataprep.threaded_map import in_order

_STORE_THREADS = 16
"""The number of requests at a time. Each of them mostly waits for the answer of the store."""


@dataclass(frozen=True)
class StoredJobs:
    """The stored jobs of some splits of an output.

    Attributes:
        store: the output.
        jobs: the job file of each of these splits, by the name of the split.
        label_space: the labels, which all splits share.
        plans: the plan of each of these splits.
    """

    store: Store
    jobs: Mapping[str, JobFile]
    label_space: LabelSpace
    plans: Mapping[str, SplitPlan]


def read_job(store: Store, split: str) -> JobFile | None:
    """Return the job file of a split; None if there is none.

    Raises:
        OutputConflict: the job file is damaged.
        SchemaTooNew: a newer version wrote the job file.
        StoreError: the job file could not be read.
    """
    key = keys.job(split)
    try:
        return JobFile.from_json(store.get(key), key)
    except ObjectNotFound:
        return None
    except SchemaTooNew:  # a DatasetError that says already what to do
        raise
    except DatasetError as error:
        raise OutputConflict(
            f"{error}: it is unknown which job made the shards in {store.uri}. Restore {key}, "
            "use another --output, or --overwrite to start again"
        ) from None


def read_labels(store: Store, jobs: Mapping[str, JobFile]) -> LabelSpace:
    """Return the labels of the output, which are those of all its jobs.

    Args:
        store: the output.
        jobs: the job file of at least one split.

    Raises:
        OutputConflict: the labels are missing, or a job was planned with other labels.
    """
    digests = {job.labels_sha256 for job in jobs.values()}
    return LabelSpace.from_json(_read_unchanged(store, keys.LABELS, digests))


def read_plan(store: Store, split: str, job: JobFile) -> SplitPlan:
    """Return the stored plan of a split, whose job file is ``job``.

    Raises:
        OutputConflict: the plan is missing, or is not the plan of this job.
    """
    key = keys.plan(split)
    return SplitPlan.from_parquet(_read_unchanged(store, key, {job.plan_sha256}), key)


def _read_unchanged(store: Store, key: str, digests: Set[str]) -> bytes:
    """Return the bytes of an object if they have the SHA-256 that all job files record.

    Args:
        store: the output.
        key: the key of the object.
        digests: the different values of its SHA-256 in the job files, as hexadecimal digits.

    Raises:
        OutputConflict: the object is missing or empty, or a job file has another SHA-256.
    """
    try:
        data = store.get(key)
    except ObjectNotFound:
        data = b""
    if digests != {hashlib.sha256(data).hexdigest()}:
        problem = "was changed since the job was planned" if data else "is missing"
        raise OutputConflict(
            f"{key} in {store.uri} {problem}: put it back, use another --output, or --overwrite to "
            "start again"
        )
    return data


def read_manifest(store: Store, split: str, job: JobFile) -> Manifest | None:
    """Return the manifest of a split; None if it cannot be used.

    It can be used if it belongs to the job, and if the table of samples is stored with the size
    that the manifest names. A damaged manifest counts as missing, because it can be made again from
    the receipts. Whether the shards are stored is not checked.

    Raises:
        SchemaTooNew: a newer version wrote the manifest.
        StoreError: the manifest could not be read.
    """
    key = keys.manifest(split)
    try:
        manifest = Manifest.from_json(store.get(key), key)
        table = store.head(keys.samples(split))
    except SchemaTooNew:
        raise
    except (ObjectNotFound, DatasetError):
        return None
    if manifest.fingerprint != job.fingerprint:
        return None
    # Manifests of earlier versions do not describe the table.
    if manifest.table and manifest.table.bytes != table.bytes:
        return None
    return manifest


def keys_of_shard(job: JobFile, shard: int) -> Iterator[str]:
    """Yield the keys of a shard and of its indexes in each format, without its receipt."""
    for name in job.label_offsets:
        record_format = get_format(name)
        yield keys.data(name, record_format.extension, job.split, shard, job.shards)
        for extension in record_format.indexes([]):  # an empty index has the same extension
            yield keys.index(name, extension, job.split, shard, job.shards)


def shards_with_receipt(store: Store, job: JobFile) -> set[int]:
    """Return the numbers of the shards whose receipts the store lists. No receipt is read."""
    listed_keys = {info.key for info in store.list(f"receipts/{job.split}-")}
    shards = range(job.shards)
    return {shard for shard in shards if keys.receipt(job.split, shard, job.shards) in listed_keys}


def complete_shards(store: Store, job: JobFile, among: Iterable[int] | None = None) -> list[int]:
    """Return the numbers of the complete shards, which a run need not make again.

    A shard is complete if its receipt is stored and belongs to the job, and if every object that
    the receipt names is stored with the same size and ETag. A listing may still contain objects
    that were removed. Therefore each listed receipt is read, and the size of each object is
    requested. No shard is read.

    Args:
        store: the output.
        job: the job of the split.
        among: the numbers of the shards to check; None for all shards. The result has their order.

    Raises:
        SchemaTooNew: a newer version wrote a receipt.
        StoreError: a receipt could not be read.
    """
    listed_shards = shards_with_receipt(store, job)

    def check(shard: int) -> tuple[int, bool]:
        return shard, shard in listed_shards and _is_complete(store, job, shard)

    shards = range(job.shards) if among is None else among
    checked = in_order(check, shards, _STORE_THREADS)
    return [shard for shard, is_complete in checked if is_complete]


def _is_complete(store: Store, job: JobFile, shard: int) -> bool:
    """Whether the receipt belongs to the job, and all files of the shard are stored as it says.

    The receipt must name the files that the job expects, and each file must have the size and the
    ETag in the receipt.
    """
    try:
        receipt = _read_receipt(store, job, shard)
        if receipt.fingerprint != job.fingerprint:
            return False
        if {file.key for file in receipt.files} != set(keys_of_shard(job, shard)):
            return False
        for file in receipt.files:
            info = store.head(file.key)
            if info.bytes != file.bytes:
                return False
            # A store may have no ETags, now or when the receipt was written.
            if file.etag and info.etag and file.etag != info.etag:
                return False
    except (ObjectNotFound, CorruptRecord):
        return False
    return True


def _read_receipt(store: Store, job: JobFile, shard: int) -> Receipt:
    """Read the receipt of a shard.

    Raises:
        ObjectNotFound: it is not stored.
        CorruptRecord: it is damaged.
        SchemaTooNew: a newer version wrote it.
    """
    key = keys.receipt(job.split, shard, job.shards)
    return Receipt.from_json(store.get(key), key)


def rows_of_shard(store: Store, job: JobFile, shard: int) -> Sequence[Row]:
    """Return the rows of a shard's samples; no rows if its receipt is missing or damaged."""
    try:
        return _read_receipt(store, job, shard).rows
    except (ObjectNotFound, CorruptRecord):
        return []


def failures_by_shard(store: Store, job: JobFile) -> dict[int, int]:
    """Return the number of failed samples of each shard that has some, by the shard's number.

    A shard whose receipt is missing or damaged is left out.
    """

    def count_failures(shard: int) -> int:
        return sum(row.status == "failed" for row in rows_of_shard(store, job, shard))

    counts = in_order(count_failures, range(job.shards), _STORE_THREADS)
    return {shard: count for shard, count in enumerate(counts) if count}
