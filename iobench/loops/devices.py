"""Which devices a training loop takes, where it takes several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.consumers import requirements
from iobench.errors import Unavailable


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


def devices_of(params: Mapping[str, Any]) -> Devices | None:
    """Those that a trial's ``devices`` and ``device`` ask for; None for one device alone.

    Raises:
        Unavailable: there are fewer, or torch cannot train on several here.
    """
    asked = params.get("devices", 1)
    if asked == 1:
        return None
    torch = requirements.framework("torch")
    there = int(torch.cuda.device_count())
    build = f"torch {torch.__version__}"
    on_gpu = requirements.takes_gpu(params["device"], there > 0, build)
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
