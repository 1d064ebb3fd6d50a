"""Tests of dataprep.formats.tfrecord."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats import Buffer
from dataprep.formats.tfrecord import (
    OVERHEAD_BYTES,
    TFRecordWriter,
    mask,
    masked_crc32c,
    payload_at,
    read_tfrecords,
    span_at,
)
from tests.strategies import buffers, chopped, mutated, payloads

EMPTY = bytes.fromhex("0000000000000000 29039807 d8ea82a2")
HELLO = bytes.fromhex("0500000000000000 eab2043e 68656c6c6f bb1f1c19")


def encode(payloads: Sequence[Buffer]) -> bytes:
    """The file of ``payloads``."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink)
    for payload in payloads:
        writer.write(payload)
    return sink.getvalue()


files = st.lists(payloads, max_size=4).map(encode)


@pytest.mark.parametrize(("payload", "record"), [(b"", EMPTY), (b"hello", HELLO)])
def test_known_records(payload: bytes, record: bytes) -> None:
    """An empty record and `hello` are written as TensorFlow writes them, and read."""
    assert encode([payload]) == record
    assert [bytes(found.payload) for found in read_tfrecords(record)] == [payload]


@given(contents=st.lists(buffers, max_size=5), offset=st.integers(0, 2**40))
def test_spans_and_payloads_come_back(contents: list[Buffer], offset: int) -> None:
    """Reading gives each payload, and the span that writing it returned."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink, offset)
    spans = [writer.write(payload) for payload in contents]
    assert writer.offset == offset + len(sink.getvalue())
    records = list(read_tfrecords(sink.getvalue()))
    assert [record.payload for record in records] == contents
    assert [(record.offset + offset, record.length) for record in records] == spans


@given(parts=chopped(payloads))
def test_parts_are_written_as_the_whole(parts: list[bytes]) -> None:
    """A payload given in parts, empty ones among them, makes the record of the whole."""
    sink = io.BytesIO()
    span = TFRecordWriter(sink).write_parts(parts)
    assert sink.getvalue() == encode([b"".join(parts)])
    assert span == (0, len(sink.getvalue()))


def test_a_buffer_of_larger_items_counts_in_bytes() -> None:
    """The length of a memoryview of four-byte items is that of its bytes."""
    words = memoryview(b"abcdefgh").cast("I")
    assert encode([words]) == encode([b"abcdefgh"])


def test_payloads_are_views_of_the_file() -> None:
    """Reading copies nothing: a payload changes with the buffer it lies in."""
    file = bytearray(HELLO)
    (record,) = read_tfrecords(file)
    file[12:13] = b"J"
    assert bytes(record.payload) == b"Jello"


def test_truncation_at_every_byte() -> None:
    """A file cut inside a record gives the records before it, then a TruncatedRecord."""
    whole = encode([b"first", b"second"])
    second = len(b"first") + OVERHEAD_BYTES
    for size in [*range(1, second), *range(second + 1, len(whole))]:
        reader = read_tfrecords(whole[:size], name="cut")
        number = int(size > second)
        for _ in range(number):
            assert bytes(next(reader).payload) == b"first"
        with pytest.raises(TruncatedRecord, match=rf"cut: record {number} at byte ") as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (number, number * second)


@pytest.mark.parametrize("place", range(len(HELLO)))
def test_a_flipped_byte_is_found_wherever_it_is(place: int) -> None:
    """Every change of any one byte of a record is a CorruptRecord that says where."""
    for change in range(1, 256):
        damaged = bytearray(EMPTY + HELLO)
        damaged[len(EMPTY) + place] ^= change
        reader = read_tfrecords(damaged, name="shard")
        next(reader)
        with pytest.raises(CorruptRecord, match="shard: record 1 at byte 16") as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (1, 16)


def test_checksums_are_ignored_on_request() -> None:
    """Without checks a record with both checksums wrong is read."""
    damaged = HELLO[:8] + bytes(4) + HELLO[12:17] + bytes(4)
    assert [bytes(r.payload) for r in read_tfrecords(damaged, check=False)] == [b"hello"]


@pytest.mark.parametrize("length", [6, 2**31, 2**64 - 1])
def test_a_length_past_the_end_is_a_truncated_file(length: int) -> None:
    """A length that runs past the end is a truncated file, be it 16 EiB."""
    damaged = length.to_bytes(8, "little") + HELLO[8:]
    with pytest.raises(TruncatedRecord, match=rf"its {length} payload bytes run past the end"):
        next(read_tfrecords(damaged, check=False))
    with pytest.raises(CorruptRecord, match="the checksum of the length"):
        next(read_tfrecords(damaged))


@given(data=st.binary() | mutated(files), check=st.booleans())
def test_any_bytes_are_records_or_a_record_error(data: bytes, check: bool) -> None:
    """Arbitrary bytes read or raise a RecordError that lies in the file, nothing else."""
    end, problem_at = 0, len(data)
    try:
        for record in read_tfrecords(data, check=check):
            assert record.offset == end
            end += record.length
    except RecordError as error:
        problem_at = error.offset
    assert problem_at == end


@given(contents=st.lists(payloads, max_size=4))
def test_headers_alone_give_the_place_of_each_record(contents: list[bytes]) -> None:
    """Walking from span to span finds what reading finds, and no payload is looked at."""
    data, offset = encode(contents), 0
    for record in read_tfrecords(data):
        span = span_at(memoryview(data), offset)
        assert (span.offset, span.length) == record[:2]
        assert payload_at(memoryview(data), span) == record.payload
        offset = span.end
    assert offset == len(data)
    if contents:
        zeroed = memoryview(data[:12] + bytes(len(data)))
        assert span_at(zeroed, 0).payload_bytes == len(contents[0])


def test_an_error_survives_pickling() -> None:
    """A truncated file is an EOFError, and crosses from one process to another whole."""
    with pytest.raises(TruncatedRecord) as caught:
        next(read_tfrecords(HELLO[:-1], name="a"))
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, TruncatedRecord)
    assert isinstance(error, EOFError)
    assert (error.record, error.offset) == (0, 0)


def test_the_checksum() -> None:
    """CRC-32C has the check value of RFC 3720; masking rotates by 15 bits and adds a constant."""
    assert crc32c(b"123456789") == 0xE3069283
    assert (mask(0), mask(1), mask(0x8000)) == (0xA282EAD8, 0xA284EAD8, 0xA282EAD9)
    assert masked_crc32c(memoryview(b"hello")).to_bytes(4, "little").hex() == "bb1f1c19"
