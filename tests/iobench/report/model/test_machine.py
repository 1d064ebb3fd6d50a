"""The machine on the page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from iobench.environment import describe
from iobench.report.model.machine import library_table, machine_table
from tests.iobench.report.results import ENVIRONMENT

FULL: dict[str, Any] = {
    "iobench": "0.3.0",
    "python": "3.11.2",
    "kernel": "Linux 6.8.0",
    "processor": "AMD EPYC 9354",
    "processors": 16,
    "processors_present": 64,
    "processor_cores": 32,
    "processor_quota": 4.0,
    "governor": "powersave",
    "numa_nodes": [
        {"processors": "0-31", "memory_bytes": 64 * 2**30},
        {"processors": "32-63"},
    ],
    "memory_bytes": 32 * 2**30,
    "machine_memory_bytes": 128 * 2**30,
    "transparent_huge_pages": "madvise",
    "machine": {
        "vendor": "Amazon EC2",
        "product": "p5.48xlarge",
        "cloud": "Amazon EC2",
        "virtual": "KVM (Nitro)",
        "container": "signs of Docker: /.dockerenv",
        "instance_type": "p5.48xlarge",
    },
    "gpus": [
        {
            "name": "NVIDIA H100",
            "memory.total": "81559 MiB",
            "driver_version": "570.86",
            "pcie.link.gen.max": "5",
            "pcie.link.width.max": "16",
            "pcie.link.gen.current": "1",
            "pcie.link.width.current": "8",
            "power.limit": "700.00 W",
            "mig.mode.current": "Enabled",
            "numa_node": "1",
        }
    ],
    "networks": [
        {"driver": "efa", "mbit_per_s": 100_000, "count": 4},
        {"driver": "ena", "count": 1},
    ],
    "disks": [{"name": "EC2 instance store", "total_bytes": 38 * 10**11, "count": 8}],
    "future": {"thing_bytes": 2**20, "list": ["a", "b"], "none": None},
    "libraries": {"numpy": "2.4.1"},
    "targets": {},
}


def rows(environment: dict[str, Any]) -> dict[str, str]:
    """What the table says."""
    (table,) = machine_table(environment)
    return {name.text: told.text for name, told in table.rows}


def test_what_a_reader_asks_first_comes_first() -> None:
    """The machine, what computes, memory, GPUs; then versions; then what is not known yet."""
    assert list(rows(FULL)) == [
        *("machine", "virtual machine", "container", "processor", "processors"),
        *("frequency governor", "memory", "NUMA node 0", "NUMA node 1", "GPU 1"),
        *("network 1", "network 2", "disk 1"),
        *("transparent huge pages", "kernel", "Python", "iobench"),
        *("future / thing", "future / list / 1", "future / list / 2"),
    ]


def test_limits_stand_beside_what_they_limit() -> None:
    """A control group's and an affinity's, in words."""
    said = rows(FULL)
    assert said["machine"] == "p5.48xlarge, Amazon EC2"
    assert said["processors"] == (
        "16 of 64, the others are not for this process; 32 cores; the control group gives 4 of time"
    )
    assert said["memory"] == "32\u00a0GiB of 128\u00a0GiB, limited by the control group"
    assert said["NUMA node 0"] == "processors 0-31, 64\u00a0GiB"
    assert said["NUMA node 1"] == "processors 32-63"
    assert said["network 1"] == "4 × efa, 100 Gbit/s"
    assert said["network 2"] == "ena, speed not told"
    assert said["disk 1"] == "8 × EC2 instance store, 3.80\u00a0TB"
    assert said["future / thing"] == "1\u00a0MiB"


def test_a_gpus_link_is_told_with_what_ails_it() -> None:
    """Half of its lanes: the host-to-device copy takes twice as long."""
    assert rows(FULL)["GPU 1"] == (
        "NVIDIA H100, 81559 MiB, driver 570.86, PCI Express 5.0 × 16, linked with 8 lanes only, "
        "limited to 700.00 W, MIG, NUMA node 1"
    )


def test_an_older_result_is_shown_as_before() -> None:
    """All that it holds, and nothing about what it does not."""
    said = rows(ENVIRONMENT)
    assert said["processors"] == "16"
    assert said["memory"] == "128\u00a0GiB"
    assert said["GPU 1"] == "NVIDIA H200, 143771 MiB, driver 570.86"


@pytest.mark.parametrize(
    "environment",
    [
        {"gpus": [1, "x"], "machine": "a", "numa_nodes": [3], "disks": ["d"], "memory_bytes": "m"},
        {"gpus": 3, "numa_nodes": "x", "disks": 4, "networks": 5},
    ],
)
def test_what_is_of_another_shape_breaks_nothing(environment: dict[str, Any]) -> None:
    """A result may have been edited by hand."""
    machine_table(environment)


def test_nothing_known_no_table() -> None:
    """Nor one of libraries."""
    assert machine_table({}) == library_table({}) == ()
    assert library_table({"libraries": 3}) == ()


def test_this_machine() -> None:
    """What is described is shown in full: every value that is a text stands somewhere."""
    found = describe({})
    text = json.dumps(rows(found), ensure_ascii=False)
    for key in ("processor", "kernel", "python", "iobench"):
        assert found[key] in text
