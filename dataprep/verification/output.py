"""Re-reads what was stored and holds it against receipts, manifest and table of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from dataprep import keys
from dataprep.errors import ManifestMissing, ObjectNotFound, RecordError, StoreError
from dataprep.job.jobfile import JobFile
from dataprep.receipt import Receipt
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.verification.faults import Depth, Fault, Verification
from dataprep.verification.shards import ShardCheck, quick_faults
from dataprep.verification.tables import expected_keys, out_of_bounds, table_faults


def verify(
    output: str,
    split: str | None = None,
    *,
    depth: Depth = "full",
    workers: int = 1,
    options: StoreOptions | None = None,
    on_shard: Callable[[int], None] | None = None,
) -> tuple[Verification, ...]:
    """Verify one split of an output, or all of them.

    ``quick`` compares sizes and ETags and reads receipts; ``full`` reads every shard: hashes,
    framing, CRCs, indexes; ``deep`` also decodes every image and compares labels and sizes.

    Args:
        output: a path or URI.
        split: which one; all where none is named.
        depth: how far to go.
        workers: threads; hashes and codecs release the GIL.
        options: endpoint, profile and the like.
        on_shard: called with the bytes of each shard that was checked.

    Raises:
        ManifestMissing: there is no such split, or nothing at all.
        StoreError: the store cannot be read.
    """
    store = open_store(output, options)
    splits = splits_in(store)
    if split is not None and split not in splits:
        raise ManifestMissing(f"no split {split!r} in {store.uri!r}: it has {', '.join(splits)}")
    return tuple(
        verify_split(store, name, depth, workers, on_shard)
        for name in ([split] if split else splits)
    )


def splits_in(store: Store) -> list[str]:
    """The splits that an output holds, complete or not, sorted.

    Raises:
        ManifestMissing: there is no job at all.
    """
    try:
        found = sorted({s for info in store.list() if (s := keys.split_of_job(info.key))})
    except StoreError as error:
        error.exit_code = 2  # nothing to verify can be reached: the request was wrong
        raise
    if not found:
        raise ManifestMissing(f"no data set in {store.uri!r}: no *.job.json there")
    return found


def verify_split(
    store: Store,
    split: str,
    depth: Depth,
    workers: int,
    on_shard: Callable[[int], None] | None,
) -> Verification:
    """Verify one split; see ``verify``."""
    job = JobFile.from_json(store.get(keys.job(split)), keys.job(split))
    sizes = {info.key: info.bytes for info in store.list() if keys.belongs_to(split, info.key)}
    faults: list[Fault] = []
    receipts = list(_receipts(store, job, faults))

    def one(receipt: Receipt) -> list[Fault]:
        found = list(quick_faults(store, receipt, sizes))
        if depth != "quick":
            found.extend(ShardCheck(store, receipt, job, depth).faults())
        if on_shard:
            on_shard(sum(stored.file.bytes for stored in receipt.formats.values()))
        return found

    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(one, receipts):
            faults.extend(found)
    faults.extend(table_faults(store, job, receipts))
    strangers = sorted(sizes.keys() - expected_keys(job, receipts))
    faults.extend(Fault(key, "does not belong to this data set") for key in strangers)
    stored = [entry for receipt in receipts for entry in receipt.formats.values()]
    return Verification(
        output=store.uri,
        split=split,
        depth=depth,
        shards=len(stored),
        records=sum(entry.records for entry in stored),
        bytes=sum(entry.file.bytes for entry in stored),
        faults=tuple(faults),
        remarks=tuple(out_of_bounds(receipts)),
    )


def _receipts(store: Store, job: JobFile, faults: list[Fault]) -> Iterator[Receipt]:
    """The receipts that are there and sound; what is wrong with others goes to ``faults``."""
    for shard in range(job.shards):
        key = keys.receipt(job.split, shard, job.shards)
        try:
            receipt = Receipt.from_json(store.get(key), key)
        except ObjectNotFound:
            faults.append(Fault(key, "missing: this shard was never finished; run shard again"))
            continue
        except RecordError as error:
            faults.append(Fault(key, str(error)))
            continue
        if receipt.fingerprint != job.fingerprint:
            faults.append(Fault(key, "belongs to another job"))
        yield receipt
