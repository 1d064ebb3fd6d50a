"""Tests of dataprep.archives.indexing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dataprep.archives.gzip_points import GzipPoints
from dataprep.archives.handles import Stamp
from dataprep.archives.indexing import LOCAL, REMOTE, Access, Indexer
from dataprep.archives.tar_index import TarIndex
from dataprep.errors import NotAnArchive, StoreUnreachable
from tests.tars import nested, tar_of, zipped


class Counted:
    """An archive in memory that keeps what was asked of it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.stamp = Stamp(len(data), "")
        self.asked: list[tuple[int, int]] = []

    def fetch(self, offset: int, length: int) -> bytes:
        """Bytes of it."""
        self.asked.append((offset, length))
        return self._data[offset : offset + length]

    @property
    def fetched_bytes(self) -> int:
        """Of all that was asked."""
        return sum(length for _, length in self.asked)


def run(handle: Counted, access: Access) -> tuple[TarIndex, list[tuple[int, int]], list[str]]:
    """The index, which gzip files had their points kept, and what was said.

    Of what is decompressed the sizes are said.
    """
    kept: list[tuple[int, int]] = []
    said: list[str] = []

    def keep(start: int, size: int, points: GzipPoints) -> None:
        assert points.packed_bytes == size
        kept.append((start, size))

    def inflating(sizes: Sequence[int]) -> None:
        assert not kept
        said.append(f"decompressed: {list(sizes)}")

    return Indexer("u", handle, access, keep, said.append, inflating).run(), kept, said


LARGE = {f"n{i % 5}/{i}.jpg": b"\xff\xd8" + bytes(200_000) for i in range(50)}
SMALL = {f"n{i % 5}/{i}.jpg": b"\xff\xd8" + bytes(1000) for i in range(2000)}


def test_of_large_members_headers_alone_are_read() -> None:
    """From a disk, a small part of an archive of photographs is touched."""
    data = nested(LARGE)
    handle = Counted(data)
    index, kept, said = run(handle, LOCAL)
    assert len(index) == 50
    assert handle.fetched_bytes < len(data) / 20
    assert (kept, said) == ([], [])


def test_small_members_are_read_in_windows() -> None:
    """From a store, many headers come with one request, and nothing twice but a little."""
    data = nested(SMALL)
    handle = Counted(data)
    index, _, _ = run(handle, REMOTE)
    assert len(index) == 2000
    assert len(handle.asked) < 30
    assert handle.fetched_bytes < 2 * len(data)


def test_larger_than_a_window_means_one_request_a_header() -> None:
    """Members larger than a window are skipped, not fetched."""
    data = nested(LARGE)
    handle = Counted(data)
    index, _, _ = run(handle, Access(window_bytes=100_000, probe_bytes=2048, threads=4))
    assert len(index) == 50
    assert handle.fetched_bytes < len(data) / 20


@pytest.mark.parametrize("access", [LOCAL, REMOTE], ids=["local", "remote"])
def test_compressed_archives_are_read_once(access: Access) -> None:
    """The pass over a compressed archive reads each byte once, says so before, keeps its points."""
    data = zipped(nested(SMALL))
    handle = Counted(data)
    index, kept, said = run(handle, access)
    assert len(index) == 2000
    assert kept == [(0, len(data))]
    assert handle.fetched_bytes <= len(data) + 4096
    assert said == [f"decompressed: {[len(data)]}"]


def test_each_compressed_part_has_its_points() -> None:
    """Inner tars that are compressed are read whole, each by itself, all announced before."""
    data = nested(SMALL, packed=True)
    index, kept, said = run(Counted(data), LOCAL)
    assert len(index) == 2000
    assert sorted(kept) == sorted((part.start, part.bytes) for part in index.parts[1:])
    assert said == [f"decompressed: {[part.bytes for part in index.parts[1:]]}"]


@pytest.mark.parametrize("data", [b"", b"\xff\xd8 a photograph", bytes(2000)])
def test_what_is_no_archive(data: bytes) -> None:
    """Other content is refused, whatever it is called; an empty tar holds nothing to read."""
    with pytest.raises(NotAnArchive, match="no tar archive"):
        run(Counted(data), LOCAL)


def test_a_large_archive_is_announced() -> None:
    """That a gigabyte's headers are read is said, with its size."""
    data = tar_of({"a.jpg": b"\xff\xd8"})
    handle = Counted(data)
    handle.stamp = Stamp(3 * 2**30, "")
    _, _, said = run(handle, LOCAL)
    assert said == ["u: reading its headers (3.2 GB), once"]


class Failing(Counted):
    """A store that gives up half-way."""

    def fetch(self, offset: int, length: int) -> bytes:
        """Bytes of the first half."""
        if offset > self.stamp.bytes // 2:
            raise StoreUnreachable("no answer")
        return super().fetch(offset, length)


@pytest.mark.parametrize("access", [LOCAL, Access(4096, 4096, 2, ahead=2)], ids=["plain", "ahead"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_store_that_gives_up_is_not_a_damaged_archive(packed: bool, access: Access) -> None:
    """What the store raises is what is raised, from within the decompression too."""
    rng = np.random.default_rng(0)
    data = nested({f"n1/{i}.jpg": rng.bytes(500_000) for i in range(8)})
    with pytest.raises(StoreUnreachable, match="no answer"):
        run(Failing(zipped(data) if packed else data), access)
