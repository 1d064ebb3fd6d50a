"""Read the records of a shard in any registered format, and describe their content."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from PIL import Image

from dataprep.counted import counted
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
from dataprep.names import escape
from dataprep.stores import ObjectInfo, Store, location

_BLOCK_BYTES = 8 * 2**20
_IMAGE_NAMES = ("image/encoded", "image")  # the usual names of the feature with the image


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the header of an encoded image says.

    Attributes:
        container: the format of the image, such as ``JPEG``.
        width, height: its size in pixels.
        mode: the name that Pillow gives to its colours, such as ``RGB``.
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
        features: the values in the record, by the names that its format gives them.
        image: the encoded image as it is stored; empty if there is none.
        facts: what the header of the image says; None if it cannot be read.
        damage: what is wrong with the record; empty if nothing is wrong.
        sample: the number of the sample in its split; -1 if it is not known.
        known: the row of the sample in the table of samples; empty if there is no table.
    """

    uri: str
    format: str
    number: int
    offset: int
    length: int
    features: Mapping[str, Feature] = field(default_factory=dict)
    image: bytes = b""
    facts: ImageFacts | None = None
    damage: str = ""
    sample: int = -1
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> str:
        """The shard, the number of the record and its offset, as a text."""
        return f"{self.uri}: record {self.number} at byte {self.offset}"

    def first_values(self, types: tuple[type[Feature], ...], *names: str) -> Sequence[Any]:
        """The values of the first feature with one of these names and types; empty if none."""
        for name in names:
            feature = self.features.get(name)
            if isinstance(feature, types):
                return feature.values
        return ()

    def text(self, *names: str) -> str:
        """The byte strings of the first feature with one of these names, as escaped text."""
        strings = [bytes(value) for value in self.first_values((BytesList,), *names)]
        return escape(b" ".join(strings).decode("utf-8", "surrogateescape"))


class Shard:
    """One shard in a store, whose records are read in order or by number.

    A slice of a shard has its bytes, which are fetched in blocks.

    Attributes:
        uri: the URI of the shard.
        format: the name of its format.
        fault: the damage at which reading or counting the records had to end; None if there is no
            damage.
    """

    def __init__(
        self,
        store: Store,
        info: ObjectInfo,
        choose: Callable[[Sequence[str]], str | None] | None = None,
    ) -> None:
        """Open a shard. Its first bytes tell its format.

        Args:
            store: the store that has the shard.
            info: the shard.
            choose: called with the names of formats if shards of several formats can begin with
                these bytes. It returns the name of the right format. If it returns None, the first
                format is used.

        Raises:
            ConfigError: no registered format has shards that begin with these bytes.
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
                f"{self.uri} is no shard of a known format ({', '.join(format_names())}), or its "
                f"first record is damaged: it begins with {head[:12]!r}"
            )
        self.format = candidates[0]
        if choose is not None and len(candidates) > 1:
            self.format = choose(candidates) or candidates[0]

    def __len__(self) -> int:
        """The size of the shard in bytes."""
        return self._info.bytes

    def __getitem__(self, where: slice) -> bytes:
        """Bytes of the shard. Only one block is kept, so slices should be read in rising order."""
        start, stop, _ = where.indices(len(self))
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
        """Yield each record up to damaged framing. Records with other damage are included."""
        for number, (offset, length) in enumerate(self.extents()):
            data = self[offset : offset + length]
            yield read_record(data, self.uri, self.format, number, offset)

    def read(self, number: int) -> Record:
        """Read one record by its number in the shard, from 0.

        Raises:
            ConfigError: there is no record with this number.
            RecordError: the framing before the record is damaged.
        """
        extents = self._extents or list(islice(self.extents(), max(0, number + 1)))
        if self.fault and number >= len(extents):
            raise self.fault
        require_number(number, len(extents), self.uri)
        offset, length = extents[number]
        return read_record(
            self._store.get_range(self._info.key, offset, length),
            self.uri,
            self.format,
            number,
            offset,
        )

    def extents(self) -> Iterator[Extent]:
        """Yield offset and length of each record, from its header. Damage sets ``fault``."""
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


def require_number(number: int, count: int, where: str) -> None:
    """Raise ConfigError if there is no record ``number`` among ``count`` records, from 0."""
    if not 0 <= number < count:
        raise ConfigError(
            f"--record {number}: {where} has {counted(count, 'record')}, counted from 0"
        )


def read_record(data: Buffer, uri: str, format_name: str, number: int, offset: int) -> Record:
    """Decode one record of a shard.

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
    return replace(record, features=features, image=image, facts=image_facts(image))


def image_facts(image: bytes) -> ImageFacts | None:
    """What the header of an encoded image says; None if ``image`` is no image."""
    try:
        with without_warnings(), Image.open(io.BytesIO(image), formats=FORMATS) as opened:
            return ImageFacts(opened.format or "", *opened.size, opened.mode)
    except Exception:  # noqa: BLE001  decoders raise errors of all types
        return None


def _image_in(features: Mapping[str, Feature]) -> bytes:
    """The image under its usual names, or else the largest byte string; empty if there is none."""
    candidates = [features[name] for name in _IMAGE_NAMES if name in features]
    if not candidates:
        candidates = list(features.values())
    strings: list[bytes] = []
    for feature in candidates:
        if isinstance(feature, BytesList):
            strings += [bytes(value) for value in feature.values]
    return max(strings, key=len, default=b"")


def _features(payload: Buffer, format_name: str) -> Mapping[str, Feature]:
    """The values in a payload; only the payload itself if it does not have the usual content."""
    try:
        return get_format(format_name).fields(payload)
    except RecordError:
        return {"payload": BytesList([payload])}
