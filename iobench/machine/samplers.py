"""Samplers: readings of the machine and of a process tree while something is measured.

Samplers are registered by name under the entry-point group ``iobench.samplers``.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import psutil

from dataprep.kernel_files import names
from dataprep.registry import Registry
from iobench.errors import Unavailable
from iobench.machine.processes import proportional_bytes

_CPU_SHARES = {
    "user_share": ("user", "nice"),
    "system_share": ("system", "irq", "softirq"),
    "iowait_share": ("iowait",),
    "steal_share": ("steal",),
}
# Guests are counted in user time already.
_CPU_TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MADE_OF_OTHERS = ("loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd")
_LOOPBACK = "lo"
_MEMINFO = Path("/proc/meminfo")
_CACHED = {"Cached": "cached_bytes", "Dirty": "dirty_bytes"}
# Looking for new workers reads every process of the machine.
_LOOK_EVERY_S = 2.0
# Share of a processor that reading PSS may take: with more pages it is read less often.
_PSS_SHARE = 0.003
_NO_PSS = (
    "memory of processes is RSS, which counts shared pages once for each process: "
    "/proc/PID/smaps_rollup cannot be read"
)


class Sampler(Protocol):
    """One kind of series. Entry points of the group ``iobench.samplers`` name such classes.

    Attributes:
        notes: what readers of its series must know.
    """

    notes: Sequence[str] = ()

    def __init__(self, process: int) -> None:
        """``process``: the id of the process whose loop is measured.

        Raises:
            Unavailable: this machine has nothing to read; the message says what would help.
        """
        return

    def read(self, now_s: float) -> Mapping[str, float]:
        """Values by name, units in the names (``_bytes``, ``_per_s``, ``_share``, ``_cores``).

        ``now_s`` is the time on a monotonic clock. Rates are means since the call before, so the
        first call gives none. Values that are not available, or too expensive to read again so
        soon, are left out.
        """
        ...

    def close(self) -> None:
        """Release everything."""
        return


SAMPLERS: Registry[Sampler] = Registry("iobench.samplers", "sampler")


class RateSampler(Sampler):
    """A sampler that returns the rates of growing counters."""

    _before: tuple[float, Mapping[str, float]] | None = None

    def _rates(self, counters: Mapping[str, float], now_s: float) -> dict[str, float]:
        """The growth of each counter per second since the call before; empty on the first call.

        A counter that fell (a device was removed, a process ended) counts as growth of 0.
        """
        before, self._before = self._before, (now_s, counters)
        if before is None or now_s <= before[0]:
            return {}
        seconds = now_s - before[0]
        return {
            name: max(0.0, value - before[1][name]) / seconds
            for name, value in counters.items()
            if name in before[1]
        }


class CpuSampler(RateSampler):
    """``cpu``: shares of the time of all processors, 0 to 1; of the machine, not of a container."""

    notes = (
        "iowait is idle time of processors during a read or write: a machine whose processors are "
        "busy shows little of it even if its loader waits long",
    )

    def read(self, now_s: float) -> Mapping[str, float]:
        """Shares since the call before. The kernel lowers iowait at times."""
        times = psutil.cpu_times()
        spent = self._rates({name: getattr(times, name) for name in _CPU_TIMES}, now_s)
        total = sum(spent.values())
        if not total:
            return {}
        shares = _CPU_SHARES.items()
        return {share: sum(spent[name] for name in names) / total for share, names in shares}


class DiskSampler(RateSampler):
    """``disk``: bytes read and written a second by all block devices, partitions counted once."""

    notes = ("disk: of the whole machine; network file systems do not count",)

    def __init__(self, process: int, devices: Path = Path("/sys/block")) -> None:
        # Bytes of a device that is made of others are counted in those.
        self._devices = {name for name in names(devices) if not name.startswith(_MADE_OF_OTHERS)}
        if not self._devices & psutil.disk_io_counters(perdisk=True).keys():
            raise Unavailable("no bytes of disks: the kernel shows no block device here")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Rates since the call before."""
        found = psutil.disk_io_counters(perdisk=True, nowrap=False)
        ours = [counted for name, counted in found.items() if name in self._devices]
        counters = {
            "read_bytes_per_s": sum(counted.read_bytes for counted in ours),
            "written_bytes_per_s": sum(counted.write_bytes for counted in ours),
        }
        return self._rates(counters, now_s)


class NetworkSampler(RateSampler):
    """``network``: bytes received and sent a second; those of the loopback separately."""

    def __init__(self, process: int, interfaces: Path = Path("/sys/class/net")) -> None:
        self._cards = {path.parent.name for path in interfaces.glob("*/device")}

    def read(self, now_s: float) -> Mapping[str, float]:
        """Rates since the call before."""
        found = psutil.net_io_counters(pernic=True, nowrap=False)
        # A bridge counts the bytes of a card again; a container may have no card.
        counted = found.keys() & self._cards or found.keys() - {_LOOPBACK}
        counters: dict[str, float] = {}
        if counted:
            counters["received_bytes_per_s"] = sum(found[name].bytes_recv for name in counted)
            counters["sent_bytes_per_s"] = sum(found[name].bytes_sent for name in counted)
        if _LOOPBACK in found:
            counters["loopback_bytes_per_s"] = found[_LOOPBACK].bytes_recv
        return self._rates(counters, now_s)


class PageCacheSampler(Sampler):
    """``page-cache``: bytes of files in memory, and of those to be written; of the machine."""

    def read(self, now_s: float) -> Mapping[str, float]:
        """The sizes now. psutil has no dirty bytes, and counts slabs as cached."""
        found = re.findall(r"^(Cached|Dirty):\s+(\d+) kB$", _MEMINFO.read_text(), re.M)
        return {_CACHED[name]: int(kib) * 1024 for name, kib in found}


class TreeSampler(RateSampler):
    """``tree``: processors kept busy by a process and its descendants, and their memory.

    Ended and reaped children count in their parent. RSS is read each time, PSS as often as
    ``_PSS_SHARE`` allows; ``clock`` measures what that takes.
    """

    def __init__(self, process: int, clock: Callable[[], float] = time.thread_time) -> None:
        self._root = psutil.Process(process)
        self._clock = clock
        self._members: list[psutil.Process] = []
        self._look_due_s = float("-inf")
        # Never due where PSS cannot be read.
        self._pss_due_s = float("-inf") if proportional_bytes(process) else float("inf")
        self.notes = (_NO_PSS,) if self._pss_due_s > 0 else ()

    def read(self, now_s: float) -> Mapping[str, float]:
        """Processors busy in user and system time, and by workers; memory; number of processes."""
        if now_s >= self._look_due_s:
            self._look_due_s, self._members = now_s + _LOOK_EVERY_S, [self._root]
            with contextlib.suppress(psutil.Error):
                self._members += self._root.children(recursive=True)
        counters = {"user_cores": 0.0, "system_cores": 0.0, "worker_cores": 0.0}
        rss_bytes, found = 0, []
        for process in self._members:
            with contextlib.suppress(psutil.Error):
                times, memory = process.cpu_times(), process.memory_info()
                user_s, system_s = times.user + times.children_user, times.system
                system_s += times.children_system
                counters["user_cores"] += user_s
                counters["system_cores"] += system_s
                if process != self._root:
                    counters["worker_cores"] += user_s + system_s
                rss_bytes += memory.rss
                found.append(process.pid)
        return {
            **self._rates(counters, now_s),
            "rss_bytes": rss_bytes,
            **self._proportional(found, now_s),
            "processes": len(found),
        }

    def _proportional(self, members: Sequence[int], now_s: float) -> dict[str, float]:
        """PSS of all together, if it can be read and is due."""
        if now_s < self._pss_due_s:
            return {}
        begun_s = self._clock()
        sizes = [proportional_bytes(process) for process in members]
        self._pss_due_s = now_s + (self._clock() - begun_s) / _PSS_SHARE
        # Without one of them the sum is not the memory of the tree.
        return {} if None in sizes or not any(sizes) else {"pss_bytes": sum(filter(None, sizes))}


class GpuSampler(Sampler):
    """``gpu``: utilisation, memory, clock and power of each NVIDIA GPU that is visible, by NVML.

    Utilisation is NVML's: the share of its last window (up to 1 s) in which any kernel ran. It
    does not say how much of the device worked, so it is a series only and no figure.
    """

    notes = ("gpu: utilisation is the share of time in which any kernel ran (NVML)",)

    def __init__(self, process: int) -> None:
        try:
            import pynvml
        except ImportError:
            raise Unavailable(
                "no series of GPUs: nvidia-ml-py is not installed "
                "(pip install 'dataprep-iobench[gpu]')"
            ) from None
        self._nvml: Any = pynvml
        pynvml.nvmlInit()
        # CUDA's numbers are NVML's if CUDA_DEVICE_ORDER is PCI_BUS_ID, or all GPUs are of one kind.
        wanted = set(os.environ.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "").split(","))
        count = pynvml.nvmlDeviceGetCount()
        every = {n: pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(count)}
        names = {n: {str(n), pynvml.nvmlDeviceGetUUID(gpu)} for n, gpu in every.items()}
        chosen = {n: gpu for n, gpu in every.items() if wanted & names[n]}
        # Parts of a GPU (MIG) have names of their own: all devices are better than none.
        self._gpus = chosen or every

    def read(self, now_s: float) -> Mapping[str, float]:
        """The values now; those that a device does not support are left out."""
        nvml, found = self._nvml, {}
        values: Mapping[str, Callable[[Any], float]] = {
            "utilisation_share": lambda gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
            "memory_bytes": lambda gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
            "sm_clock_mhz": lambda gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
            "power_w": lambda gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
        }
        for number, gpu in self._gpus.items():
            for name, value in values.items():
                with contextlib.suppress(nvml.NVMLError):
                    found[f"{number}_{name}"] = float(value(gpu))
        return found

    def close(self) -> None:
        """Release the driver."""
        self._nvml.nvmlShutdown()
