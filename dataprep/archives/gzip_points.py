"""A gzip file read at any place, from points at which its decompression can be entered.

A point is a block's first bit and the 32 KiB of content before it (M. Adler, zlib's
``examples/zran.c``). indexed_gzip finds them in one pass; they are kept in an Arrow file that is
mapped into memory, since those of ImageNet's training tar come to 1 GB and every worker needs a
few of them at a time.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.archives.deflate_entry import inflate_from
from dataprep.errors import ConfigError, CorruptArchive

if TYPE_CHECKING:
    from indexed_gzip import IndexedGzipFile

MOST_POINTS = 32_768
"""A gigabyte of windows. Larger files have their points further apart."""

_COLUMNS = {
    "packed": pa.int64(),
    "plain": pa.int64(),
    "bits": pa.uint8(),
    "window": pa.large_binary(),
}
_SPACING_BYTES = 1 << 20
_WINDOW_BYTES = 1 << 15
# The export of indexed_gzip 1, as its zran.c writes it.
_HEADER = struct.Struct("<5sBB QQIII")
_POINT = struct.Struct("<QQBB")


@dataclass(frozen=True)
class GzipPoints:
    """Points in the order of the file.

    Attributes:
        packed: int64 byte of the gzip file at which each point's block begins; the first point
            is 0, the file's own beginning.
        plain: int64 byte of the content that comes first there.
        bits: uint8 bits of the byte before ``packed`` that belong to the block already.
        windows: the content before each point; empty at the beginning of a stream.
        packed_bytes: of the gzip file.
        plain_bytes: of its content.
    """

    packed: NDArray[np.int64]
    plain: NDArray[np.int64]
    bits: NDArray[np.uint8]
    windows: Any
    packed_bytes: int
    plain_bytes: int

    def read(self, fetch: Callable[[int, int], bytes], offset: int, length: int) -> bytes:
        """Content from ``offset`` on, by one ``fetch`` of a part of the gzip file.

        Raises:
            CorruptArchive: that part is damaged.
        """
        if length == 0:
            return b""
        first = int(np.searchsorted(self.plain, offset, side="right")) - 1
        after = int(np.searchsorted(self.plain, offset + length, side="left"))
        bits = int(self.bits[first])
        begin = int(self.packed[first]) - bool(bits)
        # The block that ends where the next point begins may share its first byte.
        end = int(self.packed[after]) if after < len(self.packed) else self.packed_bytes
        data = fetch(begin, end - begin)
        window = self.windows[first].as_buffer() if first else None
        try:
            return inflate_from(data, bits, window, offset - int(self.plain[first]), length)
        except zlib.error as error:
            raise CorruptArchive(
                f"the gzip data between bytes {begin:,} and {end:,} are damaged ({error}): "
                "fetch the archive again"
            ) from None

    def write(self, sink: BinaryIO, identity: str) -> None:
        """As an Arrow file whose columns need no decoding; ``identity`` says of which archive."""
        table = pa.table(
            {
                "packed": pa.array(self.packed),
                "plain": pa.array(self.plain),
                "bits": pa.array(self.bits),
                "window": self.windows,
            }
        ).replace_schema_metadata(
            {
                "is": identity,
                "packed_bytes": str(self.packed_bytes),
                "plain_bytes": str(self.plain_bytes),
            }
        )
        with pa.ipc.new_file(pa.PythonFile(sink, mode="w"), table.schema) as writer:
            writer.write_table(table)

    @classmethod
    def of_file(cls, path: str, identity: str) -> GzipPoints:
        """Map what ``write`` wrote into memory.

        Raises:
            OSError, pyarrow.ArrowException, KeyError, ValueError: it is no such file, or one of
                another archive.
        """
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
        if table.schema.metadata[b"is"] != identity.encode():
            raise ValueError(f"{path} belongs to another archive")
        # A file that was damaged on its disk: Arrow does not look where its offsets lead.
        table.validate(full=True)
        if table.schema.types != list(_COLUMNS.values()) or not len(table):
            raise ValueError(f"{path} has other columns, or no points")
        if any(column.null_count for column in table.columns):
            raise ValueError(f"{path} lacks values")
        found = cls(
            packed=table["packed"].to_numpy(),
            plain=table["plain"].to_numpy(),
            bits=table["bits"].to_numpy(),
            windows=table["window"],
            packed_bytes=int(table.schema.metadata[b"packed_bytes"]),
            plain_bytes=int(table.schema.metadata[b"plain_bytes"]),
        )
        for places, end in ((found.packed, found.packed_bytes), (found.plain, found.plain_bytes)):
            if places[0] != 0 or (np.diff(places) < 0).any() or places[-1] > end:
                raise ValueError(f"{path}: its points are not in order")
        if found.bits.max() > 7:
            raise ValueError(f"{path}: more bits than a byte has")
        return found


def spacing_for(packed_bytes: int) -> int:
    """Bytes of content from point to point: whole MiB, 1 or more."""
    return max(1, -(-packed_bytes // (MOST_POINTS * _SPACING_BYTES))) * _SPACING_BYTES


def opened(file: io.RawIOBase, packed_bytes: int) -> IndexedGzipFile:
    """A gzip file whose points are found while it is read to its end.

    Raises:
        ConfigError: indexed_gzip is not installed.
    """
    try:
        from indexed_gzip import IndexedGzipFile
    except ImportError:
        raise ConfigError(
            "compressed archives need indexed_gzip: pip install 'dataprep-iobench[gzip]', or "
            "decompress the archive first, as in gunzip --keep"
        ) from None
    return IndexedGzipFile(fileobj=file, spacing=spacing_for(packed_bytes))


def points_of(file: IndexedGzipFile) -> GzipPoints:
    """The points of a file that was read to its end."""
    exported = io.BytesIO()
    file.export_index(fileobj=exported)
    return parse_export(exported.getbuffer())


def parse_export(data: memoryview) -> GzipPoints:
    """indexed_gzip's own file of points.

    Raises:
        ConfigError: of a version that is not known here.
    """
    magic, version, _, packed_bytes, plain_bytes, _, window_bytes, count = _HEADER.unpack_from(data)
    if magic != b"GZIDX" or version != 1:
        raise ConfigError(
            f"indexed_gzip writes its points in a way that is not known here (version {version}): "
            "install indexed_gzip 1.10"
        )
    end = _HEADER.size + count * _POINT.size
    points = list(_POINT.iter_unpack(data[_HEADER.size : end]))
    lengths = [window_bytes * point[3] for point in points]
    if not points or points[0][1]:
        # Small files have no points at all.
        points, lengths = [(0, 0, 0, 0), *points], [0, *lengths]
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data[end:])]
    packed, plain, bits, _ = zip(*points, strict=True)
    return GzipPoints(
        packed=np.array([0, *packed[1:]], dtype=np.int64),
        plain=np.array(plain, dtype=np.int64),
        bits=np.array(bits, dtype=np.uint8),
        windows=pa.Array.from_buffers(pa.large_binary(), len(points), buffers),
        packed_bytes=packed_bytes,
        plain_bytes=plain_bytes,
    )
