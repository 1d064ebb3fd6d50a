"""The processors, memory, disk and network that were used over the steps that count."""

from __future__ import annotations

import pytest

from iobench.machine.sampling import Samples
from iobench.machine.usage import add_samples, usage
from iobench.results.result import Columns
from iobench.results.trial import Outcome

TIMES = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def columns(**settings: list[float | None]) -> Columns:
    """Return readings of a process tree at ``TIMES``, in seconds."""
    return {"time_s": TIMES, **{f"tree.{name}": values for name, values in settings.items()}}


BUSY = columns(
    user_cores=[None, 9.0, 9.0, 1.0, 2.0, 9.0],
    system_cores=[None, 9.0, 9.0, 0.5, 0.5, 9.0],
    worker_cores=[None, 9.0, 9.0, 1.0, 1.5, 9.0],
)


@pytest.mark.parametrize(
    ("pauses", "busy", "workers", "counted_s"),
    [([], 2.0, 1.25, 2.7), ([(2.2, 2.6)], 1.5, 1.0, 2.3)],
)
def test_processors_of_the_steps_that_count(
    pauses: list[tuple[float, float]], busy: float, workers: float, counted_s: float
) -> None:
    """Readings within the steps count; those that touch a pause do not, nor does its time."""
    assert usage(BUSY, 0.7, 3.4, 500, pauses) == {
        "cores_busy": busy,
        "worker_cores_busy": workers,
        "cpu_s_per_1000_samples": pytest.approx(2 * busy * counted_s),
        "worker_cpu_s_per_1000_samples": pytest.approx(2 * workers * counted_s),
    }
    assert usage(BUSY, 0.7, 3.4, 500, [(1.5, 2.5)]) == {}


def test_short_pauses_between_epochs_hide_no_reading() -> None:
    """Readings count if epochs of small data end within every interval."""
    pauses = [(1.0 + number / 100, 1.0003 + number / 100) for number in range(200)]
    assert usage(BUSY, 0.7, 3.4, 500, pauses)["cores_busy"] == 2.0


@pytest.mark.parametrize(("begin_s", "end_s"), [(0.5, 1.9), (3.1, 3.2), (4.0, 9.0)])
def test_two_readings_have_to_lie_within(begin_s: float, end_s: float) -> None:
    """Figures are missing if fewer than two readings lie within the steps."""
    assert usage(BUSY, begin_s, end_s, 500) == {}


def test_a_reading_that_failed_is_passed_over() -> None:
    """The other readings count."""
    user_cores = [None, 1.0, None, 4.0, 2.0, 1.0]
    readings = columns(user_cores=user_cores, system_cores=[None, 0.0, 0.0, 0.0, 0.0, 0.0])
    metrics = usage(readings, 0.0, 3.0, 0)
    assert metrics == {"cores_busy": 3.0}


@pytest.mark.parametrize(
    ("pss", "rss", "expected"),
    [
        ([99.0, None, 5.0, 7.0, None, 80.0], [999.0] * 6, (7, "PSS")),
        (None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (5, "RSS")),
        ([1.0, None, None, None, None, 1.0], [9.0] * 6, (9, "RSS")),
        ([1.0, None, None, None, None, 1.0], [9.0, None, None, None, None, 9.0], None),
    ],
)
def test_the_largest_memory_since_the_first_batch_was_asked_for(
    pss: list[float | None] | None, rss: list[float | None], expected: tuple[int, str] | None
) -> None:
    """The peak until the end of the steps is PSS, or RSS if PSS was not read."""
    memory = columns(rss_bytes=rss) if pss is None else columns(pss_bytes=pss, rss_bytes=rss)
    metrics = usage(memory, 1.5, 3.5, 10)
    memory_bytes, counted = expected or (None, None)
    assert metrics.get("memory_bytes") == memory_bytes
    assert metrics.get("memory_counted") == counted


MOMENTS: list[float | None] = [0.0, 1.0, 2.0, 4.0, 5.0]


def test_means_are_over_the_steps_alone_and_weighted_by_time() -> None:
    """Two whole intervals lie within: one second at 0.2 and two at 0.8."""
    columns: Columns = {
        "time_s": MOMENTS,
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
    expected = {
        "cpu_busy_share": 0.6,
        "cpu_iowait_share": 0.1,
        "disk_read_mb_per_s": 5.0,
        "network_received_mb_per_s": 2.0,
        "gpu_utilisation_share": 0.4,
    }
    assert usage(columns, 1.0, 4.0, 10) == pytest.approx(expected)


def test_missing_readings_give_no_figure() -> None:
    """A missing column, interval or part of a sum gives no figure."""
    columns: Columns = {"time_s": MOMENTS, "disk.read_bytes_per_s": [None, 1.0, 1.0, 1.0, 1.0]}
    without_system = {**columns, "cpu.user_share": [0.5] * 5}
    assert usage(without_system, 1.0, 4.0, 10) == {"disk_read_mb_per_s": 1e-6}
    assert usage(columns, 1.0, 1.5, 10) == {}
    assert usage({}, 0.0, 1.0, 10) == {}


SAMPLES = Samples({"time_s": [10.0, 12.0], "cpu.user_share": [None, 0.5]}, 0.004, ("a note",))


def test_times_count_from_where_the_series_do() -> None:
    """Times begin at the first request of a loop, or at the begin of a trial."""
    outcome = add_samples(Outcome({"x": 1}, origin_s=11.0), SAMPLES, 3.0)
    assert outcome.samples == {"time_s": [-1.0, 1.0], "cpu.user_share": [None, 0.5]}
    assert outcome.metrics == {"x": 1, "sampling_core_share": 0.004, "sampling_notes": ["a note"]}
    assert add_samples(Outcome({}), SAMPLES, 3.0).samples["time_s"] == [7.0, 9.0]
    assert add_samples(Outcome({}), Samples({}, 0.0, ()), 0.0).samples == {}


def test_a_loop_has_the_usage_of_its_processes() -> None:
    """The metrics of a loop have the processors and the memory of its processes."""
    columns: dict[str, list[float | None]] = {
        "time_s": [10.0, 12.0, 14.0],
        "tree.user_cores": [None, 5.0, 1.0],
        "tree.system_cores": [None, 0.0, 0.5],
        "tree.pss_bytes": [1e9, None, 2e9],
    }
    outcome = Outcome({"samples": 300}, origin_s=11.0, counted_s=(1.0, 3.0))
    metrics = add_samples(outcome, Samples(columns, 0.0, ()), 0.0).metrics
    assert metrics["cores_busy"] == 1.5
    assert metrics["cpu_s_per_1000_samples"] == 10.0
    assert (metrics["memory_bytes"], metrics["memory_counted"]) == (2_000_000_000, "PSS")
