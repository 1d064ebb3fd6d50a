"""TFRecord shards of tf.train.Example, with the features of a layout.

Height, width, channels and colour space are those of the stored image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias

from dataprep.formats.example import (
    BytesList,
    bytes_head,
    decode_example,
    encode_feature,
    example_head,
)
from dataprep.formats.fields import ATTRIBUTES, BY_NAME, is_list, sample_of
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import IndexEntry, RecordOptions, Sample
from dataprep.formats.records import Buffer, RawRecord, Sink
from dataprep.formats.tfrecord import TFRecordWriter, dali_index, read_tfrecords

_KNOWN = 16_384

_Features: TypeAlias = tuple[tuple[str, str], ...]
_Encode: TypeAlias = Callable[[Sample], bytes]


class TFRecordFormat:
    """``tfrecord``: in the customary layout labels count from 1 when the classes are synsets."""

    name = "tfrecord"
    extension = ""

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """1 for synsets where the layout has 0 for background, otherwise 0."""
        return 1 if are_synsets and layout.counts_from_background else 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """Where the layout has features for them."""
        return options.layout.keeps_boxes

    def writer(self, sink: Sink, options: RecordOptions) -> ExampleWriter:
        """A writer of one shard."""
        return ExampleWriter(sink, options)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records with both CRCs checked."""
        return read_tfrecords(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """TFRecord has no mark to search for; the next record follows from an intact length."""
        return None

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one Example."""
        return sample_of(decode_example(payload), options.layout, options.label_offset)

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """DALI's index."""
        return {".idx": dali_index([(entry.offset, entry.length) for entry in entries])}


class ExampleWriter:
    """Writes Examples; what repeats from sample to sample is encoded once."""

    def __init__(self, sink: Sink, options: RecordOptions) -> None:
        self._records = TFRecordWriter(sink)
        self._encoder = example_encoder(options.layout, options.label_offset)

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one Example; the image is not copied on its way to the sink."""
        return self._records.write_parts(self._encoder.parts(sample))


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
