"""``null``: takes batches and does nothing, to measure a loader alone."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from iobench.clock import Clock
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import Batch, Framework


class NullConsumer:
    """A consumer that only counts steps; see ``Consumer``."""

    framework: Framework = "none"
    emulated = False
    device = "none"
    precision = "none"
    notes: Sequence[str] = ()

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        self._batch_size = settings.batch_size
        self._steps = 0

    def synthetic(self) -> Batch:
        """Return a batch without content."""
        return Batch(None, None, self._batch_size)

    def warm_up(self) -> None:
        """Forget earlier steps; there is nothing to build."""
        self._steps = 0

    def step(self, batch: Batch) -> None:
        """Count the step."""
        self._steps += 1

    def finish(self) -> None:
        """Do nothing: there is no work to wait for."""

    def compute_s(self) -> Sequence[float]:
        """Return a zero for each step."""
        return array("d", bytes(8 * self._steps))
