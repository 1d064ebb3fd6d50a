"""PURE. Steps of one watched loader, added up as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from iobench.watching.epoch import NO_BATCH, STEP_FIELDS
from iobench.watching.passes import Passes

MOST_STEPS = 200_000
"""Kept one by one; of longer runs the last ones. Sums are of all."""


class Step(NamedTuple):
    """Seconds; ``ended_s`` on the machine's monotonic clock."""

    epoch: int
    ended_s: float
    wait_s: float
    step_s: float


class Tally:
    """What the steps so far add up to. The first step is in none but the first two figures.

    Attributes:
        origin_s: when the first batch was asked for, None before it was.
        first_batch_s: from then to holding it.
        first_step_s: from holding it to asking for the next.
        steps, seconds, wait_s: of the steps that count; ends of epochs are waited for too.
        samples: of these steps; NaN where a batch's could not be told.
        starts, start_wait_s: how often a later epoch's first batch was waited for, and how long.
        batches: all that came, also those of which no step is known.
        idle_s: how long the device had nothing to do in them; None where that was not asked.
        elsewhere_s: in whole passes over loaders of ``passes`` that lie within one of its steps,
            which are no part of the step, nor of any figure.
    """

    def __init__(self, passes: Passes | None = None) -> None:
        self._passes = Passes() if passes is None else passes
        self._begun: tuple[int, float] | None = None  # the pass that is under way
        self.elsewhere_s = 0.0
        self.origin_s: float | None = None
        self.ended_s = self.first_batch_s = self.first_step_s = 0.0
        self.steps = self.epochs = self.starts = 0
        self.seconds = self.wait_s = self.samples = self.start_wait_s = 0.0
        self.idle_s: float | None = None
        self.detail: deque[Step] = deque(maxlen=MOST_STEPS)
        self._epoch = self._known = 0
        self._idle_before: set[float] = set()

    def add(self, records: Sequence[float], first: int | None = None) -> None:
        """Records as ``epoch.STEP_FIELDS`` has them, one after the other.

        ``first`` is how many came before them: those that are known already count once.
        """
        width = len(STEP_FIELDS)
        known = 0 if first is None else max(0, self._known - first)
        for start in range(known * width, len(records) - width + 1, width):
            self._known += 1
            epoch, called_s, got_s, ended_s, samples = records[start : start + width]
            self._add(int(epoch), called_s, got_s, ended_s, samples)

    def add_idle(self, pairs: Sequence[float]) -> None:
        """When each batch was asked for, and how long the device was idle; the first is apart.

        Those that the message before had already count once.
        """
        known = self.idle_s or 0.0
        times, idle = pairs[::2], pairs[1::2]
        self.idle_s = known + sum(
            lasted_s
            for called_s, lasted_s in zip(times, idle, strict=True)
            if self.origin_s is not None
            and called_s > self.origin_s
            and called_s not in self._idle_before
        )
        self._idle_before = set(times)

    def _add(
        self, epoch: int, called_s: float, got_s: float, ended_s: float, samples: float
    ) -> None:
        if self._begun is None or self._begun[0] != epoch:
            self._begun = (epoch, called_s)
        if samples == NO_BATCH:
            self._passes.add(self._begun[1], ended_s)
        elsewhere_s = self._passes.within(got_s, ended_s)
        self.elsewhere_s += elsewhere_s
        wait_s, step_s = got_s - called_s, ended_s - called_s - elsewhere_s
        self.ended_s = ended_s
        if self.origin_s is None:
            if samples == NO_BATCH:
                return
            self.origin_s = called_s
            self.first_batch_s, self.first_step_s = wait_s, step_s - wait_s
            self.epochs, self._epoch = 1, epoch
            return
        self.wait_s += wait_s
        self.seconds += step_s
        if samples == NO_BATCH:
            return
        self.steps += 1
        self.samples += samples
        if epoch != self._epoch:
            self._epoch = epoch
            self.epochs += 1
            self.starts += 1
            self.start_wait_s += wait_s
        self.detail.append(Step(epoch, ended_s, wait_s, step_s))
