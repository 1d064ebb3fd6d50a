"""Samples and steps on one clock."""

from __future__ import annotations

from iobench.sampled import sampled
from iobench.samplers.recorder import Samples
from iobench.trial import Outcome

SAMPLES = Samples({"time_s": [10.0, 12.0], "cpu.user_share": [None, 0.5]}, 0.004, ("a note",))


def test_times_count_from_where_the_series_do() -> None:
    """What was read before the loop asked for a batch has a negative time."""
    found = sampled(Outcome({"x": 1}, origin_s=11.0), SAMPLES, 3.0)
    assert found.samples == {"time_s": [-1.0, 1.0], "cpu.user_share": [None, 0.5]}


def test_without_a_loop_they_count_from_the_trial() -> None:
    """So for disks and stores."""
    assert sampled(Outcome({}), SAMPLES, 3.0).samples["time_s"] == [7.0, 9.0]


def test_what_sampling_cost_is_a_metric() -> None:
    """Beside what was not to be had."""
    metrics = sampled(Outcome({"x": 1}), SAMPLES, 0.0).metrics
    assert metrics == {"x": 1, "sampling_core_share": 0.004, "sampling_notes": ["a note"]}


def test_nothing_read_is_no_table() -> None:
    """Not even one of times."""
    assert sampled(Outcome({}), Samples({}, 0.0, ()), 0.0).samples == {}


def test_of_a_loop_what_its_processes_took_is_told() -> None:
    """Over the steps that count, on the same clock."""
    columns: dict[str, list[float | None]] = {
        "time_s": [10.0, 12.0, 14.0],
        "tree.user_cores": [None, 5.0, 1.0],
        "tree.system_cores": [None, 0.0, 0.5],
        "tree.pss_bytes": [1e9, None, 2e9],
    }
    outcome = Outcome({"samples": 300}, origin_s=11.0, counted_s=(1.0, 3.0))
    metrics = sampled(outcome, Samples(columns, 0.0, ()), 0.0).metrics
    assert metrics["cores_busy"] == 1.5
    assert metrics["cpu_s_per_1000_samples"] == 10.0
    assert (metrics["memory_bytes"], metrics["memory_counted"]) == (2_000_000_000, "PSS")
