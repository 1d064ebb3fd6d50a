"""PURE. The fields of a sample that an Example has under a layout's names, and a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dataprep.errors import CorruptRecord
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
)
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import Box, Sample
from dataprep.formats.records import Buffer


class Field(NamedTuple):
    """How one field is written. What ``repeats`` from sample to sample is encoded once.

    No numbers with a fraction are among those: 0.0 equals -0.0, which has other bytes.
    """

    kind: type[BytesList] | type[FloatList] | type[Int64List]
    values: Callable[[Sample, int], tuple[Any, ...]]
    repeats: bool = True


BY_NAME: Mapping[str, Field] = {
    "bbox/label": Field(
        Int64List, lambda s, o: tuple([box.label + o for box in s.boxes]), repeats=False
    ),
    "bbox/xmax": Field(FloatList, lambda s, o: tuple([box.xmax for box in s.boxes]), repeats=False),
    "bbox/xmin": Field(FloatList, lambda s, o: tuple([box.xmin for box in s.boxes]), repeats=False),
    "bbox/ymax": Field(FloatList, lambda s, o: tuple([box.ymax for box in s.boxes]), repeats=False),
    "bbox/ymin": Field(FloatList, lambda s, o: tuple([box.ymin for box in s.boxes]), repeats=False),
    "channels": Field(Int64List, lambda s, o: (s.channels,)),
    "colorspace": Field(BytesList, lambda s, o: (s.colorspace.encode(),)),
    "encoded": Field(BytesList, lambda s, o: (s.image,), repeats=False),
    "filename": Field(BytesList, lambda s, o: (s.filename,), repeats=False),
    "format": Field(BytesList, lambda s, o: (s.encoding.encode(),)),
    "height": Field(Int64List, lambda s, o: (s.height,)),
    "label": Field(Int64List, lambda s, o: (s.label + o,)),
    "number": Field(Int64List, lambda s, o: (s.number,), repeats=False),
    "source": Field(BytesList, lambda s, o: (s.source,), repeats=False),
    "synset": Field(BytesList, lambda s, o: (s.synset,)),
    "text": Field(BytesList, lambda s, o: (s.text,)),
    "values": Field(FloatList, lambda s, o: s.values, repeats=False),
    "width": Field(Int64List, lambda s, o: (s.width,)),
}
"""The fields of formats.layout, by their names there."""

ATTRIBUTES = {"encoded": "image", "format": "encoding"}
"""Of a Sample, where not called as the field is."""

_TEXTS = ("colorspace", "format")


def sample_of(features: Mapping[str, Feature], layout: Layout, label_offset: int) -> Sample:
    """The sample of an example's features; those that the layout does not name are passed over.

    Raises:
        CorruptRecord: a feature is missing, of another type, or not of one value.
    """
    found: dict[str, Any] = {}
    sides: dict[str, tuple[Any, ...]] = {}
    for feature, field in layout.features:
        if field.startswith("bbox/"):
            sides[field] = _list(features, feature, BY_NAME[field].kind)
        elif field == "values":
            found[field] = _list(features, feature, FloatList)
        else:
            value = _one(features, feature, BY_NAME[field].kind)
            found[ATTRIBUTES.get(field, field)] = _plain(field, value)
    found["label"] -= label_offset
    if "encoding" not in found:
        found["encoding"] = encoding_of(found["image"])
    return Sample(**found, boxes=_boxes(sides, found["label"], label_offset) if sides else ())


def is_list(field: str) -> bool:
    """Whether a sample may have several or no values of it."""
    return field == "values" or field.startswith("bbox/")


def encoding_of(image: Buffer) -> str:
    """``JPEG``, ``PNG`` or ``WEBP`` by the first bytes; JPEG where they say nothing."""
    head = bytes(image[:12])
    if head.startswith(b"\x89PNG"):
        return "PNG"
    return "WEBP" if head[:4] == b"RIFF" and head[8:] == b"WEBP" else "JPEG"


def _plain(field: str, value: Any) -> Any:
    if field in _TEXTS:
        return bytes(value).decode("ascii", "replace")
    return value if field == "encoded" or isinstance(value, int) else bytes(value)


def _one(features: Mapping[str, Feature], key: str, kind: type[Feature]) -> Any:
    feature = features.get(key)
    if not isinstance(feature, kind) or len(feature.values) != 1:
        raise CorruptRecord(f"Example without one {kind.__name__} value under {key!r}")
    return feature.values[0]


def _list(features: Mapping[str, Feature], key: str, kind: type[Feature]) -> tuple[Any, ...]:
    feature = features.get(key)
    if feature is None or not feature.values:
        return ()  # an empty list may be of any type, or left out
    if not isinstance(feature, kind):
        raise CorruptRecord(f"Example without a {kind.__name__} under {key!r}")
    return tuple(feature.values)


def _boxes(sides: Mapping[str, tuple[Any, ...]], label: int, label_offset: int) -> tuple[Box, ...]:
    """Boxes of four sides each; without labels of their own they have the image's."""
    columns = [sides[f"bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
    count = len(columns[0])
    labels = sides.get("bbox/label", ())
    own = [value - label_offset for value in labels] or [label] * count
    if {len(column) for column in columns} | {len(own)} != {count}:
        raise CorruptRecord(f"Example with boxes of {count} left sides and other numbers of others")
    return tuple(Box(*values) for values in zip(*columns, own, strict=True))
