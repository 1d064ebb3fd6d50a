"""Everything that one record holds."""

from __future__ import annotations

import io
import json

import pytest

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, encode_example
from dataprep.formats.recordio import RecordIOWriter, pack_image_header
from dataprep.formats.tfrecord import TFRecordWriter
from dataprep.inspection.record import Field, Place, Record, damaged, read_record
from tests.dataprep.inspection.test_image_facts import encoded

JPEG = encoded("JPEG")


def framed(payload: bytes, form: str = "tfrecord") -> bytes:
    """One encoded record."""
    sink = io.BytesIO()
    (TFRecordWriter(sink) if form == "tfrecord" else RecordIOWriter(sink)).write(payload)
    return sink.getvalue()


def read(payload: bytes, form: str = "tfrecord") -> Record:
    """It, as record 3 of a shard."""
    data = framed(payload, form)
    return read_record(data, Place("x/shard", form, 3, 700, len(data)))


def test_an_example() -> None:
    """Every feature by its type and length, in the order of the keys; the image by its header."""
    features: dict[str, Feature] = {
        "image/encoded": BytesList([JPEG]),
        "image/class/label": Int64List([7]),
        "box": FloatList([0.25, 1.0]),
        "empty": Int64List([]),
        "image/class/text": BytesList([b"tench, Tinca tinca"]),
    }
    found = read(encode_example(features))
    assert found.fields == (
        Field("box", "float", 2, "0.25, 1"),
        Field("empty", "int64", 0, ""),
        Field("image/class/label", "int64", 1, "7"),
        Field("image/class/text", "bytes", 1, "'tench, Tinca tinca'"),
        Field("image/encoded", "bytes", 1, f"JPEG, {len(JPEG):,} bytes"),
    )
    assert found.image == JPEG
    assert found.facts is not None
    assert (found.facts.width, found.facts.height) == (37, 23)
    assert found.range == f"bytes=700-{700 + found.length - 1}"


def test_an_image_record() -> None:
    """Flag, labels and ids of the header, and the image."""
    found = read(pack_image_header([1.0, 2.5], 9, 4) + JPEG, "recordio")
    assert [(field.name, field.count, field.shown) for field in found.fields[:4]] == [
        ("flag", 1, "2"),
        ("label", 2, "1, 2.5"),
        ("id", 1, "9"),
        ("id2", 1, "4"),
    ]
    assert found.image == JPEG


def test_many_values() -> None:
    """Of a long list the first few are shown, and how many there are."""
    found = read(encode_example({"a": Int64List(range(1000)), "b": BytesList([b"x" * 500])}))
    assert found.fields[0] == Field("a", "int64", 1000, "0, 1, 2, 3, 4, 5, 6, 7, …")
    assert found.fields[1].shown.endswith("500 bytes")
    assert len(found.fields[1].shown) < 90


def test_hostile_text() -> None:
    """What means something to a terminal, or is no text, is shown escaped."""
    found = read(encode_example({"a\x1b[2J": BytesList([b"\x1b[31mred\xff\n"])}))
    assert found.fields[0].name == "a\\x1b[2J"
    assert found.fields[0].shown == "'\\x1b[31mred\\xff\\x0a'"


def test_an_image_by_another_key() -> None:
    """With no customary key, the largest image among the byte strings is the image."""
    thumb = encoded("PNG")
    assert len(thumb) > len(JPEG)
    found = read(encode_example({"a": BytesList([JPEG]), "b": BytesList([thumb])}))
    assert found.image == thumb


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_something_else(form: str) -> None:
    """A payload of another kind is shown as it begins."""
    found = read(b"\xffhello", form)
    assert [field.name for field in found.fields] == ["payload"]
    assert (found.image, found.problem) == (None, "no image in it")


def test_a_broken_image() -> None:
    """An image that cannot be read is told so, and still is what gets saved."""
    found = read(encode_example({"image/encoded": BytesList([b"\xff\xd8\xff broken"])}))
    assert found.facts is None
    assert "not an image that can be read" in found.problem
    assert found.image == b"\xff\xd8\xff broken"


def test_a_damaged_record() -> None:
    """A checksum that does not match is an error with the record's own number and offset."""
    data = bytearray(framed(b"hello"))
    data[13] ^= 1
    with pytest.raises(CorruptRecord, match=r"x/shard: record 3 at byte 700: .*checksum") as caught:
        read_record(data, Place("x/shard", "tfrecord", 3, 700, len(data)))
    assert (caught.value.record, caught.value.offset) == (3, 700)


def test_not_one_record() -> None:
    """Where the place is not that of one record, it is not guessed which is meant."""
    data = framed(b"hello") * 2
    with pytest.raises(RecordError, match="2 records where one should stand"):
        read_record(data, Place("x/shard", "tfrecord", 3, 700, len(data)))


def test_as_json() -> None:
    """All but the image's bytes can be told as JSON."""
    content = json.loads(json.dumps(read(encode_example({"image": BytesList([JPEG])})).as_dict()))
    assert "image" not in content
    assert content["facts"]["width"] == 37
    assert content["fields"][0]["type"] == "bytes"
    gone = damaged(Place("x/shard", "tfrecord", 3, 700, 9), "x: record 3 at byte 700: cut short")
    assert gone.as_dict()["problem"] == "cut short"
