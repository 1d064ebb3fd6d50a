"""What a page says of a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.report.model import Report, build
from iobench.report.model.drawings import Bars, Curves, Piles
from iobench.report.model.shapes import Chart, Table, Words
from iobench.report.model.supplies import supplies_of
from iobench.report.series import by_trial
from iobench.result import Result
from iobench.summary import summarise
from iobench.trial import Cold, Trial
from tests.iobench.report import results
from tests.iobench.report.results import Run

FULL = results.full()


def report_of(run: Run, **changes: Any) -> Report:
    """The model of a run's page."""
    return build(run.result(**changes), by_trial(run.table()))


def titles(report: Report) -> list[str]:
    """Headings of sections."""
    return [section.title for section in report.sections]


def drawing_of(report: Report, title: str) -> Any:
    """What the chart of that title draws."""
    (chart,) = [chart for chart in report.charts if chart.title.startswith(title)]
    return chart.drawing


def table_of(report: Report, title: str) -> Table:
    """The table of that title."""
    (table,) = [
        block
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Table) and block.title.startswith(title)
    ]
    return table


def test_a_full_run_has_every_section_in_order() -> None:
    """What to do first, then what is below which line, then everything else."""
    report = report_of(FULL, findings=results.FINDINGS)
    assert titles(report) == [
        "Findings", "Supply against consumption", "The training loop", "Loaders", "Disks",
        "Object stores", "Cold, and how it is known", "All trials", "Environment",
        "How to reproduce", "What the figures mean",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("disks", {"The training loop", "Loaders", "Object stores", "Supply"}),
        ("nothing", {"The training loop", "Disks", "All trials", "Supply", "Findings"}),
        ("all-failed", {"The training loop", "Loaders", "Supply"}),
    ],
)
def test_empty_sections_are_left_out(name: str, absent: set[str]) -> None:
    """Nothing is shown of what was not measured."""
    report = report_of(dict(results.shapes())[name])
    assert not absent & set(titles(report))
    assert report.verdict


def test_every_supply_has_a_bar_and_the_device_a_line_across() -> None:
    """The fastest setting of each loader, place and cache state; G from the summary."""
    bars = drawing_of(report_of(FULL), "Every supply")
    assert isinstance(bars, Bars)
    assert len(bars.rows) == 3 * 2 + 3 + 6
    (line,) = bars.lines
    assert line.value == FULL.summary["training"][0]["consumes"]["median"]
    assert all(row.low <= row.value <= row.high for row in bars.rows)


def test_which_supplies_lie_below_is_said_in_words() -> None:
    """A supply is below where even its interval's upper end is."""
    run = Run(repeats=6).training(consumes=100.0, warm=60.0, cold=50.0)
    run._loader("slow", "d", "warm", results.WARM, 1, 8, 40.0)
    run._loader("fast", "d", "warm", results.WARM, 1, 8, 400.0)
    run._loader("even", "d", "warm", results.WARM, 1, 8, 100.0)
    (section,) = [s for s in report_of(run).sections if s.id == "supply"]
    words = section.blocks[0]
    assert isinstance(words, Words)
    assert "Of 3 supplies 1 lies below that: slow, d, warm" in words.lines[0]
    assert "Not to be told apart from it: even, d, warm" in words.lines[0]


def test_other_work_is_another_supply() -> None:
    """A loader that does not decode is no measure of the same one that does."""
    run = Run()
    run._loader("tf-data", "d", "warm", results.NONE, 0, 8, 700.0)
    result = run.result()
    trial = result.trials[0]
    encoded = replace(
        trial,
        id=f"{trial.id}-encoded",
        params={**trial.params, "decode": False},
        metrics={**trial.metrics, "samples_per_s": 30_000.0},
    )
    found = supplies_of(replace(result, trials=(trial, encoded)))
    assert [supply.label for supply in found] == ["tf-data, d, without decode", "tf-data, d"]
    assert found[0].found.median == 30_000 > found[1].found.median


def test_supplies_of_other_images_are_not_held_against_the_device() -> None:
    """Small images decode faster than large ones; reading is the same for both."""
    run = Run(repeats=6).training(consumes=100.0, warm=60.0, cold=50.0)
    run._loader("same", "d", "warm", results.WARM, 1, 8, 40.0)
    run._loader("small", "d", "warm", results.WARM, 1, 8, 30.0)
    run._loader("raw", "d", "warm", results.WARM, 1, 8, 20.0)
    made = run.result()
    small = [
        replace(trial, params={**trial.params, "image_size": 32})
        if trial.params.get("loader") == "small"
        else trial
        for trial in made.trials
    ]
    (section,) = [
        section
        for section in build(replace(made, trials=tuple(small)), {}).sections
        if section.id == "supply"
    ]
    words, table = section.blocks[0], section.blocks[-1]
    assert isinstance(words, Words)
    assert isinstance(table, Table)
    assert "Of 2 supplies 2 lie below that: same, d, warm" in words.lines[0]
    assert "of the same files: 1." in words.lines[0]
    compared = {row[0].text.split(",")[0]: bool(row[-1].text) for row in table.rows}
    assert compared == {"same": True, "small": False, "raw": True}


def test_a_warm_input_that_was_not_all_warm_is_no_step() -> None:
    """Figures, chart and table agree that the stall is not split."""
    run = Run(repeats=1).training()
    run.summary["training"][0] |= {"preparation_stall": None, "fetch_stall": None}
    (pile,) = drawing_of(report_of(run), "Where the time goes").rows
    assert len(pile.parts) == 2


def test_null_and_mock_are_no_supplies() -> None:
    """They measure the harness."""
    run = Run()
    run._loader("null", "", "warm", results.NONE, 0, 8, 1e6)
    run._loader("mock", "", "warm", results.NONE, 0, 8, 100.0)
    assert "Supply" not in titles(report_of(run))


@given(
    st.lists(
        st.tuples(st.floats(10, 1e4), st.floats(10, 1e4), st.floats(10, 1e4)),
        min_size=1,
        max_size=3,
    )
)
def test_parts_of_a_loop_add_up_to_its_cold_time(loops: list[tuple[float, float, float]]) -> None:
    """Also where a difference is negative: nothing is clipped."""
    run = Run(repeats=1)
    for i, (consumes, warm, cold) in enumerate(loops):
        run.training(f"loop{i}", consumes, warm, cold, steps=3)
    piles = drawing_of(report_of(run), "Where the time goes")
    assert isinstance(piles, Piles)
    for pile, group in zip(piles.rows, run.summary["training"], strict=True):
        total = sum(part.value for part in pile.parts)
        assert total == pytest.approx(1000 / group["cold"]["median"])
        prepared = 1000 / group["warm"]["median"] - 1000 / group["consumes"]["median"]
        assert pile.parts[1].value == pytest.approx(prepared)


def test_every_figure_of_an_emulated_device_says_so() -> None:
    """Large figures, the line, the stacked bar, the step charts."""
    report = report_of(dict(results.shapes())["emulated"])
    assert report.figures
    assert all("emulated" in [b.text for b in figure.badges] for figure in report.figures)
    assert all("(emulated)" in line.label for line in drawing_of(report, "Every supply").lines)
    piles = drawing_of(report, "Where the time goes")
    assert all("(emulated)" in pile.label for pile in piles.rows)
    steps = [c for c in report.charts if c.title.startswith(("Step time", "Waiting"))]
    assert steps
    assert all("emulated" in [b.text for b in chart.badges] for chart in steps)


def test_what_could_not_be_shown_cold_is_not_called_cold() -> None:
    """One repeat without proof takes it from all."""
    run = Run(repeats=3)
    run._loader("raw", "d", "cold", results.PROVED, 1, 8, 10.0)
    last = run.trials[-1]
    run.trials[-1] = replace(last, cold=results.UNPROVED)
    bars = drawing_of(report_of(run), "Every supply")
    assert bars.rows[0].tip.cache.startswith("asked cold, not proved: 34 % of the pages stayed")
    assert "cold 9" not in str(bars)


def test_both_utilisations_stand_side_by_side_with_their_definitions() -> None:
    """And with interval and repeats."""
    first, second = report_of(FULL).figures[:2]
    assert first.name.startswith("au_ceiling")
    assert second.name.startswith("au_mlperf")
    assert first.leading
    assert second.leading
    assert first.meaning != second.meaning
    assert "6 repeats" in first.interval
    assert "cold 99.8 %" in [badge.text for badge in first.badges]


def test_three_repeats_are_a_smoke_run() -> None:
    """It is said at the top and beside the figure."""
    report = report_of(Run(repeats=3).training())
    assert "3 repeats: smoke run, no interval of 95 %" in [b.text for b in report.badges]
    assert "no 95 % interval" in report.figures[0].interval


def test_curves_ring_the_first_point_at_95_percent_of_their_peak() -> None:
    """Object size and connections; none where the curve still rises at its end."""
    for chart in report_of(FULL).charts:
        if chart.title.startswith("Object store"):
            assert isinstance(chart.drawing, Curves)
            for curve in chart.drawing.curves:
                peak = max(point.y for point in curve.points)
                first = next(p for p in curve.points if p.y >= 0.95 * peak)
                rises = first == curve.points[-1]
                assert [p for p in curve.points if p.marked] == [first][rises:]


def test_many_curves_become_the_best_of_their_settings() -> None:
    """No chart has more than eight, and it says what was left out."""
    charts = [c for c in report_of(FULL).charts if isinstance(c.drawing, Curves)]
    assert charts
    for chart in charts:
        assert isinstance(chart.drawing, Curves)
        assert 1 <= len(chart.drawing.curves) <= 8
        assert len({curve.name for curve in chart.drawing.curves}) == len(chart.drawing.curves)
    workers = next(c for c in charts if c.title.startswith("Loaders over workers"))
    assert "best" in workers.note


def test_small_files_stand_left_of_the_smallest_shard() -> None:
    """As a point of their own kind, on the same axis."""
    curves = drawing_of(report_of(dict(results.shapes())["shard-size"]), "Samples over shard size")
    words = [words for _, words in curves.x_ticks]
    assert words == ["small files", *(f"{n}\u00a0MB" for n in (1, 4, 16, 64, 128))]


def test_shards_stand_at_the_size_that_they_have() -> None:
    """Those asked for at the bounds are made with a margin: the axis tells the truth."""
    made = dict(results.shapes())["shard-size"].result()
    sizes = {"shards-1MB@disk": 1_190_123.0, "shards-128MB@disk": 106_300_000.0}
    moved = [
        replace(trial, metrics={**trial.metrics, "mean_object_bytes": sizes[trial.params["data"]]})
        if trial.params.get("data") in sizes
        else trial
        for trial in made.trials
    ]
    report = build(replace(made, trials=tuple(moved)), {})
    ticks = [words for _, words in drawing_of(report, "Samples over shard size").x_ticks]
    assert ticks == [
        "small files",
        *(f"{size}\u00a0MB" for size in ("1.20", "4", "16", "64", "110")),
    ]


def test_one_size_has_one_place_whoever_reads() -> None:
    """Records by offset tell no size of a shard; two formats of one size are no sweep."""
    run = Run()
    for size, mean in ((1, 1.2e6), (4, 4e6)):
        for access in ("shards", "records"):
            told = {"mean_object_bytes": mean} if access == "shards" else {}
            params = {"data": f"shards-{size}MB@disk", "access": access, "cache": "cold"}
            run.add("layout", params, results.PROVED, samples_per_s=1000.0 * size, **told)
    curves = drawing_of(report_of(run), "Samples over shard size")
    places = {tuple(point.x for point in curve.points) for curve in curves.curves}
    assert len(curves.curves) == 2
    assert len(places) == 1
    two = Run()
    for loader, mean in (("tf-data", 15.2e6), ("mxnet-record", 16.8e6)):
        which = {"loader": loader, "data": "shards-16MB@disk", "cache": "warm"}
        two.add(
            "loader",
            {**which, "workers": 1},
            results.WARM,
            samples_per_s=1000.0,
            mean_object_bytes=mean,
        )
    assert not [t for t in (c.title for c in report_of(two).charts) if t.startswith("Samples over")]


def test_steps_are_thinned_and_keep_their_outliers() -> None:
    """A long run draws a few hundred points, the slowest step among them."""
    run = Run(repeats=1).training(steps=20_000)
    curves = drawing_of(report_of(run), "Waiting for data")
    ours = run.series[2]["wait_s"][1:].max() * 1e3
    assert all(len(curve.points) <= 700 for curve in curves.curves)
    assert max(p.y for p in curves.curves[-1].points) in (pytest.approx(ours), ours / 1e3)


def test_trials_that_did_not_run_are_listed_with_their_reason() -> None:
    """Once, with how many repeats it befell."""
    report = report_of(FULL)
    failed = [entry.text for entry in table_of(report, "Failed").rows[0]]
    assert failed[2:] == ["s3://private: access denied (403): the bucket may not be listed", "6"]
    skipped = [entry.text for entry in table_of(report, "Skipped").rows[0]]
    assert "pip install 'dataprep-iobench[mxnet]'" in skipped[2]


def test_every_done_trial_has_a_row_and_its_evidence() -> None:
    """Nothing is summed up that cannot be looked at."""
    report = report_of(FULL)
    rows = sum(
        len(table_of(report, name).rows)
        for name in ("Training (", "Loaders (", "Layouts (", "Disks (", "Object stores (")
    )
    done = [trial for trial in FULL.trials if trial.status == "done"]
    assert rows == len(done)
    shown = table_of(report, "What showed").rows
    assert len(shown) == sum(trial.cold is not None for trial in done)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 10**12) | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=5,
)
COLD = st.none() | st.builds(
    Cold, st.sampled_from(["cold", "warm"]), st.sampled_from(["cold", "warm", "direct", "?"]),
    st.none() | st.floats(0, 1), st.none() | st.floats(0, 9), st.none() | st.booleans(), st.text(),
)  # fmt: skip
KEYS = st.sampled_from(
    ["loader", "data", "cache", "workers", "target", "block_bytes", "group", "input", "client"]
)
METRICS = st.sampled_from(["samples_per_s", "mb_per_s", "errors", "wait_share", "step_s_p50"])
TRIALS = st.builds(
    lambda kind, params, repeat, status, metrics, cold: Trial(
        f"{kind}/{params}/{repeat}", kind, params, repeat, status, metrics, cold, "why"
    ),
    st.sampled_from(["disk", "layout", "object", "loader", "train", "other"]),
    st.dictionaries(KEYS, st.text(max_size=3) | st.integers(0, 9), max_size=5),
    st.integers(0, 2),
    st.sampled_from(["done", "failed", "skipped"]),
    st.dictionaries(METRICS.filter(lambda key: key != "errors"),
                    st.floats(0, 1e9) | st.none(), max_size=4),
    COLD,
)  # fmt: skip


@given(st.lists(TRIALS, max_size=8), st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_trials_can_be_told(trials: list[Trial], anything: dict[str, Any]) -> None:
    """Whatever keys are missing, there is a page, with a verdict and how to do it again."""
    made = build(Result("n", "then", anything, anything, tuple(trials), {}), {})
    assert made.verdict
    assert "How to reproduce" in titles(made)
    assert all(isinstance(chart, Chart) for chart in made.charts)


def test_a_loop_without_a_warm_input_has_one_stall() -> None:
    """What cannot be told apart is not split."""
    run = Run(repeats=1).training()
    run.summary["training"][0] |= {"warm": None}
    (pile,) = drawing_of(report_of(run), "Where the time goes").rows
    assert len(pile.parts) == 2
    assert "not told apart" in pile.parts[1].tip.interval


def test_a_loop_fed_from_a_store_ends_there() -> None:
    """The farthest input is what utilisations rest on, and its own cache is unknown."""
    run = Run(repeats=1).training()
    (group,) = run.summary["training"]
    group |= {"store": group["cold"] | {"median": 1000.0}, "input": "store"}
    report = report_of(run)
    (pile,) = drawing_of(report, "Where the time goes").rows
    assert sum(part.value for part in pile.parts) == pytest.approx(1.0)
    assert "server cache unknown" in [badge.text for badge in report.figures[0].badges]
    assert "The loop gets, from the store" in [figure.name for figure in report.figures]


def test_the_summary_of_trials_is_understood() -> None:
    """What the product computes from the same trials gives the same page."""
    run = Run(repeats=6).training().loaders().stores()
    made = run.result()
    summary = summarise(made)
    computed = build(replace(made, summary=summary), by_trial(run.table()))
    run.summary["ladder"] = summary["ladder"]
    assert [figure.name for figure in computed.figures] == [
        figure.name for figure in report_of(run).figures
    ]
    assert [chart.title for chart in computed.charts] == [c.title for c in report_of(run).charts]


def test_a_single_point_of_a_disk_is_shown_too() -> None:
    """Where nothing was swept there is no curve, but a row."""
    run = Run(repeats=2)
    run._disk("here", "read", "sequential", 1 << 20, 4, "direct", results.DIRECT, 1000.0)
    (row,) = table_of(report_of(run), "Throughput and latency").rows
    assert [entry.text for entry in row[:6]] == [
        "here", "read", "sequential", "1\u00a0MiB", "4", "direct",
    ]  # fmt: skip


def test_engines_have_a_column_where_there_are_two() -> None:
    """So that a figure of fio is not taken for one of ours."""
    run = Run(repeats=2)
    where = ("here", "read", "sequential", 1 << 20, 4, "direct")
    run._disk(*where, results.DIRECT, 1000.0)
    run._disk(*where, results.DIRECT, 990.0, engine="fio")
    table = table_of(report_of(run), "Throughput and latency")
    assert table.columns[0] == "engine"
    assert [row[0].text for row in table.rows] == ["iobench", "fio"]


def test_clients_stand_side_by_side() -> None:
    """The fastest first, with what it takes; one that is still rising at its end is said to be."""
    made = Run(repeats=3).stores().result()
    computed = build(replace(made, summary=summarise(made)), {})
    table = table_of(computed, "Clients side by side")
    shown = [[entry.text for entry in row] for row in table.rows]
    assert [row[1:3] for row in shown[:2]] == [["get", "obstore"], ["get", "boto3"]]
    assert shown[0][-2:] == ["still rising", "not measured"]
    fastest, other = (float(row[3].raw or "") for row in table.rows[:2])
    assert fastest > other > 0


def test_a_result_from_before_has_no_such_table() -> None:
    """Its summary does not say what each reached."""
    with pytest.raises(ValueError, match="not enough values"):
        table_of(report_of(Run(repeats=2).stores()), "Clients side by side")
