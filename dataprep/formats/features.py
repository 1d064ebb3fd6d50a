"""PURE. Convert samples to Examples and back, with the features that a layout names.

Height, width, channels and colour space describe the image that is stored in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias

from dataprep.errors import CorruptRecord
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    bytes_head,
    encode_feature,
    example_head,
)
from dataprep.formats.layout import BOX_SIDES, LISTS, Layout
from dataprep.formats.protocol import Box, Buffer, Sample, encoding_of

_Encoder: TypeAlias = Callable[[Sample], bytes]
"""Encodes one or more features of a sample as entries of an Example."""

_INTEGER_FIELDS = ("bbox/label", "channels", "height", "label", "number", "width")
_FLOAT_FIELDS = (*BOX_SIDES, "values")
_TEXT_FIELDS = ("colorspace", "format")  # str in a Sample, ASCII in a record
_ATTRIBUTES = {"encoded": "image", "format": "encoding"}  # fields with another name in a Sample
# Fields that have the same value in many samples. No field with fractions may be added: 0.0 and
# -0.0 are equal as keys of a dictionary, but have different bytes.
_REPEATING_FIELDS = (
    "channels",
    "colorspace",
    "format",
    "height",
    "label",
    "synset",
    "text",
    "width",
)
_MAX_REMEMBERED = 16_384


@lru_cache(maxsize=8)
def example_encoder(layout: Layout, label_offset: int) -> Callable[[Sample], list[Buffer]]:
    """A function that encodes samples as Examples. All shards of a data set share it.

    The function returns three buffers: the bytes before the image, the image, which is not copied,
    and the bytes after the image. Values that repeat from sample to sample are encoded once.

    The function raises RecordError for a number that its list cannot store, and for an Example of
    2 GiB or more.
    """
    fields = [field for _, field in layout.features]
    position = fields.index("encoded")
    image_feature, _ = layout.features[position]
    before = layout.features[:position]
    after = layout.features[position + 1 :]
    encoders_without_lists = (
        _encoders(before, label_offset, with_lists=False),
        _encoders(after, label_offset, with_lists=False),
    )
    encoders_with_lists = (
        _encoders(before, label_offset, with_lists=True),
        _encoders(after, label_offset, with_lists=True),
    )

    def encode(sample: Sample) -> list[Buffer]:
        has_lists = bool(sample.boxes or sample.values)
        encoders_before, encoders_after = (
            encoders_with_lists if has_lists else encoders_without_lists
        )
        image_bytes = memoryview(sample.image).nbytes
        entries_before = [encoder(sample) for encoder in encoders_before]
        entries_before.append(bytes_head(image_feature, image_bytes))
        bytes_before = b"".join(entries_before)
        bytes_after = b"".join([encoder(sample) for encoder in encoders_after])
        head = example_head(len(bytes_before) + image_bytes + len(bytes_after))
        return [head + bytes_before, sample.image, bytes_after]

    return encode


def _encoders(
    features: Sequence[tuple[str, str]], label_offset: int, *, with_lists: bool
) -> list[_Encoder]:
    """Encoders that together encode the features, which are pairs of feature and field.

    There is one encoder for each run of repeating features, and one for each other feature. In
    samples without lists, the lists are always empty. Therefore they count as repeating.
    """
    repeating = _REPEATING_FIELDS if with_lists else (*_REPEATING_FIELDS, *LISTS)

    def is_repeating(pair: tuple[str, str]) -> bool:
        _, field = pair
        return field in repeating

    encoders: list[_Encoder] = []
    for repeats, run in groupby(features, is_repeating):
        if repeats:
            encoders.append(_remembering_encoder(list(run), label_offset))
        else:
            encoders += [_encoder(feature, field, label_offset) for feature, field in run]
    return encoders


def _remembering_encoder(features: Sequence[tuple[str, str]], label_offset: int) -> _Encoder:
    """An encoder of repeating features, which remembers the bytes for each set of values.

    All lists among the features are empty.
    """
    attributes = [_attribute(field) for _, field in features if field not in LISTS]
    # "encoding" is first so that attrgetter returns a tuple even for a single attribute.
    values_of = attrgetter("encoding", *attributes)
    remembered: dict[Any, bytes] = {}

    def encode(sample: Sample) -> bytes:
        values = values_of(sample)
        encoded = remembered.get(values)
        if encoded is None:
            if len(remembered) >= _MAX_REMEMBERED:
                remembered.clear()
            entries = []
            for feature, field in features:
                field_values = tuple(_values(field, sample, label_offset))
                entries.append(_repeating_entry(feature, field, field_values))
            encoded = b"".join(entries)
            remembered[values] = encoded
        return encoded

    return encode


@lru_cache(maxsize=_MAX_REMEMBERED)
def _repeating_entry(feature: str, field: str, values: tuple[Any, ...]) -> bytes:
    """The entry of a repeating field. The fields of a run repeat more often than the whole run."""
    return encode_feature(feature, _list_type(field)(values))


def _encoder(feature: str, field: str, label_offset: int) -> _Encoder:
    """An encoder of one feature that does not repeat."""
    list_type = _list_type(field)
    if list_type is not BytesList:

        def encode_numbers(sample: Sample) -> bytes:
            return encode_feature(feature, list_type(_values(field, sample, label_offset)))

        return encode_numbers

    value_of: Callable[[Sample], bytes] = attrgetter(field)

    def encode_bytes(sample: Sample) -> bytes:
        value = value_of(sample)
        return bytes_head(feature, len(value)) + value

    return encode_bytes


def _list_type(field: str) -> type[Feature]:
    """The type of the list that stores a field."""
    if field in _INTEGER_FIELDS:
        return Int64List
    if field in _FLOAT_FIELDS:
        return FloatList
    return BytesList


def _attribute(field: str) -> str:
    """The attribute of a Sample that holds a field."""
    return _ATTRIBUTES.get(field, field)


def _values(field: str, sample: Sample, label_offset: int) -> Sequence[Any]:
    """The values of a field as they are stored."""
    if field == "values":
        return sample.values
    if field == "bbox/label":
        return [box.label + label_offset for box in sample.boxes]
    if field in BOX_SIDES:
        side = Box._fields.index(field.removeprefix("bbox/"))
        return [box[side] for box in sample.boxes]
    value = getattr(sample, _attribute(field))
    if field == "label":
        return [value + label_offset]
    if field in _TEXT_FIELDS:
        return [value.encode()]
    return [value]


def sample_of(features: Mapping[str, Feature], layout: Layout, label_offset: int) -> Sample:
    """The sample with these features. Features that the layout does not name are ignored.

    Raises:
        CorruptRecord: a feature is missing, or has another type, or has not exactly one value.
    """
    attributes: dict[str, Any] = {}
    lists: dict[str, tuple[Any, ...]] = {}
    for name, field in layout.features:
        values = _stored_values(features, name, field)
        if field in LISTS:
            lists[field] = values
        elif field in _TEXT_FIELDS:
            attributes[_attribute(field)] = bytes(values[0]).decode("ascii", "replace")
        elif field in _INTEGER_FIELDS or field == "encoded":
            attributes[_attribute(field)] = values[0]
        else:
            attributes[field] = bytes(values[0])
    if "label" in attributes:
        attributes["label"] -= label_offset
    else:  # the layout of images without classes has no label
        attributes["label"] = -1
    if "encoding" not in attributes:
        attributes["encoding"] = encoding_of(attributes["image"])
    attributes["values"] = lists.pop("values", ())
    boxes = _boxes(lists, attributes["label"], label_offset) if lists else ()
    return Sample(**attributes, boxes=boxes)


def _stored_values(features: Mapping[str, Feature], name: str, field: str) -> tuple[Any, ...]:
    """The values of the feature ``name``, after a check that they can be those of ``field``."""
    feature = features.get(name)
    values = () if feature is None else tuple(feature.values)
    list_type = _list_type(field)
    # An empty list may have any type, or may be left out.
    has_other_type = bool(values) and not isinstance(feature, list_type)
    needs_one_value = field not in LISTS
    if has_other_type or (needs_one_value and len(values) != 1):
        size = " with one value" if needs_one_value else ""
        raise CorruptRecord(
            f"the Example has no {list_type.__name__}{size} under {name!r}; check that the layout "
            "names the features of these records"
        )
    return values


def _boxes(lists: Mapping[str, tuple[Any, ...]], label: int, label_offset: int) -> tuple[Box, ...]:
    """The boxes of a sample. Boxes without labels have the label of the image."""
    columns = [lists[side] for side in BOX_SIDES]
    count = len(columns[0])
    labels = [stored_label - label_offset for stored_label in lists.get("bbox/label", ())]
    if not labels:
        labels = [label] * count
    columns.append(tuple(labels))
    lengths = [len(column) for column in columns]
    if any(length != count for length in lengths):
        raise CorruptRecord(
            "the lists of boxes in the Example differ in length: "
            f"xmin, ymin, xmax, ymax and labels have {lengths} values"
        )
    return tuple(Box(*values) for values in zip(*columns, strict=True))
