"""PURE. The class of each sample, by its name, from the files in which it is told.

Line i of the devkit's ``ILSVRC2012_validation_ground_truth.txt`` is the ILSVRC2012_ID of
``ILSVRC2012_val_%08d.JPEG``, which is no alphabetical index (devkit, ``readme.txt``); line i of
``synset_labels.txt`` is its synset; Kaggle's ``LOC_val_solution.csv`` has a row an image, whose
second column begins with its synset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from dataprep.errors import ConfigError
from dataprep.labelling.tables import Pair, csv_cells, once, pairs, text_of
from dataprep.labels import is_synset

_KAGGLE = "ImageId,PredictionString"


def stem(name: str) -> str:
    """What the ground truth calls a sample: its base name without the extension."""
    base = PurePosixPath(name).name
    return base[: -len(suffix)] if (suffix := PurePosixPath(base).suffix) else base


def needs_meta(data: bytes, name: str) -> bool:
    """Whether the classes are ILSVRC2012_IDs, which ``meta.mat`` explains."""
    return _are_ids(_lines(text_of(data, name)))


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
    lines = _lines(text_of(data, name))
    if _are_ids(lines):
        if synset_of_id is None:
            raise ConfigError(
                f"{name}: its classes are ILSVRC2012_IDs: give labels.meta, the devkit's meta.mat"
            )
        return {
            _validation(number): _known(synset_of_id, line, f"{name}, line {number}")
            for number, line in _of_images(lines, name)
        }
    if any(lines) and all(is_synset(line) for line in lines if line):
        return {_validation(number): line for number, line in _of_images(lines, name)}
    if lines and lines[0].replace('"', "") == _KAGGLE:
        return once(list(_kaggle(lines[1:], name)), name)
    found = pairs(data, name)
    if not found or not all(row.value for row in found):
        raise ConfigError(f"{name}: expected a sample and its class in each line, as a,b")
    return once(found, name)


def _lines(text: str) -> list[str]:
    """All lines up to the last that is not empty."""
    return [line.strip() for line in text.rstrip().splitlines()]


def _are_ids(lines: Sequence[str]) -> bool:
    return any(lines) and all(line.isascii() and line.isdigit() for line in lines if line)


def _of_images(lines: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    """The number of each image from 1, and the line that tells its class."""
    for number, line in enumerate(lines, start=1):
        if not line:
            raise ConfigError(
                f"{name}, line {number}: empty, but line {number} tells the class of "
                f"{_validation(number)}: put it there, or take the line out"
            )
        yield number, line


def _validation(number: int) -> str:
    return f"ILSVRC2012_val_{number:08d}"


def _known(synset_of_id: Mapping[int, str], number: str, where: str) -> str:
    try:
        return synset_of_id[int(number)]
    except KeyError:
        raise ConfigError(f"{where}: meta.mat has no class with the ID {number}") from None


def _kaggle(lines: Sequence[str], name: str) -> Iterator[Pair]:
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        image, *prediction = csv_cells(line, f"{name}, line {number}")
        synset = " ".join(prediction).split(" ", 1)[0].strip()
        if not is_synset(synset):
            raise ConfigError(f"{name}, line {number}: {synset[:20]!r} is not a synset")
        yield Pair(f"line {number}", image.strip(), synset)
