"""Processors, memory nodes, network cards and GPUs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.machine.hardware import (
    available_bytes,
    gpus,
    machine_bytes,
    memory_bytes,
    networks,
    numa_nodes,
    processor_quota,
    processors,
    transparent_huge_pages,
)
from tests.iobench.machine.machines import PLANTED, link


def write(root: Path, path: str, text: str) -> None:
    """A file of sysfs."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def test_processors(tmp_path: Path) -> None:
    """Model, counts, governor; without the kernel's word the architecture and counts."""
    write(tmp_path, "proc/cpuinfo", "model name\t: AMD EPYC 9354\nphysical id\t: 0\n")
    governor = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    for i in (0, 1):
        write(tmp_path, governor.format(i), "performance")
    found = processors(tmp_path)
    assert found.pop("processor_cores", None) == psutil.cpu_count(logical=False)
    assert found == {
        "processor": "AMD EPYC 9354",
        "processors": len(os.sched_getaffinity(0)),
        "processors_present": os.cpu_count(),
        "governor": "performance",
    }
    write(tmp_path, governor.format(1), "powersave")
    assert processors(tmp_path)["governor"] == "performance, powersave"
    untold = processors(tmp_path / "nowhere")
    assert "governor" not in untold
    assert untold["processor"] == os.uname().machine


def test_nodes_of_memory(tmp_path: Path) -> None:
    """Each with its processors, in the order of their numbers; one alone is none."""
    for i, cpus in ((0, "0-31"), (10, "64-95"), (2, "32-63")):
        write(tmp_path, f"sys/devices/system/node/node{i}/cpulist", cpus)
        write(tmp_path, f"sys/devices/system/node/node{i}/meminfo", f"Node {i} MemTotal:  1024 kB")
    write(tmp_path, "sys/devices/system/node/possible", "0-2")
    found = numa_nodes(tmp_path)
    assert [node["processors"] for node in found] == ["0-31", "32-63", "64-95"]
    assert found[0]["memory_bytes"] == 2**20
    write(tmp_path, "one/sys/devices/system/node/node0/cpulist", "0-1")
    assert numa_nodes(tmp_path / "one") == []
    assert numa_nodes(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "told"), [("always [madvise] never", "madvise"), ("nonsense", None)]
)
def test_huge_pages(tmp_path: Path, text: str, told: str | None) -> None:
    """Which of three is set."""
    write(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", text)
    assert transparent_huge_pages(tmp_path) == told
    assert transparent_huge_pages(tmp_path / "nowhere") is None


def card(root: Path, name: str, driver: str | None, **files: str) -> None:
    """A card as it lies in sysfs; without a driver it is no device of the machine's."""
    folder = root / "sys/class/net" / name
    folder.mkdir(parents=True)
    for file, text in {"address": PLANTED, "ifalias": PLANTED, **files}.items():
        (folder / file).write_text(f"{text}\n")
    if driver is not None:
        device = root / "devices" / name
        device.mkdir(parents=True)
        (root / "bus" / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        link(device / "driver", root / "bus" / "drivers" / driver)
        link(folder / "device", device)


def test_cards_that_are_up_are_counted_by_what_they_carry(tmp_path: Path) -> None:
    """Two of a kind once; what is no card, or has no cable, not at all."""
    for i in (0, 1):
        card(tmp_path, f"ens{i}", "mlx5_core", speed="100000", operstate="up")
    card(tmp_path, "eth0", "ena", operstate="up")
    card(tmp_path, "eth1", "virtio_net", speed="-1", operstate="unknown")
    card(tmp_path, "eth2", "ixgbe", speed="10000", operstate="down")
    card(tmp_path, f"docker-{PLANTED}", None, speed="10000", operstate="up")
    found = networks(tmp_path)
    told = {one["driver"]: (one.get("mbit_per_s"), one["count"]) for one in found}
    assert told == {"mlx5_core": (100000, 2), "ena": (None, 1), "virtio_net": (None, 1)}
    assert PLANTED not in json.dumps(found)


def test_no_sysfs_no_cards(tmp_path: Path) -> None:
    """And this machine's can be read."""
    assert networks(tmp_path) == []
    assert all(one["count"] > 0 for one in networks())


FULL = (
    "NVIDIA H200, 143771 MiB, 570.86, 5, 16, 1, 16, 700.00 W, Disabled, Enabled, 00000000:3B:00.0"
)
PLAIN = "NVIDIA H200, 143771 MiB, 570.86"
Answers = Callable[[str], object]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, str]]]:
    """GPUs where the tool answers a question so, or raises."""

    def asked(answers: Answers, root: Path = Path("/nowhere")) -> list[dict[str, str]]:
        def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
            answer = answers(command[1])
            if isinstance(answer, Exception):
                raise answer
            return subprocess.CompletedProcess(command, 0, str(answer), "")

        monkeypatch.setattr(subprocess, "run", run)
        return gpus(root)

    return asked


Asked = Callable[..., list[dict[str, str]]]


def test_each_has_name_memory_driver_and_link(answered: Asked) -> None:
    """A line of the tool's is one GPU; where it sits in the machine is not kept."""
    gpu = {
        "name": "NVIDIA H200",
        "memory.total": "143771 MiB",
        "driver_version": "570.86",
        "pcie.link.gen.max": "5",
        "pcie.link.width.max": "16",
        "pcie.link.gen.current": "1",
        "pcie.link.width.current": "16",
        "power.limit": "700.00 W",
        "mig.mode.current": "Disabled",
        "persistence_mode": "Enabled",
    }
    assert answered(lambda question: f"{FULL}\n{FULL}\n") == [gpu, gpu]


def test_an_old_driver_is_asked_for_less(answered: Asked) -> None:
    """One field that it does not know, and it refuses them all."""

    def old(question: str) -> object:
        refusal = subprocess.CalledProcessError(2, "nvidia-smi")
        return refusal if "mig.mode" in question else f"{PLAIN}\n"

    assert answered(old) == [
        {"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "570.86"}
    ]


@pytest.mark.parametrize(
    "answer",
    [
        FileNotFoundError("nvidia-smi"),
        subprocess.TimeoutExpired("nvidia-smi", 20),
        subprocess.CalledProcessError(9, "nvidia-smi"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "No devices were found\n",
        "a, b\n\x00, c",
        "",
    ],
)
def test_no_answer_is_no_gpu(answered: Asked, answer: object) -> None:
    """A missing, hanging or complaining tool stops nothing."""
    assert answered(lambda question: answer) == []


def test_what_is_not_available_is_left_out(answered: Asked, tmp_path: Path) -> None:
    """The tool says so in brackets; the NUMA node is the kernel's, which says -1 for none."""
    unknown = "Tesla T4, [N/A], 570.86, 3, 16, 1, 16, [Not Supported], N/A, , 00000000:3B:00.0"
    told = {
        "name": "Tesla T4",
        "driver_version": "570.86",
        "pcie.link.gen.max": "3",
        "pcie.link.width.max": "16",
        "pcie.link.gen.current": "1",
        "pcie.link.width.current": "16",
    }
    write(tmp_path, "sys/bus/pci/devices/0000:3b:00.0/numa_node", "1")
    assert answered(lambda question: unknown, tmp_path) == [{**told, "numa_node": "1"}]
    write(tmp_path, "sys/bus/pci/devices/0000:3b:00.0/numa_node", "-1")
    assert answered(lambda question: unknown, tmp_path) == [told]


def machine(root: Path, groups: str, files: dict[str, str] | None = None) -> Path:
    """A machine whose control groups have these files."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in (files or {}).items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def test_memory_here() -> None:
    """No more than the machine has."""
    assert 0 < available_bytes() <= memory_bytes() <= machine_bytes()
    found = processor_quota()
    assert found is None or found > 0


def test_version_2(tmp_path: Path) -> None:
    """Our group and those around it may limit; "max" is no limit."""
    files = {
        "pod/box/memory.max": "max",
        "pod/memory.max": "5000",
        "pod/box/cpu.max": "max 100000",
        "pod/cpu.max": "250000 100000",
        "cpu.max": "400000 100000",
    }
    root = machine(tmp_path, "0::/pod/box\n", files)
    assert (memory_bytes(root), processor_quota(root)) == (5000, 2.5)
    machine(tmp_path, "0::/\n")
    assert (memory_bytes(root), processor_quota(root)) == (machine_bytes(), 4.0)


def test_version_1(tmp_path: Path) -> None:
    """A tree for each controller, which a container sees as root; -1 is no limit."""
    files = {
        "memory/memory.limit_in_bytes": "7000",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "cpu/job/cpu.cfs_quota_us": "50000",
        "cpu/job/cpu.cfs_period_us": "100000",
    }
    groups = "9:cpu,cpuacct:/{}\n4:memory:/docker/abc\n0::/\n"
    root = machine(tmp_path, groups.format("job"), files)
    assert (memory_bytes(root), processor_quota(root)) == (7000, 0.5)
    machine(tmp_path, groups.format(""))
    assert processor_quota(root) is None


@pytest.mark.parametrize("content", ["max 100000", "", "x y", "0 0", "100000"])
def test_no_quota(tmp_path: Path, content: str) -> None:
    """Or none that can be understood."""
    assert processor_quota(machine(tmp_path, "0::/\n", {"cpu.max": content})) is None
    assert processor_quota(tmp_path / "nowhere") is None


@given(groups=st.text(max_size=60))
def test_no_text_of_control_groups_breaks_it(
    tmp_path_factory: pytest.TempPathFactory, groups: str
) -> None:
    """Whatever the kernel says of our group."""
    root = tmp_path_factory.mktemp("machine")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups, errors="replace")
    assert memory_bytes(root) == machine_bytes()
