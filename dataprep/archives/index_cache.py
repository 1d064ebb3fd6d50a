"""Indexes of archives kept between runs, as long as the archive is the one that was indexed.

One that is stale or cannot be read counts as missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.archives.gzip_points import GzipPoints
from dataprep.archives.handles import Stamp
from dataprep.archives.tar_index import Part, TarIndex
from dataprep.cache_folder import CacheFolder

SCHEMA = 2
_COLUMNS = {
    "part": pa.int32(),
    "name": pa.large_binary(),
    "offset": pa.int64(),
    "bytes": pa.int64(),
}
_PART = (bytes, int, int, bool)
_BROKEN = (
    OSError,
    pa.ArrowException,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
)


class IndexCache:
    """A folder of indexes. Where it cannot be written to, nothing is kept."""

    def __init__(self, folder: str | None = None) -> None:
        self._files = CacheFolder(folder)

    @property
    def folder(self) -> Path:
        """Where they lie."""
        return self._files.path

    def index(self, uri: str, stamp: Stamp) -> TarIndex | None:
        """The index of the archive at ``uri``, unless it changed since."""
        path = self._path(uri, "parquet")
        try:
            table = pq.read_table(path)
            about = json.loads(table.schema.metadata[b"index"])
            if about["is"] != _identity(uri, stamp):
                return None
            return _from_table(table, about)
        except _BROKEN:
            return None

    def put_index(self, uri: str, stamp: Stamp, index: TarIndex) -> None:
        """Keep an index."""
        sink = io.BytesIO()
        pq.write_table(_table(index, _identity(uri, stamp)), sink, compression="zstd")
        self._files.keep(_name(uri, "parquet"), lambda file: file.write(sink.getbuffer()))

    def points(self, uri: str, stamp: Stamp) -> GzipPoints | None:
        """The points of the gzip file at ``uri``, mapped into memory."""
        path = os.fspath(self._path(uri, "arrow"))
        try:
            return GzipPoints.of_file(path, _identity(uri, stamp))
        except _BROKEN:
            return None

    def put_points(self, uri: str, stamp: Stamp, points: GzipPoints) -> None:
        """Keep points."""
        identity = _identity(uri, stamp)
        self._files.keep(_name(uri, "arrow"), lambda file: points.write(file, identity))

    @contextlib.contextmanager
    def building(self, uri: str) -> Iterator[None]:
        """Hold off other processes of this machine that would build the same index."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self._path(uri, "lock").open("w")
        except OSError:
            yield
            return
        with file:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, uri: str, extension: str) -> Path:
        return self.folder / _name(uri, extension)


def _name(uri: str, extension: str) -> str:
    return f"{hashlib.sha256(os.fsencode(uri)).hexdigest()[:32]}.{extension}"


def _identity(uri: str, stamp: Stamp) -> str:
    return json.dumps([SCHEMA, os.fsencode(uri).hex(), stamp.bytes, stamp.version])


def _table(index: TarIndex, identity: str) -> pa.Table:
    reasons = [index.refused.get(row) for row in range(len(index))] if index.refused else None
    table = pa.table(
        {
            "part": pa.array(index.part),
            "name": pa.array(index.names, pa.large_binary()),
            "offset": pa.array(index.offsets),
            "bytes": pa.array(index.sizes),
            "refused": pa.array(reasons, pa.string()) if reasons else pa.nulls(len(index)),
        }
    )
    about = {
        "is": identity,
        "parts": [[part.name.hex(), *part[1:]] for part in index.parts],
        "remarks": [*index.remarks.items()],
    }
    return table.replace_schema_metadata({"index": json.dumps(about)})


def _from_table(table: pa.Table, about: Any) -> TarIndex:
    rows = len(table)
    if any(table[name].type != kind or table[name].null_count for name, kind in _COLUMNS.items()):
        raise TypeError("other columns than were written, or gaps in them")
    parts = tuple(Part(bytes.fromhex(name), *rest) for name, *rest in about["parts"])
    remarks = {int(number): str(remark) for number, remark in about["remarks"]}
    part = table["part"].to_numpy()
    offsets, sizes = table["offset"].to_numpy(), table["bytes"].to_numpy()
    least = min(part.min(initial=0), offsets.min(initial=0), sizes.min(initial=0), *remarks, 0)
    if least < 0 or max(part.max(initial=0), *remarks, 0) >= len(parts):
        raise ValueError("a number that none has")
    if any(type(one) is not kind for each in parts for one, kind in zip(each, _PART, strict=True)):
        raise TypeError("a part that is none")
    reasons = table["refused"].to_pylist() if table["refused"].null_count < rows else ()
    return TarIndex(
        parts=parts,
        part=part,
        names=table["name"].to_pylist(),
        offsets=offsets,
        sizes=sizes,
        refused={row: reason for row, reason in enumerate(reasons) if reason is not None},
        remarks=remarks,
    )
