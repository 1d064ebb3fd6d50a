"""``torch-folder``: DataLoader over class folders of image files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from dataprep.adapters.augment import Augmentation
from dataprep.assign import Order
from dataprep.formats.protocol import Buffer
from dataprep.reading.read_counter import ReadCounter
from dataprep.sources import Source, open_source
from dataprep.stores import StoreOptions
from iobench.loaders.torch_loader import TorchLoader
from iobench.stored import ImageFiles, image_files


class TorchFolderLoader(TorchLoader):
    """Reads files in fully random order; folders are listed once, when the first epoch begins."""

    name = "torch-folder"
    holds = "files"
    reads = "files"

    def open(self, transform: Augmentation | None) -> Any:
        """List the folders; a file's label is the number of its folder among the sorted classes."""
        from dataprep.adapters.torch import MapRecords

        settings = self.settings
        listing = open_source(self.place.uri, options=self.place.store).list()
        found = image_files(listing, self.place.every)
        order = Order(settings.shuffle, settings.seed, settings.rank, settings.world_size)
        self.counter = ReadCounter()
        files = FolderFiles(self.place.uri, self.place.store, found, self.counter)
        return MapRecords(files, transform, order)


class FolderFiles:
    """Files by number; each process opens its own connection, when it reads its first file."""

    def __init__(
        self, uri: str, options: StoreOptions, files: ImageFiles, counter: ReadCounter
    ) -> None:
        self._uri, self._options, self._files = uri, options, files
        self.counter = counter
        self.labels = files.labels

    def __len__(self) -> int:
        return len(self._files.names)

    def image(self, index: int) -> Buffer:
        """One encoded image, in one read."""
        data = self._source.read(self._files.located(index))
        self.counter.add(1, len(data))
        return data

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Several encoded images, one read after the other."""
        return [self.image(number) for number in numbers]

    def order_on_host(self, order: Order) -> Order:
        """The order itself: files are not divided among hosts."""
        return order

    def samples_by_share(self, order: Order) -> tuple[int, ...]:
        """How many files the only share has."""
        return (len(self),)

    def name(self, index: int) -> str:
        """The file's name below the folder."""
        return self._files.names[index]

    @cached_property
    def _source(self) -> Source:
        return open_source(self._uri, options=self._options)
