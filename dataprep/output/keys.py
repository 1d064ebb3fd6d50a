"""PURE. The keys of the objects in an output, and the limits of the size of a shard."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LABELS = "labels.json"
"""The key of the labels, which all splits share."""

# The limits of the size of a shard, 1 MB and 128 MB. A job aims at sizes between them.
MIN_SHARD_BYTES = 1_000_000
MAX_SHARD_BYTES = 128_000_000

# Patterns for parts of keys: the name of a split, and the numbers of a shard and of all shards.
_SPLIT = r"[A-Za-z0-9_]+"
_NUMBERS = r"-\d{5,}-of-\d{5,}"
# The files that show that a split was begun. A plan is not among them, because it is written before
# the job file.
_FILE_OF_BEGUN_SPLIT = re.compile(
    rf"(?P<split>{_SPLIT})\.(job\.json|manifest\.json|samples\.parquet)"
    rf"|receipts/(?P<split_of_receipt>{_SPLIT}){_NUMBERS}\.json"
)


def numbered(split: str, shard: int, shards: int) -> str:
    """Return the name of a shard, such as ``train-00003-of-00012``.

    Numbers have five digits, or as many as ``shards`` needs.

    Args:
        split: the name of the split.
        shard: the number of the shard, from 0.
        shards: the number of shards of the split.
    """
    digits = max(5, len(str(shards)))
    return f"{split}-{shard:0{digits}}-of-{shards:0{digits}}"


def data(format_name: str, extension: str, split: str, shard: int, shards: int) -> str:
    """Return the key of a shard. The folder of a format contains nothing but shards."""
    return f"{format_name}/{numbered(split, shard, shards)}{extension}"


def index(format_name: str, extension: str, split: str, shard: int, shards: int) -> str:
    """Return the key of an index of a shard, with the extension ``.idx`` or ``.lst``."""
    return f"index/{format_name}/{numbered(split, shard, shards)}{extension}"


def index_of(shard_key: str, extension: str) -> str:
    """Return the key of an index of the shard with the key ``shard_key``."""
    folder, _, name = shard_key.rpartition("/")
    return f"index/{folder}/{name.partition('.')[0]}{extension}"


def shard_number(key: str) -> int:
    """Return the number of the shard that a key contains, from 0.

    The key is that of a shard, an index or a receipt. An IndexError is raised for other keys.
    """
    return int(re.findall(r"-(\d{5,})-of-", key)[-1])


def split_of_shard(name: str) -> str | None:
    """Return the split in the name of a shard; None for a name that no shard can have.

    The name is a key without its folder, with or without an extension.
    """
    match = re.match(rf"({_SPLIT}){_NUMBERS}", name)
    return match[1] if match else None


def receipt(split: str, shard: int, shards: int) -> str:
    """Return the key of a receipt, which is written after its shard is stored and checked."""
    return f"receipts/{numbered(split, shard, shards)}.json"


def job(split: str) -> str:
    """Return the key of the job file, which records everything that determines a split's bytes."""
    return f"{split}.job.json"


def plan(split: str) -> str:
    """Return the key of the plan, which assigns source samples to shards."""
    return f"{split}.plan.parquet"


def samples(split: str) -> str:
    """Return the key of the table of samples, which has a row for each source sample."""
    return f"{split}.samples.parquet"


def whole_samples(split: str) -> str:
    """Return the key of the table of samples of the whole split.

    Only a copy of one host's share (``dataprep stage``) has it.
    """
    return f"{split}.whole-samples.parquet"


def manifest(split: str) -> str:
    """Return the key of the manifest. It is written last, so that it marks a complete split."""
    return f"{split}.manifest.json"


def split_of_job(key: str) -> str | None:
    """Return the split whose job file has this key; None if it is not the key of a job file."""
    match = re.fullmatch(rf"({_SPLIT})\.job\.json", key)
    return match[1] if match else None


def splits(stored_keys: Iterable[str]) -> set[str]:
    """Return the splits that jobs have begun in an output with these keys.

    A plan alone does not count. A split whose job file was lost counts, because its other files
    show that it was begun.
    """
    begun = set()
    for key in stored_keys:
        match = _FILE_OF_BEGUN_SPLIT.fullmatch(key)
        if match:
            begun.add(match["split"] or match["split_of_receipt"])
    return begun


def belongs_to(split: str, key: str, format_names: Collection[str]) -> bool:
    """Return whether an object is one of the files of a split.

    These are its shards, indexes and receipts, its job file, plan and manifest, and its tables of
    samples. The labels belong to no split.

    Args:
        split: the name of the split.
        key: the key of the object.
        format_names: the names of the formats in whose folders shards and indexes are expected.
    """
    folder, _, name = key.rpartition("/")
    if not folder:
        files = (job(split), manifest(split), plan(split), samples(split), whole_samples(split))
        return name in files
    if folder.removeprefix("index/") not in {"receipts", *format_names}:
        return False
    pattern = rf"{re.escape(split)}{_NUMBERS}(\.[^.]+)?"
    return re.fullmatch(pattern, name) is not None
