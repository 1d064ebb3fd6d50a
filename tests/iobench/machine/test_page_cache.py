"""The page cache of real files, where the temporary folder has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.machine import page_cache
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import limits, prepared
from tests.permissions import reachable_folder, unprivileged

SIZE = 8 * 2**20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """8 MiB that are on a disk, in a file system whose page cache can be seen."""
    kind = file_system(tmp_path)
    if kind in IN_MEMORY:
        pytest.skip(f"{kind} has nothing but a page cache")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    if page_cache.residency([path]) is None:
        pytest.skip(f"residency cannot be told on {kind}")
    return path


def test_what_was_just_written_is_resident(file: Path) -> None:
    """Written pages stay in memory."""
    assert (page_cache.residency([file]) or 0) > 0.5


def test_evicted_files_are_cold(file: Path) -> None:
    """Dirty pages are written first, then all are forgotten."""
    page_cache.evict([file])
    assert page_cache.residency([file]) == pytest.approx(0, abs=0.01)


def test_warmed_files_are_resident(file: Path) -> None:
    """Every page is read."""
    page_cache.evict([file])
    page_cache.warm([file])
    assert (page_cache.residency([file]) or 0) > 0.5


def test_residency_is_a_share_of_all_files(file: Path) -> None:
    """Two files of one size, one of them cold: half."""
    other = file.with_name("other")
    other.write_bytes(os.urandom(SIZE))
    page_cache.evict([file])
    page_cache.warm([other])
    assert page_cache.residency([file, other]) == pytest.approx(0.5, abs=0.1)


def test_many_files_are_evicted_too(file: Path) -> None:
    """More than are synced one by one."""
    paths = [file.with_name(f"{number}") for number in range(80)]
    for path in paths:
        path.write_bytes(b"x" * 5000)
    page_cache.evict(paths)
    assert page_cache.residency(paths) == pytest.approx(0, abs=0.01)


def test_reading_cold_files_moves_their_bytes(file: Path) -> None:
    """Physical bytes tell a cold read from a warm one."""
    page_cache.evict([file])
    before = page_cache.physical_read_bytes()
    if before is None:
        pytest.skip("the kernel does not count physical bytes")
    page_cache.warm([file])
    cold = page_cache.physical_read_bytes()
    page_cache.warm([file])
    again = page_cache.physical_read_bytes()
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
    told: page_cache.DropCaches,
    stays: float | None,
    written: str | None,
) -> None:
    """Where pages stay after a file's own eviction, or always; names and inodes then too."""
    drop = tmp_path / "drop_caches"
    data = tmp_path / "data"
    data.write_bytes(b"x" * 5000)
    monkeypatch.setattr(page_cache, "DROP_CACHES", drop)
    monkeypatch.setattr(page_cache, "residency", lambda paths: stays)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    page_cache.evict([data], told)
    assert (drop.read_text() if drop.exists() else None) == written
    monkeypatch.setattr(page_cache, "file_system", lambda path: "tmpfs")
    drop.unlink(missing_ok=True)
    page_cache.evict([data], told)
    assert not drop.exists()


def test_what_may_not_be_dropped_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root nothing fails: the limits of the trial say it."""
    data = tmp_path / "data"
    data.write_bytes(b"x")
    monkeypatch.setattr(page_cache, "DROP_CACHES", tmp_path / "absent" / "drop_caches")
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    page_cache.evict([data], "always")


def test_no_pages_have_no_residency(tmp_path: Path) -> None:
    """Nothing, or nothing but empty files, is neither warm nor cold."""
    empty = tmp_path / "empty"
    empty.touch()
    assert page_cache.residency([]) is None
    assert page_cache.residency([empty]) is None
    page_cache.evict([])


def test_a_file_that_is_gone_has_no_residency(tmp_path: Path) -> None:
    """What cannot be opened cannot be told; evicting it is an error."""
    assert page_cache.residency([tmp_path / "gone"]) is None
    with pytest.raises(FileNotFoundError):
        page_cache.evict([tmp_path / "gone"])


def test_both_system_calls_agree(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mincore and cachestat see the same pages, the last one not full."""
    with file.open("ab") as grown:
        grown.write(b"x")
    counted = page_cache.residency([file])
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: None)
    assert page_cache.residency([file]) == counted


@pytest.mark.parametrize(("kind", "share"), [("overlay", 1.0), ("ext4", 0.0)])
def test_an_overlay_is_asked_by_mincore(
    file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, share: float
) -> None:
    """cachestat looks at the overlay's own page cache, which is always empty."""
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: 0)
    monkeypatch.setattr(page_cache, "file_system", lambda path: kind)
    assert page_cache.residency([file]) == share


def test_mincore_is_not_believed_for_files_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reports every page as resident of files that we could not write."""
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: None)
    with reachable_folder() as folder:
        path = folder / "file"
        path.write_bytes(b"x" * 5000)
        path.chmod(0o644)
        with unprivileged():
            is_ours = path.stat().st_uid == os.geteuid()
            assert page_cache.residency([path]) == (1.0 if is_ours else None)


def test_eviction_is_real(file: Path) -> None:
    """What the kernel says of a file that was warmed, then evicted, is what is kept."""
    assert prepared("warm", [file]).resident_before in (1.0, None)
    assert prepared("cold", [file]).resident_before in (0.0, None)
    assert prepared("direct", [file]).resident_before in (0.0, None)


def test_a_state_is_judged_by_what_was_read(file: Path) -> None:
    """All of it from storage is cold, half of it is not, and a warm file that stayed is warm."""
    cold = prepared("cold", [file])
    if cold.resident_before is None:
        pytest.skip("this kernel does not tell what is resident")
    assert cold.judged(1.0, sequential=True).label == "cold"
    assert cold.judged(0.5, sequential=True).label == "warm"
    assert cold.judged(None, sequential=True).label == "warm"
    assert cold.judged(None, sequential=False).label == "cold"
    warm = prepared("warm", [file]).judged(0.0, sequential=True)
    assert (warm.label, warm.why, warm.cache_resident) == ("warm", "", True)


class TestLimits:
    @pytest.fixture(autouse=True)
    def able(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Root on a disk of its own, without a container."""
        monkeypatch.setattr(page_cache, "DROP_CACHES", tmp_path)
        monkeypatch.setattr(page_cache, "physical_read_bytes", lambda: 0)
        monkeypatch.setattr(page_cache, "container", lambda: "")

    def test_none_where_everything_can_be_done(self) -> None:
        """Nothing is said then."""
        assert limits("ext4", 0.0) == ()

    @pytest.mark.parametrize(
        ("kind", "resident", "said"),
        [
            ("tmpfs", None, "tmpfs: files lie in memory"),
            ("ext4", None, "what is resident is not told"),
        ],
    )
    def test_of_the_files(self, kind: str, resident: float | None, said: str) -> None:
        """Each is said once, and nothing else."""
        (found,) = limits(kind, resident)
        assert found.startswith(said)

    def test_of_the_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What may not be written or is not counted; signs of a container."""
        monkeypatch.setattr(page_cache, "DROP_CACHES", tmp_path / "absent")
        monkeypatch.setattr(page_cache, "physical_read_bytes", lambda: None)
        monkeypatch.setattr(page_cache, "container", lambda: "signs of Docker: /.dockerenv")
        found = [limit.partition(": ")[0] for limit in limits("ext4", 0.0)]
        assert found == [
            "drop_caches is not permitted (no root, or a container)",
            "no /proc/PID/io",
            "signs of Docker",
        ]
