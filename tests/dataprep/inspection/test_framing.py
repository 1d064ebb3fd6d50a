"""Where records lie, by the headers of their framing."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.protocol import RawRecord, Span
from dataprep.formats.recordio import RecordIOWriter, read_recordio
from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
from dataprep.inspection.framing import format_of, recordio_spans, tfrecord_spans
from tests.dataprep.inspection.held import Held
from tests.strategies import magic_payloads, mutated, payloads


def framed(form: str, contents: list[bytes]) -> bytes:
    """A shard of these payloads."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink) if form == "tfrecord" else RecordIOWriter(sink)
    for content in contents:
        writer.write(content)
    return sink.getvalue()


some_payloads = st.lists(st.one_of(payloads, magic_payloads), max_size=5)
tfrecords = some_payloads.map(lambda contents: framed("tfrecord", contents))
recordios = some_payloads.map(lambda contents: framed("recordio", contents))


def until_damage(read: Callable[[], object]) -> tuple[list[tuple[int, int]], RecordError | None]:
    """Offset and length of each record before the first error, and that error."""
    found: list[tuple[int, int]] = []
    try:
        for record in read():  # type: ignore[attr-defined]
            assert isinstance(record, Span | RawRecord)
            found.append((record.offset, record.length))
    except RecordError as error:
        return found, error
    return found, None


@given(tfrecords)
def test_tfrecords_are_where_the_reader_finds_them(data: bytes) -> None:
    """Headers alone give every record's offset, length and payload."""
    records = list(read_tfrecords(data))
    spans = list(tfrecord_spans(Held(data), "x"))
    assert [(s.offset, s.length) for s in spans] == [(r.offset, r.length) for r in records]
    assert [data[s.payload : s.payload + s.payload_bytes] for s in spans] == [
        bytes(record.payload) for record in records
    ]


@given(mutated(tfrecords))
def test_damaged_tfrecords(data: bytes) -> None:
    """Damage ends the walk with its place, no sooner than a reader of payloads would end."""
    read, _ = until_damage(lambda: read_tfrecords(data, name="x"))
    found, error = until_damage(lambda: tfrecord_spans(Held(data), "x"))
    assert found[: len(read)] == read
    if error is not None:
        end = sum(found[-1]) if found else 0
        assert (error.record, error.offset) == (len(found), end)
        assert f"x: record {len(found)} at byte {end}: " in str(error)


@given(mutated(recordios))
def test_recordio_as_the_reader_has_it(data: bytes) -> None:
    """RecordIO has no checksums: headers tell as much as a reader of everything, damage too."""
    read, read_error = until_damage(lambda: read_recordio(data, name="x"))
    found, error = until_damage(lambda: recordio_spans(Held(data), "x"))
    assert found == read
    assert type(error) is type(read_error)
    if error is not None and read_error is not None:
        assert (error.record, error.offset) == (read_error.record, read_error.offset)


@given(st.lists(magic_payloads, max_size=4))
def test_parts(contents: list[bytes]) -> None:
    """A split record is one span; of a whole one the payload lies where the span says."""
    data = framed("recordio", contents)
    for span, content in zip(recordio_spans(Held(data), "x"), contents, strict=True):
        if span.parts == 1:
            assert data[span.payload : span.payload + span.payload_bytes] == content
        else:
            assert content.startswith(data[span.payload : span.payload + span.payload_bytes])


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_only_headers_are_read(form: str) -> None:
    """Of a large payload nothing is read."""
    held = Held(framed(form, [bytes(10**6), b"x", bytes(10**6)]))
    spans = tfrecord_spans if form == "tfrecord" else recordio_spans
    assert len(list(spans(held, "x"))) == 3
    assert held.bytes_read <= 3 * 12


def test_a_length_beyond_the_end() -> None:
    """A sound header whose record runs past the end is a truncated file."""
    data = framed("tfrecord", [b"x" * 100])
    with pytest.raises(TruncatedRecord, match="run past the end of the file at byte 60"):
        list(tfrecord_spans(Held(data[:60]), "x"))


def test_a_flipped_length() -> None:
    """A length that its checksum does not match is corrupt, not followed."""
    data = bytearray(framed("tfrecord", [b"x" * 100]))
    data[1] ^= 1
    with pytest.raises(CorruptRecord, match="checksum of the length"):
        list(tfrecord_spans(Held(bytes(data)), "x"))


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
@pytest.mark.parametrize("name", ["x", "x.bin", "train.rec", "a.tfrecord"])
def test_content_tells_the_format(form: str, name: str) -> None:
    """Whatever a file is called, its first bytes say what it is."""
    assert format_of(framed(form, [b"hello"])[:16], name) == form


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a/train.rec", "recordio"),
        ("train-00000-of-00004", "tfrecord"),
        ("x.tfrecords", "tfrecord"),
        ("x.TFRecord", "tfrecord"),
    ],
)
def test_a_damaged_beginning_is_told_by_its_name(name: str, form: str) -> None:
    """Where the first header is damaged, the name decides, so that the damage gets named."""
    assert format_of(b"\x01" * 16, name) == form
    assert format_of(b"", name) == form


def test_an_empty_file() -> None:
    """Nothing at all is a TFRecord file without records."""
    assert format_of(b"", "x") == "tfrecord"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\x1f\x8b\x08" + bytes(13), "compressed with gzip: unpack it first"),
        (b"\xff\xd8\xff\xe0" + bytes(12), "neither TFRecord nor RecordIO"),
        (b"hello, this is text", "neither TFRecord nor RecordIO: it begins with b'hello"),
        (b"0 28952\n28952 31804\n", "lines of numbers, as an index has: name the shard"),
        (b"0\t0\n1\t28528\n", "lines of numbers"),
        (b"0 123456789012345678\n", "lines of numbers"),
        (b"7 9\n", "lines of numbers"),
        (b"0\t2.000000\tc2/n019", "lines of numbers"),
    ],
)
@pytest.mark.parametrize("name", ["x", "index/tfrecord/train-00000-of-00003.idx", "a.tfrecord"])
def test_something_else(head: bytes, said: str, name: str) -> None:
    """What is neither is refused as a wrong request, whatever it is called."""
    with pytest.raises(RecordError, match=said) as caught:
        format_of(head[:16], name)
    assert caught.value.exit_code == 2
