"""PURE. The rules that decide which steps of a loop count, so that the rate is a steady rate.

A loop has buffers: batches that workers prepared in advance, windows that readers requested, and
shuffle buffers. Samples in the buffers were fetched and decoded before time began to count. The
rate of the first steps is therefore the rate of taking samples from memory, not the rate of the
loader. There are three rules:

- **steady**: counting begins when the loop has consumed all samples that had arrived before the
  first batch. If the windows of the reader have grown meanwhile, the loop first consumes all
  samples that have arrived by then, until the number of samples in flight no longer grows. The
  counted steps cover whole rounds, at least ``MIN_ROUNDS``. In these steps, the numbers of arrived
  and of consumed samples differ by at most ``MAX_IMBALANCE``.
- **epochs**: at least ``MIN_EPOCHS`` whole epochs count, with their starts. No sample is in flight
  before an epoch or after it. This rule is for data that are too short for the other rules, or if
  the config requests whole epochs.
- **bounds**: this rule is for a loader that does not count its reads, and whose epoch is long. The
  rate of all samples since the request is a lower bound of the steady rate. The rate of a later
  window is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol

from dataprep.reading.read_counter import ReadTotals
from iobench.errors import TrialFailed
from iobench.results.trial import GIVE_UP_SHARE
from iobench.trials.samples_in_flight import SampleFlow
from iobench.trials.window import (
    ENOUGH_STEPS,
    GOOD_IMBALANCE,
    MAX_EXTRA_ROUNDS,
    MAX_IMBALANCE,
    MIN_ROUNDS,
    Mark,
    Minimum,
    Window,
)

RateRule = Literal["steady", "epochs", "bounds"]

_CHECKS_PER_WINDOW = 50
"""The bounds are computed again when the later window has grown by 1/50 of its length."""


def choose_rule(
    flow: SampleFlow, *, counts_reads: bool, epoch_samples: int | None, by_epochs: bool
) -> RateRule:
    """The rule with which a trial begins.

    Args:
        flow: how samples flow through the loader.
        counts_reads: whether the loader counts what arrives from storage.
        epoch_samples: the samples of an epoch of one process; None if epochs have no end.
        by_epochs: whether the config requests whole epochs.
    """
    if by_epochs:
        return "epochs"
    if not counts_reads:
        return "bounds"
    is_long = epoch_samples is None or epoch_samples >= flow.min_epoch_samples
    return "steady" if is_long else "epochs"


class WindowRule(Protocol):
    """Decides, while an epoch runs, which of its steps count.

    The loop calls ``check`` after the steps that ``check_at_samples`` and ``check_at_s`` determine.
    Before each call it waits until the device is done.

    Attributes:
        check_at_samples: the number of consumed samples at which the loop calls ``check``.
        check_at_s: the moment at which the loop also calls ``check``.
    """

    check_at_samples: float
    check_at_s: float

    def begin(self, now_s: float) -> None:
        """Note that the epoch was requested at this moment."""

    def first_batch(self) -> None:
        """Note that the first batch of the epoch has arrived. It is not consumed yet."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Decide what to do after this many steps and samples. Returns whether the loop must stop.

        Raises:
            TrialFailed: the time limit is near, and no rate can be given.
        """

    @property
    def window(self) -> Window | None:
        """The steps that count; None if the rule has accepted none."""


class WholeEpoch:
    """Every step counts, if the epoch is read to its end.

    Args:
        give_up_s: the moment when the loop must end.
        failure: makes the reason of the failure if the loop must end. Its arguments are the samples
            of this epoch, and the moment. If it is None, the loop stops without a failure, and the
            epoch does not count.
    """

    def __init__(
        self, give_up_s: float = math.inf, failure: Callable[[int, float], str] | None = None
    ) -> None:
        self.check_at_samples = math.inf
        self.check_at_s = give_up_s
        self._failure = failure

    def begin(self, now_s: float) -> None:
        """Do nothing: the window is the whole epoch."""

    def first_batch(self) -> None:
        """Do nothing: the window is the whole epoch."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Stop the loop, or fail. This is only called when the time limit is near."""
        if self._failure is not None:
            raise TrialFailed(self._failure(samples, now_s))
        return True

    @property
    def window(self) -> Window | None:
        """Always None, since the loop itself knows the first and the last step of the epoch."""
        return None


class FixedSteps:
    """Count a fixed number of steps. This rule is for data on the device, and for ranks.

    Args:
        left_out: the number of steps before the first step that counts.
        steps: the number of steps that count.
        batch_size: the samples of a step.
        read_totals: returns what the loader has read so far; None if it does not count its reads.
    """

    def __init__(
        self,
        left_out: int,
        steps: int,
        batch_size: int,
        read_totals: Callable[[], ReadTotals] | None = None,
    ) -> None:
        self.check_at_samples: float = left_out * batch_size
        self.check_at_s = math.inf
        self._last_samples = (left_out + steps) * batch_size
        self._read_totals = read_totals
        self._start: Mark | None = None
        self._end: Mark | None = None

    def begin(self, now_s: float) -> None:
        """Begin to count at the request if no step is left out."""
        if self.check_at_samples <= 0:
            self._start = self._mark(0, 0, now_s)
            self.check_at_samples = self._last_samples

    def first_batch(self) -> None:
        """Do nothing: the steps that count are fixed."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin to count, or stop the loop."""
        mark = self._mark(steps, samples, now_s)
        if self._start is None:
            self._start = mark
            self.check_at_samples = self._last_samples
            return False
        self._end = mark
        return True

    def _mark(self, steps: int, samples: int, now_s: float) -> Mark:
        arrived = self._read_totals() if self._read_totals is not None else None
        return Mark(steps, samples, now_s, arrived)

    @property
    def window(self) -> Window | None:
        """The steps that count; None if the epoch ended before the last of them."""
        if self._start is None or self._end is None:
            return None
        return Window(self._start, self._end)


class SteadyWindow:
    """Count whole rounds, after the loop has consumed all samples that had arrived before.

    Args:
        read_totals: returns what the loader has read so far.
        flow: how samples flow through the loader.
        minimum: the minimum length of the window.
        give_up_s: the moment when the loop must end.
        is_rate_known: whether earlier epochs have given a rate. The loop then stops at
            ``give_up_s``; otherwise it fails.
    """

    def __init__(
        self,
        read_totals: Callable[[], ReadTotals],
        flow: SampleFlow,
        minimum: Minimum,
        give_up_s: float = math.inf,
        *,
        is_rate_known: bool = False,
    ) -> None:
        self._read_totals, self._flow, self._minimum = read_totals, flow, minimum
        self._is_rate_known = is_rate_known
        self.check_at_samples = math.inf
        self.check_at_s = self._give_up_s = give_up_s
        self._requested_s = 0.0
        self._earlier_epochs = ReadTotals()
        self._reader_window_samples = 0
        self._round_samples = flow.round_samples
        self._start: Mark | None = None
        self._accepted: Window | None = None
        self._rounds_at_minimum: int | None = None

    def begin(self, now_s: float) -> None:
        """Note how much has arrived in earlier epochs."""
        self._requested_s = now_s
        self._earlier_epochs = self._read_totals()

    def first_batch(self) -> None:
        """Begin to count when the loop has consumed all samples that have arrived by now."""
        self._wait_until_consumed(self._read_totals())

    def _wait_until_consumed(self, arrived: ReadTotals) -> None:
        """Check again when the loop has consumed all samples that have arrived by now.

        Counting begins at that moment if the windows of the reader have not grown by then.
        """
        self.check_at_samples = arrived.since(self._earlier_epochs).samples
        self._reader_window_samples = arrived.window_samples
        self._round_samples = self._flow.round_samples_at(arrived.window_samples)
        self._start = None

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin to count, accept the rounds so far, or continue for one more round."""
        arrived = self._read_totals()
        mark = Mark(steps, samples, now_s, arrived)
        is_late = now_s >= self._give_up_s
        if self._accepted is None and arrived.window_samples > self._reader_window_samples:
            # The windows have grown. While the number of samples in flight grows, the loop consumes
            # fewer samples than the reader fetches.
            self._wait_until_consumed(arrived)
            if is_late:
                self._require_known_rate(samples, now_s)
            return is_late
        if self._start is None:
            if is_late:
                self._require_known_rate(samples, now_s)
                return True
            self._start = mark
            self.check_at_samples = samples + MIN_ROUNDS * self._round_samples
            return False
        window = Window(self._start, mark)
        rounds = window.samples // self._round_samples
        if samples >= self.check_at_samples and self._is_done_after(rounds, window):
            return True
        if is_late:
            if self._accepted is None:
                self._require_known_rate(samples, now_s)
            return True
        next_round = max(MIN_ROUNDS, rounds + 1)
        self.check_at_samples = self._start.samples + next_round * self._round_samples
        return False

    def _require_known_rate(self, samples: int, now_s: float) -> None:
        """Fail unless earlier epochs have given a rate."""
        if not self._is_rate_known:
            raise TrialFailed(self._failure(samples, now_s))

    def _is_done_after(self, rounds: int, window: Window) -> bool:
        """Whether the loop can stop after this number of whole rounds.

        ``window`` is accepted if its imbalance is small enough. Rounds are added until the accepted
        window is long enough and well balanced, or until ``MAX_EXTRA_ROUNDS`` were added.
        """
        best_imbalance = MAX_IMBALANCE
        if self._accepted is not None:
            best_imbalance = self._accepted.imbalance
        # If two windows are both well balanced, the longer one is better.
        if window.imbalance <= max(best_imbalance, GOOD_IMBALANCE):
            self._accepted = window
        if self._accepted is None or not self._minimum.is_reached([self._accepted]):
            return False
        if self._rounds_at_minimum is None:
            self._rounds_at_minimum = rounds
        extra_rounds = rounds - self._rounds_at_minimum
        return self._accepted.imbalance <= GOOD_IMBALANCE or extra_rounds >= MAX_EXTRA_ROUNDS

    @property
    def window(self) -> Window | None:
        """The whole rounds that were accepted last."""
        return self._accepted

    def _failure(self, samples: int, now_s: float) -> str:
        """The reason of the failure, with the time limit that would be long enough."""
        spent_s = now_s - self._requested_s
        round_samples = self._round_samples
        missing_samples = max(0, self.check_at_samples - samples)
        if 0 < self._reader_window_samples < self._flow.window_samples:
            # Windows may still grow. Counting begins when they no longer grow.
            round_samples = self._flow.round_samples
            missing_samples = self._flow.max_in_flight + MIN_ROUNDS * round_samples
        elif self._start is None:
            missing_samples += MIN_ROUNDS * round_samples
        # Rounds are added while arrivals and consumption are not balanced.
        missing_samples += MAX_EXTRA_ROUNDS * round_samples
        needed_samples = samples + missing_samples
        needed_s = spent_s * needed_samples / max(samples, 1)
        return (
            f"the rate was not steady after {spent_s:,.0f} s and {samples:,} samples: "
            f"{MIN_ROUNDS} to {MIN_ROUNDS + MAX_EXTRA_ROUNDS} rounds of {round_samples:,} samples "
            f"need up to {needed_samples:,.0f} samples, {needed_s:,.0f} s; set trial_timeout_s to "
            f"{math.ceil(needed_s / GIVE_UP_SHARE):,} or more, or use fewer workers or smaller "
            "batches"
        )


class BoundedWindow:
    """Stop when a lower and an upper bound agree. For loaders that do not count their reads.

    The lower bound is the rate since the epoch was requested. The upper bound is the rate of the
    *later window*. This window begins after all batches that may have been ready when the first
    batch arrived.

    Args:
        flow: how samples flow through the loader.
        minimum: the minimum length of the later window.
        give_up_s: the moment when the loop must end.
    """

    def __init__(self, flow: SampleFlow, minimum: Minimum, give_up_s: float = math.inf) -> None:
        self._flow, self._minimum = flow, minimum
        self.check_at_samples: float = flow.max_in_flight
        self.check_at_s = self._give_up_s = give_up_s
        self._requested: Mark | None = None
        self._start: Mark | None = None
        self._later_window: Window | None = None
        self.bounds: tuple[float, float] | None = None
        """The lower and the upper bound of the rate in samples/s, at the last check."""

    def begin(self, now_s: float) -> None:
        """Note the moment of the request."""
        self._requested = Mark(0, 0, now_s)

    def first_batch(self) -> None:
        """Do nothing: the loader does not count what has arrived."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin the later window, or compare both bounds."""
        mark = Mark(steps, samples, now_s)
        is_late = now_s >= self._give_up_s
        if self._start is None:
            if is_late:
                raise TrialFailed(self._failure(samples, now_s))
            self._start = mark
            self.check_at_samples = samples + self._min_samples
            return False
        assert self._requested is not None  # noqa: S101  begin is called first
        since_request = Window(self._requested, mark)
        later_window = Window(self._start, mark)
        if later_window.samples < self._min_samples:
            if is_late:
                raise TrialFailed(self._failure(samples, now_s))
            return False
        self._later_window = later_window
        if later_window.seconds > 0:
            since_request_per_s = since_request.samples / since_request.seconds
            later_per_s = later_window.samples / later_window.seconds
            self.bounds = (
                min(since_request_per_s, later_per_s),
                max(since_request_per_s, later_per_s),
            )
        # A check takes time, which must be negligible also in a loop whose steps take no time.
        pause_samples = max(self._flow.round_samples, later_window.samples // _CHECKS_PER_WINDOW)
        self.check_at_samples = samples + pause_samples
        # Without the second condition, a loop in which no time passes would not end.
        is_known = self.agree or later_window.steps >= ENOUGH_STEPS
        return is_late or (is_known and self._minimum.is_reached([later_window]))

    @property
    def _min_samples(self) -> int:
        """The smallest number of samples in the later window."""
        return MIN_ROUNDS * self._flow.round_samples

    def _failure(self, samples: int, now_s: float) -> str:
        """The reason of the failure, with the time limit that would be long enough."""
        assert self._requested is not None  # noqa: S101  begin is called first
        spent_s = now_s - self._requested.time_s
        needed_samples = self._flow.max_in_flight + self._min_samples
        needed_s = spent_s * needed_samples / max(samples, 1)
        return (
            f"the rate was not known after {spent_s:,.0f} s and {samples:,} samples: the first "
            f"{self._flow.max_in_flight:,} samples do not count, and {MIN_ROUNDS} rounds of "
            f"{self._flow.round_samples:,} samples need about {needed_s:,.0f} s; set "
            f"trial_timeout_s to {math.ceil(needed_s / GIVE_UP_SHARE):,} or more, or use fewer "
            "workers or smaller batches"
        )

    @property
    def agree(self) -> bool:
        """Whether the upper bound is at most ``MAX_IMBALANCE`` above the lower bound."""
        if self.bounds is None:
            return False
        low, high = self.bounds
        return high <= (1 + MAX_IMBALANCE) * low

    @property
    def window(self) -> Window | None:
        """The later window at the last check."""
        return self._later_window
