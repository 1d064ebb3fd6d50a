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
from pathlib import Path
from typing import Any

import psutil

from dataprep.kernel_files import ROOT, number, text
from dataprep.processors import control_groups

_GPU = (
    *("name", "memory.total", "driver_version", "power.limit", "persistence_mode"),
    *("pcie.link.gen.max", "pcie.link.width.max"),
    *("pcie.link.gen.current", "pcie.link.width.current"),
)
_CARDS = Path("/sys/class/net")
_NVIDIA_SMI_TIMEOUT_S = 20


def processors(root: Path = ROOT) -> dict[str, Any]:
    """``processor`` (model), ``processors`` (that we may use), and ``governor`` where known.

    The governor is several words if the processors differ.
    """
    model = re.search(r"^model name\s*:\s*(\S.*)$", text(root / "proc/cpuinfo"), re.M)
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return {
        "processor": model[1].strip() if model else platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "governor": ", ".join(sorted({text(path) for path in files} - {""})),
    }


def memory_bytes(root: Path = ROOT) -> int:
    """Memory that the page cache may take: the machine's, or less by the control group."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = [number(folder / name) for folder in control_groups("memory", root) for name in names]
    return min([psutil.virtual_memory().total, *(limit for limit in limits if limit is not None)])


def available_bytes() -> int:
    """Memory that is available without swapping, at most what the control group allows."""
    return min(int(psutil.virtual_memory().available), memory_bytes())


def transparent_huge_pages(root: Path = ROOT) -> str | None:
    """``always``, ``madvise`` or ``never``; None if the kernel has none."""
    match = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else None


def networks(cards: Path = _CARDS) -> list[dict[str, Any]]:
    """``driver``, ``mbit_per_s`` (10^6 bits) and ``count`` of network cards that are up.

    The speed is left out if the driver does not know it, as in virtual machines. Bridges, tunnels
    and the loopback have no device and are no cards.
    """
    counted: Counter[tuple[str, int]] = Counter()
    for name, card in psutil.net_if_stats().items():
        device = cards / name / "device"
        if card.isup and device.exists():
            counted[(device / "driver").resolve().name, card.speed] += 1
    found = []
    for (driver, speed), count in counted.items():
        known = {"mbit_per_s": speed} if speed else {}
        found.append({"driver": driver, **known, "count": count})
    return found


def gpus() -> list[dict[str, str]]:
    """What ``nvidia-smi`` reports of each GPU; empty without it.

    An idle GPU lowers ``pcie.link.gen.current``; ``pcie.link.gen.max`` is its link.
    """
    command = ["nvidia-smi", f"--query-gpu={','.join(_GPU)}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    found = []
    for line in answer.stdout.splitlines():
        row = line.strip().split(", ")
        if len(row) == len(_GPU):
            told = zip(_GPU, row, strict=True)
            found.append({key: value for key, value in told if not re.match(r"\[|N/A$|$", value)})
    return found
