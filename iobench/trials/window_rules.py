"""PURE. The rules that decide which steps of a loop count, so that the rate is a steady rate.

A loop has buffers: batches that workers prepared in advance, windows that readers requested, and
shuffle buffers. Samples in the buffers were fetched and decoded before time began to count. The
rate of the first steps is therefore the rate of taking samples from memory, not the rate of the
loader.

The *window* of an epoch consists of the steps that count. A *read window* is the part of a shard
that a reader requests with one call. A *round* consists of the samples that all workers together
hand over, or request, at the same time (``iobench.trials.samples_in_flight``). A trial has one of
three *rate rules*:

- **steady**: the window begins when the loop has consumed all samples that had arrived before the
  first batch. If the read windows have grown by then, more samples are in flight than before, and
  the loop first consumes all samples that have arrived in the meantime. This is repeated until the
  read windows no longer grow. The window has at least ``MIN_ROUNDS`` rounds, and ends with the step
  that completes a round. In the window, the numbers of arrived and of consumed samples differ by at
  most ``MAX_IMBALANCE``.
- **epochs**: at least ``MIN_EPOCHS`` whole epochs count, with their starts. A whole epoch needs no
  window, because no sample of it is in flight before it begins or after it ends. This rule is used
  if the config or the access to the data requires whole epochs, or if an epoch is too short for
  another rule.
- **bounds**: this rule is for a loader that does not count its reads. The rate of all samples since
  the request for the epoch is a lower bound of the steady rate, because it includes the time until
  the first batch. The rate of a later window is an upper bound, because samples that arrived before
  this window may be consumed in it.

A *window rule* chooses the window of one epoch. Each rate rule has a window rule: ``SteadyWindow``,
``WholeEpoch`` and ``BoundedWindow``. ``FixedSteps`` is for loops whose steps are chosen before they
begin.
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
"""How the rate of a trial is found, see the top of this module."""

_CHECKS_PER_WINDOW = 50
"""The bounds are computed again when the later window has grown by 1/50 of its length, or by a
round, if a round is longer. Each check waits for the device and takes time. With more frequent
checks, this time would not be negligible in a loop whose steps take almost no time."""


def choose_rule(
    flow: SampleFlow, *, counts_reads: bool, epoch_samples: int | None, by_epochs: bool
) -> RateRule:
    """The rate rule with which a trial begins.

    The trial changes to ``epochs`` if its first epoch ends before ``steady`` has a window, or
    before the bounds agree.

    Args:
        flow: how samples flow through the loader.
        counts_reads: whether the loader counts what arrives from storage.
        epoch_samples: the number of samples in an epoch of one process; None if epochs have no end.
        by_epochs: whether whole epochs must count, because the config requests them, or because of
            the way in which the loader gets access to the data.
    """
    if by_epochs:
        return "epochs"
    if not counts_reads:
        return "bounds"
    is_long = epoch_samples is None or epoch_samples >= flow.min_epoch_samples
    return "steady" if is_long else "epochs"


class WindowRule(Protocol):
    """Chooses the window of one epoch while the epoch runs.

    The loop calls ``check`` at the end of a step if it has consumed ``check_at_samples`` or more
    samples, or if it is ``check_at_s`` or later. Before each call the loop waits until the device
    has done all steps. All moments are in seconds on the loop's clock.

    Attributes:
        check_at_samples: the number of samples from which on the loop calls ``check``. It counts
            samples that were consumed since the request for the epoch. ``check`` may change it.
        check_at_s: the moment from which on the loop calls ``check``.
    """

    check_at_samples: float
    check_at_s: float

    def begin(self, now_s: float) -> None:
        """Note that the epoch was requested at this moment."""

    def first_batch(self) -> None:
        """Note that the first batch of the epoch has arrived. It is not consumed yet."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin or end the window, or choose the next check. Returns whether the loop must stop.

        Args:
            steps: the number of steps since the request for the epoch.
            samples: the number of samples that were consumed in these steps.
            now_s: the moment at which the device has done the last of these steps.

        Raises:
            TrialFailed: the time limit is near, and no rate can be given.
        """

    @property
    def window(self) -> Window | None:
        """The steps that count; None if the rule has accepted no steps."""


class WholeEpoch:
    """Let every step count, if the epoch is read to its end.

    Args:
        give_up_s: the moment when the loop must end.
        failure: returns the reason of the failure if the loop must end before the epoch does. Its
            arguments are the number of samples that were consumed in this epoch, and the moment.
            If it is None, the loop stops without a failure, and the epoch does not count.
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
        """Stop the loop, or fail. The loop calls this only from ``give_up_s`` on."""
        if self._failure is not None:
            raise TrialFailed(self._failure(samples, now_s))
        return True

    @property
    def window(self) -> Window | None:
        """Always None: ``EpochTimings.all_steps`` is the window of a whole epoch."""
        return None


class FixedSteps:
    """Count a fixed number of steps.

    This rule is for a batch that is repeated without end, and for ranks, which must all take the
    same number of steps.

    Args:
        left_out: the number of steps before the first step that counts.
        steps: the number of steps that count.
        batch_size: the number of samples in each step.
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
        """Begin the window at the request for the epoch if no step is left out."""
        if self.check_at_samples <= 0:
            self._start = self._mark(0, 0, now_s)
            self.check_at_samples = self._last_samples

    def first_batch(self) -> None:
        """Do nothing: the steps that count are fixed."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin the window. If it has begun already, end it and stop the loop."""
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
        """The steps that count; None while the loop has not taken the last of them."""
        if self._start is None or self._end is None:
            return None
        return Window(self._start, self._end)


class SteadyWindow:
    """Count rounds, after the loop has consumed all samples that had arrived before.

    At ``give_up_s`` the loop stops. It fails if no window has been accepted by then, neither in
    this epoch nor in an earlier one.

    Args:
        read_totals: returns what the loader has read so far, also in earlier epochs.
        flow: how samples flow through the loader.
        minimum: the steps and seconds that the window must have at least.
        give_up_s: the moment when the loop must end.
        is_rate_known: whether an earlier epoch has given a window.
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
        self._read_window_samples = 0
        self._round_samples = flow.round_samples
        self._start: Mark | None = None
        self._accepted: Window | None = None
        self._rounds_at_minimum: int | None = None

    def begin(self, now_s: float) -> None:
        """Note the request, and how much has arrived in earlier epochs."""
        self._requested_s = now_s
        self._earlier_epochs = self._read_totals()

    def first_batch(self) -> None:
        """Choose the first check, at which the window can begin."""
        self._begin_after(self._read_totals())

    def _begin_after(self, arrived: ReadTotals) -> None:
        """Let the window begin when the loop has consumed the samples that have arrived by now.

        If the window has begun already, its begin is discarded. ``check`` calls this function again
        if the read windows have grown when these samples are consumed.

        Args:
            arrived: what the loader has read so far, also in earlier epochs.
        """
        self.check_at_samples = arrived.since(self._earlier_epochs).samples
        self._read_window_samples = arrived.window_samples
        self._round_samples = self._flow.round_samples_at(arrived.window_samples)
        self._start = None

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin the window or postpone its begin; accept the rounds so far or add a round."""
        arrived = self._read_totals()
        mark = Mark(steps, samples, now_s, arrived)
        is_late = now_s >= self._give_up_s
        if self._accepted is None and arrived.window_samples > self._read_window_samples:
            # The read windows have grown, and with them the number of samples in flight. While
            # this number grows, more samples arrive than the loop consumes. A window that was
            # accepted already is balanced, so it stays valid.
            self._begin_after(arrived)
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
        """Fail unless an earlier epoch has given a window."""
        if not self._is_rate_known:
            raise TrialFailed(self._failure(samples, now_s))

    def _is_done_after(self, rounds: int, window: Window) -> bool:
        """Accept ``window`` if it is balanced, and return whether the loop can stop.

        Rounds are added until the accepted window has its minimum length. From then on at most
        ``MAX_EXTRA_ROUNDS`` are added, until its imbalance is at most ``GOOD_IMBALANCE``.

        Args:
            rounds: the number of complete rounds in ``window``.
            window: the steps from the begin of the window until now.
        """
        best_imbalance = MAX_IMBALANCE
        if self._accepted is not None:
            best_imbalance = self._accepted.imbalance
        # Of two windows with at most ``GOOD_IMBALANCE``, the longer one is better, also if its
        # imbalance is larger.
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
        """The rounds that were accepted last; None if none were accepted."""
        return self._accepted

    def _failure(self, samples: int, now_s: float) -> str:
        """The reason of the failure, with the time limit that would be long enough.

        The limit is computed for the largest number of samples that the rule can still need, at the
        rate so far.
        """
        spent_s = now_s - self._requested_s
        round_samples = self._round_samples
        missing_samples = max(0, self.check_at_samples - samples)
        if 0 < self._read_window_samples < self._flow.window_samples:
            # The read windows have not reached their full size, so that the begin of the window may
            # be postponed until all samples in flight have been consumed.
            round_samples = self._flow.round_samples
            missing_samples = self._flow.max_in_flight + MIN_ROUNDS * round_samples
        elif self._start is None:
            missing_samples += MIN_ROUNDS * round_samples
        # This many rounds are added if arrived and consumed samples are not well balanced.
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
    *later window*. This window begins when the loop has consumed as many samples as can have been
    in flight when the first batch arrived. If the rate of the later window is the lower one, the
    bounds change places.

    The loop also stops if the later window has ``ENOUGH_STEPS`` steps, and at ``give_up_s``. The
    bounds may differ in these cases. The loop fails if the later window has fewer than
    ``MIN_ROUNDS`` rounds at ``give_up_s``.

    Args:
        flow: how samples flow through the loader.
        minimum: the steps and seconds that the later window must have at least.
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
        """The lower and the upper bound of the rate in samples/s, at the last check.

        None until the later window has ``MIN_ROUNDS`` rounds, and if no time passed in it.
        """

    def begin(self, now_s: float) -> None:
        """Note the moment of the request."""
        self._requested = Mark(0, 0, now_s)

    def first_batch(self) -> None:
        """Do nothing: the loader does not count what has arrived."""

    def check(self, steps: int, samples: int, now_s: float) -> bool:
        """Begin the later window. If it has begun already, compute both bounds and compare them."""
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
        samples_to_next_check = max(
            self._flow.round_samples, later_window.samples // _CHECKS_PER_WINDOW
        )
        self.check_at_samples = samples + samples_to_next_check
        # If no time passes in a loop, it has no bounds and would not end without ``ENOUGH_STEPS``.
        are_bounds_final = self.agree or later_window.steps >= ENOUGH_STEPS
        return is_late or (are_bounds_final and self._minimum.is_reached([later_window]))

    @property
    def _min_samples(self) -> int:
        """The smallest number of samples that the later window must have."""
        return MIN_ROUNDS * self._flow.round_samples

    def _failure(self, samples: int, now_s: float) -> str:
        """The reason of the failure, with the time limit that is long enough at the rate so far."""
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
        """Whether the upper bound is at most (1 + ``MAX_IMBALANCE``) times the lower bound.

        False if there are no bounds.
        """
        if self.bounds is None:
            return False
        low, high = self.bounds
        return high <= (1 + MAX_IMBALANCE) * low

    @property
    def window(self) -> Window | None:
        """The later window at the last check; None until it has ``MIN_ROUNDS`` rounds."""
        return self._later_window
