"""``torch-iterable``: DataLoader over ``dataprep.to_torch(iterable=True)``, whole shards."""

from __future__ import annotations

from dataprep.adapters import to_torch
from dataprep.augment import Augmentation
from iobench.loaders.torch_loader import Readable, TorchLoader
from iobench.stored import open_shards


class TorchIterableLoader(TorchLoader):
    """Shards in random order, each read as a whole, its records shuffled."""

    name = "torch-iterable"

    def open(self, transform: Augmentation | None) -> Readable:
        """The data set's iterable style."""
        settings = self.settings
        dataset = open_shards(self.place, "tfrecord")
        images = to_torch(
            dataset,
            iterable=True,
            transform=transform,
            shuffle=settings.shuffle,
            seed=settings.seed,
        )
        shards = len(dataset.manifest.formats[dataset.format].shards)
        if shards < settings.workers:
            self.notes = (f"{settings.workers} workers share {shards} shards: some have none",)
        return Readable(images, None, images.set_epoch)

    def whole_batches(self) -> int:
        """Each worker batches the samples of its own shards."""
        settings = self.settings
        images = to_torch(
            open_shards(self.place, "tfrecord"),
            iterable=True,
            shuffle=settings.shuffle,
            seed=settings.seed,
        )
        counts = images.samples_by_worker(settings.workers, epoch=0)
        return sum(count // settings.batch_size for count in counts)
