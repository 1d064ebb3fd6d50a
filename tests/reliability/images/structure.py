"""JPEGs whose segments end early, lie about their lengths, are missing, doubled or swapped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.reliability.images.case import ANY, CORRUPT, REFUSED, WRITTEN, Case, Cases, Files
from tests.reliability.images.parts import (
    DHT,
    DQT,
    EOI,
    FRAMES,
    SOI,
    SOS,
    joined,
    parts_of,
)

_LENGTHS = (0, 1, 2, 3, 65_535)
_SCANNING = frozenset({SOS, EOI})


def sound(files: Files, rng: np.random.Generator) -> Cases:
    """As they are: every one is to be written."""
    for name, data in files.items():
        yield Case("JPEG: sound", name, data, WRITTEN)


def cut(files: Files, rng: np.random.Generator) -> Cases:
    """Truncated before and within every marker, within and behind every segment."""
    for name, data in files.items():
        at, seen_pixels = 0, False
        for part in parts_of(data):
            size = len(bytes(part))
            for inside in sorted({0, 1, 2, 3, 5, 2 + len(part.payload) // 2, size // 2, size - 1}):
                if at and inside < size:
                    allowed = CORRUPT if seen_pixels or part.marker == SOS else REFUSED
                    what = f"{name}, {inside} bytes into {part.name}"
                    yield Case(
                        "JPEG: cut at a marker or within a segment",
                        what,
                        data[: at + inside],
                        allowed,
                    )
            seen_pixels = seen_pixels or part.marker == SOS
            at += size


def lengths(files: Files, rng: np.random.Generator) -> Cases:
    """Segments that say 0, 1, 2, 3 or 65,535 bytes, or one more or less than they have."""
    for name, data in files.items():
        parts = parts_of(data)
        for i, part in enumerate(parts):
            if part.marker in (SOI, EOI):
                continue
            true = len(part.payload) + 2
            for length in dict.fromkeys((*_LENGTHS, true - 1, true + 1, 2 * true)):
                if length != true:
                    lying = [*parts[:i], replace(part, length=length), *parts[i + 1 :]]
                    what = f"{name}, {part.name} of {length}, not {true}"
                    yield Case("JPEG: wrong length of a segment", what, joined(lying))


def missing(files: Files, rng: np.random.Generator) -> Cases:
    """One segment left out; without a frame, a scan or tables there is no image."""
    for name, data in files.items():
        parts = parts_of(data)
        scans = sum(part.marker == SOS for part in parts)
        for i, part in enumerate(parts):
            needed = part.marker in FRAMES or (part.marker == SOS and scans == 1)
            ended = part.marker == EOI
            allowed = REFUSED if needed or ended or part.marker == SOI else ANY
            yield Case(
                "JPEG: segment missing",
                f"{name}, {part.name}",
                joined(parts[:i] + parts[i + 1 :]),
                allowed,
            )


def doubled(files: Files, rng: np.random.Generator) -> Cases:
    """One segment, or a scan, twice."""
    for name, data in files.items():
        parts = parts_of(data)
        for i, part in enumerate(parts):
            allowed = REFUSED if part.marker in FRAMES else ANY
            twice = joined([*parts[: i + 1], *parts[i:]])
            yield Case("JPEG: segment twice", f"{name}, {part.name}", twice, allowed)


def swapped(files: Files, rng: np.random.Generator) -> Cases:
    """Two segments in each other's place, neighbours and others."""
    for name, data in files.items():
        parts = parts_of(data)
        pairs = {(i, i + 1) for i in range(1, len(parts) - 1)}
        pairs |= {
            tuple(sorted(rng.choice(len(parts), 2, replace=False).tolist())) for _ in range(4)
        }
        for left, right in sorted(pairs):
            order = list(parts)
            order[left], order[right] = order[right], order[left]
            what = f"{name}, {parts[left].name} and {parts[right].name}"
            yield Case("JPEG: segments swapped", what, joined(order))


def foreign_tables(files: Files, rng: np.random.Generator) -> Cases:
    """Huffman or quantisation tables of another JPEG, or of random bytes."""
    names = list(files)
    for name, data in files.items():
        parts = parts_of(data)
        other = parts_of(files[names[int(rng.integers(len(names)))]])
        for i, part in enumerate(parts):
            if part.marker not in (DHT, DQT):
                continue
            others = [found for found in other if found.marker == part.marker]
            for found in others[:1]:
                what = f"{name}, another's {part.name}"
                yield Case("JPEG: other tables", what, joined([*parts[:i], found, *parts[i + 1 :]]))
            rubbish = replace(part, payload=part.payload[:1] + rng.bytes(len(part.payload) - 1))
            what = f"{name}, {part.name} of random bytes"
            yield Case("JPEG: other tables", what, joined([*parts[:i], rubbish, *parts[i + 1 :]]))
            empty = replace(part, payload=part.payload[:1] + bytes(len(part.payload) - 1))
            what = f"{name}, {part.name} of zeros"
            yield Case("JPEG: other tables", what, joined([*parts[:i], empty, *parts[i + 1 :]]))


def trailing(files: Files, rng: np.random.Generator) -> Cases:
    """Rubbish, or another image, behind the end: the image itself is whole."""
    names = list(files)
    for name, data in files.items():
        other = files[names[int(rng.integers(len(names)))]]
        for what, more in (
            ("zeros", bytes(100)),
            ("random bytes", rng.bytes(300)),
            ("itself", data),
            ("another JPEG", other),
            ("half a JPEG", other[: len(other) // 2]),
            ("markers", b"\xff\xd8\xff\xda\xff\xc0\xff\xd9" * 20),
            ("fill bytes", b"\xff" * 200),
        ):
            yield Case("JPEG: rubbish behind the end", f"{name}, {what}", data + more, WRITTEN)


def stray(files: Files, rng: np.random.Generator) -> Cases:
    """Bytes between the segments."""
    for name, data in files.items():
        parts = parts_of(data)
        for what, more in (
            ("fill", b"\xff" * 9),
            ("zeros", bytes(7)),
            ("RST", b"\xff\xd3"),
            ("text", b"rubbish"),
        ):
            for i in range(1, len(parts)):
                between = joined(parts[:i]) + more + joined(parts[i:])
                yield Case(
                    "JPEG: bytes between segments",
                    f"{name}, {what} before {parts[i].name}",
                    between,
                )
