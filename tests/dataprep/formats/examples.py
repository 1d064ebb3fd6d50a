"""A sample with a value in every field, and Examples of samples."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

from dataprep.formats import Box, Layout, RecordOptions, Sample, get_format
from dataprep.formats.example import Feature, encode_feature, example_head
from dataprep.formats.layout import FIELDS

EVERYTHING = Layout.of({f"all/{field}": field for field in FIELDS})
TFDS = Layout.of("tfds")
SAMPLE = Sample(
    image=b"\x89PNG...",
    label=3,
    number=9,
    width=4,
    height=2,
    channels=1,
    colorspace="Grayscale",
    filename=b"n01440764_10026.JPEG",
    synset=b"n01440764",
    text=b"tench, Tinca tinca",
    encoding="PNG",
    values=(3.0, 0.25, -7.5),
    boxes=(Box(0.125, 0.25, 0.5, 0.75, 3), Box(0.0, 0.0, 1.0, 0.1, 0)),
    source=b"train/n01440764/n01440764_10026.JPEG",
)


def encode_example(features: Mapping[str, Feature]) -> bytes:
    """An Example of these features, in the order of their keys."""
    entries = b"".join([encode_feature(key, features[key]) for key in sorted(features)])
    return example_head(len(entries)) + entries


def encoded(sample: Sample, layout: Layout, offset: int = 0) -> bytes:
    """The Example of a sample as the TFRecord format writes it, without its framing."""
    sink = io.BytesIO()
    form = get_format("tfrecord")
    form.writer(sink, RecordOptions(offset, layout)).write(sample)
    (record,) = form.read(sink.getvalue(), "record")
    return bytes(record.payload)


def read(payload: bytes, layout: Layout, offset: int = 0) -> Sample:
    """The sample of an Example."""
    decoded = get_format("tfrecord").decode(payload, RecordOptions(offset, layout))
    return replace(decoded, image=bytes(decoded.image))
