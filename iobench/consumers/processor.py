"""The CPU that a training loop runs on, in words, and what its arithmetic can do."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# Linux's names of the instructions that multiply matrices of bfloat16: x86-64, then Arm.
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads(variable: str) -> int:
    """What the environment's ``variable`` sets, else one a core, as libraries take it."""
    told = os.environ.get(variable, "")
    is_number = told.isascii() and told.isdigit() and len(told) < 10
    return int(told) if is_number and int(told) else cores()


def describe(count: int, cpuinfo: Path = _CPUINFO) -> str:
    """``AMD EPYC, 2 threads``: the model's name as the kernel knows it, and ``count`` threads."""
    name = _fields(cpuinfo).get("model name") or f"{platform.machine() or 'unknown'} CPU"
    return f"{' '.join(name.split())}, {count} thread{'' if count == 1 else 's'}"


def has_bfloat16(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the CPU computes with bfloat16 itself; False where that cannot be told."""
    fields = _fields(cpuinfo)
    flags = fields.get("flags") or fields.get("Features") or ""
    return bool(_BFLOAT16 & set(flags.split()))


def _fields(cpuinfo: Path) -> dict[str, str]:
    """The first processor's fields; none where there is no such file."""
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}
