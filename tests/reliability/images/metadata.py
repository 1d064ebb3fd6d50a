"""JPEGs whose pixels are sound and whose Exif, profile or further pictures are not.

None of that may cost an image: every one is to be written.
"""

from __future__ import annotations

import struct

import numpy as np

from dataprep.sample import encodings as enc
from tests.reliability.images.bases import picture, run
from tests.reliability.images.case import ANY, WRITTEN, Case, Cases, Files
from tests.reliability.images.parts import with_segments

_EXIF, _ICC = b"Exif\0\0", b"ICC_PROFILE\0"
_ORIENTATION, _THUMBNAIL, _SUB = 0x0112, 0x0201, 0x8769
_HUGE = 0xFFFFFFFF


def exif(files: Files, rng: np.random.Generator) -> Cases:
    """Directories in a circle, offsets outside, huge counts, wrong types, and random bytes."""
    blocks = dict(_blocks())
    blocks |= {f"random bytes {i}": b"MM\0*\0\0\0\x08" + rng.bytes(8 << i) for i in range(9)}
    sound = dict(_blocks())["upside down"]
    blocks |= {f"cut at {at}": sound[:at] for at in range(0, len(sound), 3)}
    for name, data in files.items():
        for what, block in blocks.items():
            other = with_segments(data, [(0xE1, _EXIF + block)])
            yield Case("JPEG: hostile Exif", f"{name}, {what}", other, WRITTEN)
        twice = with_segments(data, [(0xE1, _EXIF + sound)] * 40)
        yield Case("JPEG: hostile Exif", f"{name}, 40 times", twice, WRITTEN)


def _directory(entries: list[tuple[int, int, int, int]], following: int = 0) -> bytes:
    packed = b"".join(struct.pack(">HHII", *entry) for entry in entries)
    return struct.pack(">H", len(entries)) + packed + struct.pack(">I", following)


def _blocks() -> list[tuple[str, bytes]]:
    head = b"MM\0*\0\0\0\x08"
    short = 6 << 16
    return [
        ("upside down", head + _directory([(_ORIENTATION, 3, 1, 3 << 16)])),
        ("directory that follows itself", head + _directory([(_ORIENTATION, 3, 1, short)], 8)),
        ("two in a circle", head + _directory([], 14) + _directory([], 8)),
        ("directory that holds itself", head + _directory([(_SUB, 4, 1, 8)])),
        ("a hundred that hold themselves", head + _directory([(_SUB, 4, 1, 8)] * 100, 8)),
        ("offset outside", head + _directory([(0x010F, 2, 100, _HUGE)], _HUGE)),
        ("huge count", head + _directory([(_ORIENTATION, 3, _HUGE, 8)])),
        ("huge count of rationals", head + _directory([(0x011A, 5, 0x1FFFFFFF, 8)])),
        ("no such type", head + _directory([(_ORIENTATION, 99, 1, short)])),
        ("first directory outside", b"MM\0*\xff\xff\xff\xff"),
        ("first directory at its start", b"MM\0*\0\0\0\0" + bytes(40)),
        ("65,535 entries", head + b"\xff\xff" + bytes(24)),
        ("orientation of 0", head + _directory([(_ORIENTATION, 3, 1, 0)])),
        ("orientation of 65,535", head + _directory([(_ORIENTATION, 3, 1, 0xFFFF << 16)])),
        ("orientation as text", head + _directory([(_ORIENTATION, 2, 4, short)])),
        ("thumbnail outside", head + _directory([], 14) + _directory([(_THUMBNAIL, 4, 1, _HUGE)])),
        ("other byte order", b"IM*\0" + bytes(20)),
        ("nothing", b""),
        ("BigTIFF", b"MM\0+\0\x08\0\0" + bytes(40)),
    ]


def profiles(files: Files, rng: np.random.Generator) -> Cases:
    """Chunks missing, doubled, in wrong order, of wrong numbers; profiles that are rubbish."""
    base = enc.icc_jpeg(picture())
    at = base.index(_ICC)
    length = int.from_bytes(base[at - 2 : at], "big")
    profile = base[at + 14 : at - 2 + length]
    third = len(profile) // 3
    cuts = [profile[:third], profile[third : 2 * third], profile[2 * third :]]

    def chunks(*numbered: tuple[int, int, bytes]) -> list[tuple[int, bytes]]:
        return [(0xE2, _ICC + bytes([number, total]) + part) for number, total, part in numbered]

    one, two, three = ((i + 1, 3, part) for i, part in enumerate(cuts))
    huge = bytearray(profile)
    huge[:4] = b"\xff\xff\xff\xff"
    tags = bytearray(profile)
    tags[128:132] = b"\x7f\xff\xff\xff"
    sets = {
        "in three": chunks(one, two, three),
        "in wrong order": chunks(three, one, two),
        "one missing": chunks(one, three),
        "one twice": chunks(one, two, two, three),
        "of 0": chunks((0, 0, profile)),
        "number 0": chunks((0, 1, profile)),
        "255 of 1": chunks((255, 1, profile)),
        "totals that differ": chunks(one, (2, 4, cuts[1]), three),
        "empty": chunks((1, 1, b"")),
        "cut": chunks((1, 1, profile[: third * 2])),
        "rubbish": chunks((1, 1, rng.bytes(500))),
        "a size of 4 GB": chunks((1, 1, bytes(huge))),
        "2 billion tags": chunks((1, 1, bytes(tags))),
        "255 chunks": chunks(*((i, 255, b"x") for i in range(1, 256))),
        "no number": [(0xE2, _ICC)],
    }
    for damage in range(30):
        broken = bytearray(profile)
        for place in rng.integers(len(broken), size=1 + damage % 6):
            broken[place] = int(rng.integers(256))
        sets[f"damaged {damage}"] = chunks((1, 1, bytes(broken)))
    for name, data in files.items():
        for what, segments in sets.items():
            other = with_segments(data, segments)
            yield Case("JPEG: hostile profile", f"{name}, {what}", other, WRITTEN)


def further(files: Files, rng: np.random.Generator) -> Cases:
    """Thumbnails, comments, JFXX and MPO, sound and broken; what exiftool and jpegtran make."""
    thumb = enc.jpeg(picture(6, 16, 16))
    for name, data in files.items():
        pairs = [
            ("thumbnail in JFXX", [(0xE0, b"JFXX\0\x10" + thumb)]),
            ("broken thumbnail", [(0xE0, b"JFXX\0\x10" + thumb[:40])]),
            ("thumbnail of 255 x 255", [(0xE0, b"JFIF\0\x01\x02\0\0\x01\0\x01\xff\xff")]),
            ("a comment with markers", [(0xFE, b"\xff\xd9\xff\xda\xff\xc0" * 9)]),
            ("300 comments", [(0xFE, b"x")] * 300),
            ("a comment of 65,533 bytes", [(0xFE, bytes(65_533))]),
            ("XMP that is no XML", [(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + b"<x" * 90)]),
            ("XMP of entities", [(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + _LAUGHS)]),
            (
                "MPO without a second",
                [(0xE2, b"MPF\0MM\0*\0\0\0\x08" + _directory([(0xB001, 4, 1, 2)]))],
            ),
            (
                "MPO that loops",
                [(0xE2, b"MPF\0MM\0*\0\0\0\x08" + _directory([(0xB001, 4, 1, 2)], 8))],
            ),
            (
                "Photoshop's block, cut",
                [(0xED, b"Photoshop 3.0\x008BIM\x04\x04\0\0\xff\xff\xff\xff")],
            ),
        ]
        for what, segments in pairs:
            yield Case(
                "JPEG: hostile segments", f"{name}, {what}", with_segments(data, segments), WRITTEN
            )
        mpo = with_segments(data, [(0xE2, _mpo(len(data)))]) + data
        yield Case("JPEG: hostile segments", f"{name}, MPO of two", mpo, ANY)
    for what, options in (
        ("all tags", ["-Orientation#=6", "-Artist=" + "x" * 900]),
        ("a comment", ["-Comment=" + "é" * 99]),
    ):
        for name in ("baseline", "progressive", "CMYK"):
            made = (
                run("exiftool", "-q", *options, "-o", "-", "-", given=files[name])
                if name in files
                else None
            )
            if made:
                yield Case("JPEG: hostile segments", f"{name}, exiftool: {what}", made, WRITTEN)


_LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'


def _mpo(size: int) -> bytes:
    """The index of a Multi-Picture file of two pictures of a size (CIPA DC-007, 5.2.3)."""
    entries = struct.pack(">IIIHH", 0x030000, size, 0, 0, 0) + struct.pack(
        ">IIIHH", 0, size, size, 0, 0
    )
    tags = [(0xB000, 7, 4, 0x30313030), (0xB001, 4, 1, 2), (0xB002, 7, 32, 50)]
    return b"MPF\0MM\0*\0\0\0\x08" + _directory(tags) + entries
