"""``gpu``: NVIDIA GPUs as their driver tells of them, by NVML.

Utilisation is NVML's: the share of its last window (up to 1 s) in which any kernel ran. It says
nothing of how much of the device worked, so that it is a series only and no figure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iobench.errors import Unavailable

_MOST_DEVICES = 16


class GpuSampler:
    """Utilisation, memory, clock and power of each GPU that the process may see."""

    def __init__(self, process: int) -> None:
        try:
            import pynvml
        except ImportError:
            raise Unavailable(
                "no series of GPUs: nvidia-ml-py is not installed "
                "(pip install 'dataprep-iobench[gpu]')"
            ) from None
        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise Unavailable(f"no series of GPUs: the driver does not answer ({error})") from None
        self._handles = self._visible(os.environ.get("CUDA_VISIBLE_DEVICES"))
        self.notes: Sequence[str] = (
            "gpu: utilisation is the share of time in which any kernel ran, as NVML has it",
        )
        if not self._handles:
            self.close()
            raise Unavailable("no series of GPUs: there is none")

    def read(self, now_s: float) -> Mapping[str, float]:
        """As they are now. What a device does not tell (utilisation of MIG, power) is left out."""
        nvml, found = self._nvml, {}
        values: Mapping[str, Callable[[Any], float]] = {
            "utilisation_share": lambda gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
            "memory_bytes": lambda gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
            "sm_clock_mhz": lambda gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
            "power_w": lambda gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
        }
        for number, handle in self._handles.items():
            for name, value in values.items():
                try:
                    found[f"{number}_{name}"] = float(value(handle))
                except nvml.NVMLError:
                    continue
        return found

    def close(self) -> None:
        """Let go of the driver."""
        self._nvml.nvmlShutdown()

    def _visible(self, told: str | None) -> dict[int, Any]:
        """Handles by NVML's number: those of ``CUDA_VISIBLE_DEVICES``, else all.

        CUDA's numbers are NVML's where ``CUDA_DEVICE_ORDER`` is ``PCI_BUS_ID``, or all devices are
        of one kind.
        """
        nvml = self._nvml
        try:
            every = {
                number: nvml.nvmlDeviceGetHandleByIndex(number)
                for number in range(min(nvml.nvmlDeviceGetCount(), _MOST_DEVICES))
            }
            names = {number: _text(nvml.nvmlDeviceGetUUID(gpu)) for number, gpu in every.items()}
        except nvml.NVMLError:
            return {}
        wanted = [word.strip() for word in (told or "").split(",") if word.strip()]
        chosen = {
            number: every[number]
            for number in every
            for word in wanted
            if word == str(number) or (len(word) > 4 and names[number].startswith(word))
        }
        # Parts of a GPU (MIG) have names of their own: all devices are better than none.
        return chosen or every


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
