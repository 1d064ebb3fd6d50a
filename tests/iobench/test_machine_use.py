"""Means of the machine's series over the steps that count."""

from __future__ import annotations

import pytest

from iobench.machine_use import machine_use
from iobench.samplers.recorder import Columns

TIMES: list[float | None] = [0.0, 1.0, 2.0, 4.0, 5.0]


def test_means_are_over_the_steps_alone_and_weighted_by_time() -> None:
    """Two whole intervals lie within: one second at 0.2 and two at 0.8."""
    columns: Columns = {
        "time_s": TIMES,
        "cpu.user_share": [None, 1.0, 0.1, 0.6, 1.0],
        "cpu.system_share": [None, 0.0, 0.1, 0.1, 0.0],
        "cpu.steal_share": [None, 0.0, 0.0, 0.1, 0.0],
        "cpu.iowait_share": [None, 0.0, 0.3, 0.0, 0.0],
        "disk.read_bytes_per_s": [None, 9e9, 3e6, 6e6, 9e9],
        "network.received_bytes_per_s": [None, 9e9, 0.0, 3e6, 9e9],
        "gpu.0_utilisation_share": [0.0, 0.0, 0.3, 0.3, 0.0],
        "gpu.1_utilisation_share": [0.0, 0.0, 0.5, 0.5, 0.0],
        "gpu.1_memory_bytes": [1.0] * 5,
    }
    assert machine_use(columns, 1.0, 4.0) == pytest.approx(
        {
            "cpu_busy_share": 0.6,
            "cpu_iowait_share": 0.1,
            "disk_read_mb_per_s": 5.0,
            "network_received_mb_per_s": 2.0,
            "gpu_utilisation_share": 0.4,
        }
    )


def test_what_was_not_read_is_left_out() -> None:
    """No column, no whole interval, or half of a sum."""
    columns: Columns = {"time_s": TIMES, "disk.read_bytes_per_s": [None, 1.0, 1.0, 1.0, 1.0]}
    assert machine_use({**columns, "cpu.user_share": [0.5] * 5}, 1.0, 4.0) == {
        "disk_read_mb_per_s": 1e-6
    }
    assert machine_use(columns, 1.0, 1.5) == {}
    assert machine_use({}, 0.0, 1.0) == {}
