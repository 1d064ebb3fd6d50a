"""PURE. Samples as Examples of one layout; what repeats from sample to sample is encoded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias

from dataprep.formats.example import BytesList, bytes_head, encode_feature, example_head
from dataprep.formats.fields import ATTRIBUTES, BY_NAME, is_list
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import Sample
from dataprep.formats.records import Buffer

_KNOWN = 16_384

_Features: TypeAlias = tuple[tuple[str, str], ...]
_Encode: TypeAlias = Callable[[Sample], bytes]


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
        """An Example: what stands before the image, the image, not copied, and what follows it.

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

    Where samples have no ``lists`` these are empty, and repeat.
    """
    encoders: list[_Encode] = []
    for repeats, run in groupby(features, lambda one: _repeats(one[1], lists)):
        if repeats:
            encoders.append(_remembering(tuple(run), label_offset))
        else:
            encoders += [_each(feature, field, label_offset) for feature, field in run]
    return encoders


def _repeats(field: str, lists: bool) -> bool:
    return BY_NAME[field].repeats or (is_list(field) and not lists)


def _remembering(features: _Features, label_offset: int) -> _Encode:
    """Encode features that repeat; what was encoded of equal values is used again.

    Lists among them are empty.
    """
    fields = [field for _, field in features if not is_list(field)]
    key_of = attrgetter("encoding", *[ATTRIBUTES.get(field, field) for field in fields])
    known: dict[Any, bytes] = {}

    def encode(sample: Sample) -> bytes:
        key = key_of(sample)
        found = known.get(key)
        if found is None:
            if len(known) >= _KNOWN:
                known.clear()
            values = dict(zip(fields, key[1:], strict=True)) if fields else {}
            if "label" in values:
                values["label"] += label_offset
            entries = [_entry(name, field, values.get(field)) for name, field in features]
            found = known[key] = b"".join(entries)
        return found

    return encode


@lru_cache(maxsize=_KNOWN)
def _entry(feature: str, field: str, value: Any) -> bytes:
    """One value as an entry of an Example; None for an empty list."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return bytes_head(feature, len(value)) + value
    return encode_feature(feature, BY_NAME[field].kind(() if value is None else (value,)))


def _each(feature: str, field: str, label_offset: int) -> _Encode:
    kind, values_of, _ = BY_NAME[field]
    if kind is BytesList:
        return _naming(feature, field)
    return lambda sample: encode_feature(feature, kind(values_of(sample, label_offset)))


def _naming(feature: str, field: str) -> _Encode:
    head = lru_cache(maxsize=_KNOWN)(partial(bytes_head, feature))
    value_of = attrgetter(field)

    def encode(sample: Sample) -> bytes:
        value: bytes = value_of(sample)
        return head(len(value)) + value

    return encode
