"""A watched loop's figures."""

from __future__ import annotations

import math

import pytest

from iobench.machine.sampling import Samples
from iobench.watching.figures import ONE_RUN, UNTOLD, outcome, why_nothing, within
from iobench.watching.tally import Tally
from tests.iobench.watching.test_tally import epoch, told

SAMPLES = Samples(
    {
        "time_s": [9.0, 11.0, 15.0, 99.0],
        "cpu.user_share": [0.1, 0.2, 0.3, 0.4],
        "gpu.x": [1, None, None, 1],
    },
    0.003,
    ("no GPU",),
)


def test_rates_and_shares_are_of_all_steps_but_the_first() -> None:
    """5 batches of 4, each 1 s waited for and 3 s worked on; the end takes half a second."""
    metrics = outcome(told(*epoch(0, 10.0, 5)), SAMPLES, step_cost_s=0.0165).metrics
    assert metrics["samples_per_s"] == pytest.approx(16 / 16.5)
    assert metrics["wait_share"] == pytest.approx(4.5 / 16.5)
    assert metrics["time_to_first_batch_s"] == 1
    assert metrics["harness_share"] == pytest.approx(0.0165 * 4 / 16.5)
    assert metrics["sampling_core_share"] == 0.003
    assert "epoch_start_s" not in metrics
    assert "device_wait_share" not in metrics
    assert ONE_RUN in metrics["notes"]


def test_later_epochs_have_a_beginning() -> None:
    """Workers that are started anew in each epoch show here."""
    found = told(*epoch(0, 0.0, 3), *epoch(1, 100.0, 3, wait_s=2))
    metrics = outcome(found, SAMPLES, step_cost_s=0.0).metrics
    assert metrics["epoch_start_s"] == 2
    assert metrics["epoch_start_share"] == pytest.approx(2 / found.seconds)
    assert metrics["epochs"] == 2


def test_quantiles_need_samples_behind_them() -> None:
    """10 / (1 - q) of them."""
    few = outcome(told(*epoch(0, 0.0, 20)), SAMPLES, step_cost_s=0.0).metrics
    many = outcome(told(*epoch(0, 0.0, 120)), SAMPLES, step_cost_s=0.0).metrics
    assert not [name for name in few if name.startswith("step_s_")]
    assert [name for name in many if name.startswith("step_s_")] == ["step_s_p50", "step_s_p90"]
    assert many["batch_wait_s_p90"] == pytest.approx(1)


def test_without_samples_there_is_no_rate() -> None:
    """And it says how they could be told."""
    records = [(*record[:4], math.nan if record[4] > 0 else -1.0) for record in epoch(0, 0.0, 4)]
    metrics = outcome(told(*records), SAMPLES, step_cost_s=0.0).metrics
    assert "samples_per_s" not in metrics
    assert UNTOLD in metrics["notes"]
    assert metrics["wait_share"] > 0


def test_the_devices_idle_time_is_a_share_too() -> None:
    """Beside the host's waiting, never in its place."""
    found = told(*epoch(0, 10.0, 5))
    found.add_idle([10.0, 9.0, 14.0, 1.65])
    metrics = outcome(found, SAMPLES, step_cost_s=0.0).metrics
    assert metrics["device_wait_share"] == pytest.approx(0.1)
    assert metrics["wait_share"] == pytest.approx(4.5 / 16.5)


def test_series_and_samples_count_from_the_first_batch_asked_for() -> None:
    """Each step's end on the clock of the readings; what was read before and after is left out."""
    found = outcome(told(*epoch(0, 10.0, 3)), SAMPLES, step_cost_s=0.0)
    assert found.series["time_s"] == [8, 12]
    assert found.series["step_end_s"] == [4, 8]
    assert found.series["wait_s"] == [1, 1]
    assert found.samples == {"time_s": [1.0, 5.0], "cpu.user_share": [0.2, 0.3]}


def test_no_reading_in_time_is_none() -> None:
    """A loop that ended before the second reading."""
    assert within(SAMPLES.columns, 200.0, 300.0) == {}


def test_nothing_is_said_to_be_nothing() -> None:
    """With what may be wrong."""
    assert "no batch came through" in why_nothing(Tally())
    assert "no step after the first" in why_nothing(told(*epoch(0, 0.0, 1)))


def test_how_busy_the_machine_was_is_a_mean_over_the_loop() -> None:
    """All processors' time but idle and waiting; what was not read is no figure."""
    columns: dict[str, list[float | None]] = {
        "time_s": [11.0, 15.0],
        "cpu.user_share": [0.4, 0.6],
        "cpu.system_share": [None, 0.1],
        "cpu.steal_share": [0.0, 0.2],
        "disk.read_bytes_per_s": [None, 3e6],
        "tree.user_cores": [1.0, 2.0],
        "tree.system_cores": [0.5, 0.5],
    }
    read = Samples(columns, 0.0, ())
    metrics = outcome(told(*epoch(0, 10.0, 3)), read, step_cost_s=0.0, processors=4).metrics
    assert metrics["loop_cpu_share"] == 0.5
    assert metrics["cpu_busy_share"] == pytest.approx(0.7)
    assert metrics["disk_read_mb_per_s"] == 3
    without = outcome(told(*epoch(0, 10.0, 3)), Samples({}, 0.0, ()), step_cost_s=0.0).metrics
    assert "cpu_busy_share" not in without
    assert "disk_read_mb_per_s" not in without
    assert "loop_cpu_share" not in without
