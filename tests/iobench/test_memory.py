"""Memory limits of machine and control groups."""

from __future__ import annotations

import os
from pathlib import Path

from iobench.memory import _group_limits, available_bytes, memory_bytes


def test_memory_is_no_more_than_the_machine_has() -> None:
    """The least of the machine's and the control groups' limits."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory_bytes() <= machine


def test_limits_of_groups_around_ours_count(tmp_path: Path) -> None:
    """Version 2: every folder up to the root may limit; "max" does not."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("5000\n")
    assert list(_group_limits(tmp_path, "0::/a/b\n")) == [5000]


def test_limits_of_the_first_version(tmp_path: Path) -> None:
    """Version 1: the memory controller has a tree of its own, which a container sees as root."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("7000\n")
    groups = "9:cpu,cpuacct:/x\n4:memory:/docker/abc\n"
    assert list(_group_limits(tmp_path, groups)) == [7000]


def test_what_is_available_is_what_the_kernel_says(tmp_path: Path) -> None:
    """At most what may be taken at all; half of that where the kernel is silent."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       9 kB\nMemAvailable:       7 kB\nBuffers: 8 kB\n")
    assert available_bytes(meminfo) == 7 * 1024
    meminfo.write_text(f"MemAvailable:  {10**15} kB\n")
    assert available_bytes(meminfo) == memory_bytes()
    assert available_bytes(tmp_path / "none") == memory_bytes() // 2
    assert 0 < available_bytes() <= memory_bytes()
