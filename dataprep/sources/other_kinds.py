"""PURE. Which kind of source the files of a source call for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dataprep.sources.tars import TAR_ENDING

_IMAGE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF", b"II*\0", b"MM\0*")
PARQUET_ENDING = re.compile(r"\.(parquet|pq)\Z", re.IGNORECASE)
"""Ends the name of a Parquet file."""

_is_shard = re.compile(r"\.(rec|tfrecords?|tfrec)(\Z|-\d{5,}-of-\d{5,}\Z)", re.IGNORECASE).search


def advice_for(names: Iterable[str]) -> str:
    """Which kind the files of a source call for, to append to an error; empty if none does."""
    for name in names:
        if PARQUET_ENDING.search(name):
            return (
                f"; {name!r} is a Parquet file: --kind parquet reads images in Parquet, --kind "
                "listing tables of paths"
            )
        if TAR_ENDING.search(name):
            return (
                f"; {name!r} is an archive: --kind ilsvrc reads classes in tars, --kind webdataset "
                "reads WebDataset"
            )
        if _is_shard(name):
            return f"; {name!r} is a shard of records: --kind records reads these"
    return ""


def begins_as_image(data: bytes) -> bool:
    """Whether bytes are the beginning of an image file, not a path."""
    return data.startswith(_IMAGE_STARTS)
