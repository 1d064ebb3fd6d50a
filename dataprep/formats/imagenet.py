"""TFRecord shards of tf.train.Example with the customary ImageNet keys.

The keys are those of TensorFlow's ``build_imagenet_data.py`` (models/research/slim). Height,
width, channels and colour space are those of the stored image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from dataprep.errors import CorruptRecord
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    assemble,
    decode_example,
    encode_feature,
    feature_parts,
)
from dataprep.formats.protocol import IndexEntry, Sample
from dataprep.formats.records import Buffer, RawRecord, Sink
from dataprep.formats.tfrecord import TFRecordWriter, dali_index, read_tfrecords

_FORMAT = encode_feature("image/format", BytesList([b"JPEG"]))
_NO_BOXES = b"".join(
    [
        encode_feature("image/object/bbox/label", Int64List([])),
        encode_feature("image/object/bbox/xmax", FloatList([])),
        encode_feature("image/object/bbox/xmin", FloatList([])),
        encode_feature("image/object/bbox/ymax", FloatList([])),
        encode_feature("image/object/bbox/ymin", FloatList([])),
    ]
)


class TFRecordFormat:
    """``tfrecord``: customary keys, labels from 1 when the classes are synsets."""

    name = "tfrecord"
    extension = ""

    def default_label_offset(self, are_synsets: bool) -> int:
        """1 for synsets (0 is background), otherwise 0."""
        return 1 if are_synsets else 0

    def writer(self, sink: Sink, label_offset: int) -> ImageNetWriter:
        """A writer of one shard."""
        return ImageNetWriter(sink, label_offset)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records with both CRCs checked."""
        return read_tfrecords(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """TFRecord has no mark to search for; the next record follows from an intact length."""
        return None

    def decode(self, payload: Buffer, label_offset: int) -> Sample:
        """The sample of one Example."""
        features = decode_example(payload)
        return Sample(
            image=_bytes(features, "image/encoded"),
            label=_int(features, "image/class/label") - label_offset,
            width=_int(features, "image/width"),
            height=_int(features, "image/height"),
            channels=_int(features, "image/channels"),
            colorspace=bytes(_bytes(features, "image/colorspace")).decode("ascii", "replace"),
            filename=bytes(_bytes(features, "image/filename")),
            synset=bytes(_bytes(features, "image/class/synset")),
            text=bytes(_bytes(features, "image/class/text")),
        )

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """DALI's index."""
        return {".idx": dali_index((entry.offset, entry.length) for entry in entries)}


class ImageNetWriter:
    """Writes Examples; what repeats from sample to sample is encoded once."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records = TFRecordWriter(sink)
        self._label_offset = label_offset

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one Example; the image is not copied on its way to the sink."""
        head, colorspace = _of_class(
            sample.channels,
            sample.label + self._label_offset,
            sample.synset,
            sample.text,
            sample.colorspace,
        )
        # In the byte order of the keys, so that bytes repeat.
        entries = [
            head,
            colorspace,
            *feature_parts("image/encoded", BytesList([sample.image])),
            encode_feature("image/filename", BytesList([sample.filename])),
            _FORMAT,
            _size("image/height", sample.height),
            _NO_BOXES,
            _size("image/width", sample.width),
        ]
        return self._records.write_parts(assemble(entries))


@lru_cache(maxsize=4096)
def _of_class(
    channels: int, label: int, synset: bytes, text: bytes, colorspace: str
) -> tuple[bytes, bytes]:
    head = b"".join(
        [
            encode_feature("image/channels", Int64List([channels])),
            encode_feature("image/class/label", Int64List([label])),
            encode_feature("image/class/synset", BytesList([synset])),
            encode_feature("image/class/text", BytesList([text])),
        ]
    )
    return head, encode_feature("image/colorspace", BytesList([colorspace.encode()]))


@lru_cache(maxsize=4096)
def _size(key: str, pixels: int) -> bytes:
    return encode_feature(key, Int64List([pixels]))


def _only(features: Mapping[str, Feature], key: str, kind: type[Feature]) -> Feature:
    feature = features.get(key)
    if not isinstance(feature, kind) or len(feature.values) != 1:
        raise CorruptRecord(f"Example without one {kind.__name__} value under {key!r}")
    return feature


def _bytes(features: Mapping[str, Feature], key: str) -> Buffer:
    feature = _only(features, key, BytesList)
    assert isinstance(feature, BytesList)  # noqa: S101  for the type checker
    return feature.values[0]


def _int(features: Mapping[str, Feature], key: str) -> int:
    feature = _only(features, key, Int64List)
    assert isinstance(feature, Int64List)  # noqa: S101  for the type checker
    return feature.values[0]
