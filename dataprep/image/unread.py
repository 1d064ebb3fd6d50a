"""Kinds of images that are known and not read, told by how a file begins.

Brands of ISO/IEC 23008-12 (HEIF) and 18181-2 (JPEG XL); of raw files those that begin unlike a
TIFF, and Canon's CR2, which has ``CR`` at byte 8. NEF, ARW and DNG begin as any TIFF does.
"""

from __future__ import annotations

_HEIF = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_JPEG_XL = (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")
_RAW = (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0", b"FOVb", b"\0MRM")
_RAW_WORDS = "a camera's raw file is not read: convert it, for example with dcraw -T"


def unread_kind(data: bytes) -> str:
    """What the file is and what can be done about it; empty where it is none of these."""
    brand = data[8:12] if data[4:8] == b"ftyp" else b""
    if brand in _HEIF:
        return "HEIC is not read: convert it, for example with heif-convert"
    if data.startswith(_JPEG_XL):
        return "JPEG XL is not read: convert it, for example with djxl"
    if brand == b"crx " or data.startswith(_RAW) or _is_cr2(data):
        return _RAW_WORDS
    return ""


def _is_cr2(data: bytes) -> bool:
    return data.startswith((b"II*\0", b"MM\0*")) and data[8:10] == b"CR"
