"""Samples that lie in memory, given by a torch loader instead of those that are stored.

Everything else stays what it is: the data set's style, its order, its workers and their shares, the
batches that they are put together into. What is left out is the read alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.formats.records import Buffer
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
        self.shard_keys: Sequence[str] = getattr(stored, "shard_keys", ())

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Buffer:
        """One sample."""
        return self._held.sample(index)

    def name(self, index: int) -> str:
        """Where it is stored, in words."""
        return str(self._stored.name(index))

    def shard(self, number: int) -> bytes:
        """Nothing: no shard is read."""
        return b""

    def samples_of(self, number: int) -> range:
        """Which samples lie in a shard."""
        found: range = self._stored.samples_of(number)
        return found

    def image_within(self, shard: memoryview, index: int) -> Buffer:
        """One sample."""
        return self._held.sample(index)
