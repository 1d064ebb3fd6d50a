"""ICC profiles written by hand, each with an effect that can be computed without LittleCMS.

Structures after ICC.1:2001-04 (version 2): header 6.1, tags 6.4, curves, XYZ and tables 6.5.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import product

D50 = (0.9642, 1.0, 0.8249)
# These are sRGB's primaries adapted to D50, as in IEC 61966-2-1's own profile.
SRGB_PRIMARIES = (
    (0.4361, 0.2225, 0.0139),
    (0.3851, 0.7169, 0.0971),
    (0.1431, 0.0606, 0.7141),
)
# These are Lab values under D50 of the paper and of four unusual inks.
INKS = {
    "paper": (100.0, 0.0, 0.0),
    "cyan": (54.0, 80.0, 68.0),  # looks red
    "magenta": (88.0, -79.0, 81.0),  # looks green
    "yellow": (30.0, 68.0, -112.0),  # looks blue
    "black": (0.0, 0.0, 0.0),
}


def _fixed(*numbers: float) -> bytes:
    """The numbers in fixed point of 16 and 16 bits."""
    return struct.pack(f">{len(numbers)}i", *(round(number * 65_536) for number in numbers))


def _xyz(numbers: Sequence[float]) -> bytes:
    """An XYZ tag."""
    return b"XYZ \0\0\0\0" + _fixed(*numbers)


def _gamma(exponent: float) -> bytes:
    """A curve tag with a power law."""
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(exponent * 256)) + b"\0\0"


def _profile(kind: bytes, space: bytes, pcs: bytes, tags: Mapping[bytes, bytes]) -> bytes:
    """A profile with these tags, behind its header and its table of tags."""
    offset = 128 + 4 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, content in tags.items():
        table += name + struct.pack(">II", offset + len(body), len(content))
        body += content + b"\0" * (-len(content) % 4)
    header = struct.pack(
        ">I4xI4s4s4s12x4s24xI",
        *(offset + len(body), 0x02100000, kind, space, pcs, b"acsp", 1),
    )
    header += _fixed(*D50)
    return header.ljust(128, b"\0") + table + body


def rgb_profile(
    gamma: float = 2.2,
    primaries: Sequence[Sequence[float]] = SRGB_PRIMARIES,
    *,
    padding: int = 0,
) -> bytes:
    """An RGB profile with a power law and primaries, by default sRGB's, and ``padding`` bytes."""
    tags = {b"wtpt": _xyz(D50)}
    for name, primary in zip("rgb", primaries, strict=True):
        tags[f"{name}XYZ".encode()] = _xyz(primary)
        tags[f"{name}TRC".encode()] = _gamma(gamma)
    if padding:
        tags[b"junk"] = b"data\0\0\0\0" + bytes(i % 251 for i in range(padding))
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags)


def swapped_profile() -> bytes:
    """An RGB profile whose first channel is green and whose second is red."""
    red, green, blue = SRGB_PRIMARIES
    return rgb_profile(primaries=(green, red, blue))


def grey_profile(gamma: float = 2.2) -> bytes:
    """A greyscale profile with a power law."""
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"wtpt": _xyz(D50), b"kTRC": _gamma(gamma)})


def ink_profile() -> bytes:
    """A profile of four inks by a table of their 16 combinations. Two or more inks give black."""
    corners = []
    for inks in product((0, 1), repeat=4):
        names = [name for name, ink in zip(list(INKS)[1:], inks, strict=True) if ink]
        light, a, b = INKS[names[0] if len(names) == 1 else "black" if names else "paper"]
        corners += [round(light * 2.55), round(a) + 128, round(b) + 128]
    identity = bytes(range(256))
    table = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + _fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    table += identity * 4 + bytes(corners) + identity * 3
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"wtpt": _xyz(D50), b"A2B0": table})
