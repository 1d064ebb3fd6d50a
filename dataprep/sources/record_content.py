"""PURE. What a record of any of the known layouts says about its image.

Of an Example no feature but the image has to be there: writers differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dataprep.errors import CorruptRecord
from dataprep.formats import Buffer
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, decode_example
from dataprep.formats.layout import Layout
from dataprep.formats.recordio import unpack_image_record

Fields = Mapping[str, str]
"""Which feature of an Example holds what, as docs/layouts.md lists it."""


def fields_of(layout: str | Mapping[str, str]) -> Fields:
    """The features of a layout by what they hold. Raises ConfigError for one that is none."""
    return {field: feature for feature, field in Layout.of(layout).features}


LAYOUTS: Mapping[str, Fields] = {name: fields_of(name) for name in ("imagenet", "tfds")}
"""Those that are told by their keys."""


class Content(NamedTuple):
    """An image and what is said of it; ``labels`` as the record has them, offset included.

    ``boxes`` is how many bounding boxes it has.
    """

    image: Buffer
    labels: tuple[float, ...] = ()
    synset: bytes = b""
    text: bytes = b""
    filename: bytes = b""
    boxes: int = 0


def layout_of(payload: Buffer) -> str:
    """``imagenet`` or ``tfds``, as the keys of an Example have it.

    Raises:
        CorruptRecord: no Example, or one of other keys.
    """
    features = decode_example(payload)
    for layout, fields in LAYOUTS.items():
        if isinstance(features.get(fields["encoded"]), BytesList):
            return layout
    shown = ", ".join(map(repr, sorted(features)[:12])) or "none"
    raise CorruptRecord(
        f"neither 'image/encoded' nor 'image' is a key of its first record: it has {shown}; name "
        "the keys with records.layout, as in {my/image: encoded, my/label: label}"
    )


def of_example(payload: Buffer, fields: Fields) -> Content:
    """What an Example says.

    Raises:
        CorruptRecord: no Example, without an image, or with labels that are no whole number.
    """
    features = decode_example(payload)
    return Content(
        image=_image(features, fields["encoded"]),
        labels=_labels(features, fields),
        synset=_bytes(features, fields.get("synset")),
        text=_bytes(features, fields.get("text")),
        filename=_bytes(features, fields.get("filename")) or _bytes(features, fields.get("source")),
        boxes=_length(features, fields.get("bbox/xmin")),
    )


def of_image_record(payload: Buffer) -> Content:
    """What an image record says; raises CorruptRecord."""
    record = unpack_image_record(payload)
    return Content(record.image, tuple(record.labels))


def _image(features: Mapping[str, Feature], key: str) -> Buffer:
    feature = features.get(key)
    if not isinstance(feature, BytesList) or len(feature.values) != 1:
        raise CorruptRecord(f"it has not one image under {key!r}")
    return feature.values[0]


def _length(features: Mapping[str, Feature], key: str | None) -> int:
    feature = features.get(key) if key else None
    return len(feature.values) if feature is not None else 0


def _labels(features: Mapping[str, Feature], fields: Fields) -> tuple[float, ...]:
    several = features.get(fields.get("values", ""))
    if isinstance(several, FloatList) and len(several.values) > 1:
        return tuple(several.values)
    feature = features.get(fields.get("label", ""))
    numbers: Sequence[Any] = feature.values if isinstance(feature, Int64List | FloatList) else ()
    return tuple(float(number) for number in numbers)


def _bytes(features: Mapping[str, Feature], key: str | None) -> bytes:
    feature = features.get(key) if key else None
    if not isinstance(feature, BytesList) or len(feature.values) != 1:
        return b""
    return bytes(feature.values[0])
