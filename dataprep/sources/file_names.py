"""PURE. Recognise files by their names: images, archives, Parquet files, shards and clutter.

Most functions here are methods of compiled patterns, which return a match or None. Python functions
that are called for each of a million names would take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

CLUTTER = "hidden or system file"
"""The reason why a file that ``is_clutter`` matches is not a sample."""

_IMAGE_EXTENSIONS = (
    "avif|bmp|dib|gif|heic|heif|j2k|jfif|jp2|jpe|jpeg|jpg|pbm|pgm|png|pnm|ppm|tif|tiff|webp"
)

promises_image = re.compile(rf"[^/]\.(?:{_IMAGE_EXTENSIONS})\Z", re.IGNORECASE | re.ASCII).search
"""Whether a file should be an image according to its name.

The content decides which codec is used. The name only decides what happens to a file that is not an
image: it is a failure or is skipped.
"""

lacks_extension = re.compile(r"(?:\A|/)[^./]*\Z").search
"""Whether the name of a file has no extension at all."""

_SYSTEM_NAMES = "|".join(
    (
        r"(?:eh)?thumbs\.db",
        r"desktop\.ini",
        "__MACOSX",
        r"lost\+found",
        r"\$RECYCLE\.BIN",
        "System Volume Information",
        "@eaDir",  # Synology, like the next two
        "#recycle",
        "#snapshot",
        "@Recycle",  # QNAP, like the next one
        "@Recently-Snapshot",
        r"\.Trash[^/]*",
        r"\.ipynb_checkpoints",
        r"\.DS_Store",
        r"\._[^/]*",
    )
)

is_system = re.compile(rf"(?:\A|/)(?:{_SYSTEM_NAMES})(?:/|\Z)", re.IGNORECASE | re.ASCII).search
"""Whether an operating system or a network drive has created the file or one of its folders."""

is_clutter = re.compile(
    rf"(?:\A|/)(?:\.|(?:{_SYSTEM_NAMES})(?:/|\Z))", re.IGNORECASE | re.ASCII
).search
"""Whether the file or one of its folders is hidden, or is a system file (``is_system``)."""

TAR_ENDING = re.compile(
    r"\.(tar(\.(gz|bz2|xz|zst|lz4|lz|lzma|lzo|z|part|partial|crdownload))?|t(gz|bz2?|xz|zst))\Z",
    re.IGNORECASE,
)
"""The end of the name of a tar. The tar may be compressed, or only partly downloaded."""

PARQUET_ENDING = re.compile(r"\.(parquet|pq)\Z", re.IGNORECASE)
"""The end of the name of a Parquet file."""

_is_shard = re.compile(r"\.(rec|tfrecords?|tfrec)(\Z|-\d{5,}-of-\d{5,}\Z)", re.IGNORECASE).search

_IMAGE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"II*\0", b"MM\0*")


def advice_for(names: Iterable[str]) -> str:
    """Return advice which kind of source fits these files, as the end of an error message.

    The first file name that suggests another kind decides. The result is empty if no name suggests
    another kind.
    """
    for name in names:
        if PARQUET_ENDING.search(name):
            return (
                f"; {name!r} is a Parquet file: --kind parquet reads images in Parquet, --kind "
                "listing reads tables of paths"
            )
        if TAR_ENDING.search(name):
            return (
                f"; {name!r} is an archive: --kind ilsvrc reads classes in tars, --kind webdataset "
                "reads WebDataset"
            )
        if _is_shard(name):
            return f"; {name!r} is a shard of records: --kind records reads shards"
    return ""


def begins_as_image(data: bytes) -> bool:
    """Whether these bytes look like the beginning of an image file in one of the usual formats."""
    return data.startswith(_IMAGE_STARTS)
