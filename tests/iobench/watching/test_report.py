"""The figures of a watched loop, and the folder of its run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.errors import Unavailable
from iobench.machine.sampling import Samples
from iobench.results.trial import Outcome
from iobench.runner.run_folder import read, redraw
from iobench.watching import figures
from iobench.watching.figures import outcome, read_step_log
from iobench.watching.report import KILLED, write
from iobench.watching.session import (
    DEVICE_IDLE,
    UNKNOWN_SAMPLES,
    WatchedLoader,
    WatchSettings,
)
from tests.iobench.watching.logged import Record, epoch, packed, table

READINGS: dict[str, list[float | None]] = {
    "time_s": [9.0, 11.0, 15.0, 99.0],
    "cpu.user_share": [0.1, 0.2, 0.3, 0.4],
    "gpu.x": [1, None, None, 1],
}
SAMPLES = Samples(READINGS, 0.003, ("no GPU",))


def outcome_of(*records: Record, loader: int = 0, samples: Samples = SAMPLES) -> Outcome:
    """Return the outcome of one loader."""
    return outcome(table(*records), loader, samples, step_cost_s=0.0165)


def test_rates_and_shares_are_of_all_steps_but_the_first() -> None:
    """The wait for the end of the epoch counts, and the first step does not."""
    metrics = outcome_of(*epoch(0, 10.0, 5)).metrics
    assert (metrics["time_to_first_batch_s"], metrics["first_step_s"]) == (1, 3)
    assert (metrics["steps"], metrics["samples"], metrics["epochs"]) == (4, 16, 1)
    assert metrics["seconds"] == 16.5
    assert metrics["samples_per_s"] == pytest.approx(16 / 16.5)
    assert metrics["wait_share"] == pytest.approx(4.5 / 16.5)
    assert metrics["harness_share"] == pytest.approx(0.0165 * 4 / 16.5)
    assert (metrics["sampling_core_share"], metrics["sampling_notes"]) == (0.003, ["no GPU"])
    assert not {"epoch_start_s", "device_wait_share"} & set(metrics)
    assert "the script ran once, so the figures have no intervals" in metrics["notes"]


def test_time_between_epochs_is_in_no_figure() -> None:
    """Time for checkpoints does not count, and the starts of later epochs are a figure."""
    metrics = outcome_of(*epoch(0, 0.0, 3), *epoch(1, 1000.0, 3, wait_s=2)).metrics
    assert metrics["epochs"] == 2
    assert metrics["seconds"] == 2 * 4 + 0.5 + 3 * 5 + 1
    assert metrics["epoch_start_s"] == 2
    assert metrics["epoch_start_share"] == pytest.approx(2 / metrics["seconds"])


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([], "no batch came through"),
        ([(0, 0, 0.0, 1.0, 1.0, -1)], "no batch came through"),
        (epoch(0, 0.0, 1), "no step after the first"),
    ],
)
def test_a_loop_without_steps_has_a_reason(records: list[Record], reason: str) -> None:
    """Such a loop has a reason instead of figures."""
    with pytest.raises(Unavailable, match=reason):
        outcome_of(*records)


def test_without_samples_there_is_no_rate() -> None:
    """One batch of unknown size is enough; a note says what to do."""
    records = epoch(0, 0.0, 4)
    records[2] = (*records[2][:5], UNKNOWN_SAMPLES)
    metrics = outcome_of(*records).metrics
    assert "samples_per_s" not in metrics
    assert any("watch(loader, batch_size=N)" in note for note in metrics["notes"])
    assert metrics["wait_share"] > 0


def test_long_runs_keep_their_last_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are over all steps, and the series has the last ones."""
    monkeypatch.setattr(figures, "MAX_STEPS", 3)
    long = outcome_of(*epoch(0, 0.0, 10))
    assert long.series["time_s"] == [32, 36, 40]
    assert long.metrics["steps"] == 9
    assert any("the last 3 of 9 steps" in note for note in long.metrics["notes"])


def test_the_devices_idle_time_is_a_share_too() -> None:
    """The idle share is over the same steps as the host's waiting."""
    idle: list[Record] = [(0, 0, 10.0, 9.0, 0, DEVICE_IDLE), (0, 0, 14.0, 1.65, 0, DEVICE_IDLE)]
    metrics = outcome_of(*epoch(0, 10.0, 5), *idle).metrics
    assert metrics["device_wait_share"] == pytest.approx(0.1)
    assert metrics["wait_share"] == pytest.approx(4.5 / 16.5)


def test_records_that_are_written_twice_count_once() -> None:
    """An interrupted script may write records again, and the last one may be cut off."""
    records = [*epoch(0, 10.0, 5), (0, 0, 14.0, 0.5, 0.0, DEVICE_IDLE)]
    data = packed(*records)
    again = read_step_log(data + data[48:144] + data[:20])
    assert again.equals(read_step_log(data))


def test_a_pass_over_another_loader_is_no_part_of_a_step() -> None:
    """Validation within a step does not count, also with a loop of its own; a broken one does."""
    within_validation = epoch(0, 111.5, 2, loader=2)
    whole_validation = epoch(0, 110.0, 4, work_s=9, loader=1)
    broken_validation = epoch(1, 151.5, 1, loader=1)[:1]
    training_steps: list[Record] = [
        (0, 0, 0, 1, 4, 4.0),
        (0, 0, 4, 5, 8, 4.0),
        (0, 0, 108, 109, 152.5, 4.0),
        (0, 0, 152.5, 153.5, 156.5, 4.0),
        (0, 0, 156.5, 157, 157, -1),
    ]
    validations = [*within_validation, *whole_validation, *broken_validation]
    records = [*validations, *training_steps]
    plain = outcome_of(*epoch(0, 0.0, 4)).metrics
    training, validation = outcome_of(*records).metrics, outcome_of(*records, loader=1).metrics
    assert (training["seconds"], training["wait_share"]) == (plain["seconds"], plain["wait_share"])
    # The third step contains one pass of 40.5 s. A pass that was left by break has no end.
    assert any(note.startswith("40.5 s within its steps") for note in training["notes"])
    assert any(note.startswith("8.5 s within its steps") for note in validation["notes"])


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 100)), min_size=2, max_size=30))
def test_waits_are_part_of_steps(spans: list[tuple[float, float]]) -> None:
    """Successive steps add up to the time that they took."""
    records, now_s = [], 5.0
    for wait_s, work_s in spans:
        records.append((0, 0, now_s, now_s + wait_s, now_s + wait_s + work_s, 1.0))
        now_s += wait_s + work_s
    metrics = outcome_of(*records).metrics
    assert metrics["seconds"] == pytest.approx(now_s - records[0][4])
    assert 0 <= metrics["wait_share"] <= 1 + 1e-9


def test_quantiles_need_samples_behind_them() -> None:
    """A quantile q needs 10 / (1 - q) samples."""
    few, many = (outcome_of(*epoch(0, 0.0, batches)).metrics for batches in (20, 120))
    assert not [name for name in few if name.startswith("step_s_")]
    assert [name for name in many if name.startswith("step_s_")] == ["step_s_p50", "step_s_p90"]
    assert many["batch_wait_s_p90"] == pytest.approx(1)


def test_series_and_samples_count_from_the_first_batch_asked_for() -> None:
    """Readings before and after the loop are left out, and so are empty columns."""
    result = outcome_of(*epoch(0, 10.0, 3))
    assert result.series["time_s"] == [8, 12]
    assert result.series["step_end_s"] == [4, 8]
    assert result.series["wait_s"] == [1, 1]
    assert result.samples == {"time_s": [1.0, 5.0], "cpu.user_share": [0.2, 0.3]}
    assert outcome_of(*epoch(0, 200.0, 3)).samples == {}


def test_how_busy_the_machine_was_is_a_mean_over_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The share is all CPU time except idle and waiting; missing readings give no figure."""
    columns: dict[str, list[float | None]] = {
        "time_s": [11.0, 15.0],
        "cpu.user_share": [0.4, 0.6],
        "cpu.system_share": [None, 0.1],
        "cpu.steal_share": [0.0, 0.2],
        "disk.read_bytes_per_s": [None, 3e6],
        "tree.user_cores": [1.0, 2.0],
        "tree.system_cores": [0.5, 0.5],
    }
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    metrics = outcome_of(*epoch(0, 10.0, 3), samples=Samples(columns, 0.0, ())).metrics
    assert metrics["loop_cpu_share"] == 0.5
    assert metrics["cpu_busy_share"] == pytest.approx(0.7)
    assert metrics["disk_read_mb_per_s"] == 3
    without = outcome_of(*epoch(0, 10.0, 3), samples=Samples({}, 0.0, ())).metrics
    assert not {"cpu_busy_share", "disk_read_mb_per_s", "loop_cpu_share"} & set(without)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a killed script whose validation never ran."""
    result = tmp_path_factory.mktemp("mine")
    started = "2026-11-22T12:00:00+00:00"
    settings = WatchSettings("", "mine", started, 2.0, ["cpu"], rank=1, world_size=2)
    loaders = [WatchedLoader("train", 4), WatchedLoader("validation")]
    readings = {"time_s": [10.0, 12.0, 14.0, 16.0], "cpu.user_share": [0.5] * 4}
    samples = Samples(readings, 0.002, ())
    records = packed(*epoch(0, 10.0, 30))
    verdict = write(result, settings, loaders, records, samples, announced_end=False)
    assert verdict == str(read(result).summary["verdict"])
    return result


def test_each_loader_is_a_trial(folder: Path) -> None:
    """A loader without batches is skipped; ranks and a killed script are named.

    Each step, reading and loader has a row. The page can be drawn again from what is saved.
    """
    train, validation = read(folder).trials
    assert (train.kind, train.status, train.params["loader"]) == ("watch", "done", "train")
    assert (train.params["rank"], train.params["world_size"]) == (1, 2)
    assert (train.params["batch_size"], train.seconds) == (4, 120.5)
    assert train.metrics["harness_step_s"] > 0
    assert KILLED in train.metrics["notes"]
    assert validation.status == "skipped"
    assert "no batch came through" in validation.reason
    assert "batch_size" not in validation.params
    readings = pd.read_parquet(folder / "samples.parquet")
    assert len(pd.read_parquet(folder / "series.parquet")) == 29
    assert list(readings.columns) == ["trial", "time_s", "cpu.user_share"]
    assert list(readings["time_s"]) == [0, 2, 4, 6]
    assert list(pd.read_parquet(folder / "trials.parquet")["status"]) == ["done", "skipped"]
    before = (folder / "report.html").read_bytes()
    assert redraw(folder).read_bytes() == before
    assert b"Your loop waits" in before
