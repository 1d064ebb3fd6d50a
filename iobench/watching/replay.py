"""Repeat batches of a loader to measure how fast the loop is without its loader.

After a warm-up, the replay keeps a few batches while the loop takes them. Then the loop gets the
kept batches again and again for a number of steps. Afterwards it goes on with the loader's next
batch, so that no batch of the loader is lost. There is one replay for each watched loader.

When the replay begins, workers and threads of the loader still fetch batches until their queues are
full, which takes CPU time from the loop. Therefore the first half of the repeated steps does not
count. The second half is measured in two parts, whose rates must agree
(``iobench.watching.ceiling``). A GPU may still compute when the loop requests its next batch.
Therefore the replay waits for the GPU at the start and at the end of each part.
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
from iobench.watching.prometheus import LiveFigures
from iobench.watching.session import REPLAY_MARK, StepLog

DEFAULT_STEPS = 100
"""The number of steps of a replay if the script requests no other number."""
MIN_STEPS = 40
"""The smallest number of steps of a replay. Each of the two measured parts then has 10 steps."""
WARM_UP_STEPS = 100
"""The number of steps on the loader's own batches before a batch is kept. If the loop waits for no
batch after the replay, its rate is measured in these steps."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The size of a replay.

    Attributes:
        batches: the number of batches that are kept.
        steps: the number of steps that repeat the kept batches.
        warm_up: the number of steps before the first batch is kept.
    """

    batches: int
    steps: int = DEFAULT_STEPS
    warm_up: int = WARM_UP_STEPS

    @property
    def begins_after(self) -> int:
        """Batches of the loader that the loop takes before the replay."""
        return self.warm_up + self.batches

    @property
    def unmeasured_steps(self) -> int:
        """Repeated steps before the first measured part."""
        return self.steps // 2

    @property
    def second_part_begins_after(self) -> int:
        """Repeated steps before the second measured part."""
        return self.unmeasured_steps + (self.steps - self.unmeasured_steps) // 2


def wait_for_device() -> None:
    """Wait until torch's GPU has finished its work; return at once if torch uses no GPU."""
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
            settings: the size of the replay.
            loader: the number of the loader in ``log``.
            log: gets a mark when the replay begins and ends, and when each measured part begins.
            announce: prints a line when the replay begins; None to print nothing.
            live: gets the ceiling when the replay has ended.
            wait: returns when the device has finished its work.
            clock: returns the time in seconds.
        """
        self.settings = settings
        self._loader, self._log = loader, log
        self._announce, self._live = announce, live
        self._wait_for_device, self._clock = wait, clock
        self._process = os.getpid()
        self._taken_batches = self._taken_in_earlier_epochs = 0
        self._kept_batches: list[Any] = []
        # The arrays of the last warm-up batch and their content marks, to see whether the loop
        # changes arrays in place.
        self._warm_up_arrays: tuple[list[Any], list[int | None]] | None = None
        self._must_copy = False
        # The loader's iterator of the pass in which the replay takes place; None before it begins.
        self._replayed_pass: Iterator[Any] | None = None
        self._repeated_steps = 0
        self._is_over = self._is_in_current_epoch = False

    @property
    def is_running(self) -> bool:
        """Whether the last batch that the loop got was a repeated batch."""
        return self._replayed_pass is not None and not self._is_over

    def added_steps(self, batches: int) -> int:
        """The number of repeated steps in the current epoch; between two epochs, in the next one.

        Args:
            batches: the number of batches that the loader has in an epoch.
        """
        if self._is_in_current_epoch:
            return self.settings.steps
        is_due = self._taken_in_earlier_epochs + batches >= self.settings.begins_after
        return self.settings.steps if is_due and not self._is_over else 0

    def epoch_begins(self) -> None:
        """Note that a pass begins. If the loop left a pass during the replay, the replay ends."""
        if self._replayed_pass is not None:
            self._stop()
        self._is_in_current_epoch = False
        self._taken_in_earlier_epochs = self._taken_batches

    def epoch_ended(self) -> None:
        """Note that the loader has no more batches in this pass."""
        self._is_in_current_epoch = False
        self._taken_in_earlier_epochs = self._taken_batches

    def cancel(self) -> None:
        """Prevent a replay that has not begun yet.

        A replay that has begun goes on, since all ranks must make the same number of steps.
        """
        if self._replayed_pass is None:
            self._stop()

    def next(self, source: Iterator[Any], epoch: int) -> Any:
        """Return the next batch for the loop: the loader's next batch, or a kept batch again.

        Args:
            source: the loader's iterator of the current pass.
            epoch: the number of the pass, for the log.

        Raises:
            StopIteration: ``source`` has no more batches, and no repeated step is due.
        """
        if self._is_over or os.getpid() != self._process:  # A forked worker makes no steps.
            return next(source)
        if self._warm_up_arrays is not None:
            arrays, marks = self._warm_up_arrays
            self._must_copy = content_marks(arrays) != marks
            self._warm_up_arrays = None
        if (
            self._replayed_pass is None
            and self._taken_batches >= self.settings.begins_after
            and self._kept_batches
        ):
            self._begin(source)
        if self._replayed_pass is source:
            if self._repeated_steps < self.settings.steps:
                return self._repeated_batch(epoch)
            self._mark(epoch)
            self._stop()
            return next(source)
        batch = next(source)
        self._keep(batch)
        return batch

    def _keep(self, batch: Any) -> None:
        """Keep a batch for the replay if the warm-up is over and more batches are needed.

        This is called before the loop gets the batch, so that the loop has not changed it yet. For
        the last batch of the warm-up, the content marks of its arrays are noted instead.
        """
        number = self._taken_batches
        self._taken_batches = number + 1
        settings = self.settings
        if number == settings.warm_up - 1:
            arrays = list(leaves(batch))  # The loop may remove arrays from their containers.
            self._warm_up_arrays = arrays, content_marks(arrays)
        elif settings.warm_up <= number < settings.begins_after:
            try:
                kept_batch = self._copy_for_loop(batch)
            except Exception as error:  # noqa: BLE001  the class of a batch may raise any error
                self._print(
                    f"no replay: the loop changes its batches in place, and they cannot be copied "
                    f"({type(error).__name__}: {error})"
                )
                self._stop()
            else:
                self._kept_batches.append(kept_batch)

    def _copy_for_loop(self, batch: Any) -> Any:
        """Return the batch in new containers, or a copy if the loop changes arrays in place."""
        return copy.deepcopy(batch) if self._must_copy else in_new_containers(batch)

    def _begin(self, source: Iterator[Any]) -> None:
        """Announce the replay, and begin it in the pass of ``source``."""
        first = self._taken_batches - self._taken_in_earlier_epochs + 1
        last = first + self.settings.steps - 1
        copied = "copies of " if self._must_copy else ""
        self._print(
            f"replay: steps {first:,} to {last:,} of this epoch train on {copied}the same "
            f"{len(self._kept_batches):,} batches again and again, to measure the loop without its "
            f"loader; after step {last:,} it goes on with the loader's next batch"
        )
        # These values are set after the message. If Ctrl-C comes between, the message is printed a
        # second time, but the replay is complete.
        self._replayed_pass, self._is_in_current_epoch = source, True

    def _repeated_batch(self, epoch: int) -> Any:
        """Return the kept batch for the next repeated step."""
        step, settings = self._repeated_steps, self.settings
        if step in (0, settings.unmeasured_steps, settings.second_part_begins_after):
            self._mark(epoch)
        batch = self._copy_for_loop(self._kept_batches[step % len(self._kept_batches)])
        self._repeated_steps = step + 1
        return batch

    def _mark(self, epoch: int) -> None:
        """Wait for the device, then log the time and the number of repeated steps so far.

        ``iobench.watching.session`` describes the fields of the record.
        """
        self._wait_for_device()
        now_s, steps = self._clock(), self._repeated_steps
        record = (self._loader, epoch, now_s, steps, self.settings.steps, REPLAY_MARK)
        self._log.add(record, now_s)
        if self._live is not None and steps == self.settings.unmeasured_steps:
            self._live.note_replay_measurement(now_s)
        elif self._live is not None and steps == self.settings.steps:
            self._live.note_replay_end(now_s)

    def _print(self, line: str) -> None:
        if self._announce is not None:
            self._announce(line)

    def _stop(self) -> None:
        """End the replay, or prevent it, and free the kept batches."""
        self._is_over = True
        self._kept_batches.clear()
        self._warm_up_arrays = None
