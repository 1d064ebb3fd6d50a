"""Processors, memory, network cards and NVIDIA GPUs that this process may use.

Control groups of both versions limit memory and processors (cgroups(7)). The descriptions have no
name of a host or interface, and no address.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NotRequired, TypedDict

import psutil

from dataprep.machine.kernel_files import ROOT, number, text
from dataprep.machine.processors import control_groups

_GPU_QUERY = (
    *("name", "memory.total", "driver_version", "power.limit", "persistence_mode"),
    *("pcie.link.gen.max", "pcie.link.width.max"),
    *("pcie.link.gen.current", "pcie.link.width.current"),
)
_UNKNOWN_GPU_VALUE = r"\[|N/A$|$"
"""The beginning of a value that is unknown, such as ``[Not Supported]``, ``N/A`` or nothing."""

_INTERFACES = Path("/sys/class/net")
_NVIDIA_SMI_TIMEOUT_S = 20
"""Seconds after which ``nvidia-smi`` is ended, so that a driver that hangs does not stop a run."""


class Processors(TypedDict):
    """The processors of a machine, under the keys of results.

    Attributes:
        processor: the model.
        processors: the number of processors that this process may use.
        governor: the frequency governor. It has several words if the processors differ, and is
            empty if it is unknown.
    """

    processor: str
    processors: int
    governor: str


class NetworkCards(TypedDict):
    """The network cards of one kind that are up, under the keys of results.

    Attributes:
        driver: the name of their driver.
        mbit_per_s: their speed, in units of 10^6 bits. It is left out if the driver does not know
            it, as in virtual machines.
        count: the number of cards.
    """

    driver: str
    mbit_per_s: NotRequired[int]
    count: int


def processors(root: Path = ROOT) -> Processors:
    """Return the model, the number and the governor of the processors."""
    model = re.search(r"^model name\s*:\s*(\S.*)$", text(root / "proc/cpuinfo"), re.MULTILINE)
    governor_files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    governors = {text(file) for file in governor_files} - {""}
    return {
        "processor": model[1].strip() if model else platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "governor": ", ".join(sorted(governors)),
    }


def memory_bytes(root: Path = ROOT) -> int:
    """Return the memory that the page cache may take, in bytes.

    This is the memory of the machine, or the limit of a control group if that is smaller.
    """
    limits = [psutil.virtual_memory().total]
    for folder in control_groups("memory", root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = number(folder / name)
            if limit is not None:
                limits.append(limit)
    return min(limits)


def available_bytes() -> int:
    """Return the memory that is available without swapping, in bytes.

    It is at most the limit of the control group. The memory that the control group already uses is
    not subtracted from its limit.
    """
    return min(int(psutil.virtual_memory().available), memory_bytes())


def transparent_huge_pages(root: Path = ROOT) -> str | None:
    """Return the mode: ``always``, ``madvise`` or ``never``; None if the kernel shows no mode."""
    match = re.search(r"\[(\w+)\]", text(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return match[1] if match else None


def networks(interfaces: Path = _INTERFACES) -> list[NetworkCards]:
    """Return the network cards that are up, by kind.

    Bridges, tunnels and the loopback have no device in sysfs, so they are not cards.

    Args:
        interfaces: the folder in sysfs that has all network interfaces.
    """
    counts: Counter[tuple[str, int]] = Counter()
    for name, card in psutil.net_if_stats().items():
        device = interfaces / name / "device"
        if card.isup and device.exists():
            counts[(device / "driver").resolve().name, card.speed] += 1
    kinds: list[NetworkCards] = []
    for (driver, mbit_per_s), count in counts.items():
        if mbit_per_s:
            kinds.append({"driver": driver, "mbit_per_s": mbit_per_s, "count": count})
        else:
            kinds.append({"driver": driver, "count": count})
    return kinds


def gpus() -> list[dict[str, str]]:
    """Return the known properties of each GPU, by the names that ``nvidia-smi`` has for them.

    The result is empty if this program is missing or fails. ``pcie.link.gen.max`` is the generation
    of the PCI Express link. An idle GPU lowers ``pcie.link.gen.current``.
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
        if len(values) != len(_GPU_QUERY):
            continue
        properties = zip(_GPU_QUERY, values, strict=True)
        known_properties = {
            key: value for key, value in properties if not re.match(_UNKNOWN_GPU_VALUE, value)
        }
        descriptions.append(known_properties)
    return descriptions
