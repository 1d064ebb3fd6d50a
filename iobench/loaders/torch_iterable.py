"""``torch-iterable``: DataLoader over ``dataprep.to_torch(iterable=True)``."""

from __future__ import annotations

from typing import Any, ClassVar

from dataprep.reading.augment import Augmentation
from dataprep.reading.frameworks import to_torch
from iobench.data.data_summary import open_shards
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.protocol import ReadPattern
from iobench.loaders.read_patterns import windows_of_each_worker
from iobench.loaders.torch_loader import TorchLoader


class TorchIterableLoader(TorchLoader):
    """A loader that reads one shard after the other.

    With ``shuffle``, the shards come in random order. In each shard, runs of neighbouring records
    come in random order, and so do the records of each run. With ``shuffle_buffer``, each worker
    also draws its samples from a buffer.
    """

    name = "torch-iterable"
    capabilities: ClassVar = Capabilities(
        reads_stored_pixels=True,
        image_types=frozenset({"uint8", "float32"}),
        holds_samples=True,
        access_modes=frozenset({"pipe"}),
        read_pattern=windows_of_each_worker,
    )

    def open(self, transform: Augmentation | None) -> Any:
        """Open the data set of ``dataprep.to_torch`` that is read shard by shard."""
        settings = self.settings
        dataset = open_shards(self.location)
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
        """Return the pattern of workers that read windows of many samples in sequence."""
        return windows_of_each_worker(self.settings, sample_bytes)

    def buffer_bytes(self) -> int:
        """Return the bytes of the full buffers of all workers, with records of average length.

        Without shuffling there are no buffers.
        """
        if not self.settings.shuffle:
            return 0
        lengths = open_shards(self.location).places.lengths
        # Each worker also holds the sample that it gives next.
        buffered_samples = (self.settings.shuffle_buffer + 1) * (self.settings.workers or 1)
        return int(min(buffered_samples, len(lengths)) * lengths.mean())
