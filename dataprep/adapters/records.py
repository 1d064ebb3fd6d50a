"""Read encoded images of a data set by number or by shard; decode nothing else.

The table of samples has the place and the label of each record, so only the image is read from
the record itself.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import numpy as np

from dataprep.dataset import Dataset
from dataprep.errors import CorruptRecord
from dataprep.formats import get_format
from dataprep.formats.protocol import Buffer
from dataprep.stores.local import LocalStore, version_of

_OPEN_FILES = 512
_HEAD_BYTES = 4096
# A protobuf size, then the tag of the only field of a list.
_SIZE = rb"[\x80-\xff]*[\x00-\x7f]"


class Records:
    """The encoded images and the labels of one split in one format.

    Threads can share an instance. It can be pickled and forked. If the split was made anew since
    it was opened, reading raises DatasetChanged.

    Attributes:
        labels: int64 (samples,), counted from 0.
        shard_keys: the key of each shard.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._files: dict[str, int] = {}
        store = dataset.store
        self._root = store.root if isinstance(store, LocalStore) else None
        self._snapshot = dataset.snapshot
        self._format = get_format(dataset.format)
        self._options = dataset.manifest.record_options(dataset.format)
        # Only payloads of TFRecord are Examples.
        feature = self._options.layout.feature("encoded") if dataset.format == "tfrecord" else None
        self._image_start = _image_start(feature) if feature else None
        self.shard_keys = [shard.key for shard in dataset.manifest.formats[dataset.format].shards]
        self._shards, self._offsets, self._lengths, self.labels = dataset.places
        # Samples are numbered in shard order.
        self._first = np.searchsorted(self._shards, np.arange(len(self.shard_keys) + 1)).tolist()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": {}}

    def __del__(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Buffer:
        """The encoded image of one sample, in one ranged read."""
        key, offset, length = self._place(index)
        return self._image_of(self._read(key, offset, length), key, offset)

    def image_within(self, shard: memoryview, index: int) -> Buffer:
        """The encoded image of one sample in ``shard``, the bytes that ``self.shard`` returned."""
        key, offset, length = self._place(index)
        return self._image_of(shard[offset : offset + length], key, offset)

    def name(self, index: int) -> str:
        """A description of a sample for messages: its number, shard and offset."""
        key, offset, _ = self._place(index)
        return f"sample {index:,} ({key} at byte {offset:,})"

    def shard(self, number: int) -> bytes:
        """All bytes of one shard, in one read."""
        return self._snapshot.get(self.shard_keys[number])

    def samples_of(self, number: int) -> range:
        """The numbers of the samples in a shard."""
        return range(self._first[number], self._first[number + 1])

    def _place(self, index: int) -> tuple[str, int, int]:
        key = self.shard_keys[int(self._shards[index])]
        return key, int(self._offsets[index]), int(self._lengths[index])

    def _read(self, key: str, offset: int, length: int) -> bytes:
        if key not in self._files and self._root is not None and len(self._files) < _OPEN_FILES:
            self._open(os.path.join(self._root, key), key)  # noqa: PTH118
        descriptor = self._files.get(key)
        if descriptor is None:
            return self._snapshot.get_range(key, offset, length)
        return os.pread(descriptor, length, offset)

    def _open(self, path: str, key: str) -> None:
        """Open a shard for good: opening takes longer than reading a record.

        If it cannot be opened, the usual way of reading raises the error.
        """
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._snapshot.confirm(key, version_of(os.fstat(descriptor)))
                self._files.setdefault(key, descriptor)
            finally:
                if self._files.get(key) != descriptor:  # another thread was first, or it changed
                    os.close(descriptor)

    def _image_of(self, record: Buffer, key: str, offset: int) -> Buffer:
        where = f"{key}: record at byte {offset}"
        found = next(self._format.read(record, where), None)
        if found is None:
            raise CorruptRecord(f"{where}: the shard ends before it; write it again", offset=offset)
        if self._image_start and (image := _first_value(found.payload, self._image_start)):
            return image
        try:
            return self._format.decode(found.payload, self._options).image
        except CorruptRecord as error:
            raise CorruptRecord(f"{where}: {error}", offset=offset) from None


def _image_start(feature: str) -> re.Pattern[bytes]:
    """What precedes the value of ``feature`` in an Example: its key, then three nested sizes."""
    name = feature.encode()
    # A longer name has two bytes of length: it is never found, and the record decoded in full.
    key = b"\x0a" + bytes([min(len(name), 127)]) + name + b"\x12"
    return re.compile(
        re.escape(key) + _SIZE + rb"\x0a" + _SIZE + rb"\x0a(" + _SIZE + rb")", re.DOTALL
    )


def _first_value(example: Buffer, start: re.Pattern[bytes]) -> memoryview | None:
    """The first byte string of a feature that begins near the start of ``example``.

    This skips the other features, which takes a quarter of the time of decoding them.
    """
    found = start.search(example, 0, _HEAD_BYTES)
    if found is None:
        return None
    size = 0
    for place, byte in enumerate(found[1]):
        size |= (byte & 127) << 7 * place
    return memoryview(example)[found.end() : found.end() + size]
