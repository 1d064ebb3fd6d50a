"""``torch-map``: DataLoader over ``dataprep.to_torch``, a ranged read an image."""

from __future__ import annotations

from typing import Any

from dataprep.adapters import to_torch
from dataprep.adapters.augment import Augmentation
from iobench.loaders.torch_loader import TorchLoader
from iobench.stored import open_shards


class TorchMapLoader(TorchLoader):
    """Samples in fully random order, each read by itself."""

    name = "torch-map"

    def open(self, transform: Augmentation | None) -> Any:
        """The data set's map style."""
        settings = self.settings
        return to_torch(
            open_shards(self.place, "tfrecord"),
            transform=transform,
            shuffle=settings.shuffle,
            seed=settings.seed,
            rank=settings.rank,
            world_size=settings.world_size,
        )
