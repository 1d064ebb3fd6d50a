"""Processors as the kernel tells them: model, how many, how they are clocked, which node."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from iobench import kernel_files

SYSFS = Path("/sys")
PROC = Path("/proc")


def processors(root: Path = SYSFS, proc: Path = PROC) -> dict[str, Any]:
    """``processor`` (model), ``processors`` (that we may use), ``processors_present``, and where
    told ``processor_cores`` (hyper-threads of one core counted once) and ``governor``."""
    text = kernel_files.text(proc / "cpuinfo")
    cores = core_count(text)
    return {
        "processor": model(text),
        "processors": len(os.sched_getaffinity(0)),
        "processors_present": os.cpu_count() or 1,
        **({"processor_cores": cores} if cores else {}),
        **_governor(root),
    }


def model(cpuinfo: str) -> str:
    """The processor's model, as the kernel names it; the architecture where it does not."""
    match = re.search(r"^model name\s*:\s*(\S.*)$", cpuinfo, re.M)
    return match[1].strip() if match else platform.machine()


def core_count(cpuinfo: str) -> int | None:
    """Distinct cores of all sockets; None where the kernel does not number them."""
    sockets = re.findall(r"^physical id\s*:\s*(\d+)$", cpuinfo, re.M)
    cores = re.findall(r"^core id\s*:\s*(\d+)$", cpuinfo, re.M)
    if not cores or len(cores) != len(sockets):
        return None
    return len(set(zip(sockets, cores, strict=True)))


def numa_nodes(root: Path = SYSFS) -> list[dict[str, Any]]:
    """Processors and memory of each node; none where the kernel knows of one node only."""
    found = []
    for folder in sorted((root / "devices/system/node").glob("node[0-9]*"), key=_number_of):
        memory = re.search(r"MemTotal:\s+(\d+) kB", kernel_files.text(folder / "meminfo"))
        entry: dict[str, Any] = {"processors": kernel_files.text(folder / "cpulist")}
        if memory:
            entry["memory_bytes"] = int(memory[1]) * 1024
        found.append(entry)
    return found if len(found) > 1 else []


def transparent_huge_pages(root: Path = SYSFS) -> str | None:
    """``always``, ``madvise`` or ``never``; None where the kernel has none."""
    text = kernel_files.text(root / "kernel/mm/transparent_hugepage/enabled")
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else None


def _governor(root: Path) -> dict[str, str]:
    """How the kernel clocks the processors: one word, or several where they differ."""
    folder = root / "devices/system/cpu"
    words = {kernel_files.text(path) for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return {"governor": ", ".join(sorted(words - {""}))} if words - {""} else {}


def _number_of(folder: Path) -> int:
    digits = folder.name.removeprefix("node")
    return int(digits) if digits.isdecimal() else -1
