"""What a file's name says it holds. The content decides; the name can only be wrong."""

from __future__ import annotations

_JPEG = frozenset({"JPEG", "MPO"})
_BMP = frozenset({"BMP", "DIB"})
_BY_EXTENSION = {
    **dict.fromkeys(("jpeg", "jpg", "jpe", "jfif"), _JPEG),
    **dict.fromkeys(("bmp", "dib"), _BMP),
    **dict.fromkeys(("png", "apng"), frozenset({"PNG"})),
    **dict.fromkeys(("tif", "tiff"), frozenset({"TIFF"})),
    **dict.fromkeys(("ppm", "pgm", "pbm", "pnm"), frozenset({"PPM"})),
    **dict.fromkeys(("jp2", "j2k", "j2c", "jpx"), frozenset({"JPEG2000"})),
    **dict.fromkeys(("avif", "avifs"), frozenset({"AVIF"})),
    "gif": frozenset({"GIF"}),
    "webp": frozenset({"WEBP"}),
}


def contradicts(name: str, container: str) -> bool:
    """Whether ``name`` has the extension of another container than ``container``.

    A name without an extension, or with one that is no image's, says nothing.
    """
    base = name.rpartition("/")[2]
    stem, _, extension = base.rpartition(".")
    promised = _BY_EXTENSION.get(extension.lower()) if stem else None
    return promised is not None and container not in promised
