"""A replacement for the Python bindings of NVIDIA's management library, with two GPUs."""

from __future__ import annotations

from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """The error of the library."""


class FakeNvml(ModuleType):
    """The module ``pynvml``; ``devices`` has the values that each device supports."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self) -> None:
        super().__init__("pynvml")
        first = {
            "UUID": "GPU-aaaa",
            "UtilizationRates": SimpleNamespace(gpu=60),
            "MemoryInfo": SimpleNamespace(used=8 << 30),
            "ClockInfo": 1500,
            "PowerUsage": 250_000,
        }
        second = {"UUID": "GPU-bbbb", "MemoryInfo": SimpleNamespace(used=1 << 30)}
        self.devices: list[dict[str, Any]] = [first, second]
        self.begun = self.ended = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.begun += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.ended += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        return number

    def __getattr__(self, name: str) -> Any:
        """Return the function that reads a value of a device, as in ``nvmlDeviceGetClockInfo``."""
        return partial(self._of, name.removeprefix("nvmlDeviceGet"))

    def _of(self, name: str, number: int, *kind: int) -> Any:
        if name not in self.devices[number]:
            raise NVMLError("Not Supported")
        return self.devices[number][name]
