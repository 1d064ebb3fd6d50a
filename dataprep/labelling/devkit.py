"""ILSVRC2012's devkit: ``meta.mat``, alone or in ``ILSVRC2012_devkit_t12.tar.gz``.

``meta.mat`` is a MATLAB 5 file with one struct array ``synsets`` (devkit, ``readme.txt``):
ILSVRC2012_ID, WNID, words, gloss, num_children and more. The 1,000 classes are those without
children; the others stand above them in WordNet.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass
from typing import Any

from dataprep.errors import ConfigError

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
    from scipy.io import loadmat  # takes a third of a second to import

    try:
        content = loadmat(io.BytesIO(data), squeeze_me=True, struct_as_record=True)
        rows = content["synsets"].reshape(-1)
        leaves = [row for row in rows if int(row["num_children"]) == 0]
        ids = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in leaves}
        texts = {str(row["WNID"]): str(row["words"]) for row in leaves}
    except Exception as error:  # noqa: BLE001  SciPy raises whatever it likes over other bytes
        raise ConfigError(
            f"{name}: not the devkit's meta.mat ({type(error).__name__}: {error})"
        ) from None
    return Meta(ids, texts)


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
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise ConfigError(f"{name}: cannot be unpacked: {error}") from None
    missing = {META, GROUND_TRUTH} - found.keys()
    if missing:
        raise ConfigError(f"{name}: not the devkit: {', '.join(sorted(missing))} is not in it")
    return found


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > _MOST_BYTES:
        raise ValueError(f"{member.name} has {member.size:,} bytes")
    file: Any = archive.extractfile(member)
    content: bytes = file.read()
    return content
