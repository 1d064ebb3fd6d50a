"""PURE. The timings of the steps that count, of one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iobench.loops.counted import Window
from iobench.loops.drive import EpochTimes

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LoopTimes:
    """Timings of one loop; moments are on the loop's clock.

    Attributes:
        requested_s: the moment when the first epoch was requested.
        time_to_first_batch_s: from then to its first batch.
        begun_s: the moment when the steps that count begin.
        seconds: of the steps that count, until the device has done them. Times between epochs are
            left out.
        samples: of the steps that count.
        taken: samples of all steps.
        dropped: samples of smaller batches, which a training loop does not take.
        left_out: steps before those that count, in the first epoch that counts.
        wait_s: how long each step waited for its batch.
        step_s: each step from the end of the one before to its own end, waiting included.
        compute_s: computing time of the device in each step.
        starts: numbers of the steps that count with which an epoch begins: their wait is the start
            of the epoch. Empty where counting began within an epoch.
        running_s: from the end of the first step of each epoch to the end of its last.
        computing_s: computing time of the device in ``running_s``.
        arrived_samples, arrived_bytes: what arrived from storage in ``seconds``; None if the loader
            does not count it.
    """

    requested_s: float
    time_to_first_batch_s: float
    begun_s: float
    seconds: float
    samples: int
    taken: int
    wait_s: Seconds
    step_s: Seconds
    compute_s: Seconds
    dropped: int = 0
    left_out: int = 0
    starts: tuple[int, ...] = ()
    running_s: float = 0.0
    computing_s: float = 0.0
    arrived_samples: int | None = None
    arrived_bytes: int | None = None

    @property
    def samples_per_s(self) -> float:
        """Samples per second of the steps that count."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def au_mlperf(self) -> float:
        """Computing time / running time, both without the first step of each epoch.

        As MLPerf Storage defines the accelerator utilisation; 0 if no time passed.
        """
        return self.computing_s / self.running_s if self.running_s > 0 else 0.0

    @property
    def ended_s(self) -> float:
        """The moment when the steps that count ended, of a loop of one epoch."""
        return self.begun_s + self.seconds

    @property
    def epoch_starts_s(self) -> Seconds:
        """The starts of the epochs that are in ``seconds``, first one included."""
        return self.wait_s[list(self.starts)]

    @property
    def later_steps(self) -> NDArray[np.bool_]:
        """Which of the steps that count do not begin an epoch."""
        mask = np.ones(len(self.wait_s), bool)
        mask[list(self.starts)] = False
        return mask

    @property
    def balance(self) -> float | None:
        """Samples that arrived / samples that were consumed or dropped; None if not counted.

        The dropped ones count where whole epochs count: they were read for these epochs.
        """
        if self.arrived_samples is None:
            return None
        left = self.samples + (self.dropped if self.starts else 0)
        return self.arrived_samples / left if left > 0 else None

    def as_json(self) -> dict[str, Any]:
        """JSON values, from which ``from_json`` makes the same object."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in content.items()
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LoopTimes:
        """The object whose ``as_json`` is ``content``."""
        arrays = {
            name: np.array(content[name], np.float64) for name in ("wait_s", "step_s", "compute_s")
        }
        return cls(**{**content, **arrays, "starts": tuple(content["starts"])})


def times_of(epoch: EpochTimes, window: Window) -> LoopTimes:
    """The timings of the steps of an epoch that are in ``window``."""
    first, last = window.start.steps, window.end.steps
    ended_s = np.array(epoch.ended_s)
    # The device may end a step later than the host: the window knows when it did.
    ends_s = np.concatenate([[window.start.time_s], ended_s[first:last]])
    compute_s = np.array(epoch.compute_s)
    arrived = window.arrived
    return LoopTimes(
        requested_s=epoch.whole.start.time_s,
        time_to_first_batch_s=epoch.time_to_first_batch_s,
        begun_s=window.start.time_s,
        seconds=window.seconds,
        samples=window.samples,
        taken=epoch.whole.samples,
        wait_s=_with_start(np.array(epoch.wait_s)[first:last], epoch, first),
        step_s=np.maximum(np.diff(ends_s), 0.0),
        compute_s=compute_s[first:last],
        dropped=epoch.dropped_samples,
        left_out=first,
        starts=(0,) if first == 0 else (),
        running_s=window.end.time_s - epoch.first_step_ended_s,
        computing_s=float(compute_s[1:last].sum()),
        arrived_samples=arrived.samples if arrived is not None else None,
        arrived_bytes=arrived.bytes if arrived is not None else None,
    )


def _with_start(wait_s: Seconds, epoch: EpochTimes, first: int) -> Seconds:
    """The waits; that of the first step of an epoch lasts from the request for the epoch."""
    if first == 0 and len(wait_s):
        wait_s[0] = epoch.time_to_first_batch_s
    return wait_s


def epochs_as_one(epochs: Sequence[LoopTimes]) -> LoopTimes:
    """Combine the timings of consecutive epochs into one loop; time between epochs is left out."""
    starts: list[int] = []
    steps_before = 0
    for epoch in epochs:
        starts += [steps_before + start for start in epoch.starts]
        steps_before += len(epoch.wait_s)
    first = epochs[0]
    return replace(
        first,
        seconds=sum(epoch.seconds for epoch in epochs),
        samples=sum(epoch.samples for epoch in epochs),
        taken=sum(epoch.taken for epoch in epochs),
        dropped=sum(epoch.dropped for epoch in epochs),
        wait_s=np.concatenate([epoch.wait_s for epoch in epochs]),
        step_s=np.concatenate([epoch.step_s for epoch in epochs]),
        compute_s=np.concatenate([epoch.compute_s for epoch in epochs]),
        starts=tuple(starts),
        running_s=sum(epoch.running_s for epoch in epochs),
        computing_s=sum(epoch.computing_s for epoch in epochs),
        arrived_samples=_sum_if_counted([epoch.arrived_samples for epoch in epochs]),
        arrived_bytes=_sum_if_counted([epoch.arrived_bytes for epoch in epochs]),
    )


def _sum_if_counted(numbers: Sequence[int | None]) -> int | None:
    """The sum; None if any of the numbers was not counted."""
    counted = [number for number in numbers if number is not None]
    return sum(counted) if len(counted) == len(numbers) else None
