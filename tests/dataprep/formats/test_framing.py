"""TFRecord and RecordIO frame records, and write them to files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.errors import RecordError, TruncatedRecord
from dataprep.formats import Buffer, recordio, tfrecord
from tests.strategies import buffers, chopped, magic_payloads, mutated


class Framing(NamedTuple):
    """The functions of one format."""

    writer: Callable[..., Any]
    read: Callable[..., Iterator[Any]]
    span_at: Callable[[memoryview, int], Any]
    payload_at: Callable[[memoryview, Any], Buffer]

    def encode(self, payloads: Sequence[Buffer]) -> bytes:
        """The file of ``payloads``."""
        sink = io.BytesIO()
        writer = self.writer(sink)
        for payload in payloads:
            writer.write(payload)
        return sink.getvalue()


TFRECORD = Framing(
    tfrecord.TFRecordWriter, tfrecord.read_tfrecords, tfrecord.span_at, tfrecord.payload_at
)
RECORDIO = Framing(
    recordio.RecordIOWriter, recordio.read_recordio, recordio.span_at, recordio.payload_at
)
each_framing = pytest.mark.parametrize("framing", [TFRECORD, RECORDIO], ids=["tfrecord", "rec"])
contents_of_files = st.lists(magic_payloads, max_size=4)


@each_framing
@given(
    contents=st.lists(st.one_of(magic_payloads, buffers), max_size=5),
    offset=st.integers(0, 2**40).map(lambda word: 4 * word),
)
def test_spans_and_payloads_come_back(
    framing: Framing, contents: list[Buffer], offset: int
) -> None:
    """Reading returns each payload, and the span that writing it returned."""
    sink = io.BytesIO()
    writer = framing.writer(sink, offset)
    spans = [writer.write(payload) for payload in contents]
    assert writer.offset == offset + len(sink.getvalue())
    records = list(framing.read(sink.getvalue()))
    assert [record.payload for record in records] == contents
    assert [(record.offset + offset, record.length) for record in records] == spans


@each_framing
@given(parts=chopped(magic_payloads))
def test_parts_are_written_as_the_whole(framing: Framing, parts: list[bytes]) -> None:
    """A payload in parts, some of them empty, makes the same record as a whole payload."""
    sink = io.BytesIO()
    span = framing.writer(sink).write_parts(parts)
    assert sink.getvalue() == framing.encode([b"".join(parts)])
    assert span == (0, len(sink.getvalue()))


@each_framing
def test_a_buffer_of_larger_items_counts_in_bytes(framing: Framing) -> None:
    """The length of a memoryview of four-byte items is that of its bytes."""
    items = memoryview(b"abcdefgh").cast("I")
    assert framing.encode([items]) == framing.encode([b"abcdefgh"])


@each_framing
def test_payloads_are_views_of_the_file(framing: Framing) -> None:
    """Reading does not copy a payload of one part: it changes with its buffer."""
    file = bytearray(framing.encode([b"hello"]))
    (record,) = framing.read(file)
    at = file.index(b"hello")
    file[at : at + 1] = b"J"
    assert bytes(record.payload) == b"Jello"


@each_framing
def test_truncation_at_every_byte(framing: Framing) -> None:
    """A file cut inside a record, or between its parts, ends in a TruncatedRecord."""
    first = framing.encode([b"first"])
    encoded = first + framing.encode([b"abcd" + recordio.MAGIC + b"xy"])
    for size in [*range(1, len(first)), *range(len(first) + 1, len(encoded))]:
        reader = framing.read(encoded[:size], name="cut")
        number = int(size > len(first))
        for _ in range(number):
            assert bytes(next(reader).payload) == b"first"
        with pytest.raises(TruncatedRecord, match=rf"cut: record {number} at byte ") as caught:
            next(reader)
        assert (caught.value.record, caught.value.offset) == (number, number * len(first))


@pytest.mark.parametrize(
    "framing",
    [TFRECORD, TFRECORD._replace(read=partial(tfrecord.read_tfrecords, check=False)), RECORDIO],
    ids=["tfrecord", "unchecked", "rec"],
)
@given(data=st.data())
def test_any_bytes_are_records_or_a_record_error(framing: Framing, data: st.DataObject) -> None:
    """Arbitrary bytes are read or raise a RecordError with a position in the file."""
    file = data.draw(st.binary() | mutated(contents_of_files.map(framing.encode)))
    end, problem_at = 0, len(file)
    try:
        for record in framing.read(file):
            assert record.offset == end
            end += record.length
    except RecordError as error:
        problem_at = error.offset
    assert problem_at == end


@each_framing
@given(contents=contents_of_files)
def test_headers_alone_give_the_place_of_each_record(
    framing: Framing, contents: list[bytes]
) -> None:
    """Following the spans finds the same records as reading, with split records joined."""
    data, offset = framing.encode(contents), 0
    for record in framing.read(data):
        span = framing.span_at(memoryview(data), offset)
        assert (span.offset, span.length) == record[:2]
        assert framing.payload_at(memoryview(data), span) == record.payload
        offset = span.end
    assert offset == len(data)


def test_a_file_of_records_is_the_same_as_by_any_other_sink(tmp_path: Path) -> None:
    """Records of any size, and buffers that change afterwards, are written as by any other sink."""
    path, plain = tmp_path / "gathered", tmp_path / "plain"
    payloads = [bytes([number % 251]) * (number * 997 % 90_000) for number in range(300)]
    with dataprep.RecordFile(path) as file, plain.open("wb") as other:
        first, second = dataprep.TFRecordWriter(file), dataprep.TFRecordWriter(other)
        for payload in payloads:
            changing = bytearray(payload)
            first.write(changing)
            changing[:] = bytes(len(changing))
            second.write(payload)
    assert path.read_bytes() == plain.read_bytes()


@each_framing
def test_a_writer_opens_a_path_itself(framing: Framing, tmp_path: Path) -> None:
    """The file has the same bytes as with any other sink, and replaces an existing file."""
    payloads = [b"", b"one", bytes(2**20), b"two"]
    for path in (tmp_path / "records", str(tmp_path / "records")):
        with framing.writer(path) as writer:
            extents = [writer.write(payload) for payload in payloads]
        assert (tmp_path / "records").read_bytes() == framing.encode(payloads)
        assert extents[-1] == (writer.offset - extents[-1][1], extents[-1][1])


@each_framing
def test_a_writer_leaves_a_file_open_that_it_has_not_opened(framing: Framing) -> None:
    """The owner of a sink closes it, and may write more."""
    sink = io.BytesIO()
    with framing.writer(sink) as writer:
        writer.write(b"one")
    with framing.writer(sink, writer.offset) as writer:
        writer.write(b"two")
    assert sink.getvalue() == framing.encode([b"one", b"two"])


@each_framing
def test_a_path_takes_no_offset(framing: Framing, tmp_path: Path) -> None:
    """A new file begins at offset 0, and the error says how to append."""
    with pytest.raises(ValueError, match="mode 'ab'"):
        framing.writer(tmp_path / "records", 8)
    assert not (tmp_path / "records").exists()


def test_many_small_parts(tmp_path: Path) -> None:
    """Many small parts exceed the buffer and are written correctly."""
    path = tmp_path / "small"
    with dataprep.RecordFile(path) as file:
        for number in range(5000):
            file.write(b"%05d" % number)
    assert path.read_bytes() == b"".join(b"%05d" % number for number in range(5000))


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    """Nothing of an existing file remains."""
    path = tmp_path / "there"
    path.write_bytes(b"much longer than that")
    with dataprep.RecordFile(path) as file:
        file.write(b"short")
    assert path.read_bytes() == b"short"
