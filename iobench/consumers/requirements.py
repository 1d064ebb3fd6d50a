"""What a training loop needs of the machine, or why it cannot be had."""

from __future__ import annotations

from types import ModuleType

from dataprep.adapters import import_framework
from iobench.consumers import processor
from iobench.errors import Unavailable


def framework(name: str) -> ModuleType:
    """``torch``, ``tensorflow`` or ``mxnet``.

    Raises:
        Unavailable: not installed; the message names the extra that brings it.
    """
    try:
        return import_framework(name)
    except ImportError as error:
        raise Unavailable(str(error)) from error


def takes_gpu(asked: str, there: bool, build: str) -> bool:
    """Whether to run on a GPU: ``asked`` is ``auto``, ``cpu`` or ``gpu``; ``build`` looks for it.

    Raises:
        Unavailable: one was asked for, and none is ``there``.
    """
    if asked == "gpu" and not there:
        raise Unavailable(
            f"{build} finds no GPU: it needs one, its driver and a GPU build, or device: cpu"
        )
    return there and asked != "cpu"


def cpu_precision(asked: str, *, mixes: bool = True) -> str:
    """``float32``, or ``bfloat16`` where ``mixed`` is asked for; ``mixes``: the framework can.

    Raises:
        Unavailable: framework or CPU has no mixed precision.
    """
    if asked != "mixed":
        return "float32"
    if not mixes:
        raise Unavailable("mixed precision needs a GPU here: take precision: float32")
    if not processor.has_bfloat16():
        raise Unavailable(
            "mixed precision on a CPU needs one with bfloat16 (AVX512_BF16 or AMX): take "
            "precision: float32"
        )
    return "bfloat16"


def gpu_precision(asked: str, capability: tuple[int, ...], *, bfloat16: bool) -> str:
    """What a GPU of this compute capability computes in; ``bfloat16``: the framework prefers it.

    ``auto`` is mixed from 7.0 on, where tensor cores begin; bfloat16 begins with 8.0.
    """
    if asked == "float32" or (asked == "auto" and capability < (7, 0)):
        return "float32"
    return "bfloat16" if bfloat16 and capability >= (8, 0) else "float16"
