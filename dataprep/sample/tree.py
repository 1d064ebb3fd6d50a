"""Writing the images as an image folder: DEST/nXXXXXXXX/nXXXXXXXX_N.JPEG."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from dataprep.errors import ConfigError, PermissionRefused, StoreError, StoreFull
from dataprep.sample.defects import Defect, Link, recipes
from dataprep.sample.drawing import Style, draw_image, draw_style
from dataprep.sample.shots import draw_shot, encode_shot

# The first of ILSVRC2012; those after them are made up.
_FIRST_SYNSETS = (
    *("n01440764", "n01443537", "n01484850", "n01491361", "n01494475"),
    *("n01496331", "n01498041", "n01514668", "n01514859", "n01518878"),
)
_MAX_CLASSES = 100_000
_GOLDEN_RATIO = 0.618034
# Streams of random numbers: one a class, one an image, one a defect, one an image held out.
_CLASS, _IMAGE, _DEFECT, _HELD_OUT = range(4)
# How file systems refuse a name, or links altogether.
_REFUSED = {errno.EILSEQ, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.ENAMETOOLONG}


@dataclass(frozen=True, slots=True)
class SampleTree:
    """What was drawn: ``images`` sound ones of ``bytes`` in all, in ``classes`` folders.

    ``defects`` maps the path of each odd or broken file, relative to ``root`` and with ``/``, to
    what is wrong with it; ``left_out`` those that the file system refused, to its words.
    """

    root: Path
    images: int
    classes: int
    bytes: int
    defects: Mapping[str, Defect] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def draw_tree(
    dest: Path,
    *,
    images: int = 200,
    classes: int = 10,
    seed: int = 0,
    defects: bool = False,
    on_image: Callable[[int], None] | None = None,
) -> SampleTree:
    """Draw ``images`` JPEGs into ``classes`` folders below ``dest``, the same for the same seed.

    ``defects`` adds odd and broken files to them. ``on_image`` is called after each sound image
    with the number of those written. Raises ConfigError where the request cannot be, and
    StoreError where ``dest`` cannot be written.
    """
    _check(images, classes, seed)
    synsets = synset_ids(classes)
    styles = class_styles(seed, classes)
    with writing(dest):
        claim(dest)
        for synset in synsets:
            (dest / synset).mkdir()
    total_bytes = 0
    for number in range(images):
        label = number % classes
        rng = _rng(seed, _IMAGE, number)
        # Numbers have gaps, as ImageNet's do.
        name = f"{synsets[label]}_{number // classes * 16 + int(rng.integers(1, 17))}.JPEG"
        data = _draw_jpeg(rng, styles[label])
        with writing(dest):
            (dest / synsets[label] / name).write_bytes(data)
        total_bytes += len(data)
        if on_image is not None:
            on_image(number + 1)
    written, refused = _write_defects(dest, synsets, styles, seed) if defects else ({}, {})
    return SampleTree(
        root=dest,
        images=images,
        classes=classes,
        bytes=total_bytes,
        defects=MappingProxyType(written),
        left_out=MappingProxyType(refused),
    )


def synset_ids(count: int) -> list[str]:
    """Name ``count`` classes: ``n`` and eight digits, in rising order."""
    made_up = range(1_530_000 + 137, 99_999_999, 137)
    return [*_FIRST_SYNSETS, *(f"n{number:08}" for number in made_up[:count])][:count]


def class_styles(seed: int, classes: int) -> list[Style]:
    """The style of each class."""
    return [
        draw_style(_rng(seed, _CLASS, number), hue=number * _GOLDEN_RATIO % 1.0)
        for number in range(classes)
    ]


def held_out_jpeg(seed: int, number: int, style: Style) -> bytes:
    """An image of a class that is in no tree, the same for the same seed and number."""
    return _draw_jpeg(_rng(seed, _HELD_OUT, number), style)


def _check(images: int, classes: int, seed: int) -> None:
    if images < 1:
        raise ConfigError(f"images is {images}; ask for 1 or more")
    if not 1 <= classes <= _MAX_CLASSES:
        raise ConfigError(f"classes is {classes}; ask for 1 to {_MAX_CLASSES}")
    if classes > images:
        raise ConfigError(
            f"{images} images cannot fill {classes} classes; ask for more images or fewer classes"
        )
    if seed < 0:
        raise ConfigError(f"seed is {seed}; take 0 or more")


def claim(dest: Path) -> None:
    """Make ``dest`` an empty folder; raises ConfigError where it holds something."""
    if dest.exists() and not dest.is_dir():
        raise ConfigError(f"{dest} is a file; name a new or empty folder")
    dest.mkdir(parents=True, exist_ok=True)
    if any(dest.iterdir()):
        raise ConfigError(f"{dest} is not empty; name a new or empty folder, or empty it first")


@contextmanager
def writing(dest: Path) -> Iterator[None]:
    """What goes wrong while writing, in words that say what to do."""
    try:
        yield
    except PermissionError as error:
        refused = PermissionRefused(f"no right to write in {dest}; name another folder")
        refused.exit_code = 2
        raise refused from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no space left for {dest}; free some, or ask for fewer") from error
        raise StoreError(f"cannot write in {dest} ({error}); name another folder") from error


def _rng(seed: int, stream: int, number: int) -> np.random.Generator:
    return np.random.default_rng((seed, stream, number))


def _draw_jpeg(rng: np.random.Generator, style: Style) -> bytes:
    shot = draw_shot(rng)
    return encode_shot(draw_image(rng, shot.width, shot.height, style), shot)


def _write_defects(
    dest: Path, synsets: list[str], styles: list[Style], seed: int
) -> tuple[dict[str, Defect], dict[str, str]]:
    written: dict[str, Defect] = {}
    refused: dict[str, str] = {}
    for number, recipe in enumerate(recipes()):
        label = number % len(synsets)
        rng = _rng(seed, _DEFECT, number)
        image = draw_image(rng, *recipe.size, styles[label])
        path = f"{synsets[label]}/{recipe.name.format(synset=synsets[label])}"
        content = recipe.make(image, rng)
        with writing(dest):
            try:
                _put(dest / path, content)
            except (OSError, UnicodeEncodeError) as error:
                if isinstance(error, OSError) and error.errno not in _REFUSED:
                    raise
                refused[path] = str(error)
            else:
                written[path] = recipe.defect
    return written, refused


def _put(path: Path, content: bytes | Link) -> None:
    if isinstance(content, Link):
        path.symlink_to(content.target)
    else:
        path.write_bytes(content)
