"""Where a JPEG's Exif says how it is turned: the orientation tag after Exif 2.32, 4.6.4."""

from __future__ import annotations

from dataclasses import dataclass

_ORIENTATION = 0x0112
_TIFF_SIZES = {1: 1, 3: 2, 4: 4}  # BYTE, SHORT, LONG: all three are met for this tag
_SIGNED_SIZES = {6: 1, 8: 2, 9: 4}


@dataclass(frozen=True, slots=True)
class OrientationTag:
    """One orientation entry: its value and where its bytes stand in the file."""

    value: int
    offset: int
    size: int
    big_endian: bool


def orientation_tags(data: bytes, tiff: int, end: int) -> list[OrientationTag]:
    """Orientation entries in the first directory of the TIFF structure at ``tiff``."""
    order = data[tiff : tiff + 4]
    if order not in (b"II*\0", b"MM\0*"):
        return []
    big = order.startswith(b"M")

    def number(offset: int, size: int) -> int:
        return int.from_bytes(data[offset : offset + size], "big" if big else "little")

    directory = tiff + number(tiff + 4, 4)
    if directory + 2 > end:
        return []
    count = min(number(directory, 2), (end - directory - 2) // 12)
    found = []
    for entry in range(directory + 2, directory + 2 + 12 * count, 12):
        if number(entry, 2) != _ORIENTATION:
            continue
        kind, one = number(entry + 2, 2), number(entry + 4, 4) == 1
        size = _TIFF_SIZES.get(kind) or _SIGNED_SIZES.get(kind)
        value = number(entry + 8, size) if size else 0
        # Some decoders follow a tag of a wrong type or count too.
        if size and (1 <= value <= 8 or (one and kind in _TIFF_SIZES)):
            found.append(OrientationTag(value, entry + 8, size, big))
    return found
