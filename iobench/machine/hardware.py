"""Processors, memory, network cards and NVIDIA GPUs that this process may use.

Control groups of both versions limit memory and processors (cgroups(7)). No names or addresses are
read.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from dataprep.machine.kernel_files import ROOT, number, text
from dataprep.machine.processors import control_groups

_GPU_QUERY = (
    *("name", "memory.total", "driver_version", "power.limit", "persistence_mode"),
    *("pcie.link.gen.max", "pcie.link.width.max"),
    *("pcie.link.gen.current", "pcie.link.width.current"),
)
_INTERFACES = Path("/sys/class/net")
_NVIDIA_SMI_TIMEOUT_S = 20


def processors(root: Path = ROOT) -> dict[str, Any]:
    """Return the model, the number and the governor of processors, under the keys of results.

    ``processors`` is the number that this process may use. ``governor`` has several words if the
    processors differ, and is empty if it is unknown.
    """
    model = re.search(r"^model name\s*:\s*(\S.*)$", text(root / "proc/cpuinfo"), re.M)
    governor_files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = {text(file) for file in governor_files} - {""}
    return {
        "processor": model[1].strip() if model else platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "governor": ", ".join(sorted(governors)),
    }


def memory_bytes(root: Path = ROOT) -> int:
    """Return the memory that the page cache may take, of the machine or of the control group."""
    limits = [psutil.virtual_memory().total]
    for folder in control_groups("memory", root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = number(folder / name)
            if limit is not None:
                limits.append(limit)
    return min(limits)


def available_bytes() -> int:
    """Return the memory that is available without swapping and within the control group."""
    return min(int(psutil.virtual_memory().available), memory_bytes())


def transparent_huge_pages(root: Path = ROOT) -> str | None:
    """Return ``always``, ``madvise`` or ``never``; None if the kernel has no such pages."""
    match = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else None


def networks(interfaces: Path = _INTERFACES) -> list[dict[str, Any]]:
    """Return ``driver``, ``mbit_per_s`` (10^6 bits) and ``count`` of network cards that are up.

    The speed is left out if the driver does not know it, as in virtual machines. Bridges, tunnels
    and the loopback have no device, so they are not cards.
    """
    counts: Counter[tuple[str, int]] = Counter()
    for name, card in psutil.net_if_stats().items():
        device = interfaces / name / "device"
        if card.isup and device.exists():
            counts[(device / "driver").resolve().name, card.speed] += 1
    descriptions = []
    for (driver, speed), count in counts.items():
        rate = {"mbit_per_s": speed} if speed else {}
        descriptions.append({"driver": driver, **rate, "count": count})
    return descriptions


def gpus() -> list[dict[str, str]]:
    """Return the properties of each GPU that ``nvidia-smi`` reports; empty without this program.

    ``pcie.link.gen.max`` is the generation of its link. An idle GPU lowers
    ``pcie.link.gen.current``.
    """
    command = ["nvidia-smi", f"--query-gpu={','.join(_GPU_QUERY)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    descriptions = []
    for line in answer.stdout.splitlines():
        values = line.strip().split(", ")
        if len(values) == len(_GPU_QUERY):
            properties = zip(_GPU_QUERY, values, strict=True)
            # A value such as [Not Supported] or N/A is unknown.
            description = {
                key: value for key, value in properties if not re.match(r"\[|N/A$|$", value)
            }
            descriptions.append(description)
    return descriptions
