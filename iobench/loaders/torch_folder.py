"""``torch-folder``: DataLoader over class folders of image files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from dataprep.formats.protocol import Buffer
from dataprep.reading.augment import Augmentation
from dataprep.reading.epoch_order import Order
from dataprep.reading.read_counter import ReadCounter
from dataprep.sources import Source, open_source
from dataprep.stores import StoreOptions
from iobench.data.data_summary import ImageFiles, image_files
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.read_patterns import batch_by_batch
from iobench.loaders.torch_loader import TorchLoader


class TorchFolderLoader(TorchLoader):
    """A loader that reads files, with ``shuffle`` in fully random order.

    The folders are listed once, when the first epoch begins.
    """

    name = "torch-folder"
    capabilities: ClassVar = Capabilities(
        image_types=frozenset({"uint8", "float32"}),
        holds_samples=True,
        read_pattern=batch_by_batch,
    )
    holds = "files"
    reads = "files"

    def open(self, transform: Augmentation | None) -> Any:
        """List the folders. The label of a file is the number of its folder in sorted order."""
        from dataprep.reading.torch import MapRecords

        settings = self.settings
        listing = open_source(self.location.uri, options=self.location.store).list()
        files = image_files(listing, self.location.every)
        order = Order(settings.shuffle, settings.seed, settings.rank, settings.world_size)
        self.counter = ReadCounter()
        records = FolderFiles(self.location.uri, self.location.store, files, self.counter)
        return MapRecords(records, transform, order)


class FolderFiles:
    """Image files by number.

    Each process opens its own connection when it reads its first file.
    """

    def __init__(
        self, uri: str, options: StoreOptions, files: ImageFiles, counter: ReadCounter
    ) -> None:
        self._uri, self._options, self._files = uri, options, files
        self.counter = counter
        self.labels = files.labels

    def __len__(self) -> int:
        return len(self._files.names)

    def image(self, index: int) -> Buffer:
        """Read an encoded image, in one read."""
        data = self._source.read(self._files.located(index))
        self.counter.add(1, len(data))
        return data

    def fetch(self, numbers: Sequence[int]) -> list[Buffer]:
        """Read encoded images, one after the other."""
        return [self.image(number) for number in numbers]

    def order_on_host(self, order: Order) -> Order:
        """Return the order itself, since files are not divided among hosts."""
        return order

    def samples_by_share(self, order: Order) -> tuple[int, ...]:
        """Return the number of files, which all belong to one share."""
        return (len(self),)

    def name(self, index: int) -> str:
        """Return the path of a file, relative to the folder."""
        return self._files.names[index]

    @cached_property
    def _source(self) -> Source:
        return open_source(self._uri, options=self._options)
