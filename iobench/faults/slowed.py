"""A slowed codec, augmentation and copy: delays of known length where they are to be found.

For the harness's test of itself, which puts them around the parts of a trial (``trial.Around``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from dataprep.adapters.augment import Augmentation, Box
from dataprep.formats.protocol import Buffer
from dataprep.image.geometry import Pixels
from iobench.clock import Clock, Pauses
from iobench.consumers.protocol import Consumer
from iobench.loaders.protocol import Batch, Framework
from iobench.pixels import OfPixels


@dataclass(frozen=True, kw_only=True)
class SlowedAugmentation(Augmentation):
    """The images of ``plain``, each ``augment_s`` later, and encoded ones ``decode_s`` beside.

    An image that is stored decoded has nothing to decode, and waits for its augmentation alone.
    """

    plain: Augmentation
    pauses: Pauses = field(compare=False)
    decode_s: float
    augment_s: float

    def pixels(self, data: Buffer, rng: np.random.Generator) -> Pixels:
        """As ``plain`` gives them."""
        self.pauses.take(self.augment_s)
        return super().pixels(data, rng)

    def part(self, data: Buffer, choose: Callable[[int, int], Box]) -> Pixels:
        """As ``plain`` gives it."""
        if not isinstance(self.plain, OfPixels):
            self.pauses.take(self.decode_s)
        return self.plain.part(data, choose)


def slowed(
    plain: Augmentation, clock: Clock, *, decode_s: float = 0.0, augment_s: float = 0.0
) -> SlowedAugmentation:
    """``plain`` with so many seconds more for each image; nothing else is changed."""
    settings = {each.name: getattr(plain, each.name) for each in fields(Augmentation)}
    return SlowedAugmentation(
        **settings, plain=plain, pauses=Pauses(clock), decode_s=decode_s, augment_s=augment_s
    )


class SlowedCopy:
    """A consumer whose copy to the device takes ``copy_s`` longer, a batch; see ``Consumer``.

    The batch that it was asked to draw on the device is there already, and is not copied.
    """

    def __init__(self, consumer: Consumer, clock: Clock, copy_s: float) -> None:
        self._consumer, self._copy_s = consumer, copy_s
        self._pauses = Pauses(clock)
        self._resident: Batch | None = None
        self.framework: Framework = consumer.framework
        self.emulated = consumer.emulated
        self.device = consumer.device
        self.precision = consumer.precision
        self.notes: Sequence[str] = consumer.notes

    def __getattr__(self, name: str) -> Any:
        # What a consumer has beside the Protocol.
        return getattr(self._consumer, name)

    def synthetic(self) -> Batch:
        """The consumer's own."""
        self._resident = self._consumer.synthetic()
        return self._resident

    def warm_up(self) -> None:
        """As without the delay."""
        self._consumer.warm_up()
        self._pauses.clear()

    def step(self, batch: Batch) -> None:
        """Copy, slowly; then the step."""
        if batch is not self._resident:
            self._pauses.take(self._copy_s)
        self._consumer.step(batch)

    def finish(self) -> None:
        """As without the delay."""
        self._consumer.finish()

    def compute_s(self) -> Sequence[float]:
        """Without the copy."""
        return self._consumer.compute_s()


class ThreadPauses:
    """Pauses for several threads, each exact by itself: how a proxy waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._own = threading.local()

    def take(self, seconds: float) -> None:
        """Let ``seconds`` pass in this thread."""
        pauses = getattr(self._own, "pauses", None)
        if pauses is None:
            pauses = self._own.pauses = Pauses(self._clock)
        pauses.take(seconds)
