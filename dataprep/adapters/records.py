"""Encoded images of a data set by number or by shard, with nothing decoded that is not asked for.

The table of samples says where each record lies and what its label is, so that of a record only
the image has to be found.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dataprep.dataset import Dataset
from dataprep.errors import CorruptRecord, TruncatedRecord
from dataprep.formats import RecordOptions, get_format
from dataprep.formats.records import Buffer
from dataprep.snapshot import Snapshot
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.local import LocalStore, version_of

_CUSTOMARY = b"\x0a\x0dimage/encoded\x12"
_OPEN_FILES = 512
_NOWHERE = 0, -(2**62)
_OPENING = threading.Lock()


class EncodedImages(Protocol):
    """Images by number, and by the shards that they lie in.

    Attributes:
        labels: int64 (samples,), counted from 0.
        shard_keys: one for each shard.
    """

    labels: NDArray[np.int64]
    shard_keys: Sequence[str]

    def __len__(self) -> int:
        """How many samples."""
        ...

    def image(self, index: int) -> Buffer:
        """One encoded image."""
        ...

    def name(self, index: int) -> str:
        """Where a sample lies, in words."""
        ...

    def shard(self, number: int) -> bytes:
        """All bytes of one shard."""
        ...

    def samples_of(self, number: int) -> range:
        """Which samples lie in a shard."""
        ...

    def image_within(self, shard: memoryview, index: int) -> Buffer:
        """One encoded image of a shard whose bytes were read."""
        ...


class Records:
    """Images and labels of one split in one format.

    Can be pickled, forked, and shared by threads: files and connections belong to the process
    that opened them. All read of the manifest that ``dataset`` opened, or raise DatasetChanged.

    Attributes:
        labels: int64 (samples,), counted from 0.
        shard_keys: one for each shard.
    """

    def __init__(self, dataset: Dataset) -> None:
        entry = dataset.manifest.formats[dataset.format]
        self._uri = dataset.store.uri
        self._options: StoreOptions | None = getattr(dataset.store, "options", None)
        self._snapshot = dataset.snapshot
        self._format_name = dataset.format
        self._record_options = dataset.manifest.record_options(dataset.format)
        self.shard_keys: Sequence[str] = [shard.key for shard in entry.shards]
        self._shards, self._offsets, self._lengths, self.labels = dataset.places
        # Samples stand in shard order: where the samples of each shard begin.
        self._first = np.searchsorted(self._shards, np.arange(len(self.shard_keys) + 1))
        self._handles: _Handles | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handles": None}

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Buffer:
        """The encoded image of one sample: one ranged read."""
        handles = self._opened()
        key = self.shard_keys[int(self._shards[index])]
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        return handles.find_image(handles.read(key, offset, length), key, offset)

    def name(self, index: int) -> str:
        """Where a sample lies, in words."""
        key = self.shard_keys[int(self._shards[index])]
        return f"sample {index:,} ({key} at byte {int(self._offsets[index]):,})"

    def shard(self, number: int) -> bytes:
        """All bytes of one shard: one sequential read."""
        return self._opened().snapshot.get(self.shard_keys[number])

    def samples_of(self, number: int) -> range:
        """Which samples lie in a shard."""
        return range(int(self._first[number]), int(self._first[number + 1]))

    def image_within(self, shard: memoryview, index: int) -> Buffer:
        """The encoded image of one sample of a shard whose bytes were read."""
        offset, length = int(self._offsets[index]), int(self._lengths[index])
        key = self.shard_keys[int(self._shards[index])]
        return self._opened().find_image(shard[offset : offset + length], key, offset)

    def _opened(self) -> _Handles:
        handles = self._handles
        if handles is None or handles.process != os.getpid():
            with _OPENING:
                handles = self._handles
                if handles is None or handles.process != os.getpid():
                    snapshot = self._snapshot.by(store := open_store(self._uri, self._options))
                    root = store.root if isinstance(store, LocalStore) else None
                    handles = _Handles(snapshot, root, self._format_name, self._record_options)
                    self._handles = handles
        return handles


class _Handles:
    """What one process has opened."""

    def __init__(
        self, snapshot: Snapshot, root: Path | None, format_name: str, options: RecordOptions
    ) -> None:
        self.process = os.getpid()
        self.snapshot = snapshot
        self._format = get_format(format_name)
        self._options = options
        feature = options.layout.feature("encoded")
        # None for a format whose payload is no Example.
        self._image_key = feature_key(feature) if format_name == "tfrecord" and feature else None
        self._files: dict[str, int] = {}
        self._root = root

    def __del__(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Part of a shard; the first files stay open, since opening takes longer than reading."""
        if self._root is None:
            return self.snapshot.get_range(key, offset, length)
        descriptor = self._files.get(key)
        if descriptor is not None:
            return os.pread(descriptor, length, offset)
        descriptor = self._open(self._root / key, key)
        with _OPENING:
            kept = len(self._files) < _OPEN_FILES and key not in self._files
            if kept:
                self._files[key] = descriptor
        try:
            return os.pread(descriptor, length, offset)
        finally:
            if not kept:
                os.close(descriptor)

    def _open(self, path: Path, key: str) -> int:
        """A file that is of the manifest: whatever gets its name later, it stays what it is."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.snapshot.get_range(key, 0, 1)  # raises what there is to say to it
            raise
        try:
            self.snapshot.confirm(key, version_of(os.fstat(descriptor)))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def find_image(self, record: Buffer, key: str, offset: int) -> Buffer:
        """The image of one encoded record, its framing checked."""
        found = list(self._format.read(record, f"{key} at {offset}"))
        if not found:
            raise TruncatedRecord(f"{key}: ends before byte {offset}; fetch or write it again")
        if len(found) > 1:
            raise CorruptRecord(f"{key}: {len(found)} records at byte {offset}, where one stands")
        payload = found[0].payload
        if self._image_key and (image := image_field(payload, self._image_key)) is not None:
            return image
        try:
            return self._format.decode(payload, self._options).image
        except CorruptRecord as error:
            raise CorruptRecord(f"{key}: record at byte {offset}: {error}", offset=offset) from None


def feature_key(feature: str) -> bytes:
    """How the entry of ``feature`` in a serialised Example begins: its key, the value's tag.

    Empty for a name of more than 127 bytes, whose length takes two.
    """
    name = feature.encode()
    if len(name) > 127:
        return b""
    return b"\x0a" + bytes((len(name),)) + name + b"\x12"


def image_field(example: Buffer, key: bytes = _CUSTOMARY) -> memoryview | None:
    """The one byte string of a feature in a serialised tf.train.Example; ``key`` as encoded.

    Other features are skipped by their size, which takes a tenth of the time of decoding them.
    None where the example is of another form, or the feature further in than 4 KiB.
    """
    view = memoryview(example).cast("B")
    head = bytes(view[:4096])
    size, at = _field(head, 0)
    if at + size != len(view):
        return None
    while 0 < at < len(head):
        size, at = _field(head, at)
        if head.startswith(key, at):
            return _only_value(view, head, at + len(key), at + size)
        at += size
    return None


def _only_value(view: memoryview, head: bytes, at: int, end: int) -> memoryview | None:
    """What a Feature holds whose size stands at ``at``, if that is a list of one byte string.

    Feature, bytes_list and value then all end where the entry does.
    """
    size, at = _varint(head, at)
    ends = [at + size]
    for _ in range(2):
        size, at = _field(head, at)
        ends.append(at + size)
    return view[at:end] if at > 0 and set(ends) == {end} and end <= len(view) else None


def _field(data: bytes, at: int) -> tuple[int, int]:
    """Size and place of the content of field 1; a place far below 0 where there is none."""
    return _varint(data, at + 1) if data[at : at + 1] == b"\x0a" else _NOWHERE


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        value |= (data[position] & 0x7F) << shift
        if data[position] < 0x80:
            return value, position + 1
        shift += 7
    return _NOWHERE
