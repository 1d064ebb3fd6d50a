"""Tests of dataprep.archives.index_cache."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dataprep.archives import gzip_points
from dataprep.archives.handles import Stamp
from dataprep.archives.index_cache import IndexCache
from dataprep.archives.tar_index import Part, TarIndex
from tests.tars import zipped

STAMP = Stamp(1000, "version")
INDEX = TarIndex(
    parts=(Part(b"t.tar", 0, 9000, False), Part(b"n\xff\n.tar", 512, 4000, True)),
    part=np.array([0, 1, 1], dtype=np.int32),
    names=[b"a.jpg", b"\xff\xfe", b"new\nline"],
    offsets=np.array([1, 2, 2**40], dtype=np.int64),
    sizes=np.array([0, 3, 2**41], dtype=np.int64),
    refused={1: "symbolic link in the archive"},
    remarks={1: "no end marker"},
)


def same(one: TarIndex | None, other: TarIndex) -> bool:
    """Whether all columns are equal, and of the same kind."""
    assert one is not None
    for name in ("part", "offsets", "sizes"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    plain = ("parts", "refused", "remarks")
    assert [getattr(one, name) for name in plain] == [getattr(other, name) for name in plain]
    return list(one.names) == list(other.names)


@pytest.fixture
def cache(tmp_path: Path) -> IndexCache:
    """One in a folder that is not there yet."""
    return IndexCache(str(tmp_path / "not" / "yet"))


def test_an_index_comes_back_whole(cache: IndexCache) -> None:
    """Names of any bytes, offsets past 4 GiB, refusals and parts survive."""
    assert cache.index("u", STAMP) is None
    for index in (INDEX, replace(INDEX, refused={}), replace(INDEX, remarks={})):
        cache.put_index("u", STAMP, index)
        assert same(cache.index("u", STAMP), index)


@pytest.mark.parametrize(
    ("uri", "stamp"), [("u", Stamp(1001, "version")), ("u", Stamp(1000, "other")), ("v", STAMP)]
)
def test_another_archive_has_no_index(cache: IndexCache, uri: str, stamp: Stamp) -> None:
    """Address, size and version have to be those that were indexed."""
    cache.put_index("u", STAMP, INDEX)
    assert cache.index(uri, stamp) is None


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x" * 5000])
def test_damaged_files_count_as_missing(cache: IndexCache, damage: bytes) -> None:
    """Whatever lies there, nothing is raised."""
    cache.put_index("u", STAMP, INDEX)
    for file in cache.folder.iterdir():
        file.write_bytes(damage)
    assert cache.index("u", STAMP) is None
    assert cache.points("u", STAMP) is None


def test_a_file_moved_from_another_archive_is_not_believed(cache: IndexCache) -> None:
    """The address stands inside as well."""
    cache.put_index("u", STAMP, INDEX)
    (file,) = cache.folder.iterdir()
    cache.put_index("v", STAMP, INDEX)
    (other,) = set(cache.folder.iterdir()) - {file}
    file.rename(other)
    assert cache.index("v", STAMP) is None


def test_nothing_half_written_stays(cache: IndexCache) -> None:
    """Files appear under their names complete; what was begun is gone."""
    for _ in range(3):
        cache.put_index("u", STAMP, INDEX)
    assert len(list(cache.folder.iterdir())) == 1


def test_points_come_back_mapped(cache: IndexCache) -> None:
    """Points are those that were kept, for the archive they were kept for."""
    data = zipped(b"words " * 10)
    file = gzip_points.opened(io.BytesIO(data), len(data))  # type: ignore[arg-type]
    file.read()
    cache.put_points("u", STAMP, gzip_points.points_of(file))
    found = cache.points("u", STAMP)
    assert found is not None
    assert found.read(lambda at, n: data[at : at + n], 6, 5) == b"words"
    assert cache.points("u", Stamp(1, "")) is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where nothing can be kept nothing is, without a word; the lock is no obstacle either."""
    (tmp_path / "file").touch()
    cache = IndexCache(str(tmp_path / "file" / "folder"))
    cache.put_index("u", STAMP, INDEX)
    with cache.building("u"):
        assert cache.index("u", STAMP) is None


def test_one_builds_at_a_time(cache: IndexCache) -> None:
    """Who comes second waits until the first is done."""
    events: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        events.append("waits")
        with cache.building("u"):
            events.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.building("u"):
        inside.set()
        while not events:
            pass
        with cache.building("another archive"):
            events.append("first")
    thread.join()
    assert events == ["waits", "first", "second"]


@pytest.mark.parametrize(
    "change",
    [
        {"part": np.array([0, 2, 1], dtype=np.int32)},
        {"part": np.array([0, -1, 1], dtype=np.int32)},
        {"offsets": np.array([1, -2, 3], dtype=np.int64)},
        {"sizes": np.array([1.0, 2.0, 3.0])},
        {"names": [b"a", None, b"c"]},
        {"remarks": {7: "of no part"}},
    ],
)
def test_an_index_that_none_can_be_counts_as_missing(
    cache: IndexCache, change: dict[str, object]
) -> None:
    """A file of the cache may be damaged where Parquet does not see it."""
    cache.put_index("u", STAMP, replace(INDEX, **change))  # type: ignore[arg-type]
    assert cache.index("u", STAMP) is None
