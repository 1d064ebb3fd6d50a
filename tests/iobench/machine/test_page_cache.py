"""The page cache of real files, if the temporary folder has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.machine import page_cache
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.machine.page_cache import limits, prepare_cache
from tests.permissions import reachable_folder, unprivileged

SIZE = 8 * 2**20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of 8 MiB on a file system whose page cache can be seen."""
    kind = file_system(tmp_path)
    if kind in IN_MEMORY:
        pytest.skip(f"{kind} has nothing but a page cache")
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    if page_cache.residency([path]) is None:
        pytest.skip(f"residency cannot be told on {kind}")
    return path


def test_evicted_files_are_cold_and_warmed_ones_resident(file: Path) -> None:
    """Dirty pages are written before eviction; the residency is a share of all files."""
    other = file.with_name("other")
    other.write_bytes(os.urandom(SIZE))
    assert (page_cache.residency([file]) or 0) > 0.5
    page_cache.evict([file])
    assert page_cache.residency([file]) == pytest.approx(0, abs=0.01)
    assert page_cache.residency([file, other]) == pytest.approx(0.5, abs=0.1)
    page_cache.warm([file])
    assert (page_cache.residency([file]) or 0) > 0.5


def test_many_files_are_evicted_too(file: Path) -> None:
    """More files are evicted than are synced one by one."""
    paths = [file.with_name(f"{number}") for number in range(80)]
    for path in paths:
        path.write_bytes(b"x" * 5000)
    page_cache.evict(paths)
    assert page_cache.residency(paths) == pytest.approx(0, abs=0.01)


def test_reading_cold_files_moves_their_bytes(file: Path) -> None:
    """The count of physical bytes grows by a cold read and not by a warm one."""
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
    ("drop_caches", "resident_share", "written"),
    [
        ("never", 0.5, None),
        ("when-needed", 0.5, "1\n"),
        ("when-needed", 0.0, None),
        ("when-needed", None, None),
        ("always", 0.0, "3\n"),
    ],
)
def test_caches_of_the_machine_are_dropped_by_the_setting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    drop_caches: page_cache.DropCaches,
    resident_share: float | None,
    written: str | None,
) -> None:
    """They are dropped always, or if pages stay after eviction; ``always`` drops inodes, too."""
    drop = tmp_path / "drop_caches"
    data = tmp_path / "data"
    data.write_bytes(b"x" * 5000)
    monkeypatch.setattr(page_cache, "DROP_CACHES", drop)
    monkeypatch.setattr(page_cache, "residency", lambda paths: resident_share)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    page_cache.evict([data], drop_caches)
    assert (drop.read_text() if drop.exists() else None) == written
    monkeypatch.setattr(page_cache, "file_system", lambda path: "tmpfs")
    drop.unlink(missing_ok=True)
    page_cache.evict([data], drop_caches)
    assert not drop.exists()


@pytest.mark.parametrize("drop_caches", ["never", "when-needed", "always"])
def test_direct_trials_keep_the_caches_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drop_caches: page_cache.DropCaches
) -> None:
    """A direct trial never empties the caches of the machine, also if its pages stay."""
    drop = tmp_path / "drop_caches"
    data = tmp_path / "data"
    data.write_bytes(b"x" * 5000)
    monkeypatch.setattr(page_cache, "DROP_CACHES", drop)
    monkeypatch.setattr(page_cache, "residency", lambda paths: 1.0)
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    state = prepare_cache("direct", [data], drop_caches)
    assert state.resident_before == 1.0
    assert not drop.exists()
    prepare_cache("cold", [data])
    assert drop.exists()


def test_files_without_pages_have_no_residency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty and missing files have no residency; dropping without root is no error."""
    empty, gone = tmp_path / "empty", tmp_path / "gone"
    empty.touch()
    for paths in ([], [empty], [gone]):
        assert page_cache.residency(paths) is None
    with pytest.raises(FileNotFoundError):
        page_cache.evict([gone])
    page_cache.evict([])
    monkeypatch.setattr(page_cache, "DROP_CACHES", tmp_path / "absent" / "drop_caches")
    monkeypatch.setattr(page_cache, "file_system", lambda path: "ext4")
    page_cache.evict([empty], "always")


def test_both_system_calls_agree(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mincore and cachestat see the same pages, the last of which is not full."""
    with file.open("ab") as grown:
        grown.write(b"x")
    counted = page_cache.residency([file])
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: None)
    assert page_cache.residency([file]) == counted


@pytest.mark.parametrize(("kind", "share"), [("overlay", 1.0), ("ext4", 0.0)])
def test_an_overlay_is_asked_by_mincore(
    file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, share: float
) -> None:
    """mincore is used: cachestat reads the overlay's own page cache, which is always empty."""
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: 0)
    monkeypatch.setattr(page_cache, "file_system", lambda path: kind)
    assert page_cache.residency([file]) == share


def test_mincore_is_not_believed_for_files_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The residency is unknown for files that this user could not write."""
    monkeypatch.setattr(page_cache, "_cachestat", lambda descriptor: None)
    with reachable_folder() as folder:
        path = folder / "file"
        path.write_bytes(b"x" * 5000)
        path.chmod(0o644)
        with unprivileged():
            is_ours = path.stat().st_uid == os.geteuid()
            assert page_cache.residency([path]) == (1.0 if is_ours else None)


def test_a_state_is_judged_by_what_was_read(file: Path) -> None:
    """A cold file is judged by physical bytes, and a warm one by its residency."""
    cold = prepare_cache("cold", [file])
    if cold.resident_before is None:
        pytest.skip("this kernel does not tell what is resident")
    assert cold.resident_before == prepare_cache("direct", [file]).resident_before == 0.0
    labels = [cold.judged(ratio, sequential=True).label for ratio in (1.0, 0.5, None)]
    assert labels == ["cold", "warm", "warm"]
    assert cold.judged(None, sequential=False).label == "cold"
    warm = prepare_cache("warm", [file]).judged(0.0, sequential=True)
    assert (warm.label, warm.why, warm.cache_resident) == ("warm", "", True)
    assert warm.resident_before == 1.0


WITHOUT_ROOT = [
    "drop_caches is not permitted (no root, or a container)",
    "no /proc/PID/io",
    "signs of Docker",
]


@pytest.mark.parametrize(
    ("kind", "resident", "able", "message"),
    [
        ("ext4", 0.0, True, []),
        ("tmpfs", None, True, ["tmpfs"]),
        ("ext4", None, True, ["the residency is unknown"]),
        ("ext4", 0.0, False, WITHOUT_ROOT),
    ],
)
def test_limits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    resident: float | None,
    able: bool,
    message: list[str],
) -> None:
    """The limits name what cannot be proved for these files and on this machine."""
    monkeypatch.setattr(page_cache, "DROP_CACHES", tmp_path if able else tmp_path / "absent")
    monkeypatch.setattr(page_cache, "physical_read_bytes", lambda: 0 if able else None)
    monkeypatch.setattr(page_cache, "container", lambda: "" if able else "signs of Docker: /x")
    assert [limit.partition(": ")[0] for limit in limits(kind, resident)] == message
