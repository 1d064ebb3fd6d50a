"""Choose the device and the precision of a training loop, and describe the processor."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from dataprep import kernel_files
from iobench.errors import Unavailable

_CPUINFO = Path("/proc/cpuinfo")
# Linux's names of the instructions that multiply bfloat16: on x86-64, then on Arm.
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}


def takes_gpu(asked: str, there: bool, build: str) -> bool:
    """Decide whether to run on a GPU: ``asked`` is ``auto``, ``cpu`` or ``gpu``.

    ``there``: whether the framework, whose version is ``build``, found a GPU.

    Raises:
        Unavailable: a GPU was asked for, and the framework found none.
    """
    if asked == "gpu" and not there:
        raise Unavailable(
            f"{build} finds no GPU: check the driver, CUDA_VISIBLE_DEVICES and that this build has "
            "CUDA, or set device: cpu"
        )
    return there and asked != "cpu"


def cpu_precision(asked: str, *, mixes: bool = True) -> str:
    """The precision on a CPU: ``bfloat16`` if ``asked`` is ``mixed``, otherwise ``float32``.

    Raises:
        Unavailable: the CPU has no bfloat16, or the framework cannot use it (not ``mixes``).
    """
    if asked != "mixed":
        return "float32"
    if not mixes:
        raise Unavailable("mixed precision needs a GPU here: take precision: float32")
    if not has_bfloat16():
        raise Unavailable(
            "mixed precision on a CPU needs one with bfloat16 (AVX512_BF16 or AMX): take "
            "precision: float32"
        )
    return "bfloat16"


def gpu_precision(asked: str, capability: tuple[int, ...], *, bfloat16: bool) -> str:
    """The precision on a GPU of this compute capability.

    ``auto`` is mixed from 7.0 on, which has tensor cores. Mixed is bfloat16 from 8.0 on if the
    framework prefers it (``bfloat16``), otherwise float16.
    """
    if asked == "float32" or (asked == "auto" and capability < (7, 0)):
        return "float32"
    return "bfloat16" if bfloat16 and capability >= (8, 0) else "float16"


def threads(variable: str) -> int:
    """The number of threads that the environment's ``variable`` sets; by default one per core."""
    value = os.environ.get(variable, "")
    if re.fullmatch(r"[1-9]\d{0,8}", value, re.ASCII):
        return int(value)
    return len(os.sched_getaffinity(0))


def describe_cpu(threads: int, cpuinfo: Path = _CPUINFO) -> str:
    """``AMD EPYC, 2 threads``: the model of the first processor, and the number of threads."""
    model = _field("model name", cpuinfo) or f"{platform.machine() or 'unknown'} CPU"
    return f"{' '.join(model.split())}, {threads} thread{'' if threads == 1 else 's'}"


def has_bfloat16(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the first processor has instructions for bfloat16; False if that is unknown."""
    return bool(_BFLOAT16 & set(_field("flags|Features", cpuinfo).split()))


def _field(name: str, cpuinfo: Path) -> str:
    """The value of the first line of that name; empty if there is none."""
    match = re.search(rf"^(?:{name})[ \t]*:(.*)$", kernel_files.text(cpuinfo), re.M)
    return match[1].strip() if match else ""
