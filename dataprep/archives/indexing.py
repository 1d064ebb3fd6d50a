"""One pass over an archive: its index, and the points of what is compressed in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dataprep.archives import gzip_points
from dataprep.archives.compression import GZIP, PROBE_BYTES, beginning, compression_of, hint
from dataprep.archives.gzip_points import GzipPoints
from dataprep.archives.handles import Handle
from dataprep.archives.range_file import RangeFile
from dataprep.archives.tar_block import BLOCK
from dataprep.archives.tar_index import Inner, Part, TarIndex, index_tar, is_tar
from dataprep.archives.windows import Streamed, Windowed
from dataprep.errors import CorruptArchive, NotAnArchive

_DRAIN_BYTES = 1 << 20
_WORTH_A_WORD_BYTES = 1 << 30


class Access(NamedTuple):
    """How headers are read: bytes at once where they lie close, and else; and reads in flight."""

    window_bytes: int
    probe_bytes: int
    threads: int
    ahead: int = 0
    """Windows fetched ahead of a stream that is decompressed."""


LOCAL = Access(window_bytes=1 << 15, probe_bytes=4096, threads=4)
REMOTE = Access(window_bytes=8 << 20, probe_bytes=1 << 16, threads=16, ahead=4)


@dataclass(frozen=True)
class Indexer:
    """What is to be indexed, and who is told.

    ``keep`` takes the points of the gzip file that lies at ``(start, bytes)`` of the archive.
    ``inflating`` hears the sizes of those that are about to be decompressed.
    """

    uri: str
    handle: Handle
    access: Access
    keep: Callable[[int, int, GzipPoints], None]
    note: Callable[[str], None]
    inflating: Callable[[Sequence[int]], None]

    def run(self) -> TarIndex:
        """Read the archive once: headers alone, or everything where it is compressed.

        Raises:
            NotAnArchive: no tar, nor a compressed one.
            CorruptArchive: damaged or truncated.
        """
        file_bytes = self.handle.stamp.bytes
        first = self.handle.fetch(0, min(PROBE_BYTES, file_bytes))
        kind = compression_of(first)
        if kind == GZIP and is_tar(beginning(first, BLOCK)):
            return self._compressed(file_bytes)
        if kind and kind != GZIP:
            raise NotAnArchive(f"{self.uri}: {hint(kind)}")
        if not is_tar(first[:BLOCK]):
            raise NotAnArchive(f"{self.uri}: no tar archive: its content begins otherwise")
        if file_bytes >= _WORTH_A_WORD_BYTES:
            self.note(f"{self.uri}: reading its headers ({file_bytes / 1e9:,.1f} GB), once")
        whole = Part(self._name(), 0, file_bytes, False)
        source = self._windowed(file_bytes)
        return index_tar(source, whole, self._open_inner, self.access.threads, self._announce)

    def _compressed(self, file_bytes: int) -> TarIndex:
        self.inflating([file_bytes])
        stream = _GzipStream(self, 0, file_bytes)
        whole = Part(self._name(), 0, file_bytes, True)
        index = index_tar(stream.source, whole, None)
        stream.finish()
        return index

    def _announce(self, parts: Sequence[Part]) -> None:
        if sizes := [part.bytes for part in parts if part.compressed]:
            self.inflating(sizes)

    def _open_inner(self, part: Part) -> Inner:
        if not part.compressed:
            end = part.start + part.bytes
            return Inner(self._windowed(end), part.start, end)
        stream = _GzipStream(self, part.start, part.bytes)
        return Inner(stream.source, 0, None, stream.finish)

    def points(self, start: int, packed_bytes: int) -> GzipPoints:
        """The points of a gzip file alone, by reading all of it."""
        return _GzipStream(self, start, packed_bytes).finish()

    def _windowed(self, end: int) -> Windowed:
        access = self.access
        return Windowed(self.handle.fetch, end, access.window_bytes, access.probe_bytes)

    def _name(self) -> bytes:
        return self.uri.encode("utf-8", "surrogateescape")


class _GzipStream:
    """A gzip file within the archive, read from its beginning to its end."""

    def __init__(self, indexer: Indexer, start: int, packed_bytes: int) -> None:
        self._indexer, self._start, self._packed_bytes = indexer, start, packed_bytes
        access = indexer.access
        self._file = RangeFile(
            indexer.handle.fetch,
            start,
            packed_bytes,
            window_bytes=max(access.window_bytes, 1 << 20),
            ahead=access.ahead,
        )
        self._gzip = gzip_points.opened(self._file, packed_bytes)
        self.source = Streamed(self)

    def read(self, size: int, /) -> bytes:
        """What comes next; nothing at the end."""
        try:
            data: bytes = self._gzip.read(size)
        except OSError:
            # What the store raised comes out of the library as its own error, or not at all.
            if self._file.error:
                raise self._file.error from None
            raise CorruptArchive(
                f"{self._indexer.uri}: the gzip data that begin at byte {self._start:,} are "
                "damaged or truncated: compare the MD5 and fetch the archive again"
            ) from None
        return data

    def finish(self) -> GzipPoints:
        """Read what is left, so that the checksum is checked, and hand over the points."""
        while self.read(_DRAIN_BYTES):
            pass
        points = gzip_points.points_of(self._gzip)
        self._gzip.close()
        self._file.close()
        self._indexer.keep(self._start, self._packed_bytes, points)
        return points
