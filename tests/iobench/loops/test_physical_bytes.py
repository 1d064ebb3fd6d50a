"""Counts of a tree of processes, as /proc tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.loops import physical_bytes as module
from iobench.loops.physical_bytes import physical_bytes


def process(proc: Path, pid: int, parent: int, read: int | None) -> Path:
    """Its entry; without a count where ``read`` is None."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} " + " ".join(["0"] * 40))
    if read is not None:
        (folder / "io").write_text(f"rchar: 1\nread_bytes: {read}\nwrite_bytes: 9\n")
    return folder


def test_living_workers_count_beside_their_parent(tmp_path: Path) -> None:
    """And their children; others' processes do not."""
    for pid, parent, read in ((10, 1, 100), (11, 10, 20), (12, 11, 3), (13, 1, 5000)):
        process(tmp_path, pid, parent, read)
    assert physical_bytes(tmp_path, 10) == 123


def test_without_a_count_nothing_is_known(tmp_path: Path) -> None:
    """Of one worker or of all."""
    process(tmp_path, 10, 1, 100)
    (process(tmp_path, 11, 10, 0) / "io").write_text("nothing of that name\n")
    assert physical_bytes(tmp_path, 10) is None


def test_a_worker_that_ends_meanwhile_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its parent, who has reaped it: all is read again."""
    process(tmp_path, 10, 1, 120)
    seen = [{10, 11}, {10}, {10}]
    monkeypatch.setattr(module, "descendants", lambda root, proc: seen.pop(0))
    assert physical_bytes(tmp_path, 10) == 120
    assert seen == []


def test_what_may_not_be_read_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hardened kernel refuses."""

    def refused(pid: int, proc: Path) -> int:
        raise PermissionError

    process(tmp_path, 10, 1, 120)
    monkeypatch.setattr(module, "_read_bytes", refused)
    assert physical_bytes(tmp_path, 10) is None
