"""The page cache of real files, where the temporary folder has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench import pagecache
from iobench.coldness import IN_MEMORY
from iobench.mounts import file_system

SIZE = 8 * 2**20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """8 MiB that are on a disk, in a file system whose page cache can be seen."""
    kind = file_system(tmp_path)
    if kind in IN_MEMORY:
        pytest.skip(f"{kind} has nothing but a page cache")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    if pagecache.residency([path]) is None:
        pytest.skip(f"residency cannot be told on {kind}")
    return path


def test_what_was_just_written_is_resident(file: Path) -> None:
    """Written pages stay in memory."""
    assert (pagecache.residency([file]) or 0) > 0.5


def test_evicted_files_are_cold(file: Path) -> None:
    """Dirty pages are written first, then all are forgotten."""
    pagecache.evict([file])
    assert pagecache.residency([file]) == pytest.approx(0, abs=0.01)


def test_warmed_files_are_resident(file: Path) -> None:
    """Every page is read."""
    pagecache.evict([file])
    pagecache.warm([file])
    assert (pagecache.residency([file]) or 0) > 0.5


def test_residency_is_a_share_of_all_files(file: Path) -> None:
    """Two files of one size, one of them cold: half."""
    other = file.with_name("other")
    other.write_bytes(os.urandom(SIZE))
    pagecache.evict([file])
    pagecache.warm([other])
    assert pagecache.residency([file, other]) == pytest.approx(0.5, abs=0.1)


def test_many_files_are_evicted_too(file: Path) -> None:
    """More than are synced one by one."""
    paths = [file.with_name(f"{number}") for number in range(80)]
    for path in paths:
        path.write_bytes(b"x" * 5000)
    pagecache.evict(paths)
    assert pagecache.residency(paths) == pytest.approx(0, abs=0.01)


def test_reading_cold_files_moves_their_bytes(file: Path) -> None:
    """Physical bytes tell a cold read from a warm one."""
    pagecache.evict([file])
    before = pagecache.physical_read_bytes()
    if before is None:
        pytest.skip("the kernel does not count physical bytes")
    pagecache.warm([file])
    cold = pagecache.physical_read_bytes()
    pagecache.warm([file])
    again = pagecache.physical_read_bytes()
    assert cold is not None
    assert again is not None
    if cold == before:
        pytest.skip(f"{file_system(file)} does not count physical bytes")
    assert cold - before >= 0.95 * SIZE
    assert again - cold < 0.95 * SIZE


@pytest.mark.parametrize(
    ("told", "stays", "written"),
    [
        ("never", 0.5, None),
        ("when-needed", 0.5, "1\n"),
        ("when-needed", 0.0, None),
        ("when-needed", None, None),
        ("always", 0.0, "3\n"),
    ],
)
def test_caches_of_the_machine_are_dropped_as_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: pagecache.DropCaches,
    stays: float | None,
    written: str | None,
) -> None:
    """Where pages stay after a file's own eviction, or always; names and inodes then too."""
    drop = tmp_path / "drop_caches"
    data = tmp_path / "data"
    data.write_bytes(b"x" * 5000)
    monkeypatch.setattr(pagecache, "_DROP_CACHES", drop)
    monkeypatch.setattr(pagecache, "residency", lambda paths: stays)
    monkeypatch.setattr(pagecache, "file_system", lambda path: "ext4")
    pagecache.evict([data], told)
    assert (drop.read_text() if drop.exists() else None) == written
    monkeypatch.setattr(pagecache, "file_system", lambda path: "tmpfs")
    drop.unlink(missing_ok=True)
    pagecache.evict([data], told)
    assert not drop.exists()


def test_what_may_not_be_dropped_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root nothing fails: the limits of the trial say it."""
    data = tmp_path / "data"
    data.write_bytes(b"x")
    monkeypatch.setattr(pagecache, "_DROP_CACHES", tmp_path / "absent" / "drop_caches")
    monkeypatch.setattr(pagecache, "file_system", lambda path: "ext4")
    pagecache.evict([data], "always")


def test_no_pages_have_no_residency(tmp_path: Path) -> None:
    """Nothing, or nothing but empty files, is neither warm nor cold."""
    empty = tmp_path / "empty"
    empty.touch()
    assert pagecache.residency([]) is None
    assert pagecache.residency([empty]) is None
    pagecache.evict([])


def test_a_file_that_is_gone_has_no_residency(tmp_path: Path) -> None:
    """What cannot be opened cannot be told; evicting it is an error."""
    assert pagecache.residency([tmp_path / "gone"]) is None
    with pytest.raises(FileNotFoundError):
        pagecache.evict([tmp_path / "gone"])


def test_total_bytes(tmp_path: Path) -> None:
    """Sizes add up."""
    for name, count in (("a", 3), ("b", 4)):
        (tmp_path / name).write_bytes(b"x" * count)
    assert pagecache.total_bytes([tmp_path / "a", tmp_path / "b"]) == 7
