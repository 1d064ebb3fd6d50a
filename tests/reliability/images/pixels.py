"""JPEGs whose pixels are broken: scans missing or by the thousand, bits flipped, odd codings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tests.reliability.images.case import (
    ANY,
    CORRUPT,
    REFUSED,
    TOO_LARGE,
    UNSUPPORTED,
    Case,
    Cases,
    Files,
)
from tests.reliability.images.parts import DHT, EOI, FRAMES, SOI, SOS, Part, joined, parts_of

_EQUAL_CODES = bytes([0, 0, 0, 0, 16]) + bytes(11) + bytes(range(16))
"""A Huffman table of 16 values, a code of 5 bits each, which is the value itself."""


def scans_left_out(files: Files, rng: np.random.Generator) -> Cases:
    """Of several scans one missing, all but the first, all but the last; the end marker is there.

    Without a component's first scan it has nothing to show: that is never to be written.
    """
    for name, data in files.items():
        parts = parts_of(data)
        places = [i for i, part in enumerate(parts) if part.marker == SOS]
        if len(places) < 2:
            continue
        wholes = [("only the first", {places[0]}), ("only the last", {places[-1]})]
        wholes += [(f"without scan {n}", {*places} - {i}) for n, i in enumerate(places)]
        wholes += [(f"the first {n}", {*places[:n]}) for n in range(2, len(places))]
        for what, kept in wholes:
            left = [part for i, part in enumerate(parts) if i in kept or i not in places]
            allowed = ANY if _begins_all(parts[i] for i in kept) else CORRUPT
            yield Case("JPEG: scans missing", f"{name}, {what}", joined(left), allowed)


def _begins_all(scans: Iterable[Part]) -> bool:
    """Whether three components, or the only one, have a scan that begins with their mean."""
    begun = {
        component
        for scan in scans
        if scan.payload[-3] == 0 and scan.payload[-1] >> 4 == 0
        for component in scan.payload[1:-3:2]
    }
    return len(begun) in (1, 3) and 1 in begun


def scan_bombs(files: Files, rng: np.random.Generator) -> Cases:
    """Thousands of scans over a large image, in a small file: hours for a decoder with no limit."""
    for name in ("progressive", "progressive grey", "separate scans"):
        if name not in files:
            continue
        parts = parts_of(files[name])
        last = max(i for i, part in enumerate(parts) if part.marker == SOS)
        tables = last - 1 if parts[last - 1].marker == DHT else last
        for count, side in ((600, 40), (5_000, 40), (3_000, 9_000), (20_000, 9_000)):
            empty = replace(parts[last], scan=parts[last].scan[:8])
            many = [*parts[:last], *([*parts[tables:last], empty] * count), parts[-1]]
            frame = next(i for i, part in enumerate(many) if part.marker in FRAMES)
            payload = many[frame].payload
            size = payload[:1] + 2 * side.to_bytes(2, "big") + payload[5:]
            many[frame] = replace(many[frame], payload=size)
            what = f"{name}, {count:,} scans of {side} x {side}"
            yield Case("JPEG: scans by the thousand", what, joined(many), TOO_LARGE)


def flipped(files: Files, rng: np.random.Generator) -> Cases:
    """A few bits of the entropy-coded data flipped, bytes zeroed, removed, doubled, replaced."""
    for name, data in files.items():
        parts = parts_of(data)
        places = [i for i, part in enumerate(parts) if part.marker == SOS and len(part.scan) > 8]
        for number in range(24):
            i = places[int(rng.integers(len(places)))]
            scan = bytearray(parts[i].scan)
            at = int(rng.integers(len(scan) - 4))
            match number % 6:
                case 0:
                    what = "a bit flipped"
                    scan[at] ^= 1 << int(rng.integers(8))
                case 1:
                    what = "9 bits flipped"
                    for place in rng.integers(len(scan), size=9):
                        scan[place] ^= 1 << int(rng.integers(8))
                case 2:
                    what = "bytes zeroed"
                    scan[at : at + 20] = bytes(min(20, len(scan) - at))
                case 3:
                    what = "bytes removed"
                    del scan[at : at + int(rng.integers(1, 40))]
                case 4:
                    what = "a marker within"
                    scan[at : at + 2] = b"\xff" + rng.bytes(1)
                case _:
                    what = "random bytes"
                    scan[at:] = rng.bytes(len(scan) - at)
            broken = replace(parts[i], scan=bytes(scan))
            other = joined([*parts[:i], broken, *parts[i + 1 :]])
            yield Case("JPEG: pixels damaged", f"{name}, {what} ({number})", other)


def no_pixels(files: Files, rng: np.random.Generator) -> Cases:
    """A whole header and no pixels at all, with an end marker and without."""
    for name, data in files.items():
        parts = [replace(part, scan=b"") for part in parts_of(data)]
        # Arithmetic decoders take what is missing for zeros, as T.81, D.2.6, has them do.
        zeros = name.startswith(("arithmetic", "progressive"))
        allowed = ANY if zeros else REFUSED
        yield Case("JPEG: no pixels", f"{name}, ended", joined(parts), allowed)
        yield Case("JPEG: no pixels", f"{name}, not ended", joined(parts[:-1]), REFUSED)


def twelve_bits(files: Files, rng: np.random.Generator) -> Cases:
    """Extended sequential JPEG of 12 bits a sample: sound, of flat blocks, written by hand."""
    for width, height, count in ((8, 8, 1), (48, 40, 1), (48, 40, 3), (65_500, 8, 1)):
        blocks = -(-width // 8) * -(-height // 8) * count
        # A difference of category 3 in 5 + 3 bits, then the end of the block, value 0, in 5.
        bits = "".join(f"{3:05b}{int(value):03b}{0:05b}" for value in rng.integers(4, 8, blocks))
        tables = [
            Part(0xDB, b"\x10" + b"\x00\x10" * 64),
            _frame(0xC1, 12, width, height, count),
            Part(DHT, b"\x00" + _EQUAL_CODES),
            Part(DHT, b"\x10" + _EQUAL_CODES),
        ]
        data = _whole(tables, count, b"\x00\x3f\x00", bits)
        what = f"{width} x {height}, {count} components"
        yield Case("JPEG: 12 bits", what, data, UNSUPPORTED)
        for at in (40, len(data) // 2, len(data) - 2):
            yield Case("JPEG: 12 bits", f"{what}, cut at {at}", data[:at], REFUSED)


def lossless(files: Files, rng: np.random.Generator) -> Cases:
    """Lossless JPEG (T.81, H): sound, of random differences of 2 bits, written by hand."""
    for bits_a_sample in (8, 12, 16):
        for predictor in range(1, 8):
            width, height = 24, 16
            values = rng.integers(2, 4, width * height)
            bits = "".join(f"{2:05b}{int(value):02b}" for value in values)
            tables = [
                _frame(0xC3, bits_a_sample, width, height, 1),
                Part(DHT, b"\x00" + _EQUAL_CODES),
            ]
            data = _whole(tables, 1, bytes([predictor, 0, 0]), bits)
            what = f"{bits_a_sample} bits, predictor {predictor}"
            yield Case("JPEG: lossless", what, data, UNSUPPORTED)
        yield Case(
            "JPEG: lossless", f"{bits_a_sample} bits, cut", data[: len(data) // 2], UNSUPPORTED
        )


def _frame(marker: int, bits: int, width: int, height: int, count: int) -> Part:
    header = bytes([bits]) + height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([count])
    return Part(marker, header + b"".join(bytes([i + 1, 0x11, 0]) for i in range(count)))


def _whole(tables: list[Part], count: int, parameters: bytes, bits: str) -> bytes:
    padded = bits + "1" * (-len(bits) % 8)
    coded = int(padded, 2).to_bytes(len(padded) // 8, "big").replace(b"\xff", b"\xff\x00")
    scan = bytes([count]) + b"".join(bytes([i + 1, 0]) for i in range(count)) + parameters
    return joined([Part(SOI), *tables, Part(SOS, scan, coded), Part(EOI)])
