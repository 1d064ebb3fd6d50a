"""Files of other containers: named .JPEG, cut, with broken chunks, and no images at all."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from tests.reliability.images.bases import others
from tests.reliability.images.case import ANY, NO_IMAGE, REFUSED, WRITTEN, Case, Cases, Files

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SUFFIXES = (".JPEG", ".jpg", ".png", ".tiff", ".gif", ".webp")


def sound(files: Files, rng: np.random.Generator) -> Cases:
    """As they are, by names that promise something else: the content decides."""
    for i, (name, data) in enumerate(others().items()):
        yield Case("other containers, sound", name, data, WRITTEN)
        suffix = _SUFFIXES[i % len(_SUFFIXES)]
        yield Case("other containers, sound", f"{name} as {suffix}", data, WRITTEN, suffix)


def cut(files: Files, rng: np.random.Generator) -> Cases:
    """Cut short at a dozen places, and within the first bytes."""
    for name, data in others().items():
        places = {1, 2, 4, 8, 12, 16, 20, 24, 26, 30, 40, *range(0, len(data), len(data) // 9)}
        for at in sorted(places - {0}):
            if at < len(data):
                allowed = REFUSED if at <= 12 else ANY
                yield Case("other containers, cut", f"{name} at {at}", data[:at], allowed)


def damaged(files: Files, rng: np.random.Generator) -> Cases:
    """Bytes changed in header and body, parts removed, doubled and set to extremes."""
    for name, data in others().items():
        for number in range(45):
            other = bytearray(data)
            head = number % 3 == 0
            at = int(rng.integers(min(64, len(data)) if head else len(data)))
            match number % 5:
                case 0:
                    other[at : at + 4] = b"\xff\xff\xff\xff"
                case 1:
                    other[at : at + 4] = bytes(4)
                case 2:
                    other[at] ^= 1 << int(rng.integers(8))
                case 3:
                    del other[at : at + int(rng.integers(1, 50))]
                case _:
                    other[at:at] = other[at : at + 60]
            yield Case("other containers, damaged", f"{name} ({number})", bytes(other))


def chunk(kind: bytes, content: bytes, crc: int | None = None, length: int | None = None) -> bytes:
    """A PNG's chunk; checksum and length are the true ones unless they are given."""
    check = zlib.crc32(kind + content) if crc is None else crc
    size = len(content) if length is None else length
    return struct.pack(">I", size) + kind + content + struct.pack(">I", check)


def png(
    width: int, height: int, depth: int, colour: int, pixels: bytes | None = None, more: bytes = b""
) -> bytes:
    """A PNG of zeros, or of other inflated bytes; ``more`` stands before its pixels."""
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1)
    row = bytes(1 + (width * samples * depth + 7) // 8)
    packer = zlib.compressobj(9)
    if pixels is None:
        packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    else:
        packed = zlib.compress(pixels)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(range(3 * 16))) if colour == 3 else b""
    body = chunk(b"IHDR", header) + palette + more + chunk(b"IDAT", packed)
    return _SIGNATURE + body + chunk(b"IEND", b"")


def png_chunks(files: Files, rng: np.random.Generator) -> Cases:
    """Chunks of a PNG missing, doubled, swapped, of wrong length and wrong checksum."""
    whole = others()["PNG"]
    for name, data in others().items():
        if not data.startswith(_SIGNATURE):
            continue
        chunks = list(_chunks(data))
        for i, (kind, content) in enumerate(chunks):
            true = len(content)
            for what, broken in (
                ("missing", b""),
                ("twice", 2 * chunk(kind, content)),
                ("of wrong checksum", chunk(kind, content, crc=1)),
                ("of length 0", chunk(kind, content, length=0)),
                ("one longer", chunk(kind, content, length=true + 1)),
                ("one shorter", chunk(kind, content, length=max(0, true - 1))),
                ("of 4 GB", chunk(kind, content, length=0xFFFFFFFF)),
                ("of random bytes", chunk(kind, rng.bytes(true))),
                ("empty", chunk(kind, b"")),
                ("of another's", chunk(kind, whole[40 : 40 + true])),
            ):
                others_ = [
                    *(chunk(*c) for c in chunks[:i]),
                    broken,
                    *(chunk(*c) for c in chunks[i + 1 :]),
                ]
                what = f"{name}, {kind.decode('latin1')} {i} {what}"
                yield Case(
                    "PNG: broken chunks", what, _SIGNATURE + b"".join(others_), suffix=".png"
                )
    for depth in (0, 1, 2, 3, 4, 8, 16, 255):
        for colour in (0, 1, 2, 3, 4, 6, 255):
            known = {0: {1, 2, 4, 8, 16}, 3: {1, 2, 4, 8}, 2: {8, 16}, 4: {8, 16}, 6: {8, 16}}
            sane = depth in known.get(colour, set())
            data = png(9, 5, depth if sane else 8, colour)
            data = _with_header(data, depth, colour)
            what = f"{depth} bits of colour type {colour}"
            yield Case("PNG: depths and colours", what, data, WRITTEN if sane else REFUSED, ".png")


def _with_header(data: bytes, depth: int, colour: int) -> bytes:
    header = data[16:24] + bytes([depth, colour]) + data[26:29]
    return data[:8] + chunk(b"IHDR", header) + data[33:]


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def no_images(files: Files, rng: np.random.Generator) -> Cases:
    """Files without an image: each is to be refused, whatever its name says."""
    made = {
        "empty": b"",
        "text": b"<html><body>404 Not Found</body></html>",
        "PDF": b"%PDF-1.7\n" + bytes(90),
        "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        "ZIP": b"PK\3\4" + bytes(60),
        "gzip": b"\x1f\x8b\x08" + bytes(60),
        "ELF": b"\x7fELF" + bytes(60),
        "tar": bytes(1024),
        "HEIC": b"\0\0\0\x18ftypheic" + bytes(40),
        "JPEG XL": b"\xff\x0a" + rng.bytes(60),
        "raw of a camera": b"FUJIFILMCCD-RAW " + bytes(80),
        "SOI and EOI": b"\xff\xd8\xff\xd9",
        "SOI": b"\xff\xd8",
        "SOI and fill": b"\xff\xd8" + b"\xff" * 3_000,
        "SOI and zeros": b"\xff\xd8" + bytes(3_000),
        "SOI and stuffing": b"\xff\xd8" + b"\xff\0" * 3_000,
        "SOI and RSTs": b"\xff\xd8" + b"\xff\xd0" * 3_000,
        "SOI, many times": b"\xff\xd8" * 3_000,
        "PNG's signature": _SIGNATURE,
        "PNG without pixels": _SIGNATURE + chunk(b"IHDR", bytes(13)) + chunk(b"IEND", b""),
        "GIF's signature": b"GIF89a",
        "GIF without frames": b"GIF89a\x08\0\x08\0\0\0\0;",
        "RIFF of sound": b"RIFF\x24\0\0\0WAVEfmt " + bytes(40),
        "BMP's first bytes": b"BM" + bytes(20),
        "TIFF that points at itself": b"II*\0\0\0\0\0",
    }
    made |= {f"a byte, {byte}": bytes([byte]) for byte in (0, 0xFF, 0x42, 0x89)}
    made |= {f"random bytes {i}": rng.bytes(1 << i) for i in range(14)}
    for what, data in made.items():
        allowed = NO_IMAGE if not data.startswith(b"\xff\xd8") else REFUSED
        yield Case("no image", what, data, allowed)
