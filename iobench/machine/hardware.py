"""Processors, memory, network cards and NVIDIA GPUs, and what control groups leave of them.

Control groups of both versions limit memory and processors (cgroups(7)). No names or addresses are
read.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from iobench.machine.kernel_files import ROOT, names, number, text

_GPU = ("name", "memory.total", "driver_version")
_GPU_MORE = (
    *("pcie.link.gen.max", "pcie.link.width.max"),
    *("pcie.link.gen.current", "pcie.link.width.current"),
    *("power.limit", "mig.mode.current", "persistence_mode", "pci.bus_id"),
)
_NVIDIA_SMI_TIMEOUT_S = 20
_QUOTA = re.compile(r"([1-9]\d*) ([1-9]\d*)")


def processors(root: Path = ROOT) -> dict[str, Any]:
    """``processor`` (model), ``processors`` (that we may use), ``processors_present``.

    And where known ``processor_cores`` (hyper-threads of one core counted once) and ``governor``,
    several words where the processors differ.
    """
    model = re.search(r"^model name\s*:\s*(\S.*)$", text(root / "proc/cpuinfo"), re.M)
    found = {
        "processor": model[1].strip() if model else platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "processors_present": os.cpu_count() or 1,
    }
    if cores := psutil.cpu_count(logical=False):
        found["processor_cores"] = cores
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    if governors := {text(path) for path in files} - {""}:
        found["governor"] = ", ".join(sorted(governors))
    return found


def numa_nodes(root: Path = ROOT) -> list[dict[str, Any]]:
    """Processors and memory of each node; empty where the kernel knows of one node only."""
    folder = root / "sys/devices/system/node"
    numbers = sorted(int(name[4:]) for name in names(folder) if re.fullmatch(r"node\d+", name))
    found = []
    for node in (folder / f"node{one}" for one in numbers):
        entry: dict[str, Any] = {"processors": text(node / "cpulist")}
        if memory := re.search(r"MemTotal:\s+(\d+) kB", text(node / "meminfo")):
            entry["memory_bytes"] = int(memory[1]) * 1024
        found.append(entry)
    return found if len(found) > 1 else []


def machine_bytes() -> int:
    """The machine's memory, whatever a control group leaves of it."""
    return int(psutil.virtual_memory().total)


def memory_bytes(root: Path = ROOT) -> int:
    """Memory that the page cache may take: the machine's, or less by the control group."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [number(folder / name) for folder in _groups("memory", root) for name in names]
    return min([machine_bytes(), *(limit for limit in limits if limit is not None)])


def available_bytes() -> int:
    """Memory that is available without swapping, at most what the control group allows."""
    return min(int(psutil.virtual_memory().available), memory_bytes())


def processor_quota(root: Path = ROOT) -> float | None:
    """Processors' worth of time that the control group allows; None where there is no limit.

    ``cpu.max`` of version 2, ``cpu.cfs_quota_us`` of version 1.
    """
    quotas: list[re.Match[str] | None] = []
    for folder in _groups("cpu", root):
        first = f"{text(folder / 'cpu.cfs_quota_us')} {text(folder / 'cpu.cfs_period_us')}"
        quotas += map(_QUOTA.fullmatch, (first, text(folder / "cpu.max")))
    # "max" and -1 are no limit.
    return min((int(quota[1]) / int(quota[2]) for quota in quotas if quota), default=None)


def transparent_huge_pages(root: Path = ROOT) -> str | None:
    """``always``, ``madvise`` or ``never``; None where the kernel has none."""
    match = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else None


def networks(root: Path = ROOT) -> list[dict[str, Any]]:
    """``driver``, ``mbit_per_s`` (10^6 bits) and ``count`` of network cards that are up.

    The speed is left out where the driver does not know it, as in virtual machines. Bridges,
    tunnels and the loopback have no device and are no cards.
    """
    cards: Counter[tuple[str, int | None]] = Counter()
    for name in names(root / "sys/class/net"):
        card = root / "sys/class/net" / name
        if (card / "device").exists() and text(card / "operstate") != "down":
            cards[(card / "device/driver").resolve().name, number(card / "speed")] += 1
    found = []
    for (driver, speed), count in cards.items():
        known = {"driver": "" if driver == "driver" else driver, "mbit_per_s": speed}
        found.append({**{key: value for key, value in known.items() if value}, "count": count})
    return found


def gpus(root: Path = ROOT) -> list[dict[str, str]]:
    """Name, memory and driver of each GPU, as ``nvidia-smi`` names them; empty without its answer.

    And where known PCI Express link, power limit, MIG and NUMA node. A GPU that rests lowers
    ``pcie.link.gen.current``: the greatest is its link.
    """
    # An old driver refuses the whole question for one field that it does not know.
    rows = _nvidia_smi((*_GPU, *_GPU_MORE)) or _nvidia_smi(_GPU)
    for row in rows:
        # nvidia-smi writes a domain of eight digits, sysfs one of four.
        bus = row.pop("pci.bus_id", "").lower()[4:]
        node = number(root / "sys/bus/pci/devices" / bus / "numa_node")
        if node is not None:
            row["numa_node"] = str(node)
    return rows


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Folders of our control group and of those around it, which also limit it."""
    for line in text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        # Version 2 has one tree, version 1 one for each controller.
        if controller in controllers.split(",") or not controllers:
            top = root / "sys/fs/cgroup" / (controllers and controller)
            own = top / name.strip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(top))


def _nvidia_smi(fields: Sequence[str]) -> list[dict[str, str]]:
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    found = []
    for line in answer.stdout.splitlines():
        row = [value.strip() for value in line.split(", ")]
        if len(row) == len(fields):
            told = dict(zip(fields, row, strict=True)).items()
            found.append({key: one for key, one in told if not re.match(r"\[|N/A$|$", one)})
    return found
