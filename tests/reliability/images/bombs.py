"""Small files that are large images, or claim to be; and those that are all width or height."""

from __future__ import annotations

import struct
import zlib
from functools import cache

import numpy as np
from PIL import Image

from dataprep.sample import encodings as enc
from tests.reliability.images.bases import picture, saved
from tests.reliability.images.case import (
    ANY,
    CORRUPT,
    REFUSED,
    TOO_LARGE,
    WRITTEN,
    Case,
    Cases,
    Files,
)
from tests.reliability.images.containers import chunk, png
from tests.reliability.images.parts import with_segments

SIDE = 9_459
"""The largest square of 89,478,485 pixels, which is as many as are decoded by default."""


def beyond(files: Files, rng: np.random.Generator) -> Cases:
    """Headers that claim more than the limit: refused before a pixel is decoded."""
    for side in (9_460, 20_000, 65_500, 65_535):
        if side < 65_535:
            yield Case("pixel bombs", f"JPEG of {side}", enc.bomb_jpeg(picture(), side), TOO_LARGE)
        yield Case("pixel bombs", f"PNG of {side}", enc.bomb_png(side), TOO_LARGE)
        yield Case("pixel bombs", f"GIF of {side}", _gif(side, side), TOO_LARGE)
        yield Case("pixel bombs", f"BMP of {side}", _bmp(side, side), TOO_LARGE)
        yield Case("pixel bombs", f"TIFF of {side}", _tiff(side, side), TOO_LARGE)
        yield Case("pixel bombs", f"PPM of {side}", b"P6 %d %d 255\n" % (side, side), TOO_LARGE)
        yield Case(
            "pixel bombs",
            f"WebP of {side}",
            _webp(side, side),
            TOO_LARGE if side < 16_384 else REFUSED,
        )
    for side in (2**31 - 1, 2**32 - 1):
        yield Case("pixel bombs", f"PNG of {side}", _claims_png(side, side), REFUSED)
        yield Case("pixel bombs", f"PNG of {side} x 1", _claims_png(side, 1), REFUSED)
        yield Case("pixel bombs", f"BMP of {side}", _bmp(side, side), REFUSED)
        yield Case("pixel bombs", f"TIFF of {side}", _tiff(side, side), REFUSED)
    yield Case(
        "pixel bombs",
        "JPEG 2000 of 65,535 tiles",
        saved(Image.new("L", (255, 257)), "JPEG2000", tile_size=(1, 1)),
    )


def just_below(files: Files, rng: np.random.Generator) -> Cases:
    """As many pixels as the limit allows, sound, in a few kilobytes: decoded, in bounded memory."""
    for what, data in _largest().items():
        yield Case("largest images", what, data, WRITTEN)
    beyond = saved(Image.new("RGB", (SIDE, SIDE)), "JPEG2000")
    yield Case("largest images", f"JPEG 2000 of {SIDE}", beyond, TOO_LARGE)
    for side in (SIDE,):
        for what, data in (
            ("JPEG", enc.bomb_jpeg(picture(), side)),
            ("PNG", _claims_png(side, side)),
            ("BMP", _bmp(side, side)),
            ("TIFF", _tiff(side, side)),
            ("WebP", _webp(side, side)),
            ("PPM", b"P6 %d %d 255\n" % (side, side)),
        ):
            yield Case("largest images", f"{what}, hardly any pixels of {side}", data, REFUSED)


@cache
def _largest() -> Files:
    size = (SIDE, SIDE)
    made = {
        f"PNG of {depth} bits, colour type {colour}": png(SIDE, SIDE, depth, colour)
        for depth, colour in ((16, 0), (16, 2), (8, 3), (8, 6))
    }
    made["WebP with alpha"] = saved(Image.new("RGBA", size, (9, 8, 7, 6)), "WEBP", lossless=True)
    made["JPEG 2000"] = saved(Image.new("RGB", (7_700, 7_700), (9, 8, 7)), "JPEG2000")
    made["progressive JPEG"] = saved(Image.new("L", size, 9), "JPEG", quality=20, progressive=True)
    made["GIF"] = saved(Image.new("1", size), "GIF")
    made["TIFF"] = saved(Image.new("1", size), "TIFF", compression="group4")
    return made


def thin(files: Files, rng: np.random.Generator) -> Cases:
    """1 x 1, 1 x 65,500, 65,535 x 1 and the like, sound."""
    sizes = (
        (1, 1),
        (1, 2),
        (2, 1),
        (8, 1),
        (1, 9),
        (3, 17),
        (1, 4_000),
        (4_000, 1),
        (1, 65_500),
        (65_500, 1),
        (65_500, 16),
    )
    for width, height in sizes:
        image = Image.fromarray(np.resize(picture(), (height, width, 3)).astype(np.uint8))
        for kind, options in (
            ("JPEG", {"quality": 60}),
            ("JPEG", {"quality": 60, "progressive": True}),
            ("PNG", {}),
            ("BMP", {}),
            ("GIF", {}),
            ("TIFF", {"compression": "tiff_adobe_deflate"}),
            ("WEBP", {}),
        ):
            if kind == "WEBP" and max(width, height) > 16_383:
                continue
            if kind == "BMP" and width * height > 100_000:
                continue
            data = saved(image, kind, **options)
            what = (
                f"{kind} of {width} x {height}{', progressive' if 'progressive' in options else ''}"
            )
            yield Case("extreme aspect", what, data, WRITTEN)
    yield Case("extreme aspect", "PNG of 65,535 x 1", png(65_535, 1, 8, 2), ANY)
    yield Case("extreme aspect", "PNG of 1 x 65,535", png(1, 65_535, 8, 2), ANY)


def packed(files: Files, rng: np.random.Generator) -> Cases:
    """Zip bombs in a PNG's profile and texts; frames, pages and segments by the thousand."""
    squeezed = zlib.compress(bytes(60_000_000), 9)
    for what, kind, content, allowed in (
        ("profile", b"iCCP", b"x\0\0" + squeezed, CORRUPT),
        ("text", b"zTXt", b"x\0\0" + squeezed, WRITTEN),
        ("text in Unicode", b"iTXt", b"x\0\x01\0\0\0" + squeezed, WRITTEN),
    ):
        data = png(8, 8, 8, 2, more=chunk(kind, content))
        yield Case("zip bombs", f"PNG's {what}", data, allowed, ".png")
    data = png(8, 8, 8, 2, pixels=bytes(60_000_000))
    yield Case("zip bombs", "PNG's pixels: 60 MB for 8 x 8", data, ANY, ".png")
    texts = b"".join(chunk(b"tEXt", b"key%d\0x" % i) for i in range(9_000))
    yield Case("parts by the thousand", "PNG of 9,000 texts", png(8, 8, 8, 2, more=texts), WRITTEN)
    yield Case("parts by the thousand", "GIF of 40,000 frames", _gif_frames(40_000), WRITTEN)
    yield Case("parts by the thousand", "TIFF of 20,000 pages", _tiff_pages(20_000), WRITTEN)
    yield Case(
        "parts by the thousand", "TIFF whose pages go in a circle", _tiff_pages(3, last=70), WRITTEN
    )
    plain = files["baseline"]
    comments = with_segments(plain, [(0xFE, b"")] * 60_000)
    yield Case("parts by the thousand", "JPEG of 60,000 comments", comments, WRITTEN)
    yield Case(
        "parts by the thousand",
        "JPEG of 2 million fill bytes",
        plain[:2] + b"\xff" * 2_000_000 + plain[2:],
        WRITTEN,
    )
    yield Case(
        "parts by the thousand",
        "JPEG of 500,000 stuffed bytes",
        plain[:2] + b"\xff\0" * 500_000 + plain[2:],
    )


def _claims_png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(1_000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def _gif(width: int, height: int) -> bytes:
    size = struct.pack("<HH", width, height)
    return b"GIF89a" + size + b"\x80\0\0" + bytes(6) + b"," + bytes(4) + size + b"\0\2\2\x4c\1\0;"


def _gif_frames(count: int) -> bytes:
    """Frames of one pixel each: LZW's clear code, 0, and its end, in codes of 3 bits."""
    frame = b",\0\0\0\0\1\0\1\0\0\2\2D\1\0"
    return b"GIF89a\1\0\1\0\x80\0\0" + bytes(6) + frame * count + b";"


def _bmp(width: int, height: int) -> bytes:
    info = struct.pack("<IIIHHIIIIII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 1_000, 0, 0, 54) + info + bytes(900)


def _page(width: int, height: int, following: int) -> bytes:
    short, long = 3, 4
    tags = (
        *((256, long, width), (257, long, height), (258, short, 8), (259, short, 1)),
        *((262, short, 1), (273, long, 8), (277, short, 1), (278, long, height), (279, long, 64)),
    )
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)


def _tiff(width: int, height: int) -> bytes:
    return b"II*\0" + struct.pack("<I", 72) + bytes(64) + _page(width, height, 0)


def _tiff_pages(count: int, last: int = 0) -> bytes:
    size = len(_page(8, 8, 0))
    pages = [_page(8, 8, 72 + size * (i + 1) if i < count - 1 else last) for i in range(count)]
    return b"II*\0" + struct.pack("<I", 72) + bytes(64) + b"".join(pages)


def _webp(width: int, height: int) -> bytes:
    """A lossless WebP's header over no pixels (RFC 9649, 3.4); 14 bits a side."""
    bits = (width - 1 & 0x3FFF) | (height - 1 & 0x3FFF) << 14
    body = b"VP8L" + struct.pack("<I", 30) + b"\x2f" + struct.pack("<I", bits) + bytes(25)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body
