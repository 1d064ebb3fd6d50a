"""PURE. Everything that one record holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dataprep.errors import ImageError, RecordError
from dataprep.formats import get_format
from dataprep.formats.example import BytesList, Feature, FloatList, decode_example
from dataprep.formats.protocol import Buffer, without_place
from dataprep.formats.recordio import unpack_image_record
from dataprep.inspection.image_facts import ImageFacts, container_of, image_facts
from dataprep.names import escape

_IMAGES = ("image/encoded", "image")
_MOST_VALUES = 8
_MOST_TEXT = 60


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a record: its name and type, how many values it has, and the first of them."""

    name: str
    type: str
    count: int
    shown: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        uri: of the object that it lies in.
        number: within that object, from 0.
        offset: of its first byte; ``length``: in bytes, framing included.
        sample: its number in the data set, or -1.
        known: what the table of samples says of it, empty where there is none.
        fields: what it holds.
        facts: what its image's header says; ``problem`` is why that is not known.
        image: the encoded image as it is stored, or None.
        damage: what is wrong with the record, if it is.
    """

    uri: str
    format: str
    number: int
    offset: int
    length: int
    sample: int
    known: Mapping[str, Any]
    fields: tuple[Field, ...]
    facts: ImageFacts | None
    problem: str
    image: bytes | None
    damage: str = ""

    @property
    def range(self) -> str:
        """The header of the one HTTP request that fetches it."""
        return f"bytes={self.offset}-{self.offset + self.length - 1}"

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: all but the image's bytes."""
        content = asdict(replace(self, image=None))
        del content["image"]
        return {**content, "known": dict(self.known), "range": self.range}


class Place(NamedTuple):
    """Where a record lies, and what is known of it from elsewhere."""

    uri: str
    format: str
    number: int
    offset: int
    length: int
    sample: int = -1
    known: Mapping[str, Any] = {}


def read_record(data: Buffer, place: Place) -> Record:
    """The record whose encoded bytes are ``data``, its checksums verified where it has any.

    Raises:
        RecordError: it is damaged, or not one record.
    """
    payload = _payload(data, place)
    fields, image = _CONTENTS.get(place.format, _opaque)(payload)
    facts, problem = None, "" if image is not None else "no image in it"
    if image is not None:
        try:
            facts = image_facts(image)
        except ImageError as error:
            problem = str(error)
    return Record(*place, tuple(fields), facts, problem, image)


def damaged(place: Place, damage: str) -> Record:
    """A record of which only the place is known, and what is wrong with it."""
    return Record(*place, (), None, without_place(damage), None, damage)


def _payload(data: Buffer, place: Place) -> Buffer:
    where = f"{place.uri}: record {place.number} at byte {place.offset}"
    try:
        records = list(get_format(place.format).read(data, "record"))
    except RecordError as error:
        what = f"{where}: {without_place(str(error))}"
        raise type(error)(what, record=place.number, offset=place.offset) from None
    if len(records) != 1:
        raise RecordError(f"{where}: {len(records)} records where one should stand")
    return records[0].payload


def _example(payload: Buffer) -> tuple[list[Field], bytes | None]:
    try:
        features = decode_example(payload)
    except RecordError:
        return _opaque(payload)
    fields = [_feature(name, features[name]) for name in sorted(features)]
    return fields, _image_among(features)


def _feature(name: str, feature: Feature) -> Field:
    kind = "bytes"
    if not isinstance(feature, BytesList):
        kind = "float" if isinstance(feature, FloatList) else "int64"
    values = [_value(value) for value in feature.values[:_MOST_VALUES]]
    more = ", …" if len(feature.values) > _MOST_VALUES else ""
    return Field(escape(name), kind, len(feature.values), ", ".join(values) + more)


def _value(value: Buffer | float) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    data = bytes(value)
    if container := container_of(data):
        return f"{container}, {len(data):,} bytes"
    text = escape(data[: 4 * _MOST_TEXT].decode("utf-8", "surrogateescape"))
    if len(data) > _MOST_TEXT or len(text) > _MOST_TEXT:
        return f"{text[:_MOST_TEXT]!r}…, {len(data):,} bytes"
    return f"'{text}'"


def _image_among(features: Mapping[str, Feature]) -> bytes | None:
    """The image by its customary key, or the largest byte string that begins as one does."""
    for key in _IMAGES:
        feature = features.get(key)
        if isinstance(feature, BytesList) and len(feature.values) == 1:
            return bytes(feature.values[0])
    images = [bytes(value) for value in _byte_strings(features) if container_of(bytes(value[:16]))]
    return max(images, key=len, default=None)


def _byte_strings(features: Mapping[str, Feature]) -> Iterator[memoryview]:
    for feature in features.values():
        if isinstance(feature, BytesList):
            yield from (memoryview(value) for value in feature.values)


def _image_record(payload: Buffer) -> tuple[list[Field], bytes | None]:
    try:
        record = unpack_image_record(payload)
    except RecordError:
        return _opaque(payload)
    labels = [f"{label:.6g}" for label in record.labels[:_MOST_VALUES]]
    more = ", …" if len(record.labels) > _MOST_VALUES else ""
    image = bytes(record.image)
    return [
        Field("flag", "uint32", 1, str(record.flag)),
        Field("label", "float32", len(record.labels), ", ".join(labels) + more),
        Field("id", "uint64", 1, str(record.id)),
        Field("id2", "uint64", 1, str(record.id2)),
        Field("image", "bytes", 1, _value(image)),
    ], image


def _opaque(payload: Buffer) -> tuple[list[Field], bytes | None]:
    """Something else: all that can be said is how it begins."""
    data = bytes(payload)
    return [Field("payload", "bytes", 1, _value(data))], data if container_of(data) else None


_CONTENTS = {"tfrecord": _example, "recordio": _image_record}
