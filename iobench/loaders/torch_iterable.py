"""``torch-iterable``: DataLoader over ``dataprep.to_torch(iterable=True)``."""

from __future__ import annotations

from typing import Any

from dataprep.adapters import to_torch
from dataprep.adapters.augment import Augmentation
from iobench.loaders.patterns import of_torch_iterable
from iobench.loaders.protocol import ReadPattern
from iobench.loaders.torch_loader import TorchLoader
from iobench.stored import open_shards


class TorchIterableLoader(TorchLoader):
    """Reads shards in random order and shuffles runs of records in each; a buffer is optional."""

    name = "torch-iterable"

    def open(self, transform: Augmentation | None) -> Any:
        """The data set of ``dataprep.to_torch``, shard by shard."""
        settings = self.settings
        dataset = open_shards(self.place)
        self.counter = dataset.count_reads()
        return to_torch(
            dataset,
            iterable=True,
            transform=transform,
            shuffle=settings.shuffle,
            shuffle_buffer=settings.shuffle_buffer,
            seed=settings.seed,
            rank=settings.rank,
            world_size=settings.world_size,
            global_batch=settings.batch_size * settings.world_size,
        )

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Each worker reads windows of many samples in sequence."""
        return of_torch_iterable(self.settings, sample_bytes)

    def buffer_bytes(self) -> int:
        """The bytes in the full buffers of all workers, with records of average length."""
        lengths = open_shards(self.place).places.lengths
        buffers = (self.settings.shuffle_buffer + 1) * (self.settings.workers or 1)
        return int(min(buffers, len(lengths)) * lengths.mean())
