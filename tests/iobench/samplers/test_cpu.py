"""Processor times as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.errors import Unavailable
from iobench.samplers.cpu import CpuSampler


def write(proc: Path, *ticks: int) -> None:
    """The file's first line: user, nice, system, idle, iowait, irq, softirq, steal, guest, ..."""
    (proc / "stat").write_text(f"cpu  {' '.join(map(str, ticks))}\ncpu0 1 2 3\n")


def test_shares_are_of_all_time_since_the_reading_before(tmp_path: Path) -> None:
    """Nice is user time, interrupts are system time, guests are not counted twice."""
    write(tmp_path, 100, 0, 50, 1000, 10, 0, 0, 0, 100, 0)
    sampler = CpuSampler(1, tmp_path)
    assert sampler.read(0.0) == {}
    write(tmp_path, 120, 20, 55, 1030, 25, 2, 3, 5, 120, 0)
    assert sampler.read(1.0) == {
        "user_share": 0.4,
        "system_share": 0.1,
        "iowait_share": 0.15,
        "steal_share": 0.05,
    }


def test_iowait_that_the_kernel_takes_back_is_none(tmp_path: Path) -> None:
    """proc(5): it may decrease."""
    write(tmp_path, 100, 0, 0, 0, 50, 0, 0, 0)
    sampler = CpuSampler(1, tmp_path)
    sampler.read(0.0)
    write(tmp_path, 110, 0, 0, 0, 40, 0, 0, 0)
    assert sampler.read(1.0)["iowait_share"] == 0
    assert sampler.read(2.0) == {}


def test_no_such_file_is_unavailable(tmp_path: Path) -> None:
    """Nothing is made up."""
    with pytest.raises(Unavailable, match="no processor times"):
        CpuSampler(1, tmp_path)
