"""PURE. Which compression a file begins with, and what to do about it."""

from __future__ import annotations

import zlib

GZIP = "gzip"
PROBE_BYTES = 4096
"""Enough of a file to say what it is, and of a gzip file to say what it holds."""

_SIGNATURES = {
    b"\x1f\x8b\x08": GZIP,
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_DECOMPRESS = {"xz": "unxz --keep", "bzip2": "bunzip2 --keep", "zstd": "unzstd"}


def compression_of(first: bytes) -> str | None:
    """The compression whose signature ``first`` begins with; None for any other content."""
    for signature, name in _SIGNATURES.items():
        if first.startswith(signature):
            return name
    return None


def beginning(first: bytes, length: int) -> bytes:
    """Up to ``length`` bytes of the content of a gzip file that begins with ``first``."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(first, length)
    except zlib.error:
        return b""


def hint(compression: str) -> str:
    """Why a file of this compression, other than gzip, is not read, and what to do."""
    return (
        f"compressed with {compression}, of which no part can be read by itself: "
        f"decompress it first ({_DECOMPRESS[compression]})"
    )
