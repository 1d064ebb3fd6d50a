"""Samplers read the machine and a tree of processes while a trial is measured.

They are registered by name under the entry-point group ``iobench.samplers``.
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

from dataprep.machine.kernel_files import names
from dataprep.registry import Registry
from iobench.errors import Unavailable
from iobench.machine.processes import proportional_bytes

_CPU_SHARES = {
    "user_share": ("user", "nice"),
    "system_share": ("system", "irq", "softirq"),
    "iowait_share": ("iowait",),
    "steal_share": ("steal",),
}
# The times of guests are left out, because they are already a part of user and nice.
_CPU_TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Beginnings of the names of devices that are not disks, or that consist of other devices.
_COMPOSITE_DEVICES = ("loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd")
_LOOPBACK = "lo"
_MEMINFO = Path("/proc/meminfo")
_CACHED = {"Cached": "cached_bytes", "Dirty": "dirty_bytes"}
"""The names of series, by the names of lines in ``/proc/meminfo``."""

_MEMBERS_INTERVAL_S = 2.0
"""Seconds between two searches for new workers. More searches would take too much processor time,
since each reads all processes of the machine."""

_PSS_CPU_SHARE = 0.003
"""The share of a processor that reading PSS may take. PSS is read less often if it takes longer."""

_NO_PSS = (
    "memory of processes is RSS, which counts shared pages once for each process: "
    "/proc/PID/smaps_rollup cannot be read"
)


class Sampler(Protocol):
    """A source of series. An entry point of the group ``iobench.samplers`` names its class.

    Attributes:
        notes: sentences that readers of its series must know.
    """

    notes: Sequence[str] = ()

    def __init__(self, process: int) -> None:
        """Prepare the readings.

        Args:
            process: the id of the process whose loop is measured.

        Raises:
            Unavailable: this machine has nothing to read; the message says how to change that.
        """
        return

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return values by name.

        Names end in the unit: ``_bytes``, ``_per_s``, ``_share``, ``_cores``. Rates are means since
        the last call, so the first call returns no rates. Values that are not available, or too
        expensive to read again so soon, are left out.

        Args:
            now_s: the time on a monotonic clock.
        """
        ...

    def close(self) -> None:
        """Release files, connections and drivers."""
        return


SAMPLERS: Registry[Sampler] = Registry("iobench.samplers", "sampler")
"""The classes of the samplers by name, those of other packages included."""


class RateSampler(Sampler):
    """A sampler that returns the rates of growing counters."""

    _last: tuple[float, Mapping[str, float]] | None = None

    def _rates(self, counters: Mapping[str, float], now_s: float) -> dict[str, float]:
        """Return the growth of each counter per second since the last call.

        The result is empty on the first call, and if no time has passed. A counter that is new is
        left out. A counter that fell, because a device was removed or a process ended, has not
        grown: its rate is 0.

        Args:
            counters: the present value of each counter.
            now_s: the time on a monotonic clock.
        """
        last, self._last = self._last, (now_s, counters)
        if last is None:
            return {}
        last_s, last_counters = last
        seconds = now_s - last_s
        if seconds <= 0:
            return {}
        return {
            name: max(0.0, value - last_counters[name]) / seconds
            for name, value in counters.items()
            if name in last_counters
        }


class CpuSampler(RateSampler):
    """``cpu``: shares of the time of all processors of the machine, 0 to 1, also in a container."""

    notes = (
        "iowait is idle time of processors during a read or write: a machine whose processors are "
        "busy shows little of it even if its loader waits long",
    )

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the shares since the last call.

        The kernel sometimes lowers the counter of iowait. Its share is then 0.
        """
        times = psutil.cpu_times()
        spent = self._rates({name: getattr(times, name) for name in _CPU_TIMES}, now_s)
        total = sum(spent.values())
        if not total:
            return {}
        shares = {}
        for share, names_of_share in _CPU_SHARES.items():
            shares[share] = sum(spent[name] for name in names_of_share) / total
        return shares


class DiskSampler(RateSampler):
    """``disk``: bytes per second that all block devices read and write; partitions count once."""

    notes = ("disk: bytes of the whole machine; network file systems do not count",)

    def __init__(self, process: int, devices: Path = Path("/sys/block")) -> None:
        # The bytes of a composite device are counted at the devices that it consists of.
        self._devices = {name for name in names(devices) if not name.startswith(_COMPOSITE_DEVICES)}
        if not self._devices & psutil.disk_io_counters(perdisk=True).keys():
            raise Unavailable("no series of disks: the kernel shows no block device here")

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the rates since the last call."""
        all_disks = psutil.disk_io_counters(perdisk=True, nowrap=False)
        disks = [disk for name, disk in all_disks.items() if name in self._devices]
        counters = {
            "read_bytes_per_s": sum(disk.read_bytes for disk in disks),
            "written_bytes_per_s": sum(disk.write_bytes for disk in disks),
        }
        return self._rates(counters, now_s)


class NetworkSampler(RateSampler):
    """``network``: bytes received and sent per second; bytes of the loopback are separate."""

    def __init__(self, process: int, interfaces: Path = Path("/sys/class/net")) -> None:
        self._cards = {path.parent.name for path in interfaces.glob("*/device")}

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the rates since the last call."""
        interfaces = psutil.net_io_counters(pernic=True, nowrap=False)
        # Only cards count, since a bridge counts their bytes again. In a container that has no
        # card, all interfaces but the loopback count.
        counted = interfaces.keys() & self._cards or interfaces.keys() - {_LOOPBACK}
        counters: dict[str, float] = {}
        if counted:
            received = [interfaces[name].bytes_recv for name in counted]
            sent = [interfaces[name].bytes_sent for name in counted]
            counters["received_bytes_per_s"] = sum(received)
            counters["sent_bytes_per_s"] = sum(sent)
        if _LOOPBACK in interfaces:
            counters["loopback_bytes_per_s"] = interfaces[_LOOPBACK].bytes_recv
        return self._rates(counters, now_s)


class PageCacheSampler(Sampler):
    """``page-cache``: bytes of files in memory, and bytes that must still be written."""

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the present sizes on the whole machine.

        ``/proc/meminfo`` is read directly, since psutil does not return dirty bytes, and counts
        slabs as cached.
        """
        lines = re.findall(r"^(Cached|Dirty):\s+(\d+) kB$", _MEMINFO.read_text(), re.M)
        return {_CACHED[name]: int(kib) * 1024 for name, kib in lines}


class TreeSampler(RateSampler):
    """``tree``: processors that a process and its descendants keep busy, and their memory.

    The times of children that have ended count in their parent. RSS is read each time, PSS as often
    as ``_PSS_CPU_SHARE`` allows.

    Args:
        process: the id of the process.
        clock: measures the processor time of this thread, in seconds, for the cost of PSS.
    """

    def __init__(self, process: int, clock: Callable[[], float] = time.thread_time) -> None:
        self._root = psutil.Process(process)
        self._clock = clock
        self._members: list[psutil.Process] = []
        self._members_due_s = float("-inf")
        # If PSS cannot be read, it is never due, so that it is not tried again.
        self._pss_due_s = float("-inf") if proportional_bytes(process) else float("inf")
        self.notes = (_NO_PSS,) if self._pss_due_s > 0 else ()

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the processors kept busy since the last call, the memory, and the number of
        processes.

        A process that ends while it is read is left out.
        """
        if now_s >= self._members_due_s:
            self._members_due_s = now_s + _MEMBERS_INTERVAL_S
            self._members = [self._root]
            with contextlib.suppress(psutil.Error):
                self._members += self._root.children(recursive=True)
        counters = {"user_cores": 0.0, "system_cores": 0.0, "worker_cores": 0.0}
        rss_bytes = 0
        alive = []
        for process in self._members:
            with contextlib.suppress(psutil.Error):
                times, memory = process.cpu_times(), process.memory_info()
                user_s = times.user + times.children_user
                system_s = times.system + times.children_system
                counters["user_cores"] += user_s
                counters["system_cores"] += system_s
                if process != self._root:
                    counters["worker_cores"] += user_s + system_s
                rss_bytes += memory.rss
                alive.append(process.pid)
        return {
            **self._rates(counters, now_s),
            "rss_bytes": rss_bytes,
            **self._proportional(alive, now_s),
            "processes": len(alive),
        }

    def _proportional(self, members: Sequence[int], now_s: float) -> dict[str, float]:
        """Return the PSS of all members together, if it can be read and is due."""
        if now_s < self._pss_due_s:
            return {}
        begun_s = self._clock()
        sizes = [proportional_bytes(process) for process in members]
        self._pss_due_s = now_s + (self._clock() - begun_s) / _PSS_CPU_SHARE
        known_sizes = [size for size in sizes if size is not None]
        # If one size is unknown, the sum is not the memory of the tree.
        if len(known_sizes) < len(sizes) or not any(known_sizes):
            return {}
        return {"pss_bytes": sum(known_sizes)}


class GpuSampler(Sampler):
    """``gpu``: utilisation, memory, clock and power of each visible NVIDIA GPU, by NVML.

    Utilisation is the share of the last period of NVML (up to 1 s) in which any kernel ran. It does
    not show how much of the device was in use.
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
        # CUDA and NVML number GPUs in the same way if CUDA_DEVICE_ORDER is PCI_BUS_ID, or if all
        # GPUs are of the same kind.
        visible_names = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "")
        visible = set(visible_names.split(","))
        all_gpus = {}
        visible_gpus = {}
        for number in range(pynvml.nvmlDeviceGetCount()):
            gpu = pynvml.nvmlDeviceGetHandleByIndex(number)
            all_gpus[number] = gpu
            if visible & {str(number), pynvml.nvmlDeviceGetUUID(gpu)}:
                visible_gpus[number] = gpu
        # Parts of a GPU (MIG) have other names in CUDA_VISIBLE_DEVICES. If no GPU matches, all GPUs
        # are read.
        self._gpus = visible_gpus or all_gpus
        self._readers: Mapping[str, Callable[[Any], float]] = {
            "utilisation_share": self._utilisation_share,
            "memory_bytes": self._memory_bytes,
            "sm_clock_mhz": self._sm_clock_mhz,
            "power_w": self._power_w,
        }

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the present values. Values that a GPU does not support are left out."""
        values = {}
        for number, gpu in self._gpus.items():
            for name, read_value in self._readers.items():
                with contextlib.suppress(self._nvml.NVMLError):
                    values[f"{number}_{name}"] = read_value(gpu)
        return values

    def _utilisation_share(self, gpu: Any) -> float:
        return float(self._nvml.nvmlDeviceGetUtilizationRates(gpu).gpu) / 100

    def _memory_bytes(self, gpu: Any) -> float:
        return float(self._nvml.nvmlDeviceGetMemoryInfo(gpu).used)

    def _sm_clock_mhz(self, gpu: Any) -> float:
        return float(self._nvml.nvmlDeviceGetClockInfo(gpu, self._nvml.NVML_CLOCK_SM))

    def _power_w(self, gpu: Any) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(gpu)) / 1000

    def close(self) -> None:
        """Release the driver."""
        self._nvml.nvmlShutdown()
