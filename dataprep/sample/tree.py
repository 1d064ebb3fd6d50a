"""Draw an image folder like ImageNet's: DEST/nXXXXXXXX/nXXXXXXXX_N.JPEG.

Odd and broken files, as found in collections of photographs, can be among them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from PIL import Image, ImageCms

from dataprep.errors import Changes, ConfigError
from dataprep.labels.imagenet_synsets import imagenet_synsets
from dataprep.sample.drawing import Pixels, Style, draw_image, draw_photo, draw_style

Expected: TypeAlias = Literal["written", "failed", "skipped"]
"""What a job does with a file."""

_GOLDEN_RATIO = 0.618034
# Streams of random numbers: one for each class, image, defect and held-out image.
_CLASS, _IMAGE, _DEFECT, HELD_OUT = range(4)
_NAMES = (
    *("lower.jpeg", "lower.jpg", "with some spaces.JPEG", "café.JPEG", "漢字.JPEG"),
    *("new\nline.JPEG", "tab\tulator.JPEG", "back\\slash.JPEG"),
    *("<script>alert('x')<script>.JPEG", "bytes-\udcff\udcfe.JPEG"),
)
_CLUTTER = {
    ".DS_Store": b"\0\0\0\1Bud1",
    "Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "README.txt": b"Pictures of one kind of thing.\n",
}


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
    with new_folder(dest, images, classes, seed):
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


@contextmanager
def new_folder(dest: Path, images: int, classes: int, seed: int) -> Iterator[None]:
    """Check the request, and create ``dest``, into which the caller writes."""
    if not 1 <= classes <= min(images, len(imagenet_synsets())) or seed < 0:
        raise ConfigError(
            f"{images:,} images in {classes:,} classes with seed {seed} cannot be drawn: expected "
            "1 to 1,000 classes, an image or more for each, and a seed of 0 or more"
        )
    if dest.exists() and not (dest.is_dir() and not any(dest.iterdir())):
        raise ConfigError(f"{dest} is not an empty folder: name a new or an empty one")
    dest.mkdir(parents=True, exist_ok=True)
    changes = Changes()
    changes.begin()
    with changes.exit_codes():
        yield


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
    image = draw_image((seed, _DEFECT), 360, 270)
    jpeg = _encoded(image)
    readable = _readable(image)
    readable["trailing.JPEG"] = jpeg + b"rubbish \xff\x00\xff\xd8" * 40
    for number, name in enumerate(_NAMES):
        readable[name] = jpeg + bytes(number)
    odd: dict[Expected, Mapping[str, bytes | Path]] = {
        "written": readable,
        "failed": _unreadable(jpeg),
        "skipped": {"link-to-the-folder-above": Path(".."), **_CLUTTER},
    }
    for expected, files in odd.items():
        for name, content in files.items():
            synset = next(folders)
            path = f"{synset}/{name}" if name in _CLUTTER else f"{synset}/{synset}_{name}"
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


def _readable(image: Pixels) -> dict[str, bytes]:
    save = partial(_encoded, image)
    turned = Image.Exif()
    turned[0x0112] = 6  # the orientation
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = bytes(12)  # the date, which would change the file from day to day
    upside_down = Image.fromarray(image[::-1])
    return {
        "cmyk.JPEG": save("JPEG", "CMYK"),
        "rgb.JPEG": save(keep_rgb=True),
        "grey.JPEG": save("JPEG", "L"),
        "icc.JPEG": save(icc_profile=bytes(profile)),
        "turned.JPEG": save(exif=turned),
        "broken-exif.JPEG": save(exif=b"Exif\0\0MM\0*\0\0\0\x08\xff"),
        "progressive.JPEG": save(progressive=True),
        "1x1.JPEG": _encoded(image[:1, :1]),
        "8-pixels-high.JPEG": _encoded(np.tile(image[:8], (1, 8, 1))),
        "palette.png": save("PNG", "P", transparency=0),
        "rgba.png": save("PNG", "RGBA"),
        "16-bits.png": cv2.imencode(".png", image.astype(np.uint16) * 257)[1].tobytes(),
        "1-bit.png": save("PNG", "1"),
        "png.JPEG": save("PNG"),
        "animated-gif.JPEG": save("GIF", save_all=True, append_images=[upside_down]),
        "webp.jpg": save("WEBP"),
        "bmp.bmp": save("BMP"),
        "tiff.tiff": save("TIFF"),
    }


def _unreadable(jpeg: bytes) -> dict[str, bytes | Path]:
    middle = len(jpeg) // 2
    garbage = b"\xff\xc0" + bytes(range(256))
    size = jpeg.index(b"\xff\xc0") + 5
    return {
        "empty.JPEG": b"",
        "text.JPEG": b"<html><body>404 Not Found</body></html>\n",
        "random.JPEG": np.random.default_rng(0).bytes(5000),
        "half.JPEG": jpeg[:middle],
        "only-header.JPEG": jpeg[:100],
        "garbage-inside.JPEG": jpeg[:middle] + garbage + jpeg[middle + 258 :],
        "bomb-of-65500x65500.JPEG": jpeg[:size] + b"\xff\xdc" * 2 + jpeg[size + 4 :],
        "link-out-of-the-folder.JPEG": Path("/etc/passwd"),
        "link-to-nothing.JPEG": Path("missing.JPEG"),
    }


def _encoded(image: Pixels, kind: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(image).convert(mode).save(sink, kind, **options)
    return sink.getvalue()
