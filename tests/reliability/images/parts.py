"""A JPEG taken apart at its markers, and put together again (ITU-T T.81, Annex B)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

SOI, EOI, SOS, DHT, DQT, DRI = 0xD8, 0xD9, 0xDA, 0xC4, 0xDB, 0xDD
ADOBE = 0xEE
FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})
_ALONE = frozenset({SOI, EOI})
_NEXT = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")


@dataclass(frozen=True)
class Part:
    """A marker, what stands behind its length, and entropy-coded data behind that.

    ``length`` is written where it is not the true one.
    """

    marker: int
    payload: bytes = b""
    scan: bytes = b""
    length: int | None = None

    def __bytes__(self) -> bytes:
        head = bytes([0xFF, self.marker])
        if self.marker in _ALONE:
            return head + self.scan
        length = len(self.payload) + 2 if self.length is None else self.length
        return head + (length % 65536).to_bytes(2, "big") + self.payload + self.scan

    @property
    def name(self) -> str:
        """Such as ``DHT``."""
        if self.marker in FRAMES:
            return "SOF"
        if self.marker >= 0xE0:
            return f"APP{self.marker - 0xE0}" if self.marker < 0xF0 else "COM"
        named = {SOI: "SOI", EOI: "EOI", SOS: "SOS", DHT: "DHT", DQT: "DQT", DRI: "DRI"}
        return named.get(self.marker, f"0x{self.marker:02X}")


def parts_of(data: bytes) -> list[Part]:
    """The parts of a sound JPEG, in order."""
    parts, at = [], 0
    while at < len(data):
        marker = data[at + 1]
        end = at + 2
        payload = b""
        if marker not in _ALONE:
            end += int.from_bytes(data[end : end + 2], "big")
            payload = data[at + 4 : end]
        scan = b""
        if marker == SOS:
            found = _NEXT.search(data, end)
            stop = found.start() if found else len(data)
            scan, end = data[end:stop], stop
        parts.append(Part(marker, payload, scan))
        at = end
        if marker == EOI:
            break
    return parts


def joined(parts: Iterable[Part]) -> bytes:
    """The bytes of parts, in order."""
    return b"".join(map(bytes, parts))


def changed(parts: list[Part], at: int, payload: bytes) -> bytes:
    """The JPEG with another payload in one part."""
    return joined([*parts[:at], replace(parts[at], payload=payload), *parts[at + 1 :]])


def place_of(parts: list[Part], *markers: int) -> int:
    """Where the first part of one of the markers stands; -1 where there is none."""
    return next((i for i, part in enumerate(parts) if part.marker in markers), -1)


def with_segments(data: bytes, segments: Iterable[tuple[int, bytes]]) -> bytes:
    """The JPEG with segments of these markers and payloads behind its start."""
    return data[:2] + joined(Part(*segment) for segment in segments) + data[2:]
