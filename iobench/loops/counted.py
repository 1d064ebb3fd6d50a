"""PURE. Which steps of a loop count: the rules for a rate that is a steady state.

A loop has buffers: batches that workers made ahead, windows that readers requested, shuffle
buffers. What they held when time began to count was fetched and decoded before, so that a rate over
a few steps says how fast memory is emptied. There are three ways to a rate:

- **steady**: counting begins when everything that had arrived before the first batch has been
  consumed. Where the reader's windows have grown meanwhile, it begins when everything that has
  arrived by then is consumed, so that what is in flight no longer grows. It covers whole rounds, at
  least ``LEAST_ROUNDS``; a round is what all workers hand over or request at once. Samples that
  arrived and samples that were consumed agree within ``BALANCED``.
- **epochs**: at least ``LEAST_EPOCHS`` whole epochs with their starts. Nothing is in flight before
  an epoch or after it. This is the rule for data that are too short for the first one, and for
  loaders that do not count what arrives.
- **bounds**: a loader that does not count and whose epoch is long. The samples since the first
  request give a lower bound of the rate, the later window gives an upper one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from dataprep.reading.read_counter import ReadTotals
from iobench.errors import TrialFailed
from iobench.loaders.protocol import ReadPattern
from iobench.trial import GIVE_UP_SHARE

Rule = Literal["steady", "epochs", "bounds"]

LEAST_ROUNDS = 20
"""Rounds that a steady rate covers at least: a partial round shifts it by at most 5 %."""
ENOUGH_STEPS = 1_000_000
"""Steps after which a loop may end before its least time: each step takes 24 bytes of memory."""
LEAST_EPOCHS = 3
"""Whole epochs that a rate covers at least where it includes the starts of epochs."""
BALANCED = 0.05
"""Largest difference of arrived and consumed samples, as a share of the consumed ones."""
EVEN = 0.01
"""A difference with which a rate is taken at once. Else more rounds may bring a smaller one."""
ROUNDS_TO_WAIT = 10
"""Most rounds that are added in the hope of a smaller difference."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment at the end of a step.

    Attributes:
        steps, samples: steps done and samples consumed since the epoch was requested.
        time_s: the moment, on the loop's clock.
        arrived: what the loader had read by then; None if it does not count.
    """

    steps: int
    samples: int
    time_s: float
    arrived: ReadTotals | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of an epoch that counts."""

    start: Mark
    end: Mark

    @property
    def steps(self) -> int:
        """Steps that count."""
        return self.end.steps - self.start.steps

    @property
    def later_steps(self) -> int:
        """Steps that count and do not begin an epoch: their waits and lengths have quantiles.

        1 if the only step begins an epoch.
        """
        begins_epoch = self.start.steps == 0
        return max(1, self.steps - 1) if begins_epoch else self.steps

    @property
    def samples(self) -> int:
        """Samples that were consumed while time counted."""
        return self.end.samples - self.start.samples

    @property
    def seconds(self) -> float:
        """Seconds that count."""
        return self.end.time_s - self.start.time_s

    @property
    def arrived(self) -> ReadTotals | None:
        """Samples and bytes that arrived while time counted; None if they are not counted."""
        if self.start.arrived is None or self.end.arrived is None:
            return None
        return self.end.arrived.since(self.start.arrived)

    @property
    def imbalance(self) -> float:
        """Difference of arrived and consumed samples, as a share of the consumed ones.

        0 if they are not counted.
        """
        if self.arrived is None or not self.samples:
            return 0.0
        return abs(self.arrived.samples / self.samples - 1)


@dataclass(frozen=True, slots=True)
class Least:
    """What the counted steps must reach at least, beside what the rule itself needs."""

    steps: int = 1
    seconds: float = 0.0
    epochs: int = LEAST_EPOCHS

    def less(self, window: Window) -> Least:
        """What is still missing after ``window``."""
        return replace(
            self,
            steps=max(1, self.steps - window.later_steps),
            seconds=max(0.0, self.seconds - window.seconds),
        )

    def is_reached(self, windows: list[Window]) -> bool:
        """Whether these windows together have enough steps and seconds.

        The first step of an epoch is left out, as in the quantiles of waits: the default of 100
        steps gives a 90th percentile also where whole epochs count.
        """
        steps = sum(window.later_steps for window in windows)
        seconds = sum(window.seconds for window in windows)
        is_long = seconds >= self.seconds or steps >= ENOUGH_STEPS
        return steps >= self.steps and is_long


@dataclass(frozen=True, slots=True)
class Flow:
    """How samples flow through a loader.

    Attributes:
        round_samples: samples of one round: of all workers, one batch each or the windows that
            they request at once, whichever is larger.
            It is an upper bound where windows grow.
        most_in_flight: the most samples that can be between storage and the loop.
        batch_samples: samples of one batch of each worker.
        windows: windows that all workers request at once.
        window_samples: samples of the largest window.
    """

    round_samples: int
    most_in_flight: int
    batch_samples: int = 0
    windows: int = 0
    window_samples: int = 0

    def round_of(self, window_samples: int) -> int:
        """Samples of one round while windows have ``window_samples``; 0 if that is unknown."""
        if not window_samples:
            return self.round_samples
        return min(self.round_samples, max(self.batch_samples, self.windows * window_samples))

    @property
    def least_epoch(self) -> int:
        """Samples that an epoch must have for a steady rate.

        The rounds that count, and what is in flight before them and after them.
        """
        return LEAST_ROUNDS * self.round_samples + 2 * self.most_in_flight


def flow_of(pattern: ReadPattern, *, batch_size: int, workers: int, prefetch: int) -> Flow:
    """The flow through a loader that reads with ``pattern`` and makes batches in ``workers``."""
    batches = max(1, workers) * batch_size
    windows = pattern.streams * pattern.windows_at_once
    # One more window is being consumed, and each worker may work on one more batch.
    read_ahead = pattern.streams * (pattern.windows_at_once + 1) * pattern.window_samples
    kept_back = pattern.streams * pattern.buffer_samples
    return Flow(
        round_samples=max(batches, windows * pattern.window_samples),
        most_in_flight=read_ahead + kept_back + batches * (prefetch + 1),
        batch_samples=batches,
        windows=windows,
        window_samples=pattern.window_samples,
    )


def rule_of(flow: Flow, *, counts_reads: bool, epoch_samples: int | None, by_epochs: bool) -> Rule:
    """The rule that a trial begins with.

    Args:
        flow: how samples flow through the loader.
        counts_reads: whether the loader counts what arrives.
        epoch_samples: samples of an epoch of one process; None if there is no end.
        by_epochs: whether whole epochs were asked for.
    """
    if by_epochs:
        return "epochs"
    if not counts_reads:
        return "bounds"
    is_long = epoch_samples is None or epoch_samples >= flow.least_epoch
    return "steady" if is_long else "epochs"


class WindowRule(Protocol):
    """Decides while an epoch runs which of its steps count.

    ``look_at_samples`` and ``look_at_s`` say when the loop must call ``look`` next: when so many
    samples have been consumed, or at that moment. The loop waits for the device before each call.
    """

    look_at_samples: float
    look_at_s: float

    def begin(self, now_s: float) -> None:
        """The epoch was requested now."""

    def first_batch(self) -> None:
        """The first batch of the epoch has come, and was not consumed yet."""

    def look(self, steps: int, samples: int, now_s: float) -> bool:
        """So many steps and samples are done. Returns whether the loop must stop.

        Raises:
            TrialFailed: time is up, and no rate can be given.
        """

    @property
    def window(self) -> Window | None:
        """The steps that count; None if the rule found none that it accepts."""


class WholeEpoch:
    """Every step counts, if the epoch is read to its end.

    ``late`` gives the reason of the failure, from the samples of this epoch and the moment, if time
    is up within the epoch. Without it the loop then stops, and the epoch is left out.
    """

    def __init__(
        self, give_up_s: float = math.inf, late: Callable[[int, float], str] | None = None
    ) -> None:
        self.look_at_samples = math.inf
        self.look_at_s = give_up_s
        self._late = late

    def begin(self, now_s: float) -> None:
        """Nothing to remember."""

    def first_batch(self) -> None:
        """Nothing to remember."""

    def look(self, steps: int, samples: int, now_s: float) -> bool:
        """Time is up."""
        if self._late is not None:
            raise TrialFailed(self._late(samples, now_s))
        return True

    @property
    def window(self) -> Window | None:
        """None: the loop itself knows the whole epoch."""
        return None


class FixedSteps:
    """Count ``steps`` after the first ``left_out``: data that are on the device, or ranks."""

    def __init__(
        self,
        left_out: int,
        steps: int,
        batch_size: int,
        arrived: Callable[[], ReadTotals] | None = None,
    ) -> None:
        self.look_at_samples: float = left_out * batch_size
        self.look_at_s = math.inf
        self._last_samples = (left_out + steps) * batch_size
        self._arrived = arrived
        self._start: Mark | None = None
        self._end: Mark | None = None

    def begin(self, now_s: float) -> None:
        """Count from the request if no step is left out."""
        if self.look_at_samples <= 0:
            self._start = self._mark(0, 0, now_s)
            self.look_at_samples = self._last_samples

    def first_batch(self) -> None:
        """Nothing to remember."""

    def look(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin to count, or stop."""
        mark = self._mark(steps, samples, now_s)
        if self._start is None:
            self._start = mark
            self.look_at_samples = self._last_samples
            return False
        self._end = mark
        return True

    def _mark(self, steps: int, samples: int, now_s: float) -> Mark:
        return Mark(steps, samples, now_s, self._arrived() if self._arrived else None)

    @property
    def window(self) -> Window | None:
        """The steps after those left out; None if the batches ended before."""
        if self._start is None or self._end is None:
            return None
        return Window(self._start, self._end)


class SteadyWindow:
    """Count whole rounds once everything that was in flight at the first batch is consumed.

    If time is up before, the loop fails, or it stops if earlier epochs have given a rate already
    (``is_known``).
    """

    def __init__(
        self,
        arrived: Callable[[], ReadTotals],
        flow: Flow,
        least: Least,
        give_up_s: float = math.inf,
        *,
        is_known: bool = False,
    ) -> None:
        self._arrived, self._flow, self._least = arrived, flow, least
        self._is_known = is_known
        self.look_at_samples = math.inf
        self.look_at_s = self._give_up_s = give_up_s
        self._requested_s = 0.0
        self._before = ReadTotals()
        self._window_samples = 0
        self._round_samples = flow.round_samples
        self._start: Mark | None = None
        self._accepted: Window | None = None
        self._reached_at: int | None = None

    def begin(self, now_s: float) -> None:
        """Remember what had arrived in earlier epochs."""
        self._requested_s = now_s
        self._before = self._arrived()

    def first_batch(self) -> None:
        """Begin to count when everything that has arrived by now is consumed."""
        self._wait_for(self._arrived())

    def _wait_for(self, arrived: ReadTotals) -> None:
        """Look again when everything that has arrived is consumed, with the present windows."""
        self.look_at_samples = arrived.since(self._before).samples
        self._window_samples = arrived.window_samples
        self._round_samples = self._flow.round_of(arrived.window_samples)
        self._start = None

    def look(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin to count, or accept the rounds so far, or go on by one more round."""
        arrived = self._arrived()
        mark = Mark(steps, samples, now_s, arrived)
        is_late = now_s >= self._give_up_s
        if self._accepted is None and arrived.window_samples > self._window_samples:
            # More is in flight than before: what is consumed is less than what is fetched.
            self._wait_for(arrived)
            return is_late and self._ends_without_window(samples, now_s)
        if self._start is None:
            if is_late:
                return self._ends_without_window(samples, now_s)
            self._start = mark
            self.look_at_samples = samples + LEAST_ROUNDS * self._round_samples
            return False
        window = Window(self._start, mark)
        rounds = window.samples // self._round_samples
        if samples >= self.look_at_samples and self._is_done_after(rounds, window):
            return True
        if is_late:
            return self._accepted is not None or self._ends_without_window(samples, now_s)
        next_round = max(LEAST_ROUNDS, rounds + 1)
        self.look_at_samples = self._start.samples + next_round * self._round_samples
        return False

    def _ends_without_window(self, samples: int, now_s: float) -> bool:
        """Stop the loop if a rate is known without this epoch, else fail."""
        if not self._is_known:
            raise TrialFailed(self._late(samples, now_s))
        return True

    def _is_done_after(self, rounds: int, window: Window) -> bool:
        """Accept a number of whole rounds, or go on until they are even better balanced."""
        best = self._accepted.imbalance if self._accepted is not None else BALANCED
        # Of two windows that are even, the longer one is better.
        if window.imbalance <= max(best, EVEN):
            self._accepted = window
        if self._accepted is None or not self._least.is_reached([self._accepted]):
            return False
        if self._reached_at is None:
            self._reached_at = rounds
        waited = rounds - self._reached_at
        return self._accepted.imbalance <= EVEN or waited >= ROUNDS_TO_WAIT

    @property
    def window(self) -> Window | None:
        """The whole rounds that were accepted last."""
        return self._accepted

    def _late(self, samples: int, now_s: float) -> str:
        spent_s = now_s - self._requested_s
        round_samples = self._round_samples
        missing = max(0, self.look_at_samples - samples)
        if 0 < self._window_samples < self._flow.window_samples:
            # Windows may still grow, and counting begins when they no longer do.
            round_samples = self._flow.round_samples
            missing = self._flow.most_in_flight + LEAST_ROUNDS * round_samples
        elif self._start is None:
            missing += LEAST_ROUNDS * round_samples
        wanted_s = spent_s * (samples + missing) / max(samples, 1)
        return (
            f"the rate was not steady after {spent_s:,.0f} s and {samples:,} samples: "
            f"{LEAST_ROUNDS} rounds of {round_samples:,} samples need about "
            f"{samples + missing:,.0f} samples, {wanted_s:,.0f} s; set trial_timeout_s to "
            f"{math.ceil(wanted_s / GIVE_UP_SHARE):,} or more, or take fewer workers or smaller "
            "batches"
        )


class BoundedWindow:
    """For loaders that do not count: stop when the lower and the upper bound agree.

    The lower bound is the rate since the epoch was requested. The upper bound is the rate after
    the batches that could be ready when the first one came.
    """

    def __init__(self, flow: Flow, least: Least, give_up_s: float = math.inf) -> None:
        self._flow, self._least = flow, least
        self.look_at_samples: float = flow.most_in_flight
        self.look_at_s = self._give_up_s = give_up_s
        self._requested: Mark | None = None
        self._start: Mark | None = None
        self._last: Window | None = None
        self.bounds: tuple[float, float] | None = None
        """Lower and upper bound of the rate, in samples/s, at the last look."""

    def begin(self, now_s: float) -> None:
        """Remember the moment of the request."""
        self._requested = Mark(0, 0, now_s)

    def first_batch(self) -> None:
        """Nothing is known of what has arrived."""

    def look(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin the later window, or compare both bounds."""
        mark = Mark(steps, samples, now_s)
        is_late = now_s >= self._give_up_s
        if self._start is None:
            if is_late:
                raise TrialFailed(self._late(samples, now_s))
            self._start = mark
            self.look_at_samples = samples + self._least_samples
            return False
        assert self._requested is not None  # noqa: S101  begin is called first
        since_request, later = Window(self._requested, mark), Window(self._start, mark)
        if later.samples < self._least_samples:
            if is_late:
                raise TrialFailed(self._late(samples, now_s))
            return False
        self._last = later
        if later.seconds > 0:
            low = since_request.samples / since_request.seconds
            high = later.samples / later.seconds
            self.bounds = min(low, high), max(low, high)
        # Looking takes time, which must be negligible in a loop that does nothing else.
        self.look_at_samples = samples + max(self._flow.round_samples, later.samples // 50)
        # Without the second condition a loop in which no time passes would have no end.
        is_known = self.agree or later.steps >= ENOUGH_STEPS
        return is_late or (is_known and self._least.is_reached([later]))

    @property
    def _least_samples(self) -> int:
        """Samples that the later window has at least."""
        return LEAST_ROUNDS * self._flow.round_samples

    def _late(self, samples: int, now_s: float) -> str:
        assert self._requested is not None  # noqa: S101  begin is called first
        spent_s = now_s - self._requested.time_s
        wanted = self._flow.most_in_flight + self._least_samples
        wanted_s = spent_s * wanted / max(samples, 1)
        return (
            f"the rate was not known after {spent_s:,.0f} s and {samples:,} samples: the first "
            f"{self._flow.most_in_flight:,} do not count, and {LEAST_ROUNDS} rounds of "
            f"{self._flow.round_samples:,} samples need about {wanted_s:,.0f} s; set "
            f"trial_timeout_s to {math.ceil(wanted_s / GIVE_UP_SHARE):,} or more, or take fewer "
            "workers or smaller batches"
        )

    @property
    def agree(self) -> bool:
        """Whether the upper bound is at most ``BALANCED`` above the lower one."""
        return self.bounds is not None and self.bounds[1] <= (1 + BALANCED) * self.bounds[0]

    @property
    def window(self) -> Window | None:
        """The later window at the last look."""
        return self._last
