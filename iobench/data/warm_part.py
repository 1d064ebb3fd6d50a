"""Choose the part of the data that warm trials read. It is small enough for the page cache."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dataprep.sources.imagefolder import ImageFolder
from iobench.data.data_summary import image_files, open_shards
from iobench.errors import Unavailable
from iobench.machine.hardware import available_bytes
from iobench.results.numbers import size
from iobench.results.trial import Location


@dataclass(frozen=True, slots=True)
class WarmPart:
    """The part of the data that a warm trial reads.

    Attributes:
        location: the location of the data; its ``every`` says which shards or image files are read.
        share: the bytes of this part, as a share of the bytes of all data.
    """

    location: Location
    share: float


def warm_part(location: Location, limit_bytes: int | None = None) -> WarmPart:
    """Choose whole shards, or whole image files, that take less than ``limit_bytes`` of memory.

    All shards or files are chosen if they fit; otherwise every second, every fourth, and so on. The
    choice is therefore spread evenly over the data and over the classes. It is the same for all
    loaders. Although the free memory changes a little between trials, it is usually also the same
    in all trials, because only powers of 2 are tried. Data on an object store are not restricted,
    because they are not in the page cache of this machine.

    Args:
        location: the location of shards or class folders; its own ``every`` has no effect.
        limit_bytes: memory for the data; by default half of the free memory of the machine, or of
            the control group if that is less.

    Raises:
        Unavailable: not even one shard or file fits.
        DatasetError, SourceError: there are no data.
    """
    location = replace(location, every=1)
    if location.is_remote:
        return WarmPart(location, 1.0)
    if limit_bytes is None:
        limit_bytes = available_bytes() // 2
    sizes = _sizes(location)
    # The page cache holds whole pages, which matters for small files.
    pages = -(-sizes // mmap.PAGESIZE)
    every = 1
    while pages[::every].sum() * mmap.PAGESIZE >= limit_bytes:
        if every >= len(sizes):
            raise Unavailable(_too_large(location, int(sizes[0]), limit_bytes))
        every *= 2
    if every == 1:
        return WarmPart(location, 1.0)
    share = float(sizes[::every].sum() / sizes.sum())
    return WarmPart(replace(location, every=every), share)


def _too_large(location: Location, first_bytes: int, limit_bytes: int) -> str:
    """Return the message about a first shard or file that does not fit into memory."""
    noun, remedy = "shard", "make smaller shards (data.shard_size) or free memory"
    if location.holds == "files":
        noun, remedy = "file", "free memory"
    return (
        f"the first {noun} of {location.uri} has {size(first_bytes)}, and warm data may take "
        f"{size(limit_bytes)}, half of the free memory: {remedy}"
    )


def _sizes(location: Location) -> NDArray[np.int64]:
    """Return the bytes of each shard, in its larger format, or of each image file.

    The larger format counts, so that the choice does not depend on the format of a loader.
    """
    if location.holds == "files":
        return image_files(ImageFolder(location.uri, location.store).list()).sizes
    with open_shards(location) as dataset:
        formats = dataset.manifest.formats.values()
        sizes = np.array([[shard.bytes for shard in entry.shards] for entry in formats], np.int64)
    larger: NDArray[np.int64] = sizes.max(axis=0)
    return larger
