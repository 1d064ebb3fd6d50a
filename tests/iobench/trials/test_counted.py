"""The rules by which the steps of a loop count."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.reading.read_counter import ReadTotals
from iobench.errors import TrialFailed
from iobench.loaders.protocol import ReadPattern
from iobench.trials.samples_in_flight import SampleFlow, sample_flow
from iobench.trials.window import MAX_IMBALANCE, MIN_ROUNDS, Minimum
from iobench.trials.window_rules import BoundedWindow, SteadyWindow


@pytest.mark.parametrize(
    ("pattern", "workers", "round_samples", "max_in_flight"),
    [
        # For loaders that read sample by sample, a round is a batch of each worker.
        (ReadPattern(4), 4, 40, 4 * 2 + 4 * 10 * 3),
        (ReadPattern(1), 0, 10, 2 + 10 * 3),
        # If windows are larger than batches, a round is what all workers request at once.
        (ReadPattern(2, 64, 3), 2, 2 * 64 * 3, 2 * 64 * 4 + 2 * 10 * 3),
        (ReadPattern(2, 4, 2, 500), 2, 20, 2 * 4 * 3 + 2 * 500 + 2 * 10 * 3),
    ],
)
def test_a_round_is_the_larger_of_batches_and_windows(
    pattern: ReadPattern, workers: int, round_samples: int, max_in_flight: int
) -> None:
    """Windows, shuffle buffers and finished batches of each worker are in flight."""
    flow = sample_flow(pattern, batch_size=10, workers=workers, prefetch=2)
    assert (flow.round_samples, flow.max_in_flight) == (round_samples, max_in_flight)
    assert flow.min_epoch_samples == MIN_ROUNDS * round_samples + 2 * max_in_flight


class Loop:
    """A loop whose steps have one sample and take one second.

    ``ahead`` samples have arrived when the first batch comes, and ``arriving`` arrive in each step.
    """

    def __init__(self, ahead: float = 0.0, arriving: float = 1.0) -> None:
        self._arriving = arriving
        self.steps = 0
        self._arrived = ahead + 1_000

    def arrived(self) -> ReadTotals:
        """Return what has arrived, with the samples of an earlier epoch."""
        return ReadTotals(int(self._arrived), int(self._arrived) * 40)

    def run(self, rule: SteadyWindow | BoundedWindow, most: int = 10_000) -> int:
        """Take steps until the rule stops the loop; return their number."""
        rule.first_batch()
        for step in range(1, most + 1):
            self._arrived += self._arriving
            due = step >= rule.check_at_samples or step >= rule.check_at_s
            if due and rule.check(step, step, float(step)):
                return step
        return most


def steady(
    loop: Loop, least: Minimum | None = None, give_up_s: float = math.inf, *, ahead: int = 0
) -> SteadyWindow:
    """Return the rule for a loop with rounds of 5 samples."""
    earlier = [ReadTotals(1_000, 40_000)]
    rule = SteadyWindow(
        lambda: earlier.pop() if earlier else loop.arrived(),
        SampleFlow(5, 20),
        least or Minimum(),
        give_up_s,
    )
    rule.begin(0.0)
    return rule


@given(st.integers(0, 300), st.integers(1, 500))
def test_counting_begins_when_what_had_arrived_is_consumed(ahead: int, steps: int) -> None:
    """It ends with a whole round, after 20 rounds and the least number of steps."""
    loop = Loop(ahead)
    rule = steady(loop, Minimum(steps))
    loop.run(rule)
    window = rule.window
    assert window is not None
    assert window.start.steps == max(1, ahead)
    assert window.steps >= max(steps, MIN_ROUNDS * 5)
    assert window.steps % 5 == 0
    assert window.steps < max(steps, MIN_ROUNDS * 5) + 5
    assert window.arrived == ReadTotals(window.samples, 40 * window.samples)


def test_a_loop_that_only_empties_memory_has_no_rate() -> None:
    """If less arrives than is consumed, the trial goes on until it fails."""
    loop = Loop(ahead=50, arriving=1 - 2 * MAX_IMBALANCE)
    rule = steady(loop, give_up_s=500.0)
    with pytest.raises(TrialFailed, match="was not steady after 500 s and 500 samples"):
        loop.run(rule)
    assert rule.window is None


def test_a_better_balance_is_waited_for() -> None:
    """A difference of 4 % is accepted after ten more rounds."""
    loop = Loop(arriving=1.04)
    rule = steady(loop)
    assert loop.run(rule) == 1 + 5 * (MIN_ROUNDS + 10)
    even = Loop(arriving=1.005)
    assert even.run(steady(even)) == 1 + 5 * MIN_ROUNDS


def test_a_rate_that_is_known_is_kept_when_time_is_up() -> None:
    """The rate is kept although more steps were requested."""
    loop = Loop()
    rule = steady(loop, Minimum(steps=5_000), give_up_s=300.0)
    assert loop.run(rule) == 300
    assert rule.window is not None
    assert rule.window.steps == 295


def bounded(flow: SampleFlow, give_up_s: float = math.inf, steps: int = 1) -> BoundedWindow:
    """Return the rule for a loader that does not count its samples."""
    rule = BoundedWindow(flow, Minimum(steps), give_up_s)
    rule.begin(0.0)
    return rule


class TestBounds:
    """Loaders that do not count their samples."""

    def run(self, rule: BoundedWindow, start_s: float, full: int) -> int:
        """Run a loop whose first batch comes after ``start_s``; return the number of its steps.

        The ``full`` batches after the first one take no time.
        """
        rule.first_batch()
        for step in range(1, 100_000):
            now_s = start_s + max(0, step - full)
            due = step >= rule.check_at_samples or now_s >= rule.check_at_s
            if due and rule.check(step, step, now_s):
                return step
        raise AssertionError("the loop did not end")

    @given(st.floats(0, 100), st.integers(0, 40))
    def test_one_rate_where_both_agree(self, start_s: float, full: int) -> None:
        """The true rate of 1 sample/s lies between the bounds, which are at most 5 % apart."""
        rule = bounded(SampleFlow(10, 40))
        self.run(rule, start_s, full)
        assert rule.agree
        assert rule.bounds is not None
        low, high = rule.bounds
        assert high <= (1 + MAX_IMBALANCE) * low
        assert low - 1e-9 <= 1.0 <= high + 1e-9
        assert rule.window is not None
        assert rule.window.start.samples == 40
        assert rule.window.samples >= MIN_ROUNDS * 10

    def test_a_range_where_time_is_up_before(self) -> None:
        """The lower bound contains the start of 100 s, and the upper one does not."""
        rule = bounded(SampleFlow(10, 40), give_up_s=400.0)
        self.run(rule, start_s=100.0, full=0)
        assert not rule.agree
        assert rule.bounds == pytest.approx((0.75, 1.0))

    @pytest.mark.parametrize("give_up_s", [20.0, 100.0, 239.0])
    def test_a_short_window_gives_no_bound(self, give_up_s: float) -> None:
        """The reason says how long 20 rounds take after those that do not count."""
        rule = bounded(SampleFlow(10, 40), give_up_s=give_up_s)
        with pytest.raises(TrialFailed) as caught:
            self.run(rule, start_s=0.0, full=0)
        reason = str(caught.value)
        assert "the first 40 samples do not count" in reason
        assert "and 20 rounds of 10 samples need about 240 s" in reason
        assert "set trial_timeout_s to 300 or more, or use fewer workers" in reason


def test_counting_waits_until_windows_no_longer_grow() -> None:
    """Samples that arrived before the last growth are consumed first; rounds have the real size."""
    arrived = ReadTotals()
    flow = sample_flow(ReadPattern(1, 400, 2), batch_size=10, workers=0, prefetch=0)
    rule = SteadyWindow(lambda: arrived, flow, Minimum())
    rule.begin(0.0)
    arrived = ReadTotals(10, 0, 10)
    rule.first_batch()
    arrived = ReadTotals(70, 0, 40)
    assert not rule.check(1, 10, 1.0)
    assert rule.check_at_samples == 70
    arrived = ReadTotals(130, 0, 40)
    assert not rule.check(7, 70, 7.0)
    assert rule.check_at_samples == 70 + MIN_ROUNDS * 2 * 40
    consumed = 70 + MIN_ROUNDS * 2 * 40
    arrived = ReadTotals(consumed + 60, 0, 40)
    assert rule.check(consumed // 10, consumed, consumed / 10)
    assert rule.window is not None
    assert rule.window.start.samples == 70
