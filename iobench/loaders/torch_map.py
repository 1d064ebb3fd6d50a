"""``torch-map``: DataLoader over ``dataprep.to_torch``, with one ranged read per image."""

from __future__ import annotations

from typing import Any, ClassVar

from dataprep.reading.augment import Augmentation
from dataprep.reading.frameworks import to_torch
from iobench.data.data_summary import open_shards
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.read_patterns import batch_by_batch
from iobench.loaders.torch_loader import TorchLoader


class TorchMapLoader(TorchLoader):
    """A loader that reads each sample by itself, with ``shuffle`` in fully random order."""

    name = "torch-map"
    capabilities: ClassVar = Capabilities(
        reads_single_samples=True,
        reads_stored_pixels=True,
        image_types=frozenset({"uint8", "float32"}),
        holds_samples=True,
        access_modes=frozenset({"lazy"}),
        read_pattern=batch_by_batch,
    )

    def open(self, transform: Augmentation | None) -> Any:
        """Open the data set of ``dataprep.to_torch`` that is read by sample number."""
        settings = self.settings
        dataset = open_shards(self.location)
        self.counter = dataset.count_reads()
        return to_torch(
            dataset,
            transform=transform,
            shuffle=settings.shuffle,
            seed=settings.seed,
            rank=settings.rank,
            world_size=settings.world_size,
        )
