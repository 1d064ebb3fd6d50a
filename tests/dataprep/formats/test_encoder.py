"""Examples of samples, byte for byte, and what is remembered of those before."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from dataprep.formats import Box, Layout
from dataprep.formats.imagenet import ExampleEncoder, example_encoder
from dataprep.formats.layout import IMAGENET
from tests.dataprep.formats.examples import EVERYTHING, SAMPLE, TFDS, encoded, read


def test_tfds_byte_for_byte() -> None:
    """Three features in the order of their names, the label without an offset of its own."""
    assert encoded(replace(SAMPLE, image=b"JPG", filename=b"a.JPEG"), TFDS) == (
        b"\x0a\x3b"
        b"\x0a\x17\x0a\x09file_name\x12\x0a\x0a\x08\x0a\x06a.JPEG"
        b"\x0a\x10\x0a\x05image\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x03"
    )


def test_a_mapping_byte_for_byte() -> None:
    """Numbers, floats and bytes under names of one's own, sorted by the bytes of the names."""
    layout = Layout.of({"é": "values", "i": "encoded", "Y": "label", "h": "height"})
    assert encoded(replace(SAMPLE, image=b"JPG"), layout, 1) == (
        b"\x0a\x3e"
        b"\x0a\x0a\x0a\x01Y\x12\x05\x1a\x03\x0a\x01\x04"
        b"\x0a\x0a\x0a\x01h\x12\x05\x1a\x03\x0a\x01\x02"
        b"\x0a\x0c\x0a\x01i\x12\x07\x0a\x05\x0a\x03JPG"
        b"\x0a\x16\x0a\x02\xc3\xa9\x12\x10\x12\x0e\x0a\x0c" + struct.pack("<3f", 3, 0.25, -7.5)
    )


def test_what_was_written_before_changes_no_byte() -> None:
    """0.0 and -0.0 are equal, and have other bytes, whichever came first."""
    first = replace(SAMPLE, values=(0.0,), boxes=(Box(0.0, 0.0, 0.5, 0.5),))
    other = replace(SAMPLE, values=(-0.0,), boxes=(Box(-0.0, -0.0, 0.5, 0.5),))
    assert len({encoded(sample, EVERYTHING) for sample in (first, other)}) == 2
    assert struct.pack("<f", -0.0) in encoded(other, EVERYTHING)


def test_what_repeats_is_encoded_once() -> None:
    """Samples that share a class or a size come out as themselves; no image is copied."""
    one = ExampleEncoder(IMAGENET, 1)
    plain = replace(SAMPLE, boxes=(), values=())
    changes: tuple[dict[str, Any], ...] = (
        {},
        {"image": b"another", "filename": b"b"},
        {"width": 5},
        {"label": 4, "synset": b"n01443537"},
        {},
        {"boxes": SAMPLE.boxes[:1]},
        {},
    )
    for change in changes:
        sample = replace(plain, **change)
        parts = one.parts(sample)
        assert parts[1] is sample.image
        assert read(b"".join(parts), IMAGENET, 1) == replace(sample, number=0, source=b"")


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more sizes than are kept each is still written as it is."""
    monkeypatch.setattr("dataprep.formats.imagenet._KNOWN", 3)
    one = ExampleEncoder(IMAGENET, 0)
    for width in (*range(1, 9), *range(1, 9)):
        sample = replace(SAMPLE, width=width, number=0, boxes=(), values=(), source=b"")
        assert read(b"".join(one.parts(sample)), IMAGENET) == sample


def test_shards_of_a_data_set_share_what_was_encoded() -> None:
    """Equal layouts have one encoder for each offset of labels."""
    assert example_encoder(Layout.of("imagenet"), 1) is example_encoder(IMAGENET, 1)
    assert example_encoder(IMAGENET, 0) is not example_encoder(IMAGENET, 1)
