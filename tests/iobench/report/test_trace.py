"""Traces follow the Trace Event Format and show what a run has stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.machine.sampling import Samples
from iobench.report.trace import SavedRun, trace_of
from iobench.results.result import STEADY_STATE, Result, trial_line
from iobench.results.trial import Context, Span, Trial, TrialSpec
from iobench.runner.run_folder import (
    add_line,
    begin_log,
    read,
    read_spans,
    run_trace,
    write_results,
)
from iobench.trials import loader_opening, training_trial
from iobench.trials.training_settings import Training, training_points
from iobench.watching.report import write
from iobench.watching.session import WatchedLoader, WatchSettings
from tests.commandline import iobench
from tests.iobench.report import trace_format
from tests.iobench.report.trace_format import problems
from tests.iobench.trials.fakes import (
    SAMPLES,
    START_S,
    STEP_S,
    WAIT_S,
    Only,
    SlowConsumer,
    SlowLoader,
)
from tests.iobench.watching.logged import Record, epoch, packed

ZERO_S = 1_795_786_000.123456
BASE_S = 7_889_238 * (int(ZERO_S) // 7_889_238)
EMPTY = Result("n", "2026-11-21T12:00:00+00:00", {}, {}, rates=STEADY_STATE)
GOLDEN = Path(__file__).parents[2] / "golden" / "run-schema-1"
PARAMS = {"group": "mine", "input": "warm", "batch_size": 4, "workers": 2}


def training_trial_of(repeat: int = 0, **changed: Any) -> Trial:
    """Return a training trial whose two counted steps follow one that does not count."""
    spec = TrialSpec("train", PARAMS, repeat)
    metrics = {"time_to_first_batch_s": 0.5, "left_out": 1, "steps": 2}
    trial = Trial(spec.id, spec.kind, PARAMS, repeat, "done", metrics)
    times = {"started_s": ZERO_S - 5, "seconds": 9.0, "time_zero_s": ZERO_S}
    return replace(trial, **{**times, **changed})


SERIES = {
    "step_end_s": [1.0, 2.0],
    "time_s": [2.0, 3.0],
    "wait_s": [0.25, 0.5],
    "compute_s": [0.5] * 2,
}
READINGS: dict[str, list[float | None]] = {
    "time_s": [-1.0, 1.0],
    "cpu.user_share": [None, 0.5],
    "disk.read_bytes_per_s": [1e6, 2e6],
    "gpu.0_sm_clock_mhz": [1000, 1100],
    "warm.celsius": [40, 41],
}
SPANS = [
    Span("epochs", "epoch 0", 0.0, 3.0, 0.5),
    Span("worker 10", "batch", -0.5, 0.75),
    Span("worker 2", "batch", -0.5, 0.5),
    Span("worker 2", "batch", 0.0, 1.5),
    Span("rank 0", "step", 1.0, 1.0, 0.25),
]


def saved(
    folder: Path,
    *trials: Trial,
    series: Mapping[str, Sequence[float]] = SERIES,
    spans: Sequence[Span] = SPANS,
) -> Path:
    """Write the folder of a run that is still going on, which is returned."""
    folder.mkdir(exist_ok=True)
    begin_log(folder, EMPTY)
    for trial in trials:
        add_line(folder, trial_line(trial, series, READINGS, spans))
    return folder


def traced(folder: Path) -> dict[str, Any]:
    """Return the trace of a folder, and check that it follows the format."""
    content: dict[str, Any] = json.loads(run_trace(folder).encoded())
    assert problems(content) == []
    return content


def events(content: Mapping[str, Any], phase: str = "X", **fields: Any) -> list[dict[str, Any]]:
    """Return the events of a phase that have these fields."""
    expected = {"ph": phase, **fields}
    return [event for event in content["traceEvents"] if expected.items() <= event.items()]


def tracks(content: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of the threads by their names."""
    named = events(content, "M", name="thread_name")
    return {event["args"]["name"]: event["tid"] for event in named}


def moments(slices: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return begin and end of slices, in seconds since the loop began, rounded to microseconds."""
    zero_us = (ZERO_S - BASE_S) * 1e6
    begins_and_ends_s = []
    for event in slices:
        begin_us = event["ts"] - zero_us
        end_us = begin_us + event.get("dur", 0.0)
        begins_and_ends_s.append((round(begin_us / 1e6, 6), round(end_us / 1e6, 6)))
    return begins_and_ends_s


def test_steps_waits_and_work_are_where_they_were(tmp_path: Path) -> None:
    """A step ends at its time, its wait is at its beginning, and the first step does not count."""
    content = traced(saved(tmp_path, training_trial_of()))
    steps = tracks(content)["steps"]
    slices = events(content, tid=steps)
    not_counted, first_step, second_step = slices[:2], slices[2:5], slices[5:]
    assert [e["name"] for e in not_counted] == [
        "wait for the first batch",
        "1 step before the rate",
    ]
    assert {e["cat"] for e in not_counted} == {"not counted"}
    assert moments(not_counted) == [(0, 0.5), (0.5, 1)]
    for step in (first_step, second_step):
        assert [e["name"] for e in step] == ["step", "wait", "work"]
        assert [e["cat"] for e in step] == ["step", "wait", "work"]
    assert moments(first_step) == [(1, 2), (1, 1.25), (1.25, 2)]
    assert moments(second_step) == [(2, 3), (2, 2.5), (2.5, 3)]
    assert events(content, name="step", tid=steps)[1]["args"] == {"step": 1, "compute_s": 0.5}


def test_a_track_for_each_worker_rank_and_the_epochs(tmp_path: Path) -> None:
    """Tracks are in the order of their numbers, and the trial has a track with its preparation."""
    content = traced(saved(tmp_path, training_trial_of()))
    named = tracks(content)
    assert [*named] == ["trial", "epochs", "steps", "rank 0", "worker 2", "worker 10"]
    assert moments(events(content, tid=named["trial"])) == [(-5, 4)]
    assert moments(events(content, tid=named["worker 2"])) == [(-0.5, 0), (0, 1.5)]
    assert [e["cat"] for e in events(content, tid=named["worker 10"])] == ["batch"]
    epochs = events(content, tid=named["epochs"])
    assert [e["name"] for e in epochs] == ["epoch 0", "until the first batch"]
    assert moments(epochs) == [(0, 3), (0, 0.5)]
    assert [e["cat"] for e in events(content, tid=named["rank 0"])] == ["rank step", "rank wait"]
    orders = events(content, "M", name="thread_sort_index")
    assert [e["args"]["sort_index"] for e in orders] == [*range(6)]


def test_readings_are_counters(tmp_path: Path) -> None:
    """Each column is a counter with its unit; values that were not read are left out."""
    content = traced(saved(tmp_path, training_trial_of()))
    values: dict[str, list[dict[str, float]]] = {}
    for event in events(content, "C"):
        values.setdefault(event["name"], []).append(event["args"])
    assert values == {
        "cpu user": [{"share": 0.5}],
        "disk read": [{"bytes_per_s": 1e6}, {"bytes_per_s": 2e6}],
        "gpu 0 sm clock": [{"mhz": 1000}, {"mhz": 1100}],
        "warm celsius": [{"value": 40}, {"value": 41}],
    }
    clock = events(content, "C", name="gpu 0 sm clock")
    assert moments(clock) == [(-1, -1), (1, 1)]


def test_each_repeat_is_a_process_with_its_name(tmp_path: Path) -> None:
    """A failed trial has its reason, and a trial that never began is left out."""
    failed = training_trial_of(1, status="failed", reason="no memory")
    never = training_trial_of(2, status="skipped", started_s=0.0, time_zero_s=0.0)
    content = traced(saved(tmp_path, training_trial_of(), failed, never))
    names = [e["args"]["name"] for e in events(content, "M", name="process_name")]
    assert names == ["warm: train mine warm batch=4 #1", "warm: train mine warm batch=4 #2"]
    reasons = [e["args"].get("reason") for e in events(content, cat="trial")]
    assert reasons == [None, "no memory"]


def test_times_count_from_the_base_that_torch_takes(tmp_path: Path) -> None:
    """The base is the begin of an interval of 7,889,238 s since 1970, in nanoseconds."""
    content = traced(saved(tmp_path, training_trial_of()))
    assert content["baseTimeNanoseconds"] == BASE_S * 10**9
    assert 0 <= content["traceEvents"][-1]["ts"] < 7_889_238e6


class TestBalance:
    """The waits in a trace add up to those of the result."""

    def waits_s(self, content: Mapping[str, Any]) -> float:
        """Return the sum of all waits that count, in seconds."""
        return sum(float(event["dur"]) for event in events(content, cat="wait")) / 1e6

    def expected_s(self, trial: Trial) -> float:
        """Return the waiting of the result, in seconds."""
        return float(trial.metrics["wait_share"] * trial.metrics["seconds"])

    @pytest.mark.parametrize("source", ["warm", "synthetic"])
    def test_of_a_training_loop(
        self, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """This holds for three epochs with their starts, and for steps on a resident batch."""
        monkeypatch.setattr(loader_opening, "LOADERS", Only(SlowLoader))
        monkeypatch.setattr(training_trial, "CONSUMERS", Only(SlowConsumer))
        settings = {"loader": "mock", "batch_size": SAMPLES, "steps": 8, "workers": 1}
        (params,) = training_points(Training.model_validate({**settings, "inputs": source}))
        clock = VirtualClock(100.0)
        context = Context({}, clock, lambda done, unit: None)
        outcome = training_trial.run(TrialSpec("train", params), context)
        trial = training_trial_of(params=params, metrics=outcome.metrics)
        content = traced(saved(tmp_path, trial, series=outcome.series, spans=outcome.spans))
        steps = len(outcome.series["wait_s"])
        assert self.waits_s(content) == pytest.approx(self.expected_s(trial), abs=steps * 1.25e-7)
        epochs = events(content, cat="epoch")
        if source == "synthetic":
            assert epochs == []
            return
        length_s = SlowLoader.batches * (STEP_S + WAIT_S)
        ends_s = [START_S + length_s * number for number in (1, 2, 3)]
        assert moments(epochs) == [(0, ends_s[0]), (ends_s[0], ends_s[1]), (ends_s[1], ends_s[2])]

    def test_of_a_watched_loop(self, tmp_path: Path) -> None:
        """Waits for the ends of epochs are in no step, and validation is in no wait."""
        validation_in_last_step = epoch(0, 28.0, 2, loader=1)
        records: list[Record] = [
            *epoch(0, 10.0, 3),
            (0, 1, 22.5, 24.0, 26.0, 4.0),
            (0, 1, 26.0, 27.5, 40.5, 4.0),
            (0, 1, 40.5, 41.0, 41.0, -1),
            *validation_in_last_step,
        ]
        settings = WatchSettings("", "n", EMPTY.started, 2.0, [])
        loaders = [WatchedLoader("training"), WatchedLoader("validation")]
        samples = Samples({}, 0.0, ())
        write(tmp_path, settings, loaders, packed(*records), samples, announced_end=True)
        content = traced(tmp_path)
        first, second = sorted({event["pid"] for event in content["traceEvents"]})
        for process, trial in zip((first, second), read(tmp_path).trials, strict=True):
            own = {"traceEvents": events(content, pid=process)}
            assert self.waits_s(own) == pytest.approx(self.expected_s(trial), abs=1e-6)
        steps = events(content, pid=first, name="step")
        zero_us = events(content, pid=first, name="wait for the first batch")[0]["ts"]
        begins_s = [(event["ts"] - zero_us) / 1e6 + 10 for event in steps]
        lengths_s = [event["dur"] / 1e6 for event in steps]
        assert begins_s == pytest.approx([14, 18, 22.5, 26], abs=1e-6)
        assert lengths_s == pytest.approx([4, 4, 3.5, 14.5], abs=1e-6)
        assert steps[-1]["args"]["other_loaders_s"] == pytest.approx(8.5)
        ends = [e["name"] for e in events(content, pid=first) if e["name"].startswith("end of")]
        assert ends == ["end of epoch 0", "end of epoch 1"]
        epochs = [(e["name"], e["dur"] / 1e6) for e in events(content, pid=first, cat="epoch")]
        assert epochs == [("epoch 0", 12.5), ("epoch 1", 18.5)]


@given(
    st.floats(1.6e9, 2.4e9),
    st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), min_size=1, max_size=30),
    st.floats(0, 5),
)
def test_slices_nest_whatever_their_lengths(
    zero_s: float, steps: list[tuple[float, float]], begin_s: float
) -> None:
    """Rounded neighbours never overlap, also if steps are shorter than the rounding step."""
    lengths_s = [length_s for length_s, _ in steps]
    ends_s = pd.Series(lengths_s).cumsum()
    series = {
        "step_end_s": ends_s.tolist(),
        "time_s": (begin_s + ends_s).tolist(),
        "wait_s": [length_s * share for length_s, share in steps],
    }
    table = pd.DataFrame(series).assign(trial=training_trial_of().id)
    batches = zip(ends_s.tolist(), lengths_s, strict=True)
    spans = [Span("worker 0", "batch", end_s - length_s, length_s) for end_s, length_s in batches]
    trial = training_trial_of(started_s=zero_s, time_zero_s=zero_s)
    run = SavedRun(replace(EMPTY, trials=(trial,)), table, pd.DataFrame(), {trial.id: spans})
    trace = trace_of([run])
    content = {"traceEvents": [*trace.events], "displayTimeUnit": "ms"}
    assert problems(content) == []
    waits_s = sum(event["dur"] for event in events(content, cat="wait")) / 1e6
    assert waits_s == pytest.approx(sum(series["wait_s"]), abs=2.5e-7 * len(steps))


def test_neighbours_that_overlap_by_their_rounding_are_cut(tmp_path: Path) -> None:
    """The second slice begins when the first one ends, and keeps its end."""
    spans = [Span("worker 0", "batch", 0.0, 1.0), Span("worker 0", "batch", 1.0 - 1e-7, 1.0)]
    content = traced(saved(tmp_path, training_trial_of(), spans=spans))
    first, second = events(content, cat="batch")
    assert first["ts"] + first["dur"] == second["ts"]
    assert moments([first, second]) == [(0, 1), (1, 2)]


def test_a_watched_job_of_several_processes_is_one_trace(tmp_path: Path) -> None:
    """Each rank is a process of the trace, in the order of numbers."""
    for rank in (10, 2):
        params = {"loader": "mine", "rank": rank, "world_size": 11}
        spec = TrialSpec("watch", params)
        saved(tmp_path / f"rank-{rank}", training_trial_of(id=spec.id, kind="watch", params=params))
    content = traced(tmp_path)
    names = [e["args"]["name"] for e in events(content, "M", name="process_name")]
    assert names == ["rank 2: your loop over mine #1", "rank 10: your loop over mine #1"]


def test_spans_are_stored_with_the_run(tmp_path: Path) -> None:
    """Spans are in the log, in the final table, and in the log of a resumed run."""
    folder = saved(tmp_path, training_trial_of())
    assert read_spans(folder) == {training_trial_of().id: SPANS}
    result = replace(EMPTY, trials=(training_trial_of(),))
    write_results(folder, result)
    (folder / "trials.jsonl").unlink()
    assert read_spans(folder) == {training_trial_of().id: SPANS}
    before = traced(folder)
    begin_log(folder, result)
    (folder / "spans.parquet").unlink()
    assert read_spans(folder) == {training_trial_of().id: SPANS}
    assert traced(folder) == before


def test_a_run_of_an_earlier_version_says_what_it_lacks() -> None:
    """Steps begin with their trials, and neither batches nor readings are stored."""
    content = traced(GOLDEN)
    assert events(content, name="step")
    lacking = "\n".join(run_trace(GOLDEN).lacking)
    for gap in ("begin of the loop", "batches of workers", "readings"):
        assert f"no {gap}" in lacking
    assert content["otherData"]["lacking"] == run_trace(GOLDEN).lacking


def test_the_note_has_the_number_of_incomplete_trials(tmp_path: Path) -> None:
    """Workers of other frameworks are not seen; a complete trace lacks nothing."""
    complete = saved(tmp_path / "complete", training_trial_of())
    assert run_trace(complete).lacking == []
    without = saved(tmp_path / "without", training_trial_of(), training_trial_of(1), spans=[])
    (gap,) = run_trace(without).lacking
    assert gap.startswith("2 trials: no batches of workers: only torch-map")


@pytest.mark.slow
class TestCommand:
    """``iobench export --trace``."""

    def test_says_what_it_wrote(self, tmp_path: Path) -> None:
        """The output says how to open the trace, and stderr says what it lacks."""
        folder, file = saved(tmp_path / "run", training_trial_of(), spans=[]), tmp_path / "x.json"
        done = iobench("export", folder, "--trace", file, code=0)
        count = len(trace_format.read(file)["traceEvents"])
        assert done.out == f"{file}: 1 trial, {count} events; open it in https://ui.perfetto.dev\n"
        assert "1 trial: no batches of workers" in done.err

    def test_compressed(self, tmp_path: Path) -> None:
        """The content is that of the plain file, and two exports have equal bytes."""
        folder, file = saved(tmp_path / "run", training_trial_of()), tmp_path / "x.json.gz"
        iobench("export", folder, "--trace", file, code=0)
        first = file.read_bytes()
        iobench("export", folder, "--trace", file, code=0)
        assert file.read_bytes() == first
        assert trace_format.read(file) == traced(folder)

    @pytest.mark.parametrize("other", [["--series"], ["--samples"], ["--output", "x.csv"]])
    def test_goes_with_no_other_option(self, tmp_path: Path, other: list[str]) -> None:
        """The option is refused beside other outputs, and no file is written."""
        folder, file = saved(tmp_path / "run", training_trial_of()), tmp_path / "x.json"
        done = iobench("export", folder, "--trace", file, *other, code=2)
        assert "--trace writes its own file" in done.complaints[0]
        assert not file.exists()

    def test_no_run(self, tmp_path: Path) -> None:
        """The error is one line, and an existing file stays."""
        file = tmp_path / "x.json"
        file.write_text("before")
        done = iobench("export", tmp_path, "--trace", file, code=2)
        assert "no run in" in done.complaints[0]
        assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
        assert file.read_text() == "before"

    def test_no_folder(self, tmp_path: Path) -> None:
        """The error says that there is no folder for the file."""
        folder = saved(tmp_path / "run", training_trial_of())
        done = iobench("export", folder, "--trace", tmp_path / "none" / "x.json", code=2)
        assert "no folder" in done.complaints[0]
