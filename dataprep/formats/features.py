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
from dataprep.formats.layout import BOX_SIDES, LIST_FIELDS, Layout
from dataprep.formats.protocol import Box, Buffer, Sample, encoding_of

_Encoder: TypeAlias = Callable[[Sample], bytes]
"""Encodes one or more features of a sample as entries of an Example."""

# The fields whose list in an Example has integers or floats. All other fields are byte strings.
_INTEGER_FIELDS = ("bbox/label", "channels", "height", "label", "number", "width")
_FLOAT_FIELDS = (*BOX_SIDES, "values")
_TEXT_FIELDS = ("colorspace", "format")  # str in a Sample, ASCII bytes in a record
_ATTRIBUTES = {"encoded": "image", "format": "encoding"}  # fields that a Sample names differently
# Fields that have the same value in many samples. Their encoded bytes are cached by value. Fields
# of floats must not be added, because 0.0 and -0.0 are equal as keys but have different bytes.
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
_MAX_CACHED = 16_384  # Limits the memory of a cache if values repeat less often than expected.


@lru_cache(maxsize=8)
def example_encoder(layout: Layout, label_offset: int) -> Callable[[Sample], list[Buffer]]:
    """Return a function that encodes samples as Examples. All shards of a data set share it.

    The function returns three buffers: the bytes before the image, the image, and the bytes after
    the image. The image is not copied. Values that repeat from sample to sample are encoded once.

    The function raises RecordError if a list cannot store a number, or if the Example would have
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
    """Return encoders whose joined results are the entries of ``features``, in order.

    ``features`` are pairs of feature and field. Neighbouring features whose values repeat from
    sample to sample share one encoder. Each other feature has its own encoder. In samples without
    lists, the lists are always empty. Therefore they count as repeating.
    """
    repeating = _REPEATING_FIELDS if with_lists else (*_REPEATING_FIELDS, *LIST_FIELDS)

    def is_repeating(pair: tuple[str, str]) -> bool:
        _, field = pair
        return field in repeating

    encoders: list[_Encoder] = []
    for repeats, neighbours in groupby(features, is_repeating):
        if repeats:
            encoders.append(_caching_encoder(list(neighbours), label_offset))
        else:
            encoders += [_encoder(feature, field, label_offset) for feature, field in neighbours]
    return encoders


def _caching_encoder(features: Sequence[tuple[str, str]], label_offset: int) -> _Encoder:
    """Return an encoder of repeating features, which caches the bytes for each set of values.

    If there are lists among the features, they must be empty in all samples.
    """
    attributes = [_attribute(field) for _, field in features if field not in LIST_FIELDS]
    # attrgetter fails without attributes. Therefore "encoding" is always among them. It has few
    # values, so that it hardly increases the number of cached sets.
    values_of = attrgetter("encoding", *attributes)
    cache: dict[Any, bytes] = {}

    def encode(sample: Sample) -> bytes:
        values = values_of(sample)
        encoded = cache.get(values)
        if encoded is None:
            if len(cache) >= _MAX_CACHED:
                cache.clear()
            entries = []
            for feature, field in features:
                field_values = tuple(_values(field, sample, label_offset))
                entries.append(_repeating_entry(feature, field, field_values))
            encoded = b"".join(entries)
            cache[values] = encoded
        return encoded

    return encode


@lru_cache(maxsize=_MAX_CACHED)
def _repeating_entry(feature: str, field: str, values: tuple[Any, ...]) -> bytes:
    """The entry of one repeating field.

    This cache is beside that of ``_caching_encoder``, because the values of a single field repeat
    more often than those of a set of fields.
    """
    return encode_feature(feature, _list_type(field)(values))


def _encoder(feature: str, field: str, label_offset: int) -> _Encoder:
    """Return an encoder of one feature whose values do not repeat."""
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
    """The values of a field, as a record stores them."""
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
    """Return the sample with these features. Features that the layout does not name are ignored.

    Raises:
        CorruptRecord: a feature is missing, has the wrong type, or does not have exactly one value;
            or the lists of boxes differ in length.
    """
    attributes: dict[str, Any] = {}
    lists: dict[str, tuple[Any, ...]] = {}
    for name, field in layout.features:
        values = _stored_values(features, name, field)
        if field in LIST_FIELDS:
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
    """The values of the feature ``name``, after a check of their type and number."""
    feature = features.get(name)
    values = () if feature is None else tuple(feature.values)
    list_type = _list_type(field)
    # An empty list may have any type, or may be left out.
    has_wrong_type = bool(values) and not isinstance(feature, list_type)
    needs_one_value = field not in LIST_FIELDS
    if has_wrong_type or (needs_one_value and len(values) != 1):
        size = " with one value" if needs_one_value else ""
        raise CorruptRecord(
            f"the Example has no {list_type.__name__}{size} under {name!r}; check that the layout "
            "names the features of these records"
        )
    return values


def _boxes(lists: Mapping[str, tuple[Any, ...]], label: int, label_offset: int) -> tuple[Box, ...]:
    """The boxes of a sample. Boxes without labels have the label of the image.

    Raises:
        CorruptRecord: the lists differ in length.
    """
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
