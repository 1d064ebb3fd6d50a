"""Processor time and memory of a process and of what it started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.samplers.tree import TreeSampler

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def write(
    proc: Path,
    pid: int,
    parent: int,
    ticks: tuple[int, int, int, int] = (0, 0, 0, 0),
    pages: int = 0,
) -> None:
    """``/proc/PID/stat``: user, system, and those of its reaped children; pages in memory."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    before = "0 " * 9
    (folder / "stat").write_text(
        f"{pid} (a) b ) c) S {parent} {before}{' '.join(map(str, ticks))} 20 0 1 0 0 0 {pages} 9\n"
    )


def map_pages(proc: Path, pid: int, pss_kib: int) -> None:
    """``/proc/PID/smaps_rollup``."""
    (proc / str(pid) / "smaps_rollup").write_text(f"Rss: 1 kB\nPss:  {pss_kib} kB\n")


def tell_children(proc: Path, pid: int, *children: int) -> None:
    """``/proc/PID/task/PID/children``."""
    folder = proc / str(pid) / "task" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "children").write_text(" ".join(map(str, children)))


def test_all_below_the_process_are_counted(tmp_path: Path) -> None:
    """Workers of workers too; others are not. Names may hold brackets."""
    for pid, parent in ((10, 1), (11, 10), (12, 11), (99, 1)):
        write(tmp_path, pid, parent)
    sampler = TreeSampler(10, tmp_path)
    assert sampler.read(0.0) == {"rss_bytes": 0, "processes": 3}
    write(tmp_path, 10, 1, (100, 20, 0, 0))
    write(tmp_path, 12, 11, (50, 0, 0, 0))
    write(tmp_path, 99, 1, (10_000, 0, 0, 0))
    found = sampler.read(1.0)
    assert found["user_cores"] == pytest.approx(150 * TICK_S)
    assert found["system_cores"] == pytest.approx(20 * TICK_S)
    assert found["worker_cores"] == pytest.approx(50 * TICK_S)


def test_a_worker_that_ended_is_counted_once(tmp_path: Path) -> None:
    """Its time has gone over to the process that reaped it."""
    write(tmp_path, 10, 1, (100, 0, 0, 0))
    write(tmp_path, 11, 10, (40, 0, 0, 0))
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    (tmp_path / "11" / "stat").unlink()
    write(tmp_path, 10, 1, (100, 0, 50, 0))
    assert sampler.read(1.0) == {
        "user_cores": pytest.approx(10 * TICK_S),
        "system_cores": 0,
        "worker_cores": 0,
        "rss_bytes": 0,
        "processes": 1,
    }


def test_new_workers_are_found_after_a_while(tmp_path: Path) -> None:
    """Not at once: that takes a look at every process of the machine."""
    write(tmp_path, 10, 1)
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    write(tmp_path, 11, 10)
    assert sampler.read(0.5)["processes"] == 1
    assert sampler.read(2.5)["processes"] == 2


def test_new_workers_are_found_at_once_where_the_kernel_tells_of_them(tmp_path: Path) -> None:
    """Their time is then counted where it was spent, not two seconds later."""
    write(tmp_path, 10, 1)
    tell_children(tmp_path, 10)
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    write(tmp_path, 11, 10, (30, 0, 0, 0))
    tell_children(tmp_path, 10, 11)
    found = sampler.read(0.5)
    assert found["processes"] == 2
    assert found["worker_cores"] == pytest.approx(30 * TICK_S / 0.5)


def test_a_process_that_has_gone_takes_nothing(tmp_path: Path) -> None:
    """The last reading of a trial may come after its end."""
    write(tmp_path, 10, 1, (100, 0, 0, 0), pages=3)
    map_pages(tmp_path, 10, 8)
    sampler = TreeSampler(10, tmp_path, VirtualClock().now_s)
    sampler.read(0.0)
    for name in ("stat", "smaps_rollup"):
        (tmp_path / "10" / name).unlink()
    nothing = {"user_cores": 0, "system_cores": 0, "worker_cores": 0, "rss_bytes": 0}
    assert sampler.read(1.0) == {**nothing, "processes": 0}


def test_memory_of_all_together(tmp_path: Path) -> None:
    """By pages as each process sees them, and divided among those that share them."""
    write(tmp_path, 10, 1, pages=300)
    write(tmp_path, 11, 10, pages=200)
    map_pages(tmp_path, 10, 700)
    map_pages(tmp_path, 11, 100)
    sampler = TreeSampler(10, tmp_path)
    found = sampler.read(0.0)
    assert found["rss_bytes"] == 500 * PAGE_BYTES
    assert found["pss_bytes"] == 800 * 1024
    assert sampler.notes == ()


def test_without_pss_it_is_said(tmp_path: Path) -> None:
    """An old kernel: RSS alone, and what that means."""
    write(tmp_path, 10, 1, pages=300)
    sampler = TreeSampler(10, tmp_path)
    assert sampler.read(0.0) == {"rss_bytes": 300 * PAGE_BYTES, "processes": 1}
    assert "memory of processes is RSS here" in sampler.notes[0]


def test_a_part_of_the_tree_is_not_its_memory(tmp_path: Path) -> None:
    """A worker that may not be looked into leaves the sum unknown, not smaller."""
    write(tmp_path, 10, 1)
    write(tmp_path, 11, 10)
    map_pages(tmp_path, 10, 700)
    (tmp_path / "11" / "smaps_rollup").mkdir()
    assert "pss_bytes" not in TreeSampler(10, tmp_path).read(0.0)


def test_pages_are_counted_the_more_seldom_the_longer_it_takes(tmp_path: Path) -> None:
    """6 ms each time: every 2 seconds, 0.3 % of a processor."""
    write(tmp_path, 10, 1)
    map_pages(tmp_path, 10, 700)
    clock = VirtualClock()

    def slow() -> float:
        clock.sleep(0.006)
        return clock.now_s()

    sampler = TreeSampler(10, tmp_path, slow)
    read = [
        now_s for now_s in (0.0, 0.5, 1.0, 1.9, 2.1, 3.0, 4.2) if "pss_bytes" in sampler.read(now_s)
    ]
    assert read == [0.0, 2.1, 4.2]


def test_a_process_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """So on machines without ``/proc``."""
    with pytest.raises(Unavailable, match="no processor time of the process tree"):
        TreeSampler(10, tmp_path)
