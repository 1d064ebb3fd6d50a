"""Tests of dataprep.sources.framing and of the scans that rest on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.formats.protocol import RawRecord
from dataprep.formats.recordio import RecordIOWriter, read_recordio
from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
from dataprep.sources.framing import Framed, recordio_at, tfrecord_at
from dataprep.sources.ranges import Ranges
from dataprep.sources.record_content import LAYOUTS
from dataprep.sources.record_scan import scan_recordio, scan_tfrecord
from tests.dataprep.sources.shards import customary, examples, image, image_records
from tests.strategies import magic_payloads, mutated, payloads


class Sink:
    """Bytes that grow."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        self.data += data


def ranges(data: bytes, chunk_bytes: int = 16) -> Ranges:
    """``data`` in small chunks."""
    return Ranges(lambda at, length: data[at : at + length], chunk_bytes, len(data))


def walked(at: Callable[[int], Framed], size: int) -> list[Framed]:
    """Records one after the other, and damage between them."""
    found: list[Framed] = []
    offset: int | None = 0
    while offset is not None and offset < size:
        framed = at(offset)
        found.append(framed)
        assert framed.end is None or framed.end > offset
        offset = framed.end
    return found


@given(records=st.lists(payloads, max_size=6), chunk_bytes=st.integers(1, 40))
def test_tfrecords_are_those_of_the_codec(records: list[bytes], chunk_bytes: int) -> None:
    """Read by ranges, record by record, a shard gives what the codec gives of it whole."""
    sink = Sink()
    writer = TFRecordWriter(sink)
    for record in records:
        writer.write(record)
    data = ranges(bytes(sink.data), chunk_bytes)
    found = walked(lambda offset: tfrecord_at(data, offset), len(sink.data))
    assert [bytes(framed.payload) for framed in found] == records
    whole: list[RawRecord] = list(read_tfrecords(sink.data))
    assert [framed.end for framed in found] == [raw.offset + raw.length for raw in whole]


@given(records=st.lists(magic_payloads, max_size=6), chunk_bytes=st.integers(1, 40))
def test_recordio_is_that_of_the_codec(records: list[bytes], chunk_bytes: int) -> None:
    """Records that were split at the magic are joined, wherever ranges end."""
    sink = Sink()
    writer = RecordIOWriter(sink)
    for record in records:
        writer.write(record)
    data = ranges(bytes(sink.data), chunk_bytes)
    found = walked(lambda offset: recordio_at(data, offset), len(sink.data))
    assert [bytes(framed.payload) for framed in found] == records
    by_heads = walked(lambda offset: recordio_at(data, offset, len(sink.data)), len(sink.data))
    assert [(framed.end, framed.size) for framed in by_heads] == [
        (raw.offset + raw.length, len(raw.payload)) for raw in read_recordio(sink.data)
    ]


EXAMPLES = examples([customary(number) for number in range(3)])[0]
RECORDS = image_records([([1.0], image(1, 64)), ([1.0, 2.0], image(2, 64))])[0]


@given(data=st.one_of(st.binary(max_size=120), mutated(st.just(EXAMPLES))))
def test_any_tfrecord_bytes_end_in_records_or_damage(data: bytes) -> None:
    """Nothing crashes or runs on; what is sound is an image's size within the file."""
    for record in scan_tfrecord(ranges(data), "x", len(data), LAYOUTS["imagenet"]):
        assert record.problem or 0 <= record.bytes <= len(data)
        assert not record.problem or record.problem.startswith("damaged at byte ")


@given(data=st.one_of(st.binary(max_size=120), mutated(st.just(RECORDS))))
def test_any_recordio_bytes_end_in_records_or_damage(data: bytes) -> None:
    """As for TFRecord; a size is never negative."""
    for record in scan_recordio(ranges(data), "x", len(data)):
        assert record.problem or 0 <= record.bytes <= len(data)


def test_a_length_beyond_what_was_planned_is_damage() -> None:
    """A damaged length never makes a reader fetch half a gigabyte."""
    grown = bytearray(RECORDS)
    grown[7] |= 0x1F
    asked = []

    def fetch(at: int, length: int) -> bytes:
        asked.append(length)
        return bytes(grown[at : at + length])

    assert recordio_at(Ranges(fetch, 64), 0, limit=1000).problem
    assert max(asked) <= 2**20


@pytest.mark.parametrize("number", [0, 1])
def test_heads_tell_the_size_of_an_image(number: int) -> None:
    """Without being read: its record's length less the header and the labels."""
    found = list(scan_recordio(ranges(RECORDS), "x", len(RECORDS)))
    assert found[number].bytes == len(image(number + 1, 64))
