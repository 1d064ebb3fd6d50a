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
_Features: TypeAlias = tuple[tuple[str, str], ...]
_Kind: TypeAlias = type[BytesList] | type[FloatList] | type[Int64List]

_INTEGERS = ("bbox/label", "channels", "height", "label", "number", "width")
_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(_INTEGERS, Int64List),
    **dict.fromkeys((*BOX_SIDES, "values"), FloatList),
}  # of all other fields BytesList
_TEXTS = ("colorspace", "format")
_ATTRIBUTES = {"encoded": "image", "format": "encoding"}  # where a Sample has another name
# Fields whose values are the same in many samples. None has fractions: 0.0 equals -0.0, which has
# other bytes.
_REPEATING = ("channels", "colorspace", "format", "height", "label", "synset", "text", "width")
_KNOWN = 16_384


class ExampleEncoder:
    """Samples to Examples of one layout; what repeats from sample to sample is encoded once."""

    def __init__(self, layout: Layout, label_offset: int) -> None:
        image = [field for _, field in layout.features].index("encoded")
        self._image = layout.features[image][0]
        around = (layout.features[:image], layout.features[image + 1 :])
        self._without_lists, self._with_lists = (
            [_encoders(features, label_offset, lists) for features in around]
            for lists in (False, True)
        )

    def parts(self, sample: Sample) -> list[Buffer]:
        """An Example: the bytes before the image, the image, not copied, and those after it.

        Raises:
            RecordError: a number that its list cannot hold, or an Example from 2 GiB on.
        """
        lists = sample.boxes or sample.values
        first, last = self._with_lists if lists else self._without_lists
        image_bytes = memoryview(sample.image).nbytes
        head = bytes_head(self._image, image_bytes)
        before = b"".join([*[encode(sample) for encode in first], head])
        after = b"".join([encode(sample) for encode in last])
        prefix = example_head(len(before) + image_bytes + len(after))
        return [prefix + before, sample.image, after]


@lru_cache(maxsize=8)
def example_encoder(layout: Layout, label_offset: int) -> ExampleEncoder:
    """One for all shards of a data set, since it remembers what it has encoded."""
    return ExampleEncoder(layout, label_offset)


def _encoders(features: _Features, label_offset: int, lists: bool) -> list[_Encode]:
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
            entries = [_entry(feature, field, sample, label_offset) for feature, field in features]
            found = known[key] = b"".join(entries)
        return found

    return encode


def _each(feature: str, field: str, label_offset: int) -> _Encode:
    if field in LISTS or field in _INTEGERS:
        kind = _KINDS.get(field, BytesList)
        return lambda sample: encode_feature(feature, kind(_values(field, sample, label_offset)))
    value_of: Callable[[Sample], bytes] = attrgetter(field)
    return lambda sample: bytes_head(feature, len(value_of(sample))) + value_of(sample)


def _entry(feature: str, field: str, sample: Sample, label_offset: int) -> bytes:
    """One field that repeats as an entry of an Example; lists are empty."""
    return _known_entry(feature, field, tuple(_values(field, sample, label_offset)))


@lru_cache(maxsize=_KNOWN)
def _known_entry(feature: str, field: str, values: tuple[Any, ...]) -> bytes:
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
    for feature, field in layout.features:
        if field in LISTS:
            lists[field] = _list(features, feature, _KINDS.get(field, BytesList))
        else:
            value = _one(features, feature, _KINDS.get(field, BytesList))
            if field in _TEXTS:
                value = bytes(value).decode("ascii", "replace")
            elif field not in _INTEGERS and field != "encoded":
                value = bytes(value)
            found[_ATTRIBUTES.get(field, field)] = value
    found["label"] -= label_offset
    if "encoding" not in found:
        found["encoding"] = encoding_of(found["image"])
    values = lists.pop("values", ())
    boxes = _boxes(lists, found["label"], label_offset) if lists else ()
    return Sample(**found, values=values, boxes=boxes)


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
    columns = [sides[side] for side in BOX_SIDES]
    count = len(columns[0])
    labels = [value - label_offset for value in sides.get("bbox/label", ())] or [label] * count
    if {len(column) for column in columns} | {len(labels)} != {count}:
        raise CorruptRecord(f"Example with boxes of {count} left sides and other numbers of others")
    return tuple(Box(*values) for values in zip(*columns, labels, strict=True))
