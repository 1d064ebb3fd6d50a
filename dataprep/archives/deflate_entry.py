"""PURE. Deflate entered in the middle: RFC 1951 streams from a block's first bit on.

A block may begin inside a byte. zlib can be told so (``inflatePrime``), Python's zlib cannot; but
blocks without content may be put before it, as many bits of them as make the rest fit.
"""

from __future__ import annotations

import zlib

_TRAILER_BYTES = 8
_GZIP_BITS = zlib.MAX_WBITS | 16


def _bits(*fields: tuple[int, int]) -> str:
    """``(value, width)`` fields, least significant bit first, as RFC 1951, 3.1.1 has them."""
    return "".join(f"{value:0{width}b}"[::-1] for value, width in fields if width)


# Empty and not the last: fixed codes, and the code of the end (3.2.6). Ten bits.
_FIXED = _bits((0, 1), (1, 2), (0, 7))
# Empty with codes of its own (3.2.7), an odd number of bits: the end of the block and two
# distances have codes of one bit. Their lengths are written in a code of two symbols, 1 and 18
# ("repeat zero"), of which 1 comes last but one in the order that 18 lengths are given in.
_OWN = (
    _bits((0, 1), (2, 2), (0, 5), (1, 5), (14, 4))
    + _bits((0, 6), (1, 3), (0, 3 * 14), (1, 3))
    + _bits((1, 1), (138 - 11, 7), (1, 1), (118 - 11, 7), (0, 3))
    + _bits((0, 1))
)


def _filling(length: int) -> str:
    """Empty blocks of a number of bits that leaves ``length`` over a whole byte."""
    own = _OWN if length % 2 else ""
    return own + _FIXED * ((length - len(own)) % 8 // 2)


_FILLINGS = [_filling(8 - unused) if unused else "" for unused in range(8)]


def inflate_from(
    data: bytes, unused_bits: int, window: bytes | None, skip: int, length: int
) -> bytes:
    """``length`` bytes of content, from ``skip`` bytes behind a block's beginning on.

    Args:
        data: compressed bytes. If ``unused_bits`` is not 0, the block begins with that many high
            bits of the first of them, else with the first byte.
        unused_bits: 0 to 7.
        window: the 32 KiB of content before the block, less where it begins a stream; None where
            ``data`` begins with the header of a gzip file.
        skip: bytes of content to pass over.
        length: bytes wanted; fewer come where ``data`` ends first.

    Raises:
        zlib.error: damaged.
    """
    if window is None:
        inflater, trailer = zlib.decompressobj(_GZIP_BITS), 0
    else:
        inflater, trailer = zlib.decompressobj(-zlib.MAX_WBITS, zdict=window), _TRAILER_BYTES
    if unused_bits:
        data = _primed(data, unused_bits)
    out = bytearray()
    while data and len(out) < skip + length:
        out += inflater.decompress(data, skip + length - len(out))
        if not inflater.eof:
            break
        # A gzip file may be several, one after the other (RFC 1952, 2.2). zlib reads the
        # trailers of those that it saw the beginning of.
        data = inflater.unused_data[trailer:]
        inflater, trailer = zlib.decompressobj(_GZIP_BITS), 0
    return bytes(out[skip:])


def _primed(data: bytes, unused_bits: int) -> bytes:
    """``data`` whose first byte counts with its high bits only, made to begin with a block."""
    used = 8 - unused_bits
    bits = _FILLINGS[unused_bits] + f"{data[0]:08b}"[::-1][used:]
    head = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    return head + data[1:]
