"""Processors' worth of time that a control group gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.environment.limits import processor_quota


def write(folder: Path, **files: str) -> None:
    """Files of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{text}\n")


def test_version_2(tmp_path: Path) -> None:
    """The least of our group's and of those around it."""
    write(tmp_path / "pod" / "box", cpu_max="max 100000")
    write(tmp_path / "pod", cpu_max="250000 100000")
    write(tmp_path, cpu_max="400000 100000")
    assert processor_quota(tmp_path, "0::/pod/box\n") == 2.5
    assert processor_quota(tmp_path, "0::/\n") == 4.0


def test_version_1(tmp_path: Path) -> None:
    """-1 is no limit."""
    write(tmp_path / "cpu", cpu_cfs_quota_us="-1", cpu_cfs_period_us="100000")
    write(tmp_path / "cpu" / "job", cpu_cfs_quota_us="50000", cpu_cfs_period_us="100000")
    text = "5:cpu,cpuacct:/job\n"
    assert processor_quota(tmp_path, text) == 0.5
    assert processor_quota(tmp_path, "5:cpu,cpuacct:/\n") is None


@pytest.mark.parametrize("content", ["max 100000", "", "x y", "0 0", "100000"])
def test_no_limit(tmp_path: Path, content: str) -> None:
    """Or none that can be understood."""
    write(tmp_path, cpu_max=content)
    assert processor_quota(tmp_path, "0::/\n") is None
    assert processor_quota(tmp_path / "nowhere", "0::/\n") is None


def test_here() -> None:
    """This machine's can be read, and is positive where there is one."""
    found = processor_quota()
    assert found is None or found > 0
