"""Read the records of a shard in any registered format, with all values that they contain."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from PIL import Image

from dataprep.errors import ConfigError, RecordError, TruncatedRecord
from dataprep.formats import (
    HEAD_BYTES,
    Buffer,
    BytesList,
    Feature,
    format_names,
    formats_like,
    get_format,
)
from dataprep.formats.protocol import Extent, damaged, without_location
from dataprep.image.containers import FORMATS, without_warnings
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.stores import ObjectInfo, Store, location

_BLOCK_BYTES = 8 * 2**20
"""Bytes that are fetched at a time, so that neighbouring records share a request."""

_IMAGE_NAMES = ("image/encoded", "image")  # the usual names of the feature that holds the image


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The properties of an encoded image, from its header.

    Attributes:
        container: the format of the image, such as ``JPEG``.
        width, height: the size of the image in pixels.
        mode: the Pillow mode, such as ``RGB``.
    """

    container: str
    width: int
    height: int
    mode: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a shard.

    Attributes:
        uri: the URI of the shard.
        format: the format of the shard.
        number: the number of the record in the shard, from 0.
        offset, length: the location of the record in the shard in bytes, with framing.
        features: the values in the record, by their names in the format.
        image: the encoded image as it is stored; empty if there is none.
        image_header: the properties of the image; None if its header cannot be read.
        damage: a description of the damage; empty if the record is not damaged.
        sample: the number of the sample in its split; -1 if unknown.
        row: the row of the sample in the table of samples; empty if there is no table.
    """

    uri: str
    format: str
    number: int
    offset: int
    length: int
    features: Mapping[str, Feature] = field(default_factory=dict)
    image: bytes = b""
    image_header: ImageHeader | None = None
    damage: str = ""
    sample: int = -1
    row: Mapping[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> str:
        """The shard, the number of the record and its offset, for messages."""
        return f"{self.uri}: record {self.number} at byte {self.offset}"

    def first_values(self, types: tuple[type[Feature], ...], *names: str) -> Sequence[Any]:
        """The values of the first feature with one of these names and types.

        The result is empty if there is no such feature.
        """
        for name in names:
            feature = self.features.get(name)
            if isinstance(feature, types):
                return feature.values
        return ()

    def text(self, *names: str) -> str:
        """The byte strings of the first feature with one of these names, as escaped text.

        Several strings are joined by spaces.
        """
        strings = [bytes(value) for value in self.first_values((BytesList,), *names)]
        return escape(b" ".join(strings).decode("utf-8", "surrogateescape"))


class ShardReader:
    """A shard in a store. Its records are read in order or by number.

    A slice of a shard is a part of its bytes. They are fetched in blocks.

    Attributes:
        uri: the URI of the shard.
        format: the name of its format.
        fault: the damage behind which no record can be read; None if no such damage was found.
    """

    def __init__(
        self,
        store: Store,
        info: ObjectInfo,
        choose_format: Callable[[Sequence[str]], str | None] | None = None,
    ) -> None:
        """Open a shard. The format is recognised by the first bytes.

        Args:
            store: the store that has the shard.
            info: the key and the size of the shard.
            choose_format: called with the names of the formats if several formats match the first
                bytes. It returns the name of the right format, or None if it does not know. Then
                the first format is used.

        Raises:
            ConfigError: no registered format matches the first bytes.
        """
        self.uri = location(store, info.key)
        self.fault: RecordError | None = None
        self._store = store
        self._info = info
        self._block = b""
        self._block_start = 0
        self._extents: list[Extent] = []
        head = self[:HEAD_BYTES]
        candidates = formats_like(head)
        if not candidates:
            raise ConfigError(
                f"{self.uri} is not a shard of a known format ({', '.join(format_names())}), or "
                f"its first record is damaged: it begins with {head[:12]!r}"
            )
        self.format = candidates[0]
        if choose_format is not None and len(candidates) > 1:
            self.format = choose_format(candidates) or candidates[0]

    def __len__(self) -> int:
        """The size of the shard in bytes."""
        return self._info.bytes

    def __getitem__(self, bounds: slice) -> bytes:
        """Bytes of the shard. Only one block is kept, so slices should be read in rising order."""
        start, stop, _ = bounds.indices(len(self))
        block_stop = self._block_start + len(self._block)
        if not self._block_start <= start <= stop <= block_stop:
            length = min(max(stop - start, _BLOCK_BYTES), len(self) - start)
            self._block = self._store.get_range(self._info.key, start, length)
            self._block_start = start
        return self._block[start - self._block_start : stop - self._block_start]

    def count(self) -> int:
        """The number of records before any damage. The headers of all records are read."""
        if not self._extents:
            self._extents = list(self.extents())
        return len(self._extents)

    def __iter__(self) -> Iterator[Record]:
        """Yield the records before any damaged framing. Records with other damage are included."""
        for number, (offset, length) in enumerate(self.extents()):
            data = self[offset : offset + length]
            yield read_record(data, self.uri, self.format, number, offset)

    def read(self, number: int) -> Record:
        """Read one record by its number in the shard, from 0.

        Raises:
            ConfigError: there is no record with this number.
            RecordError: the framing of the record, or of a record before it, is damaged.
        """
        extents = self._extents or list(islice(self.extents(), max(0, number + 1)))
        if self.fault and number >= len(extents):
            raise self.fault
        require_record_number(number, len(extents), self.uri)
        offset, length = extents[number]
        return read_record(
            self._store.get_range(self._info.key, offset, length),
            self.uri,
            self.format,
            number,
            offset,
        )

    def extents(self) -> Iterator[Extent]:
        """Yield the offset and the length of each record, from its header.

        Damaged framing ends the iteration and sets ``fault``.
        """
        record_format = get_format(self.format)
        offset = number = 0
        while offset < len(self):
            try:
                extent = record_format.span_at(self, offset, (self.uri, number))
            except RecordError as error:
                self.fault = error
                return
            if extent is None:
                return
            yield extent
            _, length = extent
            offset += length
            number += 1
        if record_format.trailer:
            problem = "the file ends without the trailer that follows the last record"
            self.fault = damaged(TruncatedRecord, self.uri, number, offset, problem)


def require_record_number(number: int, count: int, owner: str) -> None:
    """Raise ConfigError unless ``owner`` has a record with this number.

    Args:
        number: the number of a record, from 0.
        count: the number of records.
        owner: the shard or split that has the records, for the error.
    """
    if not 0 <= number < count:
        raise ConfigError(
            f"--record {number}: {owner} has {counted(count, 'record')}, counted from 0"
        )


def read_record(data: Buffer, uri: str, format_name: str, number: int, offset: int) -> Record:
    """Decode one record of a shard. A damaged record has ``Record.damage``; no error is raised.

    Args:
        data: the encoded record.
        uri: the URI of the shard.
        format_name: the format of the shard.
        number: the number of the record in the shard, from 0.
        offset: the offset of the record in the shard, in bytes.
    """
    record = Record(uri, format_name, number, offset, len(data))
    try:
        (raw,) = get_format(format_name).read(data, "record")
    except RecordError as error:
        return replace(record, damage=without_location(str(error)))
    except ValueError:  # unpacking fails unless there is exactly one record
        return replace(record, damage="not one record")
    features = _features(raw.payload, format_name)
    image = _image_in(features)
    image_header = read_image_header(image)
    return replace(record, features=features, image=image, image_header=image_header)


def read_image_header(image: bytes) -> ImageHeader | None:
    """Read the header of an encoded image. Returns None if ``image`` is not an image."""
    try:
        with without_warnings(), Image.open(io.BytesIO(image), formats=FORMATS) as opened:
            return ImageHeader(opened.format or "", *opened.size, opened.mode)
    except Exception:  # noqa: BLE001  decoders raise errors of all types
        return None


def _image_in(features: Mapping[str, Feature]) -> bytes:
    """The image among the values of a record; empty if there is none.

    It is the largest byte string in the features with usual names of an image. If no feature has
    such a name, it is the largest byte string of all features.
    """
    candidates = [features[name] for name in _IMAGE_NAMES if name in features]
    if not candidates:
        candidates = list(features.values())
    strings: list[bytes] = []
    for feature in candidates:
        if isinstance(feature, BytesList):
            strings += [bytes(value) for value in feature.values]
    return max(strings, key=len, default=b"")


def _features(payload: Buffer, format_name: str) -> Mapping[str, Feature]:
    """The values in a payload. If its content cannot be decoded, the only value is the payload."""
    try:
        return get_format(format_name).fields(payload)
    except RecordError:
        return {"payload": BytesList([payload])}
