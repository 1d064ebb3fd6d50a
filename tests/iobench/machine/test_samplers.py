"""Samplers of the machine, of a process tree and of GPUs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.machine import samplers
from iobench.machine.samplers import (
    CpuSampler,
    DiskSampler,
    GpuSampler,
    NetworkSampler,
    PageCacheSampler,
    RateSampler,
    TreeSampler,
)
from tests.iobench.machine.fake_nvml import FakeNvml
from tests.iobench.machine.test_processes import HOLDING, running

MIB = 2**20


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that psutil reads as ``/proc``."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    return tmp_path


class Counter(RateSampler):
    """A sampler whose counters the test sets."""

    def __init__(self) -> None:
        self.counters: dict[str, float] = {}

    def read(self, now_s: float) -> Mapping[str, float]:
        """Return the rates of the counters."""
        return self._rates(dict(self.counters), now_s)


@given(st.floats(0, 1e12), st.floats(0, 1e9), st.floats(0.01, 100))
def test_a_rate_is_growth_over_time(before: float, growth: float, seconds: float) -> None:
    """The counter's start has no effect; the first reading and a repeated moment have no rate."""
    sampler = Counter()
    sampler.counters = {"a": before}
    assert sampler.read(3.0) == sampler.read(3.0) == {}
    sampler.counters = {"a": before + growth}
    reading = sampler.read(3.0 + seconds)
    assert reading["a"] == pytest.approx(growth / seconds, abs=1e-3 / seconds)


def test_a_counter_that_fell_grew_by_nothing() -> None:
    """A counter that became smaller has the rate 0, and a new one has no rate yet."""
    sampler = Counter()
    sampler.counters = {"a": 5.0, "b": 1.0}
    sampler.read(0.0)
    sampler.counters = {"a": 2.0, "b": 3.0, "new": 9.0}
    assert sampler.read(2.0) == {"a": 0.0, "b": 1.0}


@pytest.mark.parametrize(
    ("before", "after", "shares"),
    [
        ((100, 0, 50, 1000, 10, 0, 0, 0), (120, 20, 55, 1030, 25, 2, 3, 5), (0.4, 0.1, 0.15, 0.05)),
        ((100, 0, 0, 0, 50, 0, 0, 0), (110, 0, 0, 0, 40, 0, 0, 0), (1.0, 0.0, 0.0, 0.0)),
    ],
)
def test_cpu_shares_are_of_all_time_since_the_reading_before(
    proc: Path, before: tuple[int, ...], after: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    """Nice is user time, interrupts are system time, and guests are not counted twice.

    The kernel may lower iowait (proc(5)), which then counts as none.
    """
    (proc / "stat").write_text(f"cpu  {' '.join(map(str, before))} 100 0\ncpu0 1 2 3\n")
    sampler = CpuSampler(1)
    assert sampler.read(0.0) == {}
    (proc / "stat").write_text(f"cpu  {' '.join(map(str, after))} 120 0\ncpu0 1 2 3\n")
    names = ("user_share", "system_share", "iowait_share", "steal_share")
    assert sampler.read(1.0) == pytest.approx(dict(zip(names, shares, strict=True)))
    assert sampler.read(2.0) == {}


def test_disks_are_added_up_once(proc: Path) -> None:
    """Sectors have 512 bytes; partitions and volumes over counted disks do not count.

    In a container the counts of disks may be there without their names.
    """
    for name in ("nvme0n1", "vda", "dm-0", "loop3", "md127"):
        (proc / "block" / name).mkdir(parents=True)

    def write(sectors: dict[str, tuple[int, int]]) -> None:
        text = ""
        for name, (read, written) in sectors.items():
            text += f" 8 0 {name} 10 0 {read} 5 10 0 {written} 5 0 0 0\n"
        (proc / "diskstats").write_text(text)

    before = {"nvme0n1": (100, 10), "nvme0n1p1": (90, 10), "dm-0": (90, 10), "vda": (0, 0)}
    write(before)
    sampler = DiskSampler(1, proc / "block")
    assert sampler.read(0.0) == {}
    write({name: (2 * read + 50, 30) for name, (read, _) in before.items()})
    assert sampler.read(2.0) == {
        "read_bytes_per_s": (150 + 50) * 512 / 2,
        "written_bytes_per_s": (20 + 30) * 512 / 2,
    }
    with pytest.raises(Unavailable, match="no block device"):
        DiskSampler(1, proc / "absent")


class TestNetwork:
    """The bytes of network cards."""

    def write(self, proc: Path, **counted: tuple[int, int]) -> None:
        """Write ``/proc/net/dev`` with the bytes received and sent by each interface."""
        (proc / "net").mkdir(exist_ok=True)
        zeros = "0 0 0 0 0 0"
        text = "Inter-| Receive\n face |bytes\n"
        for name, (received, sent) in counted.items():
            text += f"{name}: {received} 1 {zeros} {sent} 1 {zeros}\n"
        (proc / "net" / "dev").write_text(text)

    def test_cards_are_counted_and_bridges_are_not(self, proc: Path) -> None:
        """A byte that passes a bridge and a card counts once; the loopback is separate."""
        for name in ("eth0", "eth1"):
            (proc / "class" / name / "device").mkdir(parents=True)
        self.write(proc, lo=(1, 1), eth0=(0, 0), eth1=(0, 0), docker0=(0, 0))
        sampler = NetworkSampler(1, proc / "class")
        assert sampler.read(0.0) == {}
        self.write(proc, lo=(9, 9), eth0=(100, 10), eth1=(20, 6), docker0=(100, 10))
        assert sampler.read(2.0) == {
            "received_bytes_per_s": 60,
            "sent_bytes_per_s": 8,
            "loopback_bytes_per_s": 4,
        }

    def test_without_a_card_all_but_the_loopback_count(self, proc: Path) -> None:
        """In a container no interface is a card, so all but the loopback count."""
        self.write(proc, lo=(0, 0), eth0=(0, 0))
        sampler = NetworkSampler(1, proc / "class")
        sampler.read(0.0)
        self.write(proc, lo=(0, 0), eth0=(7, 5))
        assert sampler.read(1.0)["received_bytes_per_s"] == 7
        self.write(proc, lo=(3, 3))
        assert sampler.read(2.0) == {"loopback_bytes_per_s": 3}


def test_page_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampler reads ``Cached`` and ``Dirty`` of the kernel's meminfo."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree: 1 kB\nCached:     100 kB\nSwapCached: 7 kB\nDirty:  3 kB\n")
    monkeypatch.setattr(samplers, "_MEMINFO", meminfo)
    reading = PageCacheSampler(1).read(0.0)
    assert reading == {"cached_bytes": 102400, "dirty_bytes": 3072}


class TestTree:
    """The processors and the memory of a process tree."""

    def test_all_below_the_process_are_counted(self) -> None:
        """New workers are found within two seconds; those that have ended do not count."""
        sampler = TreeSampler(os.getpid())
        alone = sampler.read(0.0)
        with running(HOLDING.format(32 * MIB)):
            both = sampler.read(2.0)
        after = sampler.read(2.5)
        assert both["processes"] == alone["processes"] + 1
        assert after["processes"] == alone["processes"]
        assert both["rss_bytes"] >= alone["rss_bytes"] + 32 * MIB
        cores = {"user_cores", "system_cores", "worker_cores"}
        assert set(both) - {"pss_bytes"} == {*cores, "rss_bytes", "processes"}

    def test_time_of_workers_that_ended_is_not_lost(self) -> None:
        """The time of a worker goes over to its parent when the worker ends."""
        sampler = TreeSampler(os.getpid())
        sampler.read(0.0)
        before_s = os.times().children_user
        with running("sum(range(10**7)); print(1)"):
            busy = sampler.read(2.0)
        spent_s = os.times().children_user - before_s
        assert busy["worker_cores"] > 0
        assert 2 * (busy["user_cores"] + sampler.read(4.0)["user_cores"]) >= spent_s - 0.02

    def test_a_process_that_has_ended_takes_nothing(self) -> None:
        """A reading after the end of the process has zeros."""
        with running("print(1)") as process:
            sampler = TreeSampler(process)
            sampler.read(0.0)
        nothing = {"user_cores": 0, "system_cores": 0, "worker_cores": 0, "rss_bytes": 0}
        assert sampler.read(1.0) == {**nothing, "processes": 0}

    def test_without_all_of_its_pss_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The sum is unknown if the memory of one process may not be read."""
        own, unread = os.getpid(), set[int]()
        monkeypatch.setattr(
            samplers, "proportional_bytes", lambda process: None if process in unread else 700
        )
        with running(HOLDING.format(1)) as worker:
            unread.add(worker)
            assert "pss_bytes" not in TreeSampler(own).read(0.0)
        assert TreeSampler(own).read(0.0)["pss_bytes"] % 700 == 0
        unread.add(own)
        sampler = TreeSampler(own)
        assert "pss_bytes" not in sampler.read(0.0)
        assert "memory of processes is RSS" in sampler.notes[0]

    def test_pages_are_counted_the_more_seldom_the_longer_it_takes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Counts that take 6 ms come every 2 seconds, which is 0.3 % of a processor."""
        clock = VirtualClock()

        def slow(process: int) -> int:
            clock.sleep(0.006)
            return 700

        monkeypatch.setattr(samplers, "proportional_bytes", slow)
        times = (0.0, 0.5, 1.0, 1.9, 2.1, 3.0, 4.2)
        with running(HOLDING.format(1)) as process:
            sampler = TreeSampler(process, clock.now_s)
            counted_at_s = [now_s for now_s in times if "pss_bytes" in sampler.read(now_s)]
        assert counted_at_s == [0.0, 2.1, 4.2]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Return a replacement for the bindings of NVIDIA's management library."""
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def test_every_device_tells_what_it_can(nvml: FakeNvml) -> None:
    """Readings are shares, bytes, MHz and W; a value that a device does not support is left out."""
    sampler = GpuSampler(1)
    assert sampler.read(0.0) == {
        "0_utilisation_share": 0.6,
        "0_memory_bytes": 8 << 30,
        "0_sm_clock_mhz": 1500,
        "0_power_w": 250,
        "1_memory_bytes": 1 << 30,
    }
    assert "any kernel ran" in sampler.notes[0]
    sampler.close()
    assert (nvml.begun, nvml.ended) == (1, 1)


@pytest.mark.parametrize(
    ("visible", "devices"),
    [
        ("1", {"1"}),
        ("GPU-aaaa", {"0"}),
        ("1,0", {"0", "1"}),
        ("", {"0", "1"}),
        ("MIG-x", {"0", "1"}),
    ],
)
def test_only_visible_devices_are_read(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, visible: str, devices: set[str]
) -> None:
    """Devices match by number or by the start of a name; parts of a GPU count as one device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert {name.split("_")[0] for name in GpuSampler(1).read(0.0)} == devices


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs the library."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Unavailable, match=r"pip install 'dataprep-iobench\[gpu\]'"):
        GpuSampler(1)
