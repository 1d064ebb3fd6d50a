"""PURE. The 512 bytes of one tar header, and pax records: what their fields say.

The formats are those of ``tar_headers``.
"""

from __future__ import annotations

BLOCK = 512


def is_header(block: bytes) -> bool:
    """Whether 512 bytes are a tar header: its checksum says so.

    Some old programs added up signed bytes.
    """
    try:
        stated = int(block[148:156].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    unsigned = sum(block) - sum(block[148:156]) + 256
    if unsigned == stated:
        return True
    high = sum(byte > 127 for byte in block[:148] + block[156:])
    return bool(high) and unsigned - 256 * high == stated


def number(field: bytes) -> int:
    """A numeric field: octal digits, or base 256 where the first bit is set.

    Raises:
        ValueError: neither.
    """
    if field[0] & 0x80:
        value = int.from_bytes(field, "big", signed=True)
        return value + (1 << (8 * len(field) - 1)) if field[0] == 0x80 else value
    try:
        return int(field.partition(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        raise ValueError(f"{field!r}, which is no number") from None


def name_of(block: bytes) -> bytes:
    """The name that a header itself holds; ustar's may have a second part."""
    name = block[:100].partition(b"\0")[0]
    if block[345] and block[257:263] == b"ustar\0":
        return block[345:500].partition(b"\0")[0] + b"/" + name
    return name


def pax_records(content: bytes) -> dict[bytes, bytes]:
    """``length key=value`` lines of a pax header.

    Raises:
        ValueError: they are not.
    """
    records = {}
    at = 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at)
        length = content[at:space] if space > 0 else b""
        end = at + int(length) if length.isdigit() else 0
        key, equals, value = content[space + 1 : end - 1].partition(b"=")
        if not equals or content[end - 1 : end] != b"\n":
            raise ValueError("a pax record that follows no rule")
        records[key] = value
        at = end
    return records


def padded(size: int) -> int:
    """The bytes that ``size`` bytes of content take up."""
    return -(-size // BLOCK) * BLOCK
