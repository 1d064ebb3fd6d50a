"""PURE. Which files are shards, of which format and split: by their names and first bytes.

``train-00000-of-00128`` (customary), ``imagenet2012-train.tfrecord-00000-of-01024`` (TFDS),
``train_0.rec`` (im2rec with ``--chunks``), ``val.rec``, ``anything.tfrecord``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Literal, NamedTuple

from dataprep.counted import counted
from dataprep.errors import SourceError
from dataprep.formats.crc import masked_crc32c
from dataprep.formats.recordio import MAGIC

Format = Literal["tfrecord", "recordio"]

_NUMBERED = re.compile(r"[-_.](\d{5,})-of-(\d{5,})(?=$|\.)")
_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_INDEX = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_ALIASES = {"val": "validation", "valid": "validation", "training": "train", "eval": "validation"}


def is_shard_name(key: str) -> bool:
    """Whether a file of this name is expected to hold records."""
    name = key.rpartition("/")[2]
    if name.startswith(".") or name.endswith(_INDEX):
        return False
    return bool(_NUMBERED.search(name) or _EXTENSION.search(name))


def split_of(key: str) -> str:
    """The split that a shard's name tells: what is left of it without numbers and extension."""
    stem = _EXTENSION.sub("", _NUMBERED.sub("", key.rpartition("/")[2]))
    return re.sub(r"[-_.]\d+$", "", stem)


def of_split(keys: Iterable[str], split: str, where: str) -> list[str]:
    """Those shards that are of ``split``, sorted; all of them where they name one split only.

    Raises:
        SourceError: they name several splits, and this one is none of them, or more than one.
    """
    groups: dict[str, list[str]] = {}
    for key in sorted(keys):
        groups.setdefault(split_of(key), []).append(key)
    if len(groups) <= 1:
        return [key for group in groups.values() for key in group]
    wanted = _ALIASES.get(split, split)
    fitting = [name for name in groups if _names(name, wanted)]
    if len(fitting) == 1:
        return groups[fitting[0]]
    shown = ", ".join(repr(name) for name in sorted(groups)[:8])
    raise SourceError(
        f"{where} holds shards of several splits, {shown}, and which of them is {split!r} cannot "
        "be told: name one with --set records.split=NAME"
    )


def _names(group: str, split: str) -> bool:
    if group == split:
        return True
    return any(_ALIASES.get(word, word) == split for word in re.split(r"[-_.]", group.lower()))


class _Number(NamedTuple):
    """Which shard of how many, in a set whose names are the same but for that."""

    alike: str
    shard: int
    total: int


def is_numbered(key: str) -> bool:
    """Whether a name tells the number of a shard and how many there are."""
    return _number(key) is not None


def require_one_set(chosen: Iterable[str], where: str) -> None:
    """Refuse shards of several sets under one name, such as one of 1 and six of 6.

    Raises:
        SourceError: it names one of each set.
    """
    first: dict[str, tuple[str, int]] = {}
    for key, number in _numbers(chosen):
        before, total = first.setdefault(number.alike, (key, number.total))
        if total != number.total:
            raise SourceError(
                f"{where} holds shards of several sets, as {before!r} and {key!r} tell, in which "
                "the same samples may be: move one set elsewhere"
            )


def require_whole(chosen: Iterable[str], present: Iterable[str], where: str) -> None:
    """Refuse numbered shards of which some are missing; they count from 0 or from 1.

    Args:
        chosen: those that are to be read, of one set under each name.
        present: all files, among them empty shards.
        where: where they lie, for the error.

    Raises:
        SourceError: it counts those that are missing and names the first.
    """
    there: dict[tuple[str, int], set[int]] = {}
    for _, number in _numbers(present):
        there.setdefault((number.alike, number.total), set()).add(number.shard)
    for key, number in _numbers(chosen):
        total, shards = number.total, there[number.alike, number.total]
        if len(shards) < total:
            begin = 1 if total in shards else 0
            lost = next(each for each in count(begin) if each not in shards)
            raise SourceError(
                f"{where} lacks {total - len(shards):,} of {counted(total, 'shard')}, such as "
                f"{_renumbered(key, lost)!r}: put what is missing there, or read what there is "
                "with --set records.incomplete=true"
            )


def _numbers(keys: Iterable[str]) -> Iterator[tuple[str, _Number]]:
    for key in keys:
        if (number := _number(key)) is not None:
            yield key, number


def _number(key: str) -> _Number | None:
    found = _NUMBERED.search(key)
    if found is None:
        return None
    return _Number(key[: found.start()] + key[found.end() :], int(found[1]), int(found[2]))


def _renumbered(key: str, shard: int) -> str:
    return _NUMBERED.sub(lambda found: f"{found[0][0]}{shard:05}-of-{found[2]}", key)


def format_of(head: bytes, name: str) -> Format:
    """The format of a shard that begins with ``head``, of 12 bytes at least.

    Raises:
        SourceError: compressed, or neither format.
    """
    if head.startswith(MAGIC):
        return "recordio"
    if len(head) >= 12 and masked_crc32c(head[:8]) == int.from_bytes(head[8:12], "little"):
        return "tfrecord"
    if head.startswith(_PACKED):
        raise SourceError(
            f"{name} is compressed as a whole (GZIP or ZLIB), so that no record in it can be "
            "found by its place: write the shards again without compression, or decompress them "
            "(gzip -d)"
        )
    raise SourceError(
        f"{name} begins neither as TFRecord nor as RecordIO: it is damaged, or no shard"
    )


def one_format(formats: Sequence[Format], where: str) -> Format:
    """The format that all have. Raises SourceError."""
    if len(set(formats)) == 1:
        return formats[0]
    raise SourceError(
        f"{where} holds shards of both formats: choose with --set records.format=tfrecord or "
        "recordio"
    )
