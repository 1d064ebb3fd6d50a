"""PURE. The timings of one loop, over the steps that count for its rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iobench.trials.epoch_loop import EpochTimings
from iobench.trials.window import Window

Seconds = NDArray[np.float64]

_ARRAYS = ("wait_s", "step_s", "compute_s")
"""The fields of ``LoopTimings`` that are arrays. In JSON they are lists."""


@dataclass(frozen=True, slots=True)
class LoopTimings:
    """Timings of the counted steps of a loop. Moments are on the loop's clock.

    Attributes:
        requested_s: the moment when the first epoch was requested.
        time_to_first_batch_s: the seconds from this request to the first batch.
        begun_s: the moment when the steps that count begin.
        seconds: the duration of the steps that count. It ends when the device has done the last of
            them. Times between epochs are left out.
        samples: the samples of the steps that count.
        all_samples: the samples of all steps.
        wait_s: how long each counted step waited for its batch; float64 (steps,).
        step_s: the time from the end of the previous step to the end of the step, for each counted
            step. It includes the wait. float64 (steps,).
        compute_s: the computing time of the device in each counted step; float64 (steps,).
        dropped_samples: samples that were read but not consumed. They are in batches that are
            smaller than a full batch, which a training loop does not take. For a rank whose whole
            epochs count, they also include the samples after its last step.
        left_out_steps: the number of steps before the steps that count, in the first epoch that
            counts.
        epoch_first_steps: the numbers of the counted steps with which an epoch begins. The wait of
            such a step is the start of the epoch. Empty if counting began within an epoch. The
            steps that begin the first epoch of a process come before all others.
        first_epoch_starts: how many of ``epoch_first_steps`` begin the first epoch of a process.
        processes: the number of independent processes that ran for ``seconds`` at the same time.
            The arrays have the steps of one process after those of another.
        running_s: the seconds from the end of the first step of each epoch to the end of its last
            counted step. They include steps that do not count.
        computing_s: computing time of the device in ``running_s``.
        arrived_samples: samples that arrived from storage in ``seconds``; None if the loader does
            not count its reads.
        arrived_bytes: their bytes; None if the loader does not count its reads.
    """

    requested_s: float
    time_to_first_batch_s: float
    begun_s: float
    seconds: float
    samples: int
    all_samples: int
    wait_s: Seconds
    step_s: Seconds
    compute_s: Seconds
    dropped_samples: int = 0
    left_out_steps: int = 0
    epoch_first_steps: tuple[int, ...] = ()
    first_epoch_starts: int = 1
    processes: int = 1
    running_s: float = 0.0
    computing_s: float = 0.0
    arrived_samples: int | None = None
    arrived_bytes: int | None = None

    @property
    def samples_per_s(self) -> float:
        """Samples per second of the steps that count."""
        return ratio(self.samples, self.seconds)

    @property
    def au_mlperf(self) -> float:
        """The accelerator utilisation as MLPerf Storage defines it; 0 if no time passed.

        It is computing time / running time, both without the first step of each epoch.
        """
        return ratio(self.computing_s, self.running_s)

    @property
    def ended_s(self) -> float:
        """The moment when the steps that count ended. It is only valid for a loop of one epoch."""
        return self.begun_s + self.seconds

    @property
    def epoch_starts_s(self) -> Seconds:
        """The duration of each epoch's start, for the epochs that begin within ``seconds``.

        The start of an epoch is the wait of its first step.
        """
        return self.wait_s[list(self.epoch_first_steps)]

    @property
    def later_epoch_starts_s(self) -> Seconds:
        """The duration of each epoch's start, without the first epoch of each process."""
        return self.epoch_starts_s[self.first_epoch_starts :]

    @property
    def later_steps(self) -> NDArray[np.bool_]:
        """A mask of the counted steps, bool (steps,). It is False for steps that begin an epoch."""
        mask = np.ones(len(self.wait_s), bool)
        mask[list(self.epoch_first_steps)] = False
        return mask

    @property
    def balance(self) -> float | None:
        """Arrived samples / consumed samples; None if arriving samples are not counted.

        If whole epochs count, dropped samples count as consumed, because they were read for these
        epochs.
        """
        if self.arrived_samples is None:
            return None
        consumed = self.samples
        if self.epoch_first_steps:
            consumed += self.dropped_samples
        return self.arrived_samples / consumed if consumed > 0 else None

    def as_json(self) -> dict[str, Any]:
        """JSON values, from which ``from_json`` makes the same object."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in _ARRAYS:
            content[name] = content[name].tolist()
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LoopTimings:
        """The object whose ``as_json`` is ``content``."""
        values = dict(content)
        for name in _ARRAYS:
            values[name] = np.array(content[name], np.float64)
        values["epoch_first_steps"] = tuple(content["epoch_first_steps"])
        return cls(**values)


def window_timings(epoch: EpochTimings, window: Window) -> LoopTimings:
    """The timings of the steps of an epoch that are in ``window``."""
    first, end = window.start.steps, window.end.steps
    begins_epoch = first == 0
    wait_s = np.array(epoch.wait_s)[first:end]
    if begins_epoch and len(wait_s):
        # In the first epoch, the time to the first batch includes the opening of the loader.
        wait_s[0] = epoch.time_to_first_batch_s
    # The first step of the window begins when the device has done the step before. This moment is
    # known from the window; ``ended_s`` only has the moment at which the host was done.
    ends_s = np.concatenate([[window.start.time_s], np.array(epoch.ended_s)[first:end]])
    step_s = np.maximum(np.diff(ends_s), 0.0)
    compute_s = np.array(epoch.compute_s)
    computing_s = float(compute_s[1:end].sum())
    arrived_samples = arrived_bytes = None
    if window.arrived is not None:
        arrived_samples, arrived_bytes = window.arrived.samples, window.arrived.bytes
    return LoopTimings(
        requested_s=epoch.all_steps.start.time_s,
        time_to_first_batch_s=epoch.time_to_first_batch_s,
        begun_s=window.start.time_s,
        seconds=window.seconds,
        samples=window.samples,
        all_samples=epoch.all_steps.samples,
        wait_s=wait_s,
        step_s=step_s,
        compute_s=compute_s[first:end],
        dropped_samples=epoch.dropped_samples,
        left_out_steps=first,
        epoch_first_steps=(0,) if begins_epoch else (),
        running_s=window.end.time_s - epoch.first_step_ended_s,
        computing_s=computing_s,
        arrived_samples=arrived_samples,
        arrived_bytes=arrived_bytes,
    )


def combine_epochs(epochs: Sequence[LoopTimings]) -> LoopTimings:
    """Combine the timings of consecutive epochs into one loop. Time between epochs is left out."""
    epoch_first_steps: list[int] = []
    earlier_steps = 0
    for epoch in epochs:
        epoch_first_steps += [earlier_steps + step for step in epoch.epoch_first_steps]
        earlier_steps += len(epoch.wait_s)
    first_epoch = epochs[0]
    return replace(
        first_epoch,
        seconds=sum(epoch.seconds for epoch in epochs),
        samples=sum(epoch.samples for epoch in epochs),
        all_samples=sum(epoch.all_samples for epoch in epochs),
        dropped_samples=sum(epoch.dropped_samples for epoch in epochs),
        wait_s=np.concatenate([epoch.wait_s for epoch in epochs]),
        step_s=np.concatenate([epoch.step_s for epoch in epochs]),
        compute_s=np.concatenate([epoch.compute_s for epoch in epochs]),
        epoch_first_steps=tuple(epoch_first_steps),
        running_s=sum(epoch.running_s for epoch in epochs),
        computing_s=sum(epoch.computing_s for epoch in epochs),
        arrived_samples=sum_if_all_known([epoch.arrived_samples for epoch in epochs]),
        arrived_bytes=sum_if_all_known([epoch.arrived_bytes for epoch in epochs]),
    )


def ratio(part: float, total: float) -> float:
    """``part`` / ``total``; 0 if ``total`` is not positive."""
    return part / total if total > 0 else 0.0


def sum_if_all_known(numbers: Sequence[int | None]) -> int | None:
    """The sum of the numbers; None if any of them is None."""
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if len(known_numbers) == len(numbers) else None
