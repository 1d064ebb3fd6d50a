"""Draw images into class folders, as in ImageNet: DEST/nXXXXXXXX/nXXXXXXXX_N.JPEG.

Unusual and broken files, as they occur in real image collections, can be added.
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

from dataprep.drawn.drawing import Pixels, Style, draw_image, draw_photo, draw_style
from dataprep.errors import Changes, ConfigError
from dataprep.labels.imagenet_synsets import imagenet_synsets

Outcome: TypeAlias = Literal["written", "failed", "skipped"]
"""The status that a job gives to the sample of a file."""

_GOLDEN_RATIO = 0.618034
# The second number of a seed distinguishes the seeds of classes, images, defects, and images that
# are held out for validation.
_CLASS = 0
_IMAGE = 1
_DEFECT = 2
HELD_OUT = 3

_UNUSUAL_NAMES = (
    "lower.jpeg",
    "lower.jpg",
    "with some spaces.JPEG",
    "café.JPEG",
    "漢字.JPEG",
    "new\nline.JPEG",
    "tab\tulator.JPEG",
    "back\\slash.JPEG",
    "<script>alert('x')<script>.JPEG",
    "bytes-\udcff\udcfe.JPEG",
)
_OTHER_FILES = {
    ".DS_Store": b"\0\0\0\1Bud1",
    "Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "README.txt": b"Pictures of one kind of thing.\n",
}


class SampleTree(NamedTuple):
    """A description of the drawn files.

    Attributes:
        root: the folder that contains them.
        images: the number of ordinary images.
        classes: the number of class folders.
        bytes: the size of all ordinary images together.
        defects: the expected outcome for each unusual or broken file, by its path below ``root``.
    """

    root: Path
    images: int
    classes: int
    bytes: int
    defects: Mapping[str, Outcome]


def draw_tree(
    dest: Path, *, images: int = 200, classes: int = 10, seed: int = 0, defects: bool = False
) -> SampleTree:
    """Draw JPEGs into class folders. The same seed gives the same files.

    Args:
        dest: a new or empty folder.
        images: the number of images, at least one for each class.
        classes: the number of classes, 1 to 1,000.
        seed: the seed, 0 or more.
        defects: whether unusual and broken files are added.

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
            # The numbers in the names have gaps, as in ImageNet.
            name = f"{synset}_{number // classes * 16 + rng.integers(1, 17)}.JPEG"
            total_bytes += (dest / synset / name).write_bytes(draw_photo(rng, style))
        outcomes = _add_defects(dest, styles, seed) if defects else {}
        return SampleTree(dest, images, classes, total_bytes, outcomes)


@contextmanager
def new_folder(dest: Path, images: int, classes: int, seed: int) -> Iterator[None]:
    """Check the arguments and create the folder ``dest``, into which the caller writes.

    Raises:
        ConfigError: a number is out of range, or ``dest`` is not empty.
    """
    if not 1 <= classes <= min(images, len(imagenet_synsets())) or seed < 0:
        raise ConfigError(
            f"{images:,} images in {classes:,} classes with seed {seed} cannot be drawn: expected "
            "1 to 1,000 classes, at least one image for each class, and a seed of 0 or more"
        )
    is_empty_folder = dest.is_dir() and not any(dest.iterdir())
    if dest.exists() and not is_empty_folder:
        raise ConfigError(f"{dest} is not an empty folder: use a new or an empty folder")
    dest.mkdir(parents=True, exist_ok=True)
    changes = Changes()
    changes.begin()
    with changes.exit_codes():
        yield


def class_styles(seed: int, classes: int) -> dict[str, Style]:
    """The colours of each class, by its synset. Successive classes get hues that are far apart."""
    return {
        synset: draw_style((seed, _CLASS, number), hue=number * _GOLDEN_RATIO % 1)
        for number, synset in enumerate(imagenet_synsets()[:classes])
    }


def _add_defects(dest: Path, synsets: Iterable[str], seed: int) -> dict[str, Outcome]:
    """Write unusual and broken files, and distribute them over the class folders.

    Returns:
        The expected outcome for each file, by its path.
    """
    outcome_by_path: dict[str, Outcome] = {}
    folders = cycle(synsets)
    image = draw_image((seed, _DEFECT), 360, 270)
    jpeg = _encoded(image)
    readable = _unusual_files(image)
    readable["trailing.JPEG"] = jpeg + b"rubbish \xff\x00\xff\xd8" * 40
    for number, name in enumerate(_UNUSUAL_NAMES):
        readable[name] = jpeg + bytes(number)
    files_by_outcome: dict[Outcome, Mapping[str, bytes | Path]] = {
        "written": readable,
        "failed": _broken_files(jpeg),
        "skipped": {"link-to-the-folder-above": Path(".."), **_OTHER_FILES},
    }
    for outcome, files in files_by_outcome.items():
        for name, content in files.items():
            synset = next(folders)
            file_name = name if name in _OTHER_FILES else f"{synset}_{name}"
            path = f"{synset}/{file_name}"
            try:
                if isinstance(content, Path):
                    (dest / path).symlink_to(content)
                else:
                    (dest / path).write_bytes(content)
                outcome_by_path[path] = outcome
            except OSError:
                # File systems of macOS refuse names that are not UTF-8.
                if name.isascii():
                    raise
    return outcome_by_path


def _unusual_files(image: Pixels) -> dict[str, bytes]:
    """Unusual files that can be converted, by the last parts of their names."""
    save = partial(_encoded, image)
    turned = Image.Exif()
    turned[0x0112] = 6  # the orientation
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = bytes(12)  # clear the date, so that the file is the same every day
    upside_down = Image.fromarray(image[::-1])
    _, png_of_16_bits = cv2.imencode(".png", image.astype(np.uint16) * 257)
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
        "16-bits.png": png_of_16_bits.tobytes(),
        "1-bit.png": save("PNG", "1"),
        "png.JPEG": save("PNG"),
        "animated-gif.JPEG": save("GIF", save_all=True, append_images=[upside_down]),
        "webp.jpg": save("WEBP"),
        "bmp.bmp": save("BMP"),
        "tiff.tiff": save("TIFF"),
    }


def _broken_files(jpeg: bytes) -> dict[str, bytes | Path]:
    """Files and links that cannot be converted, by the last parts of their names."""
    middle = len(jpeg) // 2
    garbage = b"\xff\xc0" + bytes(range(256))
    size_offset = jpeg.index(b"\xff\xc0") + 5  # where the header has the height and the width
    huge_size = b"\xff\xdc" * 2  # 65,500 pixels, twice
    return {
        "empty.JPEG": b"",
        "text.JPEG": b"<html><body>404 Not Found</body></html>\n",
        "random.JPEG": np.random.default_rng(0).bytes(5000),
        "half.JPEG": jpeg[:middle],
        "only-header.JPEG": jpeg[:100],
        "garbage-inside.JPEG": jpeg[:middle] + garbage + jpeg[middle + 258 :],
        "bomb-of-65500x65500.JPEG": jpeg[:size_offset] + huge_size + jpeg[size_offset + 4 :],
        "link-out-of-the-folder.JPEG": Path("/etc/passwd"),
        "link-to-nothing.JPEG": Path("missing.JPEG"),
    }


def _encoded(image: Pixels, container: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    """Encode an image with Pillow."""
    content = io.BytesIO()
    Image.fromarray(image).convert(mode).save(content, container, **options)
    return content.getvalue()
