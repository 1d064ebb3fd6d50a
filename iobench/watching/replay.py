"""Hand out batches of a loader again: how fast the loop is without its loader.

After the warm-up a few batches are kept as the loop takes them. Then the loop gets these again for
a number of steps, and goes on with the loader's next batch. No batch of the loader is lost. It
happens once in the life of a watched loader.

The loader's workers and threads go on meanwhile until their queues are full, which takes CPU time
from the loop. Therefore the first half of the repeated steps does not count. The second half counts
as two parts, whose rates must agree (``iobench.watching.ceiling``). A GPU may still compute when
the loop asks for its next batch. At both ends of each part the replay waits for it.
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from iobench.watching.batches import content_marks, in_new_containers, leaves
from iobench.watching.live import LiveFigures
from iobench.watching.session import REPLAY, StepLog

DEFAULT_STEPS = 100
FEWEST_STEPS = 40
"""A part of the steps that count has at least a quarter of these."""
WARM_UP_STEPS = 100
"""Steps of the loop as it is. Where it waits for no batch after the replay, they tell its rate."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """How many batches are kept, how many steps repeat them, and how many steps come before."""

    batches: int
    steps: int = DEFAULT_STEPS
    warm_up: int = WARM_UP_STEPS

    @property
    def begins_after(self) -> int:
        """Batches of the loader that the loop takes before the replay."""
        return self.warm_up + self.batches

    @property
    def half(self) -> int:
        """Repeated steps that do not count."""
        return self.steps // 2

    @property
    def middle(self) -> int:
        """Repeated steps before the second part of those that count."""
        return self.half + (self.steps - self.half) // 2


def wait_for_device() -> None:
    """Wait until torch's GPU has finished; nothing where torch uses no GPU."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.synchronize()


class Replay:
    """The replay of one watched loader, in all of its epochs."""

    def __init__(
        self,
        settings: ReplaySettings,
        loader: int,
        log: StepLog,
        *,
        announce: Callable[[str], None] | None = None,
        live: LiveFigures | None = None,
        wait: Callable[[], None] = wait_for_device,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Prepare a replay for the loader with this number.

        Args:
            settings: of how many batches and steps.
            loader: its number in ``log``.
            log: gets a mark when the replay begins and ends, and where its parts begin.
            announce: is called with a line about the replay when it begins; None to say nothing.
            live: gets the ceiling when the replay has ended.
            wait: waits for the device.
            clock: seconds.
        """
        self.settings = settings
        self._loader, self._log = loader, log
        self._announce, self._live = announce, live
        self._wait, self._clock = wait, clock
        self._process = os.getpid()
        self._taken = self._taken_in_earlier_epochs = 0
        self._kept: list[Any] = []
        self._probe: tuple[list[Any], list[int | None]] | None = None
        self._copies = False
        self._source: Iterator[Any] | None = None
        self._repeated = 0
        self._is_over = self._is_of_this_epoch = False

    @property
    def is_running(self) -> bool:
        """Whether the last batch was a repeated one."""
        return self._source is not None and not self._is_over

    def added_steps(self, batches: int) -> int:
        """Repeated steps in this epoch, or in the next one while none is under way.

        Args:
            batches: the loader's own batches in an epoch.
        """
        if self._is_of_this_epoch:
            return self.settings.steps
        reaches = self._taken_in_earlier_epochs + batches >= self.settings.begins_after
        return self.settings.steps if reaches and not self._is_over else 0

    def epoch_begins(self) -> None:
        """Note that a pass begins. A replay in a pass that was left does not go on in another."""
        if self._source is not None:
            self._stop()
        self._is_of_this_epoch = False
        self._taken_in_earlier_epochs = self._taken

    def epoch_ended(self) -> None:
        """Note that the loader has no more batches in this pass."""
        self._is_of_this_epoch = False
        self._taken_in_earlier_epochs = self._taken

    def cancel(self) -> None:
        """Do not begin; a replay that has begun goes on, so that all ranks make equal steps."""
        if self._source is None:
            self._stop()

    def next(self, source: Iterator[Any], epoch: int) -> Any:
        """The loop's next batch: the loader's next one, or a kept one again.

        Args:
            source: the loader's iterator.
            epoch: the number of the pass, for the log.

        Raises:
            StopIteration: ``source`` has no more batches, and none is to be repeated.
        """
        if self._is_over or os.getpid() != self._process:  # a forked worker trains nothing
            return next(source)
        if self._probe is not None:
            arrays, marks = self._probe
            self._copies = content_marks(arrays) != marks
            self._probe = None
        if self._source is None and self._taken >= self.settings.begins_after and self._kept:
            self._begin(source)
        if self._source is source:
            if self._repeated < self.settings.steps:
                return self._again(epoch)
            self._mark(epoch)
            self._stop()
            return next(source)
        batch = next(source)
        self._keep(batch)
        return batch

    def _keep(self, batch: Any) -> None:
        """Keep a batch that the loop has not seen, after the warm-up."""
        number = self._taken
        self._taken = number + 1
        settings = self.settings
        if number == settings.warm_up - 1:
            arrays = list(leaves(batch))  # the loop may take the batch apart
            self._probe = arrays, content_marks(arrays)
        elif settings.warm_up <= number < settings.begins_after:
            try:
                kept = self._handed_out(batch)
            except Exception as error:  # noqa: BLE001  a batch of somebody else's class
                self._say(
                    f"no replay: the loop changes its batches in place, and they cannot be copied "
                    f"({type(error).__name__}: {error})"
                )
                self._stop()
            else:
                self._kept.append(kept)

    def _handed_out(self, batch: Any) -> Any:
        """A batch that the loop may change: a copy if it changes arrays in place."""
        return copy.deepcopy(batch) if self._copies else in_new_containers(batch)

    def _begin(self, source: Iterator[Any]) -> None:
        first = self._taken - self._taken_in_earlier_epochs + 1
        last = first + self.settings.steps - 1
        copied = "copies of " if self._copies else ""
        self._say(
            f"replay: steps {first:,} to {last:,} of this epoch train on {copied}the same "
            f"{len(self._kept):,} batches again and again, to measure the loop without its loader; "
            f"after step {last:,} it goes on with the loader's next batch"
        )
        # Last: after Ctrl-C the message comes twice rather than not at all.
        self._source, self._is_of_this_epoch = source, True

    def _again(self, epoch: int) -> Any:
        number = self._repeated
        if number in (0, self.settings.half, self.settings.middle):
            self._mark(epoch)
        batch = self._handed_out(self._kept[number % len(self._kept)])
        self._repeated = number + 1
        return batch

    def _mark(self, epoch: int) -> None:
        """Log how many repeated steps have been made by now, on the device as well."""
        self._wait()
        now_s, steps = self._clock(), self._repeated
        record = (self._loader, epoch, now_s, steps, self.settings.steps, REPLAY)
        self._log.add(record, now_s)
        if self._live is not None and steps == self.settings.half:
            self._live.replay_counts(now_s)
        elif self._live is not None and steps == self.settings.steps:
            self._live.replay_ended(now_s)

    def _say(self, line: str) -> None:
        if self._announce is not None:
            self._announce(line)

    def _stop(self) -> None:
        self._is_over = True
        self._kept.clear()
        self._probe = None
