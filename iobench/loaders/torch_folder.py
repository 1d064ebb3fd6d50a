"""``torch-folder``: DataLoader over plain class folders, a file an image."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dataprep.adapters.augment import Augmentation
from dataprep.assign import Order
from dataprep.formats.protocol import Buffer
from dataprep.sources import Source, open_source
from dataprep.stores import StoreOptions
from iobench.loaders.protocol import Readable
from iobench.loaders.torch_loader import TorchLoader
from iobench.stored import ImageFiles, image_files


class TorchFolderLoader(TorchLoader):
    """Files in fully random order; listed once, when the first epoch begins."""

    name = "torch-folder"
    holds = "files"
    reads = "files"

    def open(self, transform: Augmentation | None) -> Readable:
        """List the folders; a file's label is its folder's place among the class names."""
        from dataprep.adapters.torch import MapRecords

        settings = self.settings
        listing = open_source(self.place.uri, options=self.place.store).list()
        found = image_files(listing)
        order = Order(settings.shuffle, settings.seed, settings.rank, settings.world_size)
        files = FolderFiles(self.place.uri, self.place.store, found)
        images = MapRecords(files, transform, order)
        return Readable(images, images.sampler, images.set_epoch)


class FolderFiles:
    """Files by number; each process opens its own connection."""

    def __init__(self, uri: str, options: StoreOptions, files: ImageFiles) -> None:
        self._place = uri, options
        self._files = files
        self.labels = files.labels
        self._opened: tuple[int, Source] | None = None

    def __len__(self) -> int:
        return len(self._files.names)

    def image(self, index: int) -> Buffer:
        """One encoded image: one read."""
        return self._source().read(self._files.located(index))

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Several encoded images, one read after the other."""
        return [self.image(number) for number in numbers]

    def local(self, order: Order) -> Order:
        """The order itself: files are not divided among hosts."""
        return order

    def name(self, index: int) -> str:
        """The file's name below the folder."""
        return self._files.names[index]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def _source(self) -> Source:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), open_source(self._place[0], options=self._place[1])
        return self._opened[1]
