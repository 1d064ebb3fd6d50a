"""``torch-map``: DataLoader over ``dataprep.to_torch``, with one ranged read per image."""

from __future__ import annotations

from typing import Any

from dataprep.adapters import to_torch
from dataprep.adapters.augment import Augmentation
from iobench.loaders.torch_loader import TorchLoader
from iobench.stored import open_shards


class TorchMapLoader(TorchLoader):
    """Reads samples in fully random order, each by itself."""

    name = "torch-map"

    def open(self, transform: Augmentation | None) -> Any:
        """The data set of ``dataprep.to_torch``, by sample number."""
        settings = self.settings
        dataset = open_shards(self.place)
        self.counter = dataset.count_reads()
        return to_torch(
            dataset,
            transform=transform,
            shuffle=settings.shuffle,
            seed=settings.seed,
            rank=settings.rank,
            world_size=settings.world_size,
        )
