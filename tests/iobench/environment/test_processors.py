"""Processors as the kernel tells them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.environment import processors as read

SOCKETS = "\n".join(
    f"model name\t: AMD EPYC 9354\nphysical id\t: {socket}\ncore id\t\t: {core}\n"
    for socket in (0, 1)
    for core in (0, 1, 0, 1)
)


def write(root: Path, path: str, text: str) -> None:
    """A file of sysfs."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def test_hyper_threads_are_no_cores() -> None:
    """Two sockets of two cores with two threads each."""
    assert read.core_count(SOCKETS) == 4
    assert read.core_count("processor : 0\n") is None
    assert read.model(SOCKETS) == "AMD EPYC 9354"
    assert read.model("") == os.uname().machine


def test_a_machine_that_tells_all(tmp_path: Path) -> None:
    """Model, counts, governor."""
    write(tmp_path, "cpuinfo", SOCKETS)
    for i in (0, 1):
        write(tmp_path, f"devices/system/cpu/cpu{i}/cpufreq/scaling_governor", "performance")
    found = read.processors(tmp_path, tmp_path)
    assert found == {
        "processor": "AMD EPYC 9354",
        "processors": len(os.sched_getaffinity(0)),
        "processors_present": os.cpu_count(),
        "processor_cores": 4,
        "governor": "performance",
    }
    write(tmp_path, "devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")
    assert read.processors(tmp_path, tmp_path)["governor"] == "performance, powersave"


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    """The architecture, and how many there are."""
    found = read.processors(tmp_path / "nowhere", tmp_path / "nowhere")
    assert set(found) == {"processor", "processors", "processors_present"}
    assert found["processor"] == os.uname().machine


def test_nodes_of_memory(tmp_path: Path) -> None:
    """Each with its processors, in the order of their numbers; one alone is none."""
    for i, cpus in ((0, "0-31"), (10, "64-95"), (2, "32-63")):
        write(tmp_path, f"devices/system/node/node{i}/cpulist", cpus)
        write(tmp_path, f"devices/system/node/node{i}/meminfo", f"Node {i} MemTotal:  1024 kB")
    write(tmp_path, "devices/system/node/possible", "0-2")
    found = read.numa_nodes(tmp_path)
    assert [node["processors"] for node in found] == ["0-31", "32-63", "64-95"]
    assert found[0]["memory_bytes"] == 2**20
    write(tmp_path, "one/devices/system/node/node0/cpulist", "0-1")
    assert read.numa_nodes(tmp_path / "one") == []
    assert read.numa_nodes(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "told"), [("always [madvise] never", "madvise"), ("nonsense", None)]
)
def test_huge_pages(tmp_path: Path, text: str, told: str | None) -> None:
    """Which of three is set."""
    write(tmp_path, "kernel/mm/transparent_hugepage/enabled", text)
    assert read.transparent_huge_pages(tmp_path) == told
    assert read.transparent_huge_pages(tmp_path / "nowhere") is None


def test_here() -> None:
    """This machine's processors have a name."""
    assert read.processors()["processor"].strip()
