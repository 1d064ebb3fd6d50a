"""Samples that lie in memory, given by a torch loader instead of those that are stored.

Everything else stays what it is: the data set's style, its order, its workers and their shares, the
batches that they are put together into. What is left out is the read alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.assign import Order
from dataprep.formats import Buffer
from iobench.loaders.protocol import MemoryRung

_LYING = {"decode": "encoded", "augment": "decoded", "collate": "decoded and augmented"}


@dataclass(frozen=True, slots=True)
class Held:
    """Samples one after the other in one buffer, which forked workers share.

    No object a sample: a worker that counted its references would copy the page that it lies on.

    Attributes:
        rung: how they lie there: ``decode`` encoded, ``augment`` decoded (``iobench.pixels``),
            ``collate`` finished, uint8 (3, side, side).
        side: of finished images, in pixels.
        data: uint8, all samples.
        offsets: int64 (held + 1,), where each begins, and the end.
        places: int64 (samples,), which of them is given for each sample of the data set.
        wanted: of how many samples the loop has use.
    """

    rung: MemoryRung
    side: int
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    places: NDArray[np.int64]
    wanted: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sample(self, number: int) -> memoryview:
        """What is given for sample ``number`` of the data set; nothing is copied."""
        place = int(self.places[number])
        return self.data.data[self.offsets[place] : self.offsets[place + 1]]

    def instead_of_stored(self, dataset: Any) -> None:
        """Have a data set of a torch loader, of which no item was made, give these samples."""
        from iobench.loaders.rungs.finished import FinishedItems

        dataset.records = HeldImages(dataset.records, self)
        if self.rung == "collate":
            dataset.items = FinishedItems(dataset.items, self.side)

    @property
    def note(self) -> str:
        """What a reader of the loop's figures must know."""
        size = f"{len(self.data) / 1e6:,.1f} MB"
        how = _LYING[self.rung]
        if len(self) < self.wanted:
            return (
                f"input {self.rung}: {len(self):,} of the loop's {self.wanted:,} samples lie in "
                f"memory {how} ({size}), and are given again and again"
            )
        return f"input {self.rung}: the loop's {len(self):,} samples lie in memory {how} ({size})"


class HeldImages:
    """``Records`` of samples in memory, in the order and the shards of ``stored``."""

    def __init__(self, stored: Any, held: Held) -> None:
        self._stored, self._held = stored, held
        self.labels: NDArray[np.int64] = stored.labels
        self.is_remote = False

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Some samples."""
        return [self._held.sample(number) for number in numbers]

    def stream(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, Buffer]]:
        """Samples one after the other: number and image."""
        for number in numbers.tolist():
            yield number, self._held.sample(number)

    def name(self, index: int) -> str:
        """Where it is stored, in words."""
        return str(self._stored.name(index))

    def part(self, order: Order, epoch: int) -> NDArray[np.int64]:
        """The numbers of a rank's samples, as they are stored."""
        found: NDArray[np.int64] = self._stored.part(order, epoch)
        return found
