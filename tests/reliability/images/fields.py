"""JPEGs whose headers say what cannot be: sizes, sampling, components, tables, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.reliability.images.case import ANY, REFUSED, UNSUPPORTED, Case, Cases, Files
from tests.reliability.images.parts import (
    ADOBE,
    DRI,
    FRAMES,
    SOS,
    Part,
    changed,
    joined,
    parts_of,
    place_of,
)

_SIDES = (0, 1, 7, 255, 65_500, 65_535)


def sizes(files: Files, rng: np.random.Generator) -> Cases:
    """Width and height of 0, 1 and up to 65,535 each, over data of another size."""
    for name, data in files.items():
        parts = parts_of(data)
        at = place_of(parts, *FRAMES)
        frame = parts[at].payload
        size = int.from_bytes(frame[1:3], "big"), int.from_bytes(frame[3:5], "big")
        pairs = {(size[0], side) for side in _SIDES} | {(side, size[1]) for side in _SIDES}
        pairs |= {(side, side) for side in _SIDES} | {(1, 65_535), (65_535, 1), (65_535, 1_300)}
        for height, width in sorted(pairs - {size}):
            header = height.to_bytes(2, "big") + width.to_bytes(2, "big")
            more = height > 4 * size[0] or width > 4 * size[1]
            # Arithmetic decoders take what is missing for zeros (T.81, D.2.6), and say nothing.
            # Of unusual sampling Pillow decodes what it can, counted as subsampling_converted.
            lacks = more and not name.startswith(("arithmetic", "4x2"))
            allowed = REFUSED if not height or not width or lacks else ANY
            what = f"{name}, {width} x {height}"
            other = changed(parts, at, frame[:1] + header + frame[5:])
            yield Case("JPEG: other size in the header", what, other, allowed)


def sampling(files: Files, rng: np.random.Generator) -> Cases:
    """Sampling factors of 0, 3, 5 and 15, and those that only libjpeg takes."""
    for name, data in files.items():
        parts = parts_of(data)
        at = place_of(parts, *FRAMES)
        frame = bytearray(parts[at].payload)
        for component in range(frame[5]):
            for factor in (0x00, 0x01, 0x10, 0x12, 0x13, 0x33, 0x41, 0x44, 0x51, 0xF1, 0xFF):
                if frame[7 + 3 * component] == factor:
                    continue
                other = frame.copy()
                other[7 + 3 * component] = factor
                across, down = factor >> 4, factor & 15
                allowed = ANY if 1 <= across <= 4 and 1 <= down <= 4 else REFUSED
                what = f"{name}, {factor:02X} for component {component}"
                yield Case(
                    "JPEG: sampling factors", what, changed(parts, at, bytes(other)), allowed
                )


def components(files: Files, rng: np.random.Generator) -> Cases:
    """0 to 255 components in frame and scan, and names that do not fit each other."""
    for name, data in files.items():
        parts = parts_of(data)
        for marker, place, what in ((FRAMES, 5, "frame"), ({SOS}, 0, "scan")):
            at = place_of(parts, *marker)
            payload = parts[at].payload
            for count in (0, 1, 2, 3, 4, 5, 10, 255):
                if payload[place] == count:
                    continue
                lying = payload[:place] + bytes([count]) + payload[place + 1 :]
                what_else = f"{name}, {count} in the {what}"
                yield Case("JPEG: number of components", what_else, changed(parts, at, lying))
                if what == "frame":
                    full = payload[:5] + bytes([count])
                    full += b"".join(bytes([i % 256, 0x11, 0]) for i in range(1, count + 1))
                    allowed = ANY if count in (1, 3, 4) else REFUSED
                    yield Case(
                        "JPEG: number of components",
                        what_else + ", with each",
                        changed(parts, at, full),
                        allowed,
                    )
            for step in (1, 2):
                other = bytearray(payload)
                other[place + step] ^= 0x55
                yield Case(
                    "JPEG: names of components",
                    f"{name}, {what}, {step}",
                    changed(parts, at, bytes(other)),
                )


def precision(files: Files, rng: np.random.Generator) -> Cases:
    """Other bits a sample, and kinds of frame that are not read, over data of 8 bits."""
    for name, data in files.items():
        parts = parts_of(data)
        at = place_of(parts, *FRAMES)
        frame = parts[at]
        for bits in (0, 1, 2, 7, 9, 12, 16, 255):
            other = changed(parts, at, bytes([bits]) + frame.payload[1:])
            yield Case("JPEG: bits a sample", f"{name}, {bits}", other, UNSUPPORTED)
        for kind in (0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF):
            if kind != frame.marker:
                other = joined([*parts[:at], replace(frame, marker=kind), *parts[at + 1 :]])
                read = kind in FRAMES
                what = f"{name}, 0x{kind:02X}"
                yield Case("JPEG: another kind of frame", what, other, ANY if read else REFUSED)


def scan_parameters(files: Files, rng: np.random.Generator) -> Cases:
    """Spectral selection, approximation and tables that no scan has."""
    for name, data in files.items():
        parts = parts_of(data)
        for i, part in enumerate(parts):
            if part.marker != SOS:
                continue
            for tail in (
                b"\x00\x00\x00",
                b"\x3f\x00\x00",
                b"\x01\x40\x00",
                b"\x00\x3f\xff",
                b"\xff\xff\xff",
            ):
                if part.payload[-3:] != tail:
                    what = f"{name}, {tail.hex()} in part {i}"
                    other = changed(parts, i, part.payload[:-3] + tail)
                    yield Case("JPEG: scan parameters", what, other)
            tables = bytearray(part.payload)
            tables[2] = 0x33
            what = f"{name}, tables that are not there in part {i}"
            yield Case("JPEG: scan parameters", what, changed(parts, i, bytes(tables)))


def restarts(files: Files, rng: np.random.Generator) -> Cases:
    """A restart interval that is wrong; restart markers missing, of wrong number, and too many."""
    for name, data in files.items():
        parts = parts_of(data)
        at, scan = place_of(parts, DRI), place_of(parts, SOS)
        for interval in (0, 1, 3, 65_535):
            segment = Part(DRI, interval.to_bytes(2, "big"))
            others = [*parts[:at], *parts[at + 1 :]] if at >= 0 else list(parts)
            first = place_of(others, SOS)
            others.insert(first, segment)
            yield Case("JPEG: restart interval", f"{name}, {interval}", joined(others))
        if at < 0:
            continue
        pixels = parts[scan].scan
        for number in range(8):
            marker = bytes([0xFF, 0xD0 + number])
            for what, other in (
                (f"RST{number} missing", pixels.replace(marker, b"", 1)),
                (f"RST{number} twice", pixels.replace(marker, 2 * marker, 1)),
                (f"RST{number} out of turn", pixels.replace(marker, b"\xff\xd4", 1)),
                (f"RST{number} is an end", pixels.replace(marker, b"\xff\xd9", 1)),
            ):
                if other != pixels:
                    broken = replace(parts[scan], scan=other)
                    whole = joined([*parts[:scan], broken, *parts[scan + 1 :]])
                    yield Case("JPEG: restart markers", f"{name}, {what}", whole)


def adobe(files: Files, rng: np.random.Generator) -> Cases:
    """Adobe's segment with every transform, cut, doubled, or where none belongs."""
    for name, data in files.items():
        parts = [part for part in parts_of(data) if part.marker != ADOBE]
        for transform in (0, 1, 2, 3, 255):
            segment = Part(ADOBE, b"Adobe\0d\0\0\0\0" + bytes([transform]))
            for what, extra in (("", [segment]), (" twice", [segment, segment])):
                other = joined([parts[0], *extra, *parts[1:]])
                yield Case("JPEG: Adobe's transform", f"{name}, {transform}{what}", other)
        short = joined([parts[0], Part(ADOBE, b"Adobe\0d"), *parts[1:]])
        yield Case("JPEG: Adobe's transform", f"{name}, cut", short)
        yield Case("JPEG: Adobe's transform", f"{name}, none", joined(parts))
