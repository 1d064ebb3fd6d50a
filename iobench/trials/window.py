"""PURE. The window of an epoch: the steps that count for the rate, from one moment to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dataprep.reading.read_counter import ReadTotals

MIN_ROUNDS = 20
"""The smallest number of rounds of a steady rate (``iobench.trials.window_rules``). A partial round
changes the rate by at most 1/20, which is 5 %."""
ENOUGH_STEPS = 1_000_000
"""After this many steps a loop may end before its minimum time, to limit the memory for timings.

Each step takes 24 bytes of memory.
"""
MIN_EPOCHS = 3
"""The smallest number of whole epochs of a rate that includes the starts of epochs."""
MAX_IMBALANCE = 0.05
"""The largest accepted imbalance: the difference of arrived and consumed samples, as a share of the
consumed samples."""
GOOD_IMBALANCE = 0.01
"""A window with at most this imbalance is accepted at once. If the imbalance is larger, some rounds
are added, because a longer window may be better balanced."""
MAX_EXTRA_ROUNDS = 10
"""The largest number of rounds that are added for a smaller imbalance."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of an epoch: the end of a step, or the request for the epoch.

    Attributes:
        steps: the steps done since the epoch was requested.
        samples: the samples consumed since the epoch was requested.
        time_s: the moment, on the loop's clock.
        arrived: what the loader had read by then; None if it does not count its reads.
    """

    steps: int
    samples: int
    time_s: float
    arrived: ReadTotals | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of an epoch that counts, from one mark to another of the same epoch."""

    start: Mark
    end: Mark

    @property
    def steps(self) -> int:
        """The number of steps that count."""
        return self.end.steps - self.start.steps

    @property
    def later_steps(self) -> int:
        """The number of counted steps without the first step of the epoch; at least 1.

        Quantiles of waits and of step times are over these steps.
        """
        begins_epoch = self.start.steps == 0
        return max(1, self.steps - 1) if begins_epoch else self.steps

    @property
    def samples(self) -> int:
        """The number of samples that were consumed in the window."""
        return self.end.samples - self.start.samples

    @property
    def seconds(self) -> float:
        """The length of the window in seconds."""
        return self.end.time_s - self.start.time_s

    @property
    def arrived(self) -> ReadTotals | None:
        """The samples and bytes that arrived in the window; None if they are not counted."""
        if self.start.arrived is None or self.end.arrived is None:
            return None
        return self.end.arrived.since(self.start.arrived)

    @property
    def imbalance(self) -> float:
        """The difference of arrived and consumed samples, as a share of the consumed samples.

        0 if arriving samples are not counted.
        """
        if self.arrived is None or not self.samples:
            return 0.0
        return abs(self.arrived.samples / self.samples - 1)


@dataclass(frozen=True, slots=True)
class Minimum:
    """The minimum steps, seconds and whole epochs of a trial. Its rate rule may need more.

    Attributes:
        steps: the minimum number of counted steps, without the first step of each epoch.
        seconds: the minimum time of the counted steps.
        epochs: the minimum number of whole epochs, if whole epochs count.
    """

    steps: int = 1
    seconds: float = 0.0
    epochs: int = MIN_EPOCHS

    def remaining_after(self, window: Window) -> Minimum:
        """The steps and seconds that are missing after ``window``."""
        return replace(
            self,
            steps=max(1, self.steps - window.later_steps),
            seconds=max(0.0, self.seconds - window.seconds),
        )

    def is_reached(self, windows: Sequence[Window]) -> bool:
        """Whether these windows together have enough steps and seconds.

        After ``ENOUGH_STEPS`` steps, any number of seconds is enough. The first step of each epoch
        is not counted, because the quantiles of waits leave it out. So 100 steps, the default of
        ``training.steps``, are enough for a 90th percentile, also if whole epochs count.
        """
        steps = sum(window.later_steps for window in windows)
        seconds = sum(window.seconds for window in windows)
        is_long = seconds >= self.seconds or steps >= ENOUGH_STEPS
        return steps >= self.steps and is_long
