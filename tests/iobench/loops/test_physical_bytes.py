"""Counts of a tree of processes, as /proc tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.loops import physical_bytes as module
from iobench.loops.physical_bytes import physical_bytes


def process(proc: Path, pid: int, read: int | None) -> Path:
    """Its entry; without a count where ``read`` is None."""
    folder = proc / str(pid)
    folder.mkdir()
    if read is not None:
        (folder / "io").write_text(f"rchar: 1\nread_bytes: {read}\nwrite_bytes: 9\n")
    return folder


def test_living_workers_count_beside_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And their children; others' processes do not. One without a count leaves the sum unknown."""
    for pid, read in ((10, 100), (11, 20), (12, 3), (13, 5000)):
        process(tmp_path, pid, read)
    monkeypatch.setattr(module, "descendants", lambda root: {root, 11, 12})
    assert physical_bytes(tmp_path, 10) == 123
    (tmp_path / "11" / "io").write_text("nothing of that name\n")
    assert physical_bytes(tmp_path, 10) is None


def test_a_worker_that_ends_meanwhile_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its parent, who has reaped it: all is read again."""
    process(tmp_path, 10, 120)
    seen = [{10, 11}, {10}, {10}]
    monkeypatch.setattr(module, "descendants", lambda root: seen.pop(0))
    assert physical_bytes(tmp_path, 10) == 120
    assert seen == []


def test_what_may_not_be_read_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hardened kernel refuses."""

    def refused(pid: int, proc: Path) -> int:
        raise PermissionError

    process(tmp_path, 10, 120)
    monkeypatch.setattr(module, "_read_bytes", refused)
    assert physical_bytes(tmp_path, 10) is None
