"""Read the records of any TFRecord or RecordIO shard, and describe what they contain."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from PIL import Image

from dataprep.counted import counted
from dataprep.errors import ConfigError, RecordError
from dataprep.formats import get_format, recordio, tfrecord
from dataprep.formats.crc import masked_crc32c
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, decode_example
from dataprep.formats.recordio import unpack_image_record
from dataprep.formats.records import Buffer, without_place
from dataprep.image.containers import FORMATS
from dataprep.names import escape
from dataprep.stores import ObjectInfo, Store
from dataprep.stores.protocol import location

_BLOCK_BYTES = 4 * 2**20
_IMAGES = ("image/encoded", "image")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The header of an encoded image; ``text`` also has its mode, and whether it is progressive."""

    container: str
    width: int
    height: int
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a shard.

    Attributes:
        uri: the shard.
        format: the format of the shard.
        number: its place in the shard, from 0.
        offset, length: its bytes in the shard, framing included.
        features: what it contains; those of an image record are flag, label, id, id2 and image.
        image: the encoded image as it is stored; empty if there is none.
        facts: the header of the image; None if it cannot be read.
        damage: what is wrong with the record; empty if it is sound.
        sample: its number in the split, or -1.
        known: its row in the table of samples; empty if there is no table.
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
    def place(self) -> str:
        """Shard, record and byte in words."""
        return f"{self.uri}: record {self.number} at byte {self.offset}"

    def first(self, kinds: tuple[type[Feature], ...], *names: str) -> Sequence[Any]:
        """The values of the first of these features that has one of these types."""
        found = (self.features[name] for name in names if name in self.features)
        return next((one.values for one in found if isinstance(one, kinds)), ())

    def text(self, *names: str) -> str:
        """``first`` of byte strings, as escaped text."""
        data = b" ".join(map(bytes, self.first((BytesList,), *names)))
        return escape(data.decode("utf-8", "surrogateescape"))


class Shard:
    """The records of one object, in order or by number. ``len`` reads the headers of all.

    Attributes:
        uri: where it is stored.
        format: ``tfrecord`` or ``recordio``, by its first bytes.
        bytes: its size.
        fault: why no more records were found by ``len``, if it is damaged.
    """

    def __init__(self, store: Store, info: ObjectInfo) -> None:
        self.uri, self.bytes, self.fault = location(store, info.key), info.bytes, ""
        self._store, self._key = store, info.key
        self._start, self._block = 0, b""
        self._spans: list[tuple[int, int]] = []
        self.format = self._format()

    def __len__(self) -> int:
        if not self._spans:
            try:
                for span in self.spans():
                    self._spans.append(span)
            except RecordError as error:
                self.fault = str(error)
        return len(self._spans)

    def __iter__(self) -> Iterator[Record]:
        """Every record, also damaged ones. Raises RecordError where the framing is damaged."""
        for number, (offset, length) in enumerate(self.spans()):
            yield read_record(self._read(offset, length), self.uri, self.format, number, offset)

    def read(self, number: int) -> Record:
        """One record.

        Raises:
            ConfigError: there is none of this number.
            RecordError: the framing is damaged before it.
        """
        spans = self._spans or list(islice(self.spans(), max(0, number + 1)))
        require_number(number, len(spans), self.uri)
        offset, length = spans[number]
        data = self._store.get_range(self._key, offset, length)
        return read_record(data, self.uri, self.format, number, offset)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Offset and length of each record, by the headers of the framing.

        Raises:
            CorruptRecord, TruncatedRecord: the framing is damaged, or the shard is cut short.
        """
        offset = number = 0
        while offset < self.bytes:
            where = self.uri, number, offset
            if self.format == "tfrecord":
                header = self._read(offset, tfrecord.HEADER_BYTES)
                end = tfrecord.record_end(header, self.bytes, where)
            else:
                end = self._end_of_parts(where)
            yield offset, end - offset
            offset, number = end, number + 1

    def _end_of_parts(self, where: tuple[str, int, int]) -> int:
        at, cflag = where[2], recordio.FIRST
        while cflag in (recordio.FIRST, recordio.MIDDLE):
            header = self._read(at, recordio.HEADER_BYTES)
            cflag, size = recordio.part_header(header, at, self.bytes, where)
            at += recordio.HEADER_BYTES + size + -size % 4
        return at

    def _format(self) -> str:
        head = self._read(0, tfrecord.HEADER_BYTES)
        if head.startswith(recordio.MAGIC):
            return "recordio"
        if int.from_bytes(head[8:], "little") == masked_crc32c(head[:8]):
            return "tfrecord"
        raise ConfigError(
            f"{self.uri} is neither a TFRecord nor a RecordIO shard, or its first record is "
            f"damaged: it begins with {head!r}"
        )

    def _read(self, offset: int, length: int) -> bytes:
        """Bytes by rising offset, several reads in one request."""
        begin = offset - self._start
        if not 0 <= begin <= begin + length <= len(self._block):
            wanted = min(max(length, _BLOCK_BYTES), self.bytes - offset)
            self._start, self._block = offset, self._store.get_range(self._key, offset, wanted)
            begin = 0
        return self._block[begin : begin + length]


def require_number(number: int, count: int, where: str) -> None:
    """Raise ConfigError if there is no record of this number among ``count``."""
    if not 0 <= number < count:
        raise ConfigError(
            f"--record {number}: {where} has {counted(count, 'record')}, counted from 0"
        )


def read_record(data: Buffer, uri: str, form: str, number: int, offset: int) -> Record:
    """The record whose encoded bytes, which begin at ``offset`` of the shard, are ``data``."""
    record = Record(uri, form, number, offset, len(data))
    try:
        (raw,) = get_format(form).read(data, "record")
    except ValueError as error:
        what = without_place(str(error))
        return replace(record, damage=what if isinstance(error, RecordError) else "not one record")
    features = _features(raw.payload, form)
    image = _image(features)
    return replace(record, features=features, image=image, facts=image_facts(image))


def image_facts(image: bytes) -> ImageFacts | None:
    """The header of an encoded image; None if it is not one."""
    try:
        with Image.open(io.BytesIO(image), formats=FORMATS) as opened:
            orientation, frames = opened.getexif().get(0x0112, 1), getattr(opened, "n_frames", 1)
            details = {
                "progressive": "progressive" in opened.info,
                "ICC profile": "icc_profile" in opened.info,
                f"orientation {orientation}": orientation != 1,
                f"{frames} frames": frames > 1,
            }
            words = [f"{opened.format} of {opened.width} x {opened.height}", opened.mode]
            words += [word for word, present in details.items() if present]
            return ImageFacts(opened.format or "", *opened.size, ", ".join(words))
    except Exception:  # noqa: BLE001  decoders raise errors of all kinds
        return None


def _features(payload: Buffer, form: str) -> Mapping[str, Feature]:
    try:
        if form == "tfrecord":
            return decode_example(payload)
        found = unpack_image_record(payload)
    except RecordError:
        return {"payload": BytesList([payload])}
    return {
        "flag": Int64List([found.flag]),
        "label": FloatList(found.labels),
        "id": Int64List([found.id]),
        "id2": Int64List([found.id2]),
        "image": BytesList([found.image]),
    }


def _image(features: Mapping[str, Feature]) -> bytes:
    """The image by its customary name, or the largest byte string."""
    found = [features[name] for name in _IMAGES if name in features] or [*features.values()]
    values = [bytes(value) for one in found if isinstance(one, BytesList) for value in one.values]
    return max(values, key=len, default=b"")
