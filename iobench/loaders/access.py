"""The modes of access: how a loader gets at data on a store.

Training services offer the modes ``file`` (all data are downloaded first), ``pipe`` (whole objects
in sequence), ``lazy`` (one range request for each sample) and ``mount`` (files at a path). The mode
``direct`` is the default, in which a loader reads in its own way.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dataprep.errors import StoreFull
from iobench.data.copying import Selection, copy_data
from iobench.data.data_summary import DataSummary, summarize_data
from iobench.data.settings import split_name
from iobench.errors import Unavailable
from iobench.loaders.capabilities import capabilities_of, loaders_with
from iobench.loaders.protocol import Batch, BuffersSamples, CountsBatches, Framework, Loader
from iobench.loaders.store_requests import counting_requests
from iobench.machine.hardware import memory_bytes
from iobench.machine.processes import peak_memory
from iobench.results.trial import Location, Params

Access: TypeAlias = Literal["direct", "file", "pipe", "lazy", "mount"]
Connections: TypeAlias = Annotated[int, Field(ge=1, le=256)]
ShuffleBuffer: TypeAlias = Annotated[int, Field(ge=1, le=100_000_000)]

DIRECT = "direct"
"""The mode in which the loader reads in its own way. The disk and memory that it needs are not
measured."""

MODES: Mapping[str, str] = {
    "file": "everything is downloaded to a local folder, then read there",
    "pipe": "whole objects in sequence, shuffled by key and by a buffer of samples",
    "lazy": "one range request for each sample",
    "mount": "files at a path: a FUSE mount, NFS, or any folder",
}
"""A description of each mode but ``direct``."""

SETTINGS: Mapping[str, str] = {"file": "connections", "pipe": "shuffle_buffer"}
"""By mode, the config key that only this mode uses."""


def can_read(loader: str, access: str) -> bool:
    """Return whether a loader can read in a mode.

    ``pipe`` needs a loader with a shuffle buffer, ``lazy`` a loader that requests single samples.
    Every loader that reads data can read files on a disk, so it can use ``file`` and ``mount``.
    """
    if access == DIRECT:
        return True
    capabilities = capabilities_of(loader)
    needs_capability = access in ("pipe", "lazy")
    return capabilities.reads_data and (not needs_capability or access in capabilities.access_modes)


def readers_of(access: str) -> str:
    """Return the names of the loaders that can read in a mode, for a message."""
    if access in ("pipe", "lazy"):
        return " or ".join(loaders_with(lambda capabilities: access in capabilities.access_modes))
    return "any that reads"


def data_of(access: str, name: str) -> str | None:
    """Return the name of the data that a trial reads; None if the mode cannot read these data.

    ``mount`` reads the same data on a disk. ``direct`` reads any data, and all other modes read
    only data on a store.

    Args:
        access: the mode.
        name: the name of the data with its location, such as ``shards@s3``.
    """
    if access == "mount":
        return f"{name.rpartition('@')[0]}@disk"
    _, _, is_remote = split_name(name)
    return name if access == DIRECT or is_remote else None


def downloaded(location: Location, reads: str, folder: Path, connections: int) -> Location:
    """Copy data to a folder on the disk of the run.

    From an output of ``dataprep shard``, the shards of one format are copied, with the manifest and
    the tables. From class folders, all files are copied.

    Args:
        location: the location of the data.
        reads: the record format that the loader reads, or ``files``. An empty name stands for the
            default format of the shards.
        folder: an existing folder for the copy.
        connections: number of objects that are copied at the same time.

    Returns:
        The location of the copy.

    Raises:
        Unavailable: there is too little space; nothing is copied.
        DatasetChanged: the shards were made anew meanwhile.
        StoreError: an object cannot be read.
        OSError: a file cannot be written.
    """
    local = replace(location, uri=str(folder))
    try:
        copy_data(
            location,
            local,
            Selection({reads}, indexes=False),
            name="access file",
            remedy="choose an --output on a larger disk, or another access",
            at_once=connections,
        )
    except StoreFull as error:
        raise Unavailable(str(error)) from None
    return local


class DownloadedLoader:
    """A loader that downloads its data, and then reads the copy with another loader.

    The download begins when the first epoch begins, and ``close`` removes the copy. The other
    loader is created twice: for the copy, and before that for the location on the store, so that
    frameworks are imported before any clock runs.

    Args:
        location: the location of the data on a store.
        build: creates the other loader for a location.
        folder: the copy goes to ``download`` below this folder.
        batch_size: samples in a batch.
        connections: number of objects that are copied at the same time.
    """

    def __init__(
        self,
        location: Location,
        build: Callable[[Location], Loader],
        folder: Path,
        *,
        batch_size: int,
        connections: int,
    ) -> None:
        self._location, self._build = location, build
        self._folder = folder / "download"
        self._batch_size, self._connections = batch_size, connections
        self._loader = build(location)
        self.notes: Sequence[str] = self._loader.notes
        self.framework: Framework = self._loader.framework
        self.reads: str | None = self._loader.reads
        self._format = "files" if self.reads is None else self.reads
        self._is_downloaded = False
        self.disk_bytes = 0

    def whole_batches(self) -> int:
        """Return the number of whole batches in epoch 0."""
        if isinstance(self._loader, CountsBatches):
            return self._loader.whole_batches()
        return summarize_data(self._location, self._format).samples // self._batch_size

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of the other loader. The first epoch begins with the download."""
        if not self._is_downloaded:
            self._folder.mkdir(parents=True)
            local = downloaded(self._location, self._format, self._folder, self._connections)
            files = [path for path in self._folder.rglob("*") if path.is_file()]
            self.disk_bytes = sum(path.stat().st_blocks * 512 for path in files)
            self._loader.close()
            self._loader = self._build(local)
            self.notes = self._loader.notes
            self._is_downloaded = True
        yield from self._loader.epoch(number)

    def close(self) -> None:
        """End the loader and remove the copy."""
        self.notes = self._loader.notes  # The loader may have added notes during the epochs.
        try:
            self._loader.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def metered(
    params: Params, loader: Loader, location: Location | None, data: DataSummary | None
) -> Iterator[Mapping[str, float]]:
    """Measure the requests and the resources of the block. Yield a mapping for the metrics.

    The mapping is empty until the block ends. For data on S3, the metrics are the GETs with their
    bytes and times, and the number of answers that asked for fewer requests. For modes other than
    ``direct``, they also have the bytes of disk and memory that the loader needed, the sizes of the
    data and of the memory, and the share of a processor that the measurement of memory took.

    Args:
        params: the parameters of the trial.
        loader: the loader, which must still be open at the end of the block.
        location: the location of the data; None if the loader reads nothing.
        data: the size of the data; None if it is unknown or nothing is read. The resources are then
            not measured.
    """
    metrics: dict[str, float] = {}
    access = params.get("access", DIRECT)
    needs_resources = access != DIRECT and location is not None and data is not None
    with counting_requests() as requests:
        with peak_memory() if needs_resources else contextlib.nullcontext() as memory:
            yield metrics
        totals = requests.totals()
    if memory is not None and data is not None:
        metrics["data_bytes"] = data.bytes
        metrics["memory_limit_bytes"] = memory_bytes()
        metrics["disk_needed_bytes"] = 0
        if isinstance(loader, DownloadedLoader):
            metrics["disk_needed_bytes"] = loader.disk_bytes
        if memory.needed_bytes is not None:
            metrics["memory_needed_bytes"] = memory.needed_bytes
            metrics["memory_reading_share"] = memory.core_share
        if access == "pipe" and isinstance(loader, BuffersSamples):
            metrics["shuffle_buffer_bytes"] = loader.buffer_bytes()
    if location is not None and location.uri.startswith("s3://"):
        metrics |= totals.metrics
