"""The machine beneath the steps."""

from __future__ import annotations

from typing import Any

from iobench.report.model import build, meanwhile
from iobench.report.model.drawings import Curves
from iobench.report.model.shapes import Chart, Section, Words
from iobench.result import Result
from iobench.summary import summarise
from iobench.trial import Trial
from tests.iobench.summary.made import loop, one, result

STEPS = {
    "step_end_s": [1.0, 2.0, 3.5],
    "time_s": [5.0, 6.0, 7.5],
    "wait_s": [0.1, 0.2, 0.7],
}
READINGS = {
    "cpu.user_share": [(-1.0, 0.9), (0.5, 0.2), (4.5, 0.4), (8.0, 0.3)],
    "cpu.iowait_share": [(0.5, 0.5), (8.0, 0.1)],
    "disk.read_bytes_per_s": [(0.5, 3e6), (8.0, 1e6)],
    "network.received_bytes_per_s": [(0.5, 0.0), (8.0, 2e6)],
    "gpu.0_utilisation_share": [(0.5, 0.6), (8.0, 0.7)],
    "gpu.0_memory_bytes": [(0.5, 8e9), (8.0, 9e9)],
    "gpu.0_sm_clock_mhz": [(0.5, 1500.0), (8.0, 1400.0)],
    "gpu.0_power_w": [(0.5, 250.0), (8.0, 300.0)],
    "page-cache.cached_bytes": [(0.5, 8e9)],
    "other.thing": [(0.5, 1.0), (8.0, 2.0)],
}


def section(run: Result, readings: Any = None, series: Any = None) -> Section | None:
    """Of a run whose trials all have the same series, unless told."""
    ids = [trial.id for trial in run.trials]
    every = dict.fromkeys(ids, READINGS) if readings is None else readings
    return meanwhile.section(run, dict.fromkeys(ids, STEPS) if series is None else series, every)


def summarised(trials: list[Trial]) -> Result:
    """A run of them."""
    made = result(trials)
    return Result(made.name, made.started, {}, {}, made.trials, summarise(made))


def charts(run: Result, **given: Any) -> dict[str, Chart]:
    """By title."""
    found = section(run, **given)
    assert found is not None
    return {block.title: block for block in found.blocks if isinstance(block, Chart)}


WATCHED = summarised([one("watch", {"loader": "mine"}, seconds=9.0, wait_share=0.1)])


def test_all_stand_on_one_axis_of_time() -> None:
    """Steps first, then what was read; each from the first batch on to the last reading."""
    drawn = charts(WATCHED)
    assert [title.partition(":")[0] for title in drawn] == [
        "Steps", "GPU", "GPU memory", "GPU clock", "GPU power", "Processors", "Disk and network",
    ]  # fmt: skip
    for chart in drawn.values():
        assert isinstance(chart.drawing, Curves)
        assert chart.drawing.x_range == (0.0, 8.0)
        assert all(0 <= point.x <= 8 for curve in chart.drawing.curves for point in curve.points)


def test_steps_are_drawn_where_they_ended() -> None:
    """In milliseconds unless they are long, with what was waited for."""
    drawing = charts(WATCHED)["Steps: mine"].drawing
    assert isinstance(drawing, Curves)
    steps, waits = drawing.curves
    assert [(point.x, point.y) for point in steps.points] == [(6.0, 1000), (7.5, 1500)]
    assert [(point.x, point.y) for point in waits.points] == [(5.0, 100), (6.0, 200), (7.5, 700)]


def test_units_are_those_of_people() -> None:
    """Shares in percent, bytes in MB/s and GB."""
    drawn = charts(WATCHED)
    assert [curve.points[0].y for curve in drawn["Processors: mine"].drawing.curves] == [20, 50]  # type: ignore[union-attr]
    disk, network = drawn["Disk and network: mine"].drawing.curves  # type: ignore[union-attr]
    assert (disk.name, network.name) == ("disk, read", "network, received")
    assert [point.y for point in disk.points] == [3, 1]


def test_steps_of_old_runs_have_no_time() -> None:
    """What was read is drawn all the same."""
    old = {trial.id: {"step_end_s": [1.0, 2.0], "wait_s": [0.0, 0.0]} for trial in WATCHED.trials}
    assert "Steps: mine" not in charts(WATCHED, series=old)


def test_a_loop_is_shown_once_from_its_farthest_input() -> None:
    """Of many trials one speaks."""
    trials = [*loop("synthetic", [1.0, 1.0]), *loop("warm", [2.0, 2.0]), *loop("cold", [3.0, 3.0])]
    drawn = charts(summarised(trials))
    assert {title.partition(": ")[2] for title in drawn} == {"g, cold"}


def test_of_loaders_the_fastest_is_shown_where_there_is_no_loop() -> None:
    """One of a hundred."""
    trials = [
        one("loader", {"loader": name, "data": "shards@disk"}, samples_per_s=rate)
        for name, rate in (("slow", 1.0), ("fast", 9.0))
    ]
    drawn = charts(summarised(trials), series={})
    assert {title.partition(": ")[2] for title in drawn} == {"fast shards@disk"}


def test_a_page_has_few_of_them() -> None:
    """However many loaders were watched, and however long."""
    long = {"cpu.user_share": [(float(i), i % 7 / 7) for i in range(20_000)]}
    trials = [one("watch", {"loader": f"l{i}"}, seconds=1.0, wait_share=0.1) for i in range(9)]
    drawn = charts(summarised(trials), readings={trial.id: long for trial in trials}, series={})
    assert len(drawn) == 3
    for chart in drawn.values():
        assert all(len(curve.points) <= 302 for curve in chart.drawing.curves)  # type: ignore[union-attr]


def test_an_emulated_device_is_called_so() -> None:
    """As on every other figure of it, beside what the cache held."""
    for chart in charts(summarised(loop("warm", [1.0], emulated=True))).values():
        assert [badge.text for badge in chart.badges] == ["emulated", "warm"]


def test_what_was_not_to_be_had_is_said_once() -> None:
    """Whatever number of trials lacks it."""
    trials = [
        one("watch", {"loader": f"l{i}"}, seconds=1.0, wait_share=0.1, sampling_notes=["no GPU"])
        for i in range(2)
    ]
    found = section(summarised(trials))
    assert found is not None
    assert found.blocks[-1] == Words(("no GPU",), listed=True)


def test_without_readings_there_is_no_section() -> None:
    """So of every run that was written before there were any."""
    assert section(WATCHED, readings={}) is None
    assert "meanwhile" not in [part.id for part in build(WATCHED, {}).sections]
