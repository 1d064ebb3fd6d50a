"""PURE. The class of each sample, by its name, from the files in which it is told.

Line i of the devkit's ``ILSVRC2012_validation_ground_truth.txt`` is the ILSVRC2012_ID of
``ILSVRC2012_val_%08d.JPEG``, which is no alphabetical index (devkit, ``readme.txt``); line i of
``synset_labels.txt`` is its synset; Kaggle's ``LOC_val_solution.csv`` has a row an image, whose
second column begins with its synset.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from dataprep.errors import ConfigError
from dataprep.labelling.tables import once, pairs, text_of
from dataprep.labels import is_synset

_KAGGLE = "ImageId,PredictionString"


def stem(name: str) -> str:
    """What the ground truth calls a sample: its base name without the extension."""
    base = PurePosixPath(name).name
    return base[: -len(suffix)] if (suffix := PurePosixPath(base).suffix) else base


def needs_meta(data: bytes, name: str) -> bool:
    """Whether the classes are ILSVRC2012_IDs, which ``meta.mat`` explains."""
    lines = text_of(data, name).split()
    return bool(lines) and all(line.isascii() and line.isdigit() for line in lines)


def parse_ground_truth(
    data: bytes, name: str, synset_of_id: Mapping[int, str] | None = None
) -> dict[str, str]:
    """Sample to class; samples as ``stem`` calls them, or as they stand in a table.

    Args:
        data: the file.
        name: of the file, for errors.
        synset_of_id: ILSVRC2012_ID to synset, where the file holds such numbers.

    Raises:
        ConfigError: with the line.
    """
    text = text_of(data, name)
    lines = text.splitlines()
    if needs_meta(data, name):
        if synset_of_id is None:
            raise ConfigError(
                f"{name}: its classes are ILSVRC2012_IDs: give labels.meta, the devkit's meta.mat"
            )
        return {
            _validation(number): _known(synset_of_id, line.strip(), f"{name}, line {number}")
            for number, line in enumerate(lines, start=1)
            if line.strip()
        }
    if lines and lines[0].strip() == _KAGGLE:
        return _kaggle(lines[1:], name)
    if lines and all(is_synset(line.strip()) for line in lines if line.strip()):
        return {_validation(number): line.strip() for number, line in enumerate(lines, start=1)}
    found = once(pairs(data, name), name)
    nameless = next((key for key, value in found.items() if not value), None)
    if nameless is not None or not found:
        raise ConfigError(f"{name}: expected a sample and its class in each line, as a,b")
    return found


def _validation(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def _known(synset_of_id: Mapping[int, str], number: str, where: str) -> str:
    try:
        return synset_of_id[int(number)]
    except KeyError:
        raise ConfigError(f"{where}: meta.mat has no class with the ID {number}") from None


def _kaggle(lines: list[str], name: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        image, _, prediction = line.partition(",")
        synset = prediction.split(" ", 1)[0].strip()
        if not is_synset(synset):
            raise ConfigError(f"{name}, line {number}: {synset[:20]!r} is not a synset")
        found[image.strip()] = synset
    return found
