"""Odd and broken files, as found in collections of photographs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageCms

from dataprep.sample.drawing import Pixels

_NAMES = (
    *("lower.jpeg", "lower.jpg", "with some spaces.JPEG", "café.JPEG", "漢字.JPEG"),
    *("new\nline.JPEG", "tab\tulator.JPEG", "back\\slash.JPEG"),
    *("<script>alert('x')<script>.JPEG", "bytes-\udcff\udcfe.JPEG"),
)
_CLUTTER = {
    ".DS_Store": b"\x00\x00\x00\x01Bud1" + bytes(64),
    "Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64),
    "README.txt": b"Pictures of one kind of thing.\n",
}


class Defect(NamedTuple):
    """What is odd about a file, and what a job does with it."""

    what: str
    expected: Literal["written", "failed", "skipped"]


def odd_files(image: Pixels) -> Iterator[tuple[str, Defect, bytes | Path]]:
    """Yield name, defect and content of each odd file; of a link, its target.

    Bytes of a name that are not UTF-8 are surrogates, as ``os.fsdecode`` returns them.
    """
    jpeg = _encoded(image, "JPEG")
    for name, what, data in _readable(image, jpeg):
        yield name, Defect(what, "written"), data
    for name, what, content in _unreadable(jpeg):
        yield name, Defect(what, "failed"), content
    for name, data in _CLUTTER.items():
        yield name, Defect("no image", "skipped"), data


def _readable(image: Pixels, jpeg: bytes) -> list[tuple[str, str, bytes]]:
    turned = Image.Exif()
    turned[0x0112] = 6  # the orientation
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = bytes(12)  # the date, which would change the file from day to day
    deep = cv2.imencode(".png", image[..., ::-1].astype(np.uint16) * 257)[1].tobytes()
    frames: dict[str, Any] = {"save_all": True, "append_images": [Image.fromarray(image[::-1])]}
    see_through = np.dstack([image, image[..., 0]])
    return [
        ("cmyk.JPEG", "CMYK JPEG", _encoded(image, "JPEG", "CMYK")),
        ("rgb.JPEG", "JPEG of RGB instead of YCbCr", _encoded(image, "JPEG", keep_rgb=True)),
        ("grey.JPEG", "greyscale JPEG", _encoded(image, "JPEG", "L")),
        ("icc.JPEG", "ICC profile", _encoded(image, "JPEG", icc_profile=bytes(profile))),
        ("turned.JPEG", "EXIF orientation 6", _encoded(image, "JPEG", exif=turned)),
        ("exif.JPEG", "damaged EXIF", _encoded(image, "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff")),
        ("progressive.JPEG", "progressive JPEG", _encoded(image, "JPEG", progressive=True)),
        ("trailing.JPEG", "JPEG followed by rubbish", jpeg + b"rubbish \xff\x00\xff\xd8" * 40),
        ("dot.JPEG", "1 x 1 pixel", _encoded(image[:1, :1], "JPEG")),
        ("wide.JPEG", "8 pixels high", _encoded(np.tile(image[:8], (1, 8, 1)), "JPEG")),
        ("palette.png", "PNG with a palette", _encoded(image, "PNG", "P", transparency=0)),
        ("rgba.png", "PNG with alpha", _encoded(see_through, "PNG", "RGBA")),
        ("rgb16.png", "PNG of 16 bits a channel", deep),
        ("bits.png", "PNG of 1 bit a pixel", _encoded(image, "PNG", "1")),
        ("png.JPEG", "PNG named .JPEG", _encoded(image, "PNG")),
        ("gif.JPEG", "animated GIF named .JPEG", _encoded(image, "GIF", **frames)),
        ("webp.jpg", "WebP named .jpg", _encoded(image, "WEBP")),
        ("bmp.bmp", "BMP", _encoded(image, "BMP")),
        ("tiff.tiff", "TIFF", _encoded(image, "TIFF")),
        *((name, "an odd name", jpeg + bytes(number)) for number, name in enumerate(_NAMES)),
    ]


def _unreadable(jpeg: bytes) -> list[tuple[str, str, bytes | Path]]:
    middle = len(jpeg) // 2
    garbage = b"\xff\xc0" + bytes(range(256))
    frame = jpeg.index(b"\xff\xc0") + 5
    return [
        ("empty.JPEG", "0 bytes", b""),
        ("text.JPEG", "text named .JPEG", b"<html><body>404 Not Found</body></html>\n"),
        ("random.JPEG", "random bytes", np.random.default_rng(0).bytes(5000)),
        ("half.JPEG", "JPEG cut at half its length", jpeg[:middle]),
        ("header.JPEG", "JPEG cut in its header", jpeg[:100]),
        ("garbage.JPEG", "garbage in a JPEG", jpeg[:middle] + garbage + jpeg[middle + 258 :]),
        ("bomb.JPEG", "claims 65,500 x 65,500", jpeg[:frame] + b"\xff\xdc" * 2 + jpeg[frame + 4 :]),
        ("outside.JPEG", "link out of the folder", Path("/etc/passwd")),
        ("nowhere.JPEG", "link to nothing", Path("missing.JPEG")),
        ("cycle", "link to the folder above", Path("..")),
    ]


def _encoded(image: Pixels, kind: str, mode: str = "RGB", **options: Any) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(image).convert(mode).save(sink, kind, **options)
    return sink.getvalue()
