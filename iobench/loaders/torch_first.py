"""The first batch of a DataLoader, timed where it is made: in worker 0, or in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from multiprocessing.sharedctypes import RawArray
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from dataprep.adapters.augment import Transform
from dataprep.formats.protocol import Buffer
from iobench.clock import Clock
from iobench.loaders.protocol import FirstBatch

if TYPE_CHECKING:
    from dataprep.adapters.torch import Items


class FirstBatchWatch:
    """Times how the samples of the first batch are read and decoded, and nothing after that.

    DataLoader takes its first batch of worker 0, where there are workers. While that batch is
    made, ``items`` has a transform that looks at the clock; then its own again. What was seen is
    noted once, in memory that forked workers share.
    """

    def __init__(self, items: Items, clock: Clock, begun_s: float, listed_s: float) -> None:
        """Opening the data lasted from ``begun_s`` to ``listed_s``."""
        self._items, self._clock = items, clock
        self._begun_s, self._listed_s = begun_s, listed_s
        self._noted = RawArray("d", 4)  # reading began, samples were there, decoding, how many
        self._over = False

    def begins(self) -> bool:
        """Whether what is made now is to be timed; true once, in the process of the first batch."""
        if self._over:
            return False
        self._over = True
        worker = get_worker_info()
        return worker is None or worker.id == 0

    def timed(self, make: Callable[[], list[Any]]) -> list[Any]:
        """What ``make`` gives: the samples of a batch, made of ``items``."""
        plain = self._items.transform
        decoding = _Timed(plain, self._clock) if plain else None
        self._items.transform = decoding
        began_s = self._clock.now_s()
        try:
            samples = make()
        finally:
            self._items.transform = plain
        decode_s = decoding.spent_s if decoding else 0.0
        self._noted[:] = [began_s, self._clock.now_s(), decode_s, len(samples)]
        return samples

    def told(self) -> FirstBatch | None:
        """Its parts; None before it was made."""
        began_s, made_s, decode_s, samples = self._noted
        if not samples:
            return None
        return FirstBatch(
            listing_s=self._listed_s - self._begun_s,
            worker_start_s=began_s - self._listed_s,
            fetch_s=made_s - began_s - decode_s,
            decode_s=decode_s,
        )


def watched(dataset: Any, watch: FirstBatchWatch, batch_size: int) -> Dataset[Any]:
    """A torch data set of either style, which gives the same samples."""
    if isinstance(dataset, IterableDataset):
        return _WatchedIterable(dataset, watch, batch_size)
    return _WatchedMap(dataset, watch)


class _Timed:
    """A transform, and how long its calls have taken together."""

    def __init__(self, plain: Transform, clock: Clock) -> None:
        self._plain, self._clock = plain, clock
        self.spent_s = 0.0

    def __call__(self, data: Buffer, rng: np.random.Generator) -> Any:
        start_s = self._clock.now_s()
        made = self._plain(data, rng)
        self.spent_s += self._clock.now_s() - start_s
        return made


class _WatchedMap(Dataset[Any]):
    """DataLoader asks it for whole batches: a call more for each, and none for a sample."""

    def __init__(self, dataset: Any, watch: FirstBatchWatch) -> None:
        self._dataset, self._watch = dataset, watch

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, number: int) -> Any:
        return self._dataset[number]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        def make() -> list[Any]:
            samples: list[Any] = self._dataset.__getitems__(numbers)
            return samples

        return self._watch.timed(make) if self._watch.begins() else make()


class _WatchedIterable(IterableDataset[Any]):
    """Once the first batch is made, samples come from the data set's own iterator."""

    def __init__(self, dataset: Any, watch: FirstBatchWatch, batch_size: int) -> None:
        self._dataset, self._watch, self._batch_size = dataset, watch, batch_size

    def __iter__(self) -> Iterator[Any]:
        samples = iter(self._dataset)
        return chain(self._first(samples), samples) if self._watch.begins() else samples

    def _first(self, samples: Iterator[Any]) -> Iterator[Any]:
        yield from self._watch.timed(lambda: list(islice(samples, self._batch_size)))
