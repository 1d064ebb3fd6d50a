"""NVIDIA's management library as its Python bindings show it, with two GPUs, one of them parted."""

from __future__ import annotations

import types
from typing import Any


class NVMLError(Exception):
    """As the library's."""


class FakeNvml(types.ModuleType):
    """``told`` is what each device says; a value that is missing is not supported."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.told: list[dict[str, Any]] = [
            {"utilisation": 60, "memory": 8 << 30, "clock": 1500, "power": 250_000},
            {"memory": 1 << 30},
        ]
        for device, name in zip(self.told, ("GPU-aaaa", "GPU-bbbb"), strict=True):
            device["uuid"] = name
        self.answers = True
        self.begun = self.ended = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.answers:
            raise NVMLError("Driver Not Loaded")
        self.begun += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.ended += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.told)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        return number

    def nvmlDeviceGetUUID(self, number: int) -> str:  # noqa: N802
        return str(self._of(number, "uuid"))

    def nvmlDeviceGetUtilizationRates(self, number: int) -> Any:  # noqa: N802
        return types.SimpleNamespace(gpu=self._of(number, "utilisation"))

    def nvmlDeviceGetMemoryInfo(self, number: int) -> Any:  # noqa: N802
        return types.SimpleNamespace(used=self._of(number, "memory"))

    def nvmlDeviceGetClockInfo(self, number: int, kind: int) -> Any:  # noqa: N802
        assert kind == self.NVML_CLOCK_SM
        return self._of(number, "clock")

    def nvmlDeviceGetPowerUsage(self, number: int) -> Any:  # noqa: N802
        return self._of(number, "power")

    def _of(self, number: int, name: str) -> Any:
        if name not in self.told[number]:
            raise NVMLError("Not Supported")
        return self.told[number][name]
