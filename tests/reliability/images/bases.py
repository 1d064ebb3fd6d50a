"""Sound files to start from, all drawn here; some need programs that may not be installed."""

from __future__ import annotations

import io
import shutil
import subprocess
from functools import cache

import numpy as np
from PIL import Image

from dataprep.sample import encodings as enc
from dataprep.sample.drawing import Pixels, draw_image
from tests.reliability.images.case import Files

WIDTH, HEIGHT = 56, 40
PROGRAMS = ("cjpeg", "jpegtran", "convert", "cwebp", "exiftool")
_SEPARATE = "0;\n1;\n2;\n"
_FINE = "0 1 2: 0-0, 0, 1;\n0: 1-63, 0, 2;\n1: 1-63, 0, 0;\n2: 1-63, 0, 0;\n"
_FINE += "0: 1-63, 2, 1;\n0 1 2: 0-0, 1, 0;\n0: 1-63, 1, 0;\n"


def missing_programs() -> list[str]:
    """Which of the programs that make odd files are not installed: their files are left out."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def picture(seed: int = 5, width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    """A drawn photograph."""
    return draw_image(seed, width, height, detail=0.3)


def run(*arguments: str, given: bytes = b"") -> bytes | None:
    """What a program writes; None where it is not installed or refuses."""
    if shutil.which(arguments[0]) is None:
        return None
    done = subprocess.run(arguments, input=given, capture_output=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 and done.stdout else None


@cache
def jpegs() -> Files:
    """Sound JPEGs of every kind that is read, each a few hundred bytes to a few thousand."""
    image = picture()
    own = {
        "baseline": enc.jpeg(image),
        "4:4:4": enc.jpeg(image, "444"),
        "4:1:1": enc.jpeg(image, "411"),
        "grey": enc.grey_jpeg(image),
        "progressive": enc.pillow(image, "JPEG", quality=70, progressive=True),
        "progressive grey": enc.pillow(image, "JPEG", "L", quality=70, progressive=True),
        "restarts": enc.pillow(image, "JPEG", quality=70, restart_marker_blocks=2),
        "RGB": enc.adobe_rgb_jpeg(image),
        "CMYK": enc.plain_cmyk_jpeg(image),
        "Adobe CMYK": enc.adobe_cmyk_jpeg(image),
        "YCCK": enc.ycck_jpeg(image),
        "ICC": enc.icc_jpeg(image),
        "Exif": enc.oriented_jpeg(image, 6),
        "arithmetic, small": enc.arithmetic_jpeg(),
    }
    return {**own, **_by_programs(image)}


def _by_programs(image: Pixels) -> Files:
    ppm = enc.pillow(image, "PPM")
    made = {
        "arithmetic": run("cjpeg", "-arithmetic", given=ppm),
        "arithmetic progressive": run("cjpeg", "-arithmetic", "-progressive", given=ppm),
        "4:2:2 with restarts": run("cjpeg", "-sample", "2x1", "-restart", "1", given=ppm),
        "4x2": run("cjpeg", "-sample", "4x2", given=ppm),
        "separate scans": run("cjpeg", "-scans", _script(_SEPARATE), given=ppm),
        "fine scans": run("cjpeg", "-scans", _script(_FINE), given=ppm),
        "coarse 1-bit tables": run("cjpeg", "-quality", "1", "-optimize", given=ppm),
        "turned by jpegtran": run("jpegtran", "-rotate", "90", given=enc.jpeg(image)),
        "ImageMagick's": run("convert", "ppm:-", "-sampling-factor", "2x2", "jpg:-", given=ppm),
    }
    return {name: data for name, data in made.items() if data}


@cache
def _script(text: str) -> str:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile("w", suffix=".scans", delete=False) as file:
        file.write(text)
    return file.name


@cache
def others() -> Files:
    """Sound images in other containers."""
    image = picture()
    alpha = Image.fromarray(image).convert("RGBA")
    alpha.putalpha(128)
    made = {
        "PNG": enc.pillow(image, "PNG"),
        "PNG with a palette": enc.palette_png(image),
        "PNG with alpha": saved(alpha, "PNG"),
        "PNG of 16 bits": enc.deep_png(image, grey=False),
        "grey PNG of 16 bits": enc.deep_png(image, grey=True),
        "PNG of 1 bit": enc.pillow(image, "PNG", "1"),
        "APNG": _frames(image, "PNG"),
        "GIF": enc.pillow(image, "GIF"),
        "animated GIF": enc.animated_gif(image),
        "BMP": enc.pillow(image, "BMP"),
        "BMP with a palette": enc.pillow(image, "BMP", "P"),
        "TIFF": enc.pillow(image, "TIFF"),
        "TIFF by LZW": enc.pillow(image, "TIFF", compression="tiff_lzw"),
        "TIFF by Deflate": enc.pillow(image, "TIFF", compression="tiff_adobe_deflate"),
        "TIFF with JPEG": enc.pillow(image, "TIFF", compression="jpeg"),
        "TIFF of fax": enc.pillow(image, "TIFF", "1", compression="group4"),
        "TIFF of 16 bits": saved(Image.fromarray(image[:, :, 0].astype(np.uint16) * 257), "TIFF"),
        "WebP": enc.pillow(image, "WEBP"),
        "lossless WebP": saved(alpha, "WEBP", lossless=True),
        "animated WebP": _frames(image, "WEBP"),
        "PPM": enc.pillow(image, "PPM"),
        "JPEG 2000": enc.pillow(image, "JPEG2000"),
        "AVIF": enc.pillow(image, "AVIF"),
        "WebP by cwebp": run(
            "cwebp", "-quiet", "-o", "-", "--", "-", given=enc.pillow(image, "PNG")
        ),
    }
    return {name: data for name, data in made.items() if data}


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    """The image in a format of Pillow's."""
    sink = io.BytesIO()
    image.save(sink, kind, **options)
    return sink.getvalue()


def _frames(image: Pixels, kind: str) -> bytes:
    rolled = [Image.fromarray(np.roll(image, 9 * i, axis=1)) for i in range(3)]
    return saved(rolled[0], kind, save_all=True, append_images=rolled[1:], duration=40)
