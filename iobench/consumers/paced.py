"""``paced``: an emulated device, which pauses for each step instead of computing.

The config describes it by images per second, or by the name of a rate of an accelerator.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from iobench.clock import Clock, Pauses
from iobench.consumers.accelerators import RATES
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import Batch, Framework
from iobench.results.numbers import precise_number


class PacedConsumer:
    """A consumer that waits as long as the device would compute; see ``Consumer``.

    A step begins when the last step has ended and its own batch has arrived. Its duration is its
    number of samples divided by ``images_per_s``. The device does not make up for time in which it
    waited for data. If ``Clock.sleep`` sleeps too long, the next step is shorter by the excess.
    """

    framework: Framework = "none"
    emulated = True
    precision = "emulated"

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        name, source = settings.preset or "device", "the rate of the config"
        self.images_per_s = settings.images_per_s or 0.0
        rate = RATES.get(name)
        if rate is not None:
            self.images_per_s = rate.samples_per_s
            source = f"{rate.work_kind.value}; {rate.source}"
        self.device = f"emulated {name} ({precise_number(self.images_per_s)} images/s)"
        self.notes: Sequence[str] = (f"emulated, without computing: {source}",)
        self._settings = settings
        self._pauses = Pauses(clock)
        self._compute_s = array("d")

    def synthetic(self) -> Batch:
        """Return a batch without content."""
        return Batch(None, None, self._settings.batch_size)

    def warm_up(self) -> None:
        """Forget earlier steps."""
        self._pauses.clear()
        self._compute_s = array("d")

    def step(self, batch: Batch) -> None:
        """Pause until the emulated device has done the step."""
        compute_s = batch.samples / self.images_per_s
        self._pauses.pause(compute_s)
        self._compute_s.append(compute_s)

    def finish(self) -> None:
        """Do nothing: each step has ended when it returns."""

    def compute_s(self) -> Sequence[float]:
        """Return the pause of each step, in seconds."""
        return self._compute_s
