"""Choose the device and the precision of a training loop, and describe the processor."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from dataprep.machine import kernel_files
from iobench.errors import Unavailable

_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Linux's names of the instructions that multiply bfloat16: two on x86-64, one on Arm."""


def takes_gpu(device: str, has_gpu: bool, build: str) -> bool:
    """Return whether a training loop trains on a GPU.

    Args:
        device: the device in the config: ``auto`` (a GPU if there is one), ``cpu`` or ``gpu``.
        has_gpu: whether the framework finds a GPU.
        build: name and version of the framework, for the message.

    Raises:
        Unavailable: the config needs a GPU, and the framework finds none.
    """
    if device == "gpu" and not has_gpu:
        raise Unavailable(
            f"{build} finds no GPU: check the driver, CUDA_VISIBLE_DEVICES and that this build has "
            "CUDA, or set device: cpu"
        )
    return has_gpu and device != "cpu"


def cpu_precision(precision: str, *, mixes_on_cpu: bool = True) -> str:
    """Return the precision on a CPU: ``bfloat16`` for ``mixed``, otherwise ``float32``.

    Args:
        precision: the precision in the config: ``auto``, ``float32`` or ``mixed``.
        mixes_on_cpu: whether the framework can use mixed precision on a CPU.

    Raises:
        Unavailable: the precision is ``mixed``, and the CPU has no bfloat16 or the framework cannot
            use it.
    """
    if precision != "mixed":
        return "float32"
    if not mixes_on_cpu:
        raise Unavailable("mixed precision needs a GPU here: take precision: float32")
    if not has_bfloat16():
        raise Unavailable(
            "mixed precision needs a CPU with bfloat16 (AVX512_BF16 or AMX): take precision: "
            "float32"
        )
    return "bfloat16"


def gpu_precision(
    precision: str, compute_capability: tuple[int, ...], *, prefers_bfloat16: bool
) -> str:
    """Return the precision on a GPU: ``float32``, ``float16`` or ``bfloat16``.

    Args:
        precision: the precision in the config: ``float32``, ``mixed``, or ``auto``. The last one
            means mixed if the GPU has tensor cores, which exist from compute capability 7.0 on.
        compute_capability: the compute capability of the GPU, such as (8, 0).
        prefers_bfloat16: whether mixed precision uses bfloat16 instead of float16 on GPUs that have
            it, which are those from compute capability 8.0 on.
    """
    has_tensor_cores = compute_capability >= (7, 0)
    if precision == "float32" or (precision == "auto" and not has_tensor_cores):
        return "float32"
    return "bfloat16" if prefers_bfloat16 and compute_capability >= (8, 0) else "float16"


def threads(variable: str) -> int:
    """Return the number of threads that an environment variable sets.

    Without a positive number there, it is one thread for each CPU that this process may use.
    """
    value = os.environ.get(variable, "")
    if re.fullmatch(r"[1-9]\d{0,8}", value, re.ASCII):
        return int(value)
    return len(os.sched_getaffinity(0))


def describe_cpu(threads: int, cpuinfo: Path = _CPUINFO) -> str:
    """Return the model of the first processor with a number of threads: ``AMD EPYC, 2 threads``.

    If the model is unknown, it is replaced by the architecture.
    """
    model = _field("model name", cpuinfo) or f"{platform.machine() or 'unknown'} CPU"
    return f"{' '.join(model.split())}, {threads} thread{'' if threads == 1 else 's'}"


def has_bfloat16(cpuinfo: Path = _CPUINFO) -> bool:
    """Return whether the first processor multiplies bfloat16; False if that is unknown."""
    return bool(_BFLOAT16 & set(_field("flags|Features", cpuinfo).split()))


def _field(name: str, cpuinfo: Path) -> str:
    """Return the value of the first line with a name; empty if there is none.

    Args:
        name: the name, which is part of a regular expression and may have alternatives.
        cpuinfo: the file ``/proc/cpuinfo``, or another one for tests.
    """
    match = re.search(rf"^(?:{name})[ \t]*:(.*)$", kernel_files.text(cpuinfo), re.M)
    return match[1].strip() if match else ""
