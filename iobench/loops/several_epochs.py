"""Epochs of one trial: each driven by itself, the page cache prepared and judged between them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from iobench.loaders import Batch, Loader
from iobench.loops.counting import full_batches
from iobench.loops.drive import LoopTimes
from iobench.loops.epoch_cache import EpochCache
from iobench.loops.first_batch import Split, first_batch
from iobench.loops.in_a_row import Epoch, epoch_of
from iobench.trial import Cold

Drive = Callable[[Callable[[], Iterator[Batch]]], LoopTimes]


@dataclass
class SeveralEpochs:
    """``count`` epochs from a loader, ``again`` made anew where its workers must end between them.

    The first batch is that of the first epoch. ``close`` ends the loader that is open; the last
    epoch is judged after that, when every worker is reaped.
    """

    loader: Loader
    again: Callable[[], Loader]
    cache: EpochCache | None
    batch_size: int
    times: list[LoopTimes] = field(default_factory=list)
    first: Split = field(default_factory=Split)
    notes: list[str] = field(default_factory=list)
    _colds: list[Cold | None] = field(default_factory=list)

    def run(self, count: int, drive: Drive) -> None:
        """All of them; raises what the loader and ``drive`` do."""
        for number in range(count):
            if number:
                self._between()
            if self.cache is not None:
                self.cache.before()
            self.times.append(drive(lambda: full_batches(self.loader, self.batch_size, number)))  # noqa: B023
            if not number:
                self.first = first_batch(self.loader, self.times[0].time_to_first_batch_s)

    def close(self) -> None:
        """End the loader's workers; its notes stay."""
        self.loader.close()
        self.notes = list(dict.fromkeys([*self.notes, *self.loader.notes]))

    def epochs(self) -> list[Epoch]:
        """Each with its verdict; once the loader is closed."""
        if len(self._colds) < len(self.times):
            self._judge()
        return [epoch_of(*each) for each in zip(self.times, self._colds, strict=True)]

    def cold(self) -> Cold | None:
        """Of all epochs together; None where nothing was read."""
        self.epochs()
        return self.cache.whole() if self.cache is not None else None

    def _between(self) -> None:
        if self.cache is not None and self.cache.restarts:
            self.close()
            self._judge()
            gc.collect()  # what a loader left in cycles may hold a mapping
            self.loader = self.again()
        else:
            self._judge()

    def _judge(self) -> None:
        taken = self.times[-1].taken
        self._colds.append(self.cache.after(taken) if self.cache is not None else None)
