"""The devices that a training loop takes, and the threads that it computes with on a processor."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from iobench.consumers import requirements
from iobench.errors import Unavailable
from iobench.machine.hardware import gpus

_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


@dataclass(frozen=True, slots=True)
class Devices:
    """``count`` GPUs, or as many processes on the processor: a rank each."""

    count: int
    on_gpu: bool

    def named(self, ranks: Sequence[str]) -> str:
        """``8 x NVIDIA H100``, ``2 x CPU (AMD EPYC, 1 thread each)``, by what ranks ran on."""
        if not self.on_gpu:
            return f"{self.count} x CPU ({ranks[0]} each)"
        return " + ".join(f"{count} x {name}" for name, count in Counter(ranks).items())


def devices_of(asked: int | Literal["all"], device: str) -> Devices | None:
    """The devices that a trial's ``devices`` and ``device`` ask for; None for one alone.

    Raises:
        Unavailable: there are fewer, or torch cannot train on several here.
    """
    if asked == 1:
        return None
    torch = requirements.framework("torch")
    there = int(torch.cuda.device_count())
    build = f"torch {torch.__version__}"
    built = requirements.torch_built_for_gpu(torch)
    on_gpu = requirements.takes_gpu(device, there > 0, build, built=built)
    if asked == "all":
        asked = there if on_gpu else 1
    if on_gpu and asked > there:
        raise Unavailable(f"{asked} GPUs are asked for (devices), and {build} finds {there}")
    if asked == 1:
        return None
    if not torch.distributed.is_available() or (
        on_gpu and not torch.distributed.is_nccl_available()
    ):
        raise Unavailable(
            f"{build} was built without {'NCCL' if on_gpu else 'torch.distributed'}: it trains on "
            "one device only (devices: 1)"
        )
    return Devices(asked, on_gpu)


def thread_limits(
    threads: int | None,
    workers: int,
    environment: Mapping[str, str],
    *,
    on_cpu: bool,
    ranks: int = 1,
) -> dict[str, str]:
    """Environment variables that set the frameworks' thread count; before one is imported.

    Without ``threads``, and ``on_cpu`` or without a GPU, each of ``ranks`` training loops leaves
    a processor of its part to each of its loader's ``workers``: threads that wait for each other
    while a worker has their processor take many times as long, and would look like a stall for
    data. What the user's ``environment`` says stands.
    """
    if threads is None:
        if any(name in environment for name in _VARIABLES) or (not on_cpu and gpus()):
            return {}
        threads = max(1, len(os.sched_getaffinity(0)) // ranks - workers)
    return dict.fromkeys(_VARIABLES, str(threads))
