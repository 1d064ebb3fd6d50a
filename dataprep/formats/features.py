"""PURE. Samples to the features of a tf.train.Example, as a layout names them, and back.

Height, width, channels and colour space are those of the stored image.
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

_Encode: TypeAlias = Callable[[Sample], bytes]

_INTEGERS = ("bbox/label", "channels", "height", "label", "number", "width")
_KINDS: Mapping[str, type[Feature]] = {
    **dict.fromkeys(_INTEGERS, Int64List),
    **dict.fromkeys((*BOX_SIDES, "values"), FloatList),
}  # of all other fields BytesList
_TEXTS = ("colorspace", "format")
_ATTRIBUTES = {"encoded": "image", "format": "encoding"}  # where a Sample has another name
# Fields whose values are the same in many samples. None has fractions: 0.0 equals -0.0, which has
# other bytes.
_REPEATING = ("channels", "colorspace", "format", "height", "label", "synset", "text", "width")
_KNOWN = 16_384


@lru_cache(maxsize=8)
def example_encoder(layout: Layout, label_offset: int) -> Callable[[Sample], list[Buffer]]:
    """A function from samples to Examples, one for all shards of a data set.

    It returns the bytes before the image, the image, not copied, and the bytes after it. What
    repeats from sample to sample is encoded once. It raises RecordError for a number that its list
    cannot hold, and for an Example from 2 GiB on.
    """
    position = [field for _, field in layout.features].index("encoded")
    image = layout.features[position][0]
    around = (layout.features[:position], layout.features[position + 1 :])
    without_lists = [_encoders(features, label_offset, False) for features in around]
    with_lists = [_encoders(features, label_offset, True) for features in around]

    def parts(sample: Sample) -> list[Buffer]:
        first, last = with_lists if sample.boxes or sample.values else without_lists
        image_bytes = memoryview(sample.image).nbytes
        head = bytes_head(image, image_bytes)
        before = b"".join([*[encode(sample) for encode in first], head])
        after = b"".join([encode(sample) for encode in last])
        prefix = example_head(len(before) + image_bytes + len(after))
        return [prefix + before, sample.image, after]

    return parts


def _encoders(features: Sequence[tuple[str, str]], label_offset: int, lists: bool) -> list[_Encode]:
    """One for each run of features that repeat, and one for each of the others.

    In samples without ``lists`` these are empty, and repeat.
    """
    repeating = _REPEATING if lists else (*_REPEATING, *LISTS)
    encoders: list[_Encode] = []
    for repeats, run in groupby(features, lambda one: one[1] in repeating):
        if repeats:
            encoders.append(_remembering([*run], label_offset))
        else:
            encoders += [_each(feature, field, label_offset) for feature, field in run]
    return encoders


def _remembering(features: Sequence[tuple[str, str]], label_offset: int) -> _Encode:
    """Encode features that repeat, lists being empty; keep the result for equal values."""
    attributes = [_ATTRIBUTES.get(field, field) for _, field in features if field not in LISTS]
    # With a name of its own in front attrgetter returns a tuple even for a single attribute.
    key_of = attrgetter("encoding", *attributes)
    known: dict[Any, bytes] = {}

    def encode(sample: Sample) -> bytes:
        key = key_of(sample)
        found = known.get(key)
        if found is None:
            if len(known) >= _KNOWN:
                known.clear()
            entries = [
                _known_entry(feature, field, tuple(_values(field, sample, label_offset)))
                for feature, field in features
            ]
            found = known[key] = b"".join(entries)
        return found

    return encode


def _each(feature: str, field: str, label_offset: int) -> _Encode:
    if field in LISTS or field in _INTEGERS:
        kind = _KINDS.get(field, BytesList)
        return lambda sample: encode_feature(feature, kind(_values(field, sample, label_offset)))
    value_of: Callable[[Sample], bytes] = attrgetter(field)
    return lambda sample: bytes_head(feature, len(value_of(sample))) + value_of(sample)


@lru_cache(maxsize=_KNOWN)
def _known_entry(feature: str, field: str, values: tuple[Any, ...]) -> bytes:
    """One field that repeats as an entry of an Example; lists are empty."""
    return encode_feature(feature, _KINDS.get(field, BytesList)(values))


def _values(field: str, sample: Sample, label_offset: int) -> Sequence[Any]:
    if field == "values":
        return sample.values
    if field == "bbox/label":
        return [box.label + label_offset for box in sample.boxes]
    if field in BOX_SIDES:
        return [getattr(box, field.removeprefix("bbox/")) for box in sample.boxes]
    value = getattr(sample, _ATTRIBUTES.get(field, field))
    if field == "label":
        value += label_offset
    return [value.encode() if isinstance(value, str) else value]


def sample_of(features: Mapping[str, Feature], layout: Layout, label_offset: int) -> Sample:
    """The sample of an example's features; features that the layout does not name are ignored.

    Raises:
        CorruptRecord: a feature is missing, of another type, or has other than one value.
    """
    found: dict[str, Any] = {}
    lists: dict[str, tuple[Any, ...]] = {}
    for name, field in layout.features:
        kind, feature = _KINDS.get(field, BytesList), features.get(name)
        values: Sequence[Any] = () if feature is None else feature.values
        # An empty list may be of any type, or left out.
        if (values and not isinstance(feature, kind)) or (field not in LISTS and len(values) != 1):
            size = "" if field in LISTS else " of one value"
            raise CorruptRecord(f"Example without a {kind.__name__}{size} under {name!r}")
        if field in LISTS:
            lists[field] = tuple(values)
        elif field in _TEXTS:
            found[_ATTRIBUTES.get(field, field)] = bytes(values[0]).decode("ascii", "replace")
        elif field in _INTEGERS or field == "encoded":
            found[_ATTRIBUTES.get(field, field)] = values[0]
        else:
            found[field] = bytes(values[0])
    # Images without a class have no such feature.
    found["label"] = found["label"] - label_offset if "label" in found else -1
    if "encoding" not in found:
        found["encoding"] = encoding_of(found["image"])
    found["values"] = lists.pop("values", ())
    boxes = _boxes(lists, found["label"], label_offset) if lists else ()
    return Sample(**found, boxes=boxes)


def _boxes(sides: Mapping[str, tuple[Any, ...]], label: int, label_offset: int) -> tuple[Box, ...]:
    """Boxes of four sides each; without labels of their own they have the image's."""
    columns = [sides[side] for side in BOX_SIDES]
    count = len(columns[0])
    labels = [value - label_offset for value in sides.get("bbox/label", ())] or [label] * count
    if {len(column) for column in columns} | {len(labels)} != {count}:
        raise CorruptRecord(f"Example with boxes of {count} left sides and other numbers of others")
    return tuple(Box(*values) for values in zip(*columns, labels, strict=True))
