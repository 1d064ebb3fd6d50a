"""PURE. ILSVRC2012's devkit, and other files that give the class of each validation image.

- Line i of the devkit's ``ILSVRC2012_validation_ground_truth.txt`` is the ILSVRC2012_ID of
  ``ILSVRC2012_val_%08d.JPEG``. These IDs are not in alphabetical order: ``meta.mat`` maps them to
  synsets.
- Line i of ``synset_labels.txt`` is the synset of that image.
- Kaggle's ``LOC_val_solution.csv`` has a row an image; its second column begins with the synset.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from dataprep.errors import ConfigError
from dataprep.labels.class_files import Row, two_columns
from dataprep.labels.space import is_synset

META = "meta.mat"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_KAGGLE = ("ImageId", "PredictionString")
_DAMAGED = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError)


def is_tarball(data: bytes) -> bool:
    """Whether a file is compressed by gzip, as the devkit is."""
    return data.startswith(b"\x1f\x8b")


def unpacked(data: bytes, wanted: str, name: str) -> bytes:
    """Return a file as it is; of the devkit's tarball the member with the base name ``wanted``.

    Raises:
        ConfigError: the tarball is damaged, or lacks the member.
    """
    if not is_tarball(data):
        return data
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file and PurePosixPath(member.name).name == wanted:
                    return file.read()
    except _DAMAGED as error:
        raise ConfigError(f"{name} cannot be unpacked: {error}") from None
    raise ConfigError(f"{name} is not the devkit: it has no {wanted}")


def has_ids(rows: Sequence[Row]) -> bool:
    """Whether a ground truth consists of ILSVRC2012_IDs, which need ``meta.mat``."""
    return bool(rows) and all(len(cells) == 1 and str(cells[0]).isdecimal() for _, cells in rows)


def ground_truth(rows: Sequence[Row], name: str, meta: Sequence[Row]) -> dict[str, str]:
    """Return the class of each sample, by its name in a table or by its name without extension.

    Args:
        rows: the content of the file.
        name: the name of the file in errors.
        meta: the content of ``meta.mat``, or nothing.

    Raises:
        ConfigError: a row gives no class; the error names it.
    """
    if rows and rows[0].cells == _KAGGLE:
        return two_columns([_without_boxes(row) for row in rows[1:]])
    if not rows or len(rows[0].cells) > 1:
        found = two_columns(rows)
        if not found or not all(found.values()):
            raise ConfigError(f"{name}: expected a sample and its class in each line, as in a,b")
        return found
    known = {str(cells[0]): str(cells[1]) for _, cells in meta}
    classes = {}
    for number, (place, cells) in enumerate(rows, start=1):
        image = f"ILSVRC2012_val_{number:08d}"
        if not place.endswith(f" {number}"):
            raise ConfigError(f"{name}, line {number} is empty, but gives the class of {image}")
        classes[image] = _synset(str(cells[0]), known, place)
    return classes


def _without_boxes(row: Row) -> Row:
    """Return a row of Kaggle's table without the boxes behind the synset."""
    synset = str(row.cells[-1]).partition(" ")[0]
    return Row(row.place, (row.cells[0], _synset(synset, {}, row.place)))


def _synset(value: str, known: Mapping[str, str], where: str) -> str:
    synset = known.get(value, value)
    if not is_synset(synset):
        raise ConfigError(f"{where}: {value[:20]!r} is neither a synset nor an ID in meta.mat")
    return synset
