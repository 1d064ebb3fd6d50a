"""Draw an image folder like ImageNet's: DEST/nXXXXXXXX/nXXXXXXXX_N.JPEG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dataprep.errors import ConfigError
from dataprep.labels.imagenet_synsets import imagenet_synsets
from dataprep.sample.defects import Expected, odd_files
from dataprep.sample.drawing import Style, draw_image, draw_photo, draw_style

_GOLDEN_RATIO = 0.618034
# Streams of random numbers: one for each class, image, defect and held-out image.
_CLASS, _IMAGE, _DEFECT, HELD_OUT = range(4)


class SampleTree(NamedTuple):
    """What was drawn.

    Attributes:
        root: the folder.
        images: sound images, of ``bytes`` in all.
        classes: class folders.
        bytes: of the sound images.
        defects: what a job does with each odd or broken file, by its path below ``root``.
    """

    root: Path
    images: int
    classes: int
    bytes: int
    defects: Mapping[str, Expected]


def draw_tree(
    dest: Path, *, images: int = 200, classes: int = 10, seed: int = 0, defects: bool = False
) -> SampleTree:
    """Draw ``images`` JPEGs into ``classes`` folders below ``dest``, the same for the same seed.

    Args:
        dest: a new or empty folder.
        images: how many, at least one for each class.
        classes: 1 to 1,000.
        seed: 0 or more.
        defects: whether to add odd and broken files.

    Raises:
        ConfigError: a number is out of range, or ``dest`` is not empty.
        OSError: ``dest`` cannot be written.
    """
    create_folder(dest, images, classes, seed)
    styles = class_styles(seed, classes)
    for synset in styles:
        (dest / synset).mkdir()
    total_bytes = 0
    for number, (synset, style) in zip(range(images), cycle(styles.items()), strict=False):
        rng = np.random.default_rng((seed, _IMAGE, number))
        # Numbers have gaps, as ImageNet's do.
        name = f"{synset}_{number // classes * 16 + rng.integers(1, 17)}.JPEG"
        total_bytes += (dest / synset / name).write_bytes(draw_photo(rng, style))
    odd = _add_defects(dest, styles, seed) if defects else {}
    return SampleTree(dest, images, classes, total_bytes, odd)


def create_folder(dest: Path, images: int, classes: int, seed: int) -> None:
    """Check the request, and create ``dest``."""
    if not 1 <= classes <= min(images, len(imagenet_synsets())) or seed < 0:
        raise ConfigError(
            f"{images:,} images in {classes:,} classes with seed {seed} cannot be drawn: expected "
            "1 to 1,000 classes, an image or more for each, and a seed of 0 or more"
        )
    if dest.exists() and not (dest.is_dir() and not any(dest.iterdir())):
        raise ConfigError(f"{dest} is not an empty folder: name a new or an empty one")
    dest.mkdir(parents=True, exist_ok=True)


def class_styles(seed: int, classes: int) -> dict[str, Style]:
    """Return the style of each class, by synset; hues are far apart."""
    return {
        synset: draw_style((seed, _CLASS, number), hue=number * _GOLDEN_RATIO % 1)
        for number, synset in enumerate(imagenet_synsets()[:classes])
    }


def _add_defects(dest: Path, synsets: Iterable[str], seed: int) -> dict[str, Expected]:
    """Write odd files, each into the next folder; return what a job does with them by path."""
    written: dict[str, Expected] = {}
    folders = cycle(synsets)
    for expected, files in odd_files(draw_image((seed, _DEFECT), 360, 270)).items():
        for name, content in files.items():
            synset = next(folders)
            path = f"{synset}/{name}" if expected == "skipped" else f"{synset}/{synset}_{name}"
            try:
                if isinstance(content, Path):
                    (dest / path).symlink_to(content)
                else:
                    (dest / path).write_bytes(content)
                written[path] = expected
            except OSError:  # file systems of macOS refuse names that are not UTF-8
                if name.isascii():
                    raise
    return written
