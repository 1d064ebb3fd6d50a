"""The ceiling and the loss of a watched loop, from loaders and steps of known speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.machine.sampling import Samples
from iobench.watching.proxy import TimedEpoch
from iobench.watching.replay import Replay, ReplaySettings
from iobench.watching.session import DEVICE_IDLE
from tests.iobench.watching.logged import MemoryLog, Record
from tests.iobench.watching.simulated import (
    BATCH,
    SimulatedLoader,
    figures,
    outcome_of_log,
    recorded,
    watched,
)

REPLAY = ReplaySettings(batches=8)
LOSS = {"loss_share", "loss_share_low", "loss_share_high"}
CEILING = {
    "ceiling_samples_per_s",
    "ceiling_samples_per_s_low",
    "ceiling_samples_per_s_high",
}


def note(metrics: Mapping[str, Any], begin: str) -> str:
    """Return the note that begins with this text, or an empty text."""
    return next((note for note in metrics["notes"] if note.startswith(begin)), "")


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(
    ("batch_s", "step_s", "loss"),
    [(0.010, 0.020, 0.0), (0.040, 0.020, 0.5), (0.080, 0.020, 0.75), (0.025, 0.020, 0.2)],
)
def test_the_loss_is_what_the_loader_costs(
    batch_s: float, step_s: float, loss: float, workers: int
) -> None:
    """A loader of 10 ms before a step of 20 ms costs nothing; one of 40 ms costs half."""
    loader = SimulatedLoader(batch_s, workers=workers, queue=2 * workers)
    metrics = watched(loader, 1000, step_s, replay=REPLAY)
    assert metrics["ceiling_samples_per_s"] == pytest.approx(BATCH / step_s)
    assert metrics["samples_per_s"] == pytest.approx(loader.rate(step_s), rel=0.02)
    assert metrics["loss_share"] == pytest.approx(loss, abs=0.02)
    assert (metrics["steps"] == 999) == (loss == 0)
    assert (metrics["replay_batches"], metrics["replay_steps"]) == (8, 100)
    assert note(metrics, "100 steps trained on 8 repeated batches; the last 50 of them")


def test_a_trace_has_the_replay_between_the_steps_that_count() -> None:
    """The replay is a span between the steps before and after it."""
    records = recorded(SimulatedLoader(0.040, queue=4), 300, 0.020, replay=REPLAY)
    loop_outcome = outcome_of_log(records, REPLAY)
    (replay,) = [span for span in loop_outcome.spans if span.track == "replay"]
    left_out = loop_outcome.metrics["replay_left_out"]
    assert replay.name == f"100 repeated steps, {left_out} left out"
    end_s = replay.begin_s + replay.seconds
    step_ends_s = loop_outcome.series["time_s"]
    before_s = [step_end_s for step_end_s in step_ends_s if step_end_s <= replay.begin_s + 1e-9]
    after_s = step_ends_s[len(before_s) :]
    assert before_s[-1] == pytest.approx(replay.begin_s)
    assert after_s[0] == pytest.approx(end_s + loop_outcome.metrics["step_s_p50"])


def test_repeated_steps_count_in_no_figure_of_the_loader() -> None:
    """Rate, waiting and quantiles are those of the same loop without a replay."""
    loader = SimulatedLoader(0.040, queue=4)
    with_replay = watched(loader, 1000, 0.020, replay=REPLAY)
    without = watched(loader, 1000, 0.020)
    for name in ("samples_per_s", "wait_share", "step_s_p50", "step_s_p90", "batch_wait_s_p90"):
        assert with_replay[name] == pytest.approx(without[name], rel=0.01), name
    assert with_replay["replay_left_out"] > 0
    assert with_replay["steps"] == 999 - with_replay["replay_left_out"]
    assert not (LOSS | CEILING) & set(without)
    assert note(without, "the rate of the device alone was not measured")


@pytest.mark.parametrize("queue", [4, 16, 50])
def test_batches_that_were_fetched_during_the_replay_are_no_rate(queue: int) -> None:
    """Steps that consume the full queue after the replay are too fast and left out.

    With 50 batches ahead only these steps remain.
    """
    loader = SimulatedLoader(0.040, queue=queue)
    metrics = watched(loader, 300, 0.020, replay=REPLAY)
    assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.040, rel=0.05)
    assert metrics["wait_share"] == pytest.approx(0.5, abs=0.02)
    assert metrics["replay_left_out"] >= queue - 1


def test_one_late_batch_after_the_replay_is_no_empty_queue() -> None:
    """One late batch on a busy machine does not end the full queue of 30 batches."""
    records = recorded(SimulatedLoader(0.040, queue=30), 400, 0.020, replay=REPLAY)
    marks = [record[2] for record in records if record[-1] == -4.0]
    late_s = 0.006
    moved: list[Record] = []
    batches_after = 0
    for loader, epoch, called_s, got_s, ended_s, samples in records:
        if samples >= 0 and got_s > marks[-1]:
            batches_after += 1
        # The third batch after the replay comes late, and all that follows is delayed by as much.
        if batches_after > 3:
            called_s += late_s
        if batches_after >= 3 and samples != -4.0:
            got_s += late_s
            ended_s += late_s
        moved.append((loader, epoch, called_s, got_s, ended_s, samples))
    assert figures(moved, REPLAY)["replay_left_out"] >= 29


def test_steps_that_end_before_the_queue_is_empty_are_no_rate() -> None:
    """A loop that waited before and does not wait after the replay consumes its queue."""
    loader = SimulatedLoader(0.040, queue=500)
    metrics = watched(loader, 140, 0.020, replay=REPLAY)
    assert metrics["replay_left_out"] == 140 - 108
    assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.040, rel=0.05)
    assert metrics["loss_share"] == pytest.approx(0.5, abs=0.02)


def with_slow_repeated_steps(
    batch_s: float, *, slow_steps: int, slow_step_s: float
) -> Mapping[str, Any]:
    """Return the figures of a loop with steps of 20 ms whose first repeated steps are slower."""
    clock, log = VirtualClock(), MemoryLog()
    replay = Replay(REPLAY, 0, log, clock=clock.now_s)
    loader = SimulatedLoader(batch_s)
    epoch = TimedEpoch(
        lambda: loader.epoch(300, clock), 0, 0, log, replay=replay, clock=clock.now_s
    )
    repeated = 0
    for _ in epoch:
        repeated += replay.is_running
        is_slow = replay.is_running and repeated <= slow_steps
        clock.sleep(slow_step_s if is_slow else 0.020)
    return figures(log.records(), REPLAY)


def test_a_loader_that_fills_its_queues_slows_only_the_steps_that_do_not_count() -> None:
    """The first half of the repeated steps does not count, and is slower here."""
    metrics = with_slow_repeated_steps(0.010, slow_steps=45, slow_step_s=0.030)
    assert metrics["ceiling_samples_per_s"] == pytest.approx(BATCH / 0.020)


def test_repeated_steps_that_are_not_even_give_a_range() -> None:
    """The two parts of the counted steps differ if a queue is still being filled."""
    metrics = with_slow_repeated_steps(0.040, slow_steps=75, slow_step_s=0.025)
    assert metrics["ceiling_samples_per_s_low"] == pytest.approx(BATCH / 0.025)
    assert metrics["ceiling_samples_per_s_high"] == pytest.approx(BATCH / 0.020)
    assert metrics["loss_share_low"] == pytest.approx(1 - 25 / 40, abs=0.02)
    assert metrics["loss_share_high"] == pytest.approx(0.5, abs=0.02)
    assert "loss_share" not in metrics
    assert "replay_steps" in note(metrics, "the ceiling is a range")


def test_a_host_that_is_ahead_of_its_device_does_not_raise_the_ceiling() -> None:
    """The ceiling is right although the host is up to 10 steps of 20 ms ahead of its device."""
    clock, log = VirtualClock(), MemoryLog()
    busy_until_s = 0.0

    def wait(steps_ahead: int = 0) -> None:
        clock.sleep(busy_until_s - steps_ahead * 0.020 - clock.now_s())

    replay = Replay(REPLAY, 0, log, wait=wait, clock=clock.now_s)
    loader = SimulatedLoader(0.040, queue=4)
    epoch = TimedEpoch(
        lambda: loader.epoch(400, clock), 0, 0, log, replay=replay, clock=clock.now_s
    )
    for _ in epoch:
        clock.sleep(0.001)
        busy_until_s = max(busy_until_s, clock.now_s()) + 0.020
        wait(steps_ahead=10)
    metrics = figures(log.records(), REPLAY)
    assert metrics["ceiling_samples_per_s"] == pytest.approx(BATCH / 0.020, rel=0.01)
    assert metrics["loss_share"] == pytest.approx(0.5, abs=0.02)
    # The wait for the device after the replay is no wait for the loader, whose queue is full.
    assert metrics["replay_left_out"] >= 3


def until(stop: int, replay: ReplaySettings = REPLAY) -> list[Record]:
    """Return the log of a loop that is left after this number of steps."""
    clock, log = VirtualClock(), MemoryLog()
    loader = SimulatedLoader(0.040)
    repeated = Replay(replay, 0, log, clock=clock.now_s)
    epoch = TimedEpoch(
        lambda: loader.epoch(400, clock), 0, 0, log, replay=repeated, clock=clock.now_s
    )
    for step, _ in enumerate(epoch, start=1):
        clock.sleep(0.020)
        if step == stop:
            break
    return log.records()


@pytest.mark.parametrize("repeated", [1, 30, 60, 90])
def test_a_loop_that_ends_during_the_replay_has_no_ceiling(repeated: int) -> None:
    """Other figures are those of the steps before, and a note says how far the replay came."""
    metrics = figures(until(108 + repeated + 1), REPLAY)
    assert not (LOSS | CEILING) & set(metrics)
    assert metrics["replay_steps"] == repeated
    assert metrics["steps"] == 107
    assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.040, rel=0.05)
    assert note(metrics, f"the loop ended during the replay, after {repeated} of 100")


def test_epochs_after_one_that_was_left_during_the_replay_count() -> None:
    """The replay ends with its epoch, and later epochs count as usual."""
    clock, log = VirtualClock(), MemoryLog()
    loader = SimulatedLoader(0.040, queue=4)
    replay = Replay(REPLAY, 0, log, clock=clock.now_s)
    for number in range(4):
        request = partial(loader.epoch, 200, clock)
        epoch = TimedEpoch(request, 0, number, log, replay=replay, clock=clock.now_s)
        for step, _ in enumerate(epoch, start=1):
            clock.sleep(0.020)
            if number == 0 and step == 140:
                break
    metrics = figures(log.records(), REPLAY)
    assert metrics["steps"] == 107 + 600
    assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.040, rel=0.05)


def test_a_loop_that_ends_before_the_replay_says_when_it_begins() -> None:
    """An epoch has 100 batches, and the replay would begin after 108."""
    metrics = watched(SimulatedLoader(0.040), 100, 0.020, replay=REPLAY)
    assert not (LOSS | CEILING) & set(metrics)
    assert "replay_steps" not in metrics
    assert "it begins after 108 batches" in note(metrics, "the replay did not take place")


def test_without_samples_there_is_no_ceiling() -> None:
    """The number of samples in a batch of an unknown kind is unknown."""
    clock, log = VirtualClock(), MemoryLog()
    replay = Replay(REPLAY, 0, log, clock=clock.now_s)
    for _ in TimedEpoch(lambda: iter([3.5] * 300), 0, 0, log, replay=replay, clock=clock.now_s):
        clock.sleep(0.02)
    assert not (LOSS | CEILING) & set(figures(log.records(), REPLAY))


def test_whole_passes_over_other_loaders_are_not_part_of_the_ceiling() -> None:
    """A validation of 5 s during the replay does not count."""
    records = recorded(SimulatedLoader(0.040), 300, 0.020, replay=REPLAY)
    repeated = [record for record in records if record[2] > 0 and record[-1] >= 0]
    at_s = sorted(record[2] for record in repeated)[108 + 80] + 0.001
    validation: list[Record] = [
        (1, 0, at_s, at_s + 1, at_s + 2, 4.0),
        (1, 0, at_s + 5, at_s + 5, at_s + 5, -1.0),
    ]
    moved: list[Record] = []
    for loader, epoch, called_s, got_s, ended_s, samples in records:
        # A mark of the replay has a moment and two numbers of steps, which are not moved.
        moments = 1 if samples == -4.0 else 3
        fields = [called_s, got_s, ended_s]
        for index in range(moments):
            if fields[index] > at_s:
                fields[index] += 5
        moved.append((loader, epoch, *fields, samples))
    metrics = figures([*moved, *validation], REPLAY)
    assert metrics["ceiling_samples_per_s"] == pytest.approx(BATCH / 0.020, rel=0.01)


def test_the_idle_time_of_a_gpu_during_the_replay_is_left_out() -> None:
    """Only the idle time of the loader's own batches counts."""
    records = recorded(SimulatedLoader(0.040, queue=2), 300, 0.020, replay=REPLAY)
    idle = [(0, 0, record[2], 0.015, 0.0, DEVICE_IDLE) for record in records if record[-1] >= 0]
    loop_outcome = outcome_of_log([*records, *idle], REPLAY)
    steps = loop_outcome.metrics["steps"]
    share = steps * 0.015 / loop_outcome.metrics["seconds"]
    assert loop_outcome.metrics["device_wait_share"] == pytest.approx(share, rel=0.01)


def test_readings_of_the_replay_do_not_say_how_busy_the_loop_was() -> None:
    """CPUs that are idle while no batch is made do not mean too few workers."""
    records = recorded(SimulatedLoader(0.040, queue=2), 300, 0.020, replay=REPLAY)
    marks = [record[2] for record in records if record[-1] == -4.0]
    times = [0.5, marks[0] + 0.1, marks[-1] - 0.1, marks[-1] + 3.0]
    columns: dict[str, list[float | None]] = {
        "time_s": [*times],
        "cpu.user_share": [0.9, 0.1, 0.1, 0.9],
        "cpu.system_share": [0.0] * 4,
        "cpu.steal_share": [0.0] * 4,
    }
    loop_outcome = outcome_of_log(records, REPLAY, Samples(columns, 0.0, ()))
    assert loop_outcome.metrics["cpu_busy_share"] == pytest.approx(0.9)
    assert len(loop_outcome.samples["time_s"]) == 4


LOADERS = st.builds(
    SimulatedLoader,
    batch_s=st.floats(0.002, 0.2),
    queue=st.sampled_from([16, 32, 64]),
    workers=st.sampled_from([1, 2, 8]),
    full=st.sampled_from([0, 0, 16]),
    ahead=st.sampled_from([1, 1, 16]),
    handover_s=st.sampled_from([0.0, 0.001]),
)


@settings(max_examples=25, deadline=None)
@given(LOADERS, st.floats(0.01, 0.2), st.sampled_from([140, 300, 900]))
def test_one_loss_is_right_and_a_range_holds_the_truth(
    loader: SimulatedLoader, step_s: float, batches: int
) -> None:
    """The loss is right within 0.05, whatever was fetched ahead or during the replay."""
    full, ahead = min(loader.full, loader.queue), min(loader.ahead, loader.queue)
    loader = replace(loader, full=full, ahead=ahead)
    truth = 1 - loader.rate(step_s) / (BATCH / step_s)
    metrics = watched(loader, batches, step_s, replay=REPLAY)
    assert metrics["ceiling_samples_per_s"] == pytest.approx(BATCH / step_s)
    if "loss_share" in metrics:
        assert metrics["loss_share"] == pytest.approx(truth, abs=0.05)
    elif "loss_share_low" in metrics:
        assert metrics["loss_share_low"] <= truth + 0.01
        assert metrics["loss_share_high"] >= truth - 0.01
