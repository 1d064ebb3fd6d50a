"""PURE. Which files are shards, of which format and split: by their names and first bytes.

``train-00000-of-00128`` (customary), ``imagenet2012-train.tfrecord-00000-of-01024`` (TFDS),
``train_0.rec`` (im2rec with ``--chunks``), ``val.rec``, ``anything.tfrecord``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from dataprep.errors import SourceError
from dataprep.formats.recordio import MAGIC
from dataprep.formats.tfrecord import masked_crc32c

Format = Literal["tfrecord", "recordio"]

NUMBERED = re.compile(r"[-_.](\d{5,})-of-(\d{5,})(?=$|\.)")
"""The number of a shard and how many there are, in its name."""

_EXTENSION = re.compile(r"\.(tfrecords?|tfrec|rec)(?=$|[-_.]\d{5,}-of-\d{5,}$|\.gz$)")
_PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_INDEX = (".idx", ".lst", ".json", ".txt", ".index", ".parquet", ".tsv", ".csv")
_ALIASES = {"val": "validation", "valid": "validation", "training": "train", "eval": "validation"}


def is_shard_name(key: str) -> bool:
    """Whether a file of this name is expected to hold records."""
    name = key.rpartition("/")[2]
    if name.startswith(".") or name.endswith(_INDEX):
        return False
    return bool(NUMBERED.search(name) or _EXTENSION.search(name))


def split_of(key: str) -> str:
    """The split that a shard's name tells: what is left of it without numbers and extension."""
    stem = _EXTENSION.sub("", NUMBERED.sub("", key.rpartition("/")[2]))
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
