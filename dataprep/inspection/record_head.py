"""PURE. What a record says of its sample, without its image: a line of a shard's table."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dataprep.errors import RecordError
from dataprep.formats.example import BytesList, Feature, Int64List
from dataprep.formats.protocol import Span
from dataprep.formats.recordio import read_recordio, unpack_image_record
from dataprep.inspection.framing import Readable
from dataprep.inspection.image_facts import container_of, size_of
from dataprep.inspection.partial_example import Large, read_partial

_IMAGE_HEADER = struct.Struct("<IfQQ")
_HEAD_BYTES = 32
_LONG_HEAD_BYTES = 2**16
_MOST_LABELS = 1024
_LABELS = ("image/class/label", "label")
_FILENAMES = ("image/filename", "file_name")
_IMAGES = ("image/encoded", "image")


class Head(NamedTuple):
    """One record in words: labels as they stand in it, sizes in pixels, 0 where unknown.

    ``image`` is where the encoded image begins, and its size, where it was not read; ``problem``
    is why nothing is known of the content.
    """

    labels: tuple[float, ...] = ()
    synset: str = ""
    filename: str = ""
    width: int = 0
    height: int = 0
    container: str = ""
    image: Large | None = None
    problem: str = ""


def read_head(data: Readable, span: Span, form: str) -> Head:
    """The head of one record, from as few of its bytes as tell it."""
    if form == "recordio":
        return _image_record(data, span)
    try:
        features, large = read_partial(data, span.payload, span.payload_bytes)
    except RecordError:
        return Head(problem="not a tf.train.Example")
    width, height = _int(features, "image/width"), _int(features, "image/height")
    place = next((large[key] for key in _IMAGES if key in large), None)
    if place is None and large:
        place = max(large.values(), key=lambda value: value.bytes)
    if place is not None:
        container, *size = _look_at(data, place, known=bool(width and height))
    else:
        small = next((_bytes(features, key) for key in _IMAGES if key in features), b"")
        container, size = container_of(small), list(size_of(small) or (0, 0))
    return Head(
        labels=next((_ints(features, key) for key in _LABELS if key in features), ()),
        synset=_text(features, ("image/class/synset",)),
        filename=_text(features, _FILENAMES),
        width=width or size[0],
        height=height or size[1],
        container=container,
        image=place,
    )


def _image_record(data: Readable, span: Span) -> Head:
    if span.parts > 1:  # joined from its parts first, which takes all of it
        (whole,) = read_recordio(data.read(span.offset, span.length))
        size = len(whole.payload)
        inside = Span(0, size, 0, size)
        return _image_record(_Held(bytes(whole.payload)), inside)._replace(image=None)
    flag, *_ = struct.unpack("<I", (data.read(span.payload, 4) + bytes(4))[:4])
    labels_bytes = 4 * min(flag, _MOST_LABELS)
    head = data.read(span.payload, min(_IMAGE_HEADER.size + labels_bytes, span.payload_bytes))
    try:
        record = unpack_image_record(head)
    except RecordError:
        return Head(problem="not an image record")
    begin = _IMAGE_HEADER.size + 4 * record.flag
    place = Large(span.payload + begin, span.payload_bytes - begin)
    container, width, height = _look_at(data, place, known=False)
    return Head(labels=record.labels, width=width, height=height, container=container, image=place)


def _look_at(data: Readable, place: Large, *, known: bool) -> tuple[str, int, int]:
    """Container, width and height of an image; more is read only where the size is not known."""
    for most in (_HEAD_BYTES, 1024, _LONG_HEAD_BYTES):
        head = data.read(place.offset, min(most, place.bytes))
        container = container_of(head)
        if known or not container:
            return container, 0, 0
        if (size := size_of(head)) is not None:
            return container, *size
        if most >= place.bytes:
            break
    return container, 0, 0


class _Held:
    """Bytes that are there already."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


def _ints(features: Mapping[str, Feature], key: str) -> tuple[int, ...]:
    feature = features.get(key)
    return tuple(feature.values) if isinstance(feature, Int64List) else ()


def _int(features: Mapping[str, Feature], key: str) -> int:
    return next(iter(_ints(features, key)), 0)


def _bytes(features: Mapping[str, Feature], key: str) -> bytes:
    feature = features.get(key)
    if not isinstance(feature, BytesList) or not feature.values:
        return b""
    return bytes(feature.values[0])


def _text(features: Mapping[str, Feature], names: Iterable[str]) -> str:
    found = next((_bytes(features, key) for key in names if key in features), b"")
    return found.decode("utf-8", "surrogateescape")
