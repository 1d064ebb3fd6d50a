"""ILSVRC2012's devkit: ``meta.mat``, alone or in ``ILSVRC2012_devkit_t12.tar.gz``.

``meta.mat`` is a MATLAB 5 file with one struct array ``synsets`` (devkit, ``readme.txt``):
ILSVRC2012_ID, WNID, words, gloss, num_children and more. The 1,000 classes are those without
children; the others stand above them in WordNet.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dataprep.errors import ConfigError
from dataprep.labelling.mat5 import Value, read_structs

META = "meta.mat"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_MOST_BYTES = 64 * 2**20  # the real ones have some hundred kB


@dataclass(frozen=True)
class Meta:
    """ILSVRC2012_ID to synset, and synset to what people call it; the 1,000 classes only."""

    synset_of_id: dict[int, str]
    texts: dict[str, str]


def parse_meta(data: bytes, name: str) -> Meta:
    """What ``meta.mat`` says.

    Raises:
        ConfigError: it is no such file.
    """
    try:
        rows = read_structs(data, "synsets")
        leaves = [row for row in rows if _whole(row, "num_children") == 0]
        synsets = [_text(row, "WNID") for row in leaves]
        ids = {_whole(row, "ILSVRC2012_ID"): one for row, one in zip(leaves, synsets, strict=True)}
        texts = {one: _text(row, "words") for row, one in zip(leaves, synsets, strict=True)}
    except ValueError as error:
        raise ConfigError(f"{name}: not the devkit's meta.mat ({error})") from None
    return Meta(ids, texts)


def _whole(row: Mapping[str, Value], key: str) -> int:
    value = row.get(key)
    if not isinstance(value, tuple) or len(value) != 1 or not float(value[0]).is_integer():
        raise ValueError(f"{key!r} of a class is no whole number")
    return int(value[0])


def _text(row: Mapping[str, Value], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} of a class is no text")  # noqa: TRY004  of a file
    return value


def is_tarball(data: bytes) -> bool:
    """Whether these bytes are compressed by gzip, as the devkit is."""
    return data.startswith(b"\x1f\x8b")


def unpack_devkit(data: bytes, name: str) -> dict[str, bytes]:
    """``meta.mat`` and the ground truth of the tarball, by base name.

    Raises:
        ConfigError: it is no such tarball, or lacks them.
    """
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                base = member.name.rpartition("/")[2]
                if base in (META, GROUND_TRUTH) and member.isfile():
                    found[base] = _content(archive, member)
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError) as error:
        raise ConfigError(f"{name}: cannot be unpacked: {error}") from None
    missing = {META, GROUND_TRUTH} - found.keys()
    if missing:
        raise ConfigError(f"{name}: not the devkit: {', '.join(sorted(missing))} is not in it")
    return found


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.issparse() or not 0 <= member.size <= _MOST_BYTES:
        raise ValueError(f"{member.name} has {member.size:,} bytes")
    file: Any = archive.extractfile(member)
    content: bytes = file.read()
    return content
