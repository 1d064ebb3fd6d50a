"""PURE. The objects of an output: their names, and how large shards are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LABELS = "labels.json"
MIN_SHARD_BYTES = 1_000_000
MAX_SHARD_BYTES = 128_000_000
_OF_A_SPLIT = re.compile(
    r"(?P<split>[A-Za-z0-9_]+)\.(job\.json|manifest\.json|samples\.parquet)"
    r"|receipts/(?P<shard_of>[A-Za-z0-9_]+)-\d{5,}-of-\d{5,}\.json"
)


def numbered(split: str, shard: int, shards: int) -> str:
    """``train-00003-of-00012``: five digits, or as many as ``shards`` needs."""
    digits = max(5, len(str(shards)))
    return f"{split}-{shard:0{digits}}-of-{shards:0{digits}}"


def data(format_name: str, extension: str, split: str, shard: int, shards: int) -> str:
    """A shard. Its folder holds nothing else."""
    return f"{format_name}/{numbered(split, shard, shards)}{extension}"


def index(format_name: str, extension: str, split: str, shard: int, shards: int) -> str:
    """A file beside a shard: ``.idx`` or ``.lst``."""
    return f"index/{format_name}/{numbered(split, shard, shards)}{extension}"


def index_of(shard_key: str, extension: str) -> str:
    """The file beside the shard with this key: ``.idx`` or ``.lst``."""
    folder, _, name = shard_key.rpartition("/")
    return f"index/{folder}/{name.partition('.')[0]}{extension}"


def shard_number(key: str) -> int:
    """The number of the shard in a key."""
    return int(re.findall(r"-(\d{5,})-of-", key)[-1])


def split_of_shard(name: str) -> str | None:
    """The split of a shard by its name without a folder, if it is called like one."""
    match = re.match(r"([A-Za-z0-9_]+)-\d{5,}-of-\d{5,}", name)
    return match[1] if match else None


def receipt(split: str, shard: int, shards: int) -> str:
    """Written when a shard is stored and checked."""
    return f"receipts/{numbered(split, shard, shards)}.json"


def job(split: str) -> str:
    """What will be made of what."""
    return f"{split}.job.json"


def plan(split: str) -> str:
    """Which source sample goes into which shard."""
    return f"{split}.plan.parquet"


def samples(split: str) -> str:
    """One row a source sample."""
    return f"{split}.samples.parquet"


def whole_samples(split: str) -> str:
    """In a host's share: the table of samples of the whole split."""
    return f"{split}.whole-samples.parquet"


def manifest(split: str) -> str:
    """Written last; its presence means complete."""
    return f"{split}.manifest.json"


def split_of_job(key: str) -> str | None:
    """The split whose job file ``key`` is, if it is one."""
    match = re.fullmatch(r"([A-Za-z0-9_]+)\.job\.json", key)
    return match[1] if match else None


def splits(found: Iterable[str]) -> set[str]:
    """The splits of which there is more among these keys than a plan, which a job begins with.

    A split whose job file was lost is one of them.
    """
    matches = (match for key in found if (match := _OF_A_SPLIT.fullmatch(key)))
    return {match["split"] or match["shard_of"] for match in matches}


def belongs_to(split: str, key: str, format_names: Collection[str]) -> bool:
    """Whether ``key`` is an object of this split: shard, index, receipt or table."""
    folder, _, name = key.rpartition("/")
    if not folder:
        tables = (plan(split), samples(split), whole_samples(split))
        return name in (job(split), manifest(split), *tables)
    return (
        folder.removeprefix("index/") in {"receipts", *format_names}
        and re.fullmatch(rf"{re.escape(split)}-\d{{5,}}-of-\d{{5,}}(\.[^.]+)?", name) is not None
    )
