"""Odd and broken files, as found in collections of photographs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import cv2
import numpy as np
from PIL import Image, ImageCms

from dataprep.sample.drawing import Pixels

Expected: TypeAlias = Literal["written", "failed", "skipped"]
"""What a job does with a file."""

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


def odd_files(image: Pixels) -> Mapping[Expected, Mapping[str, bytes | Path]]:
    """Make odd files by what a job does with them and by name; of a link, its target.

    Bytes of a name that are not UTF-8 are surrogates, as ``os.fsdecode`` returns them.
    """
    jpeg = _encoded(image)
    readable = _readable(image)
    readable["trailing.JPEG"] = jpeg + b"rubbish \xff\x00\xff\xd8" * 40
    for number, name in enumerate(_NAMES):
        readable[name] = jpeg + bytes(number)
    return {"written": readable, "failed": _unreadable(jpeg), "skipped": _CLUTTER}


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
        "link-to-the-folder-above": Path(".."),
    }


def _encoded(image: Pixels, kind: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(image).convert(mode).save(sink, kind, **options)
    return sink.getvalue()
