"""Every record format in ``dataprep.formats`` passes this suite."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import RecordError
from dataprep.formats import (
    HEAD_BYTES,
    Box,
    IndexEntry,
    Layout,
    RecordFormat,
    RecordOptions,
    Sample,
    format_names,
    formats_like,
    get_format,
)
from dataprep.formats.protocol import RawRecord, encoding_of
from tests.strategies import buffers, magic_payloads, mutated, payloads

sides = st.floats(0, 1, width=32)
samples = st.builds(
    Sample,
    image=buffers | magic_payloads,
    label=st.integers(0, 21_841),
    number=st.integers(0, 2**40),
    width=st.integers(1, 2**16),
    height=st.integers(1, 2**16),
    channels=st.sampled_from([1, 3]),
    colorspace=st.sampled_from(["RGB", "Grayscale"]),
    filename=st.binary(max_size=20),
    synset=st.sampled_from([b"n01440764", b"cat", "Füße".encode(), b"\xff"]),
    text=st.sampled_from([b"", b"tench, Tinca tinca"]),
    encoding=st.sampled_from(["JPEG", "PNG", "WEBP"]),
    boxes=st.lists(st.builds(Box, sides, sides, sides, sides, st.integers(0, 999)), max_size=3).map(
        tuple
    ),
    source=st.binary(max_size=20),
)
shards = st.lists(samples, max_size=5)
offsets = st.integers(0, 1000)

FEW = [
    Sample(
        image=bytes(range(40 + number)),
        label=number,
        number=100 + number,
        width=8,
        height=9,
        channels=3,
        colorspace="RGB",
        filename=b"%d.jpg" % number,
        synset=b"n00000001",
        text=b"text",
    )
    for number in range(3)
]


@pytest.fixture(params=format_names(), scope="module")
def fmt(request: pytest.FixtureRequest) -> RecordFormat:
    """Every registered format."""
    return get_format(request.param)


def write(
    fmt: RecordFormat, shard: Sequence[Sample], label_offset: int = 0
) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes of a shard, and the span of each record."""
    sink = io.BytesIO()
    writer = fmt.writer(sink, RecordOptions(label_offset))
    spans = [writer.write(sample) for sample in shard]
    return sink.getvalue(), spans


def read(fmt: RecordFormat, data: bytes) -> list[RawRecord]:
    """All records of a shard."""
    return list(fmt.read(data, "shard"))


def plain(sample: Sample) -> Sample:
    """The same sample with its image as bytes, so that samples can be compared."""
    return replace(sample, image=bytes(sample.image))


@given(shard=shards, label_offset=offsets)
def test_samples_come_back(fmt: RecordFormat, shard: list[Sample], label_offset: int) -> None:
    """Each writer's samples are read as they were written: the image, the label, kept fields.

    The first bytes of the image give the encoding if the format does not keep it.
    """
    data, spans = write(fmt, shard, label_offset)
    assert (data, spans) == write(get_format(fmt.name), shard, label_offset)
    decoded = [
        fmt.decode(record.payload, RecordOptions(label_offset)) for record in read(fmt, data)
    ]
    assert len(decoded) == len(shard)
    blank = Sample(image=b"", label=0)
    for sample, decoded_sample in zip(shard, decoded, strict=True):
        assert bytes(decoded_sample.image) == bytes(sample.image)
        assert decoded_sample.label == sample.label
        for field in fields(Sample):
            if field.name not in ("image", "label"):
                value = getattr(decoded_sample, field.name)
                reported = encoding_of(sample.image) if field.name == "encoding" else None
                empty = reported or getattr(blank, field.name)
                assert value in (getattr(sample, field.name), empty)


def test_the_fields_each_format_keeps() -> None:
    """TFRecord keeps all fields but the number, RecordIO the number, WebDataset some fields."""
    sample = replace(FEW[0], source=b"folder/0.jpg")
    samples = {}
    for name in ("tfrecord", "recordio", "webdataset"):
        fmt = get_format(name)
        (record,) = read(fmt, write(fmt, [sample], 1)[0])
        samples[name] = plain(fmt.decode(record.payload, RecordOptions(1)))
    assert samples["tfrecord"] == replace(sample, number=0, source=b"")
    assert samples["webdataset"] == replace(
        sample, channels=0, colorspace="", filename=b"", text=b""
    )
    assert samples["recordio"] == Sample(
        image=sample.image, label=sample.label, number=sample.number
    )


@given(shard=shards)
def test_spans_address_whole_records(fmt: RecordFormat, shard: list[Sample]) -> None:
    """Spans follow one another from 0 to the end, and each span alone reads as its record."""
    data, spans = write(fmt, shard)
    records = read(fmt, data)
    assert [(record.offset, record.length) for record in records] == spans
    at = 0
    for (offset, length), record in zip(spans, records, strict=True):
        assert offset == at
        at += length
        (alone,) = fmt.read(data[offset : offset + length], "span")
        assert alone == RawRecord(0, length, record.payload)
    assert at == len(data)


@given(sample=samples, label_offset=offsets)
def test_the_label_offset_exists_only_inside(
    fmt: RecordFormat, sample: Sample, label_offset: int
) -> None:
    """A record holds the label plus the offset, and decoding subtracts the offset."""
    data, _ = write(fmt, [sample], label_offset)
    (record,) = read(fmt, data)
    assert fmt.decode(record.payload, RecordOptions(0)).label == sample.label + label_offset
    assert fmt.decode(record.payload, RecordOptions(label_offset)).label == sample.label


def test_boxes_come_back_where_they_are_kept(fmt: RecordFormat) -> None:
    """A format keeps boxes, or its attribute says that it does not."""
    boxes = (Box(0.125, 0.25, 0.5, 0.75, 2),)
    data, _ = write(fmt, [replace(FEW[0], boxes=boxes)], 1)
    (record,) = read(fmt, data)
    boxes_read = fmt.decode(record.payload, RecordOptions(1)).boxes
    assert boxes_read == (boxes if fmt.keeps_boxes(RecordOptions(1)) else ())


def test_default_label_offsets(fmt: RecordFormat) -> None:
    """Classes that are not synsets count from 0. Only TFRecord counts synsets from 1 by default."""
    layouts: list[str | dict[str, str]] = ["tfds", {"a": "encoded", "b": "label"}]
    for layout in layouts:
        assert fmt.default_label_offset(True, Layout.of(layout)) == 0
    assert fmt.default_label_offset(are_synsets=False) == 0
    assert fmt.default_label_offset(are_synsets=True) == (1 if fmt.name == "tfrecord" else 0)


@given(shard=st.lists(samples, min_size=1, max_size=5))
def test_an_index_has_a_line_a_record(fmt: RecordFormat, shard: list[Sample]) -> None:
    """Every index has a line for each record, in order.

    An ``.idx`` has the offset of each record.
    """
    _, spans = write(fmt, shard)
    entries = []
    for row, (sample, span) in enumerate(zip(shard, spans, strict=True)):
        entries.append(IndexEntry(sample.number, sample.label, *span, f"class/{row}.jpg"))
    indexes = fmt.indexes(entries)
    for text in indexes.values():
        assert text.count(b"\n") == len(shard)
        assert text.endswith(b"\n")
    if ".idx" in indexes:
        for line, entry in zip(indexes[".idx"].splitlines(), entries, strict=True):
            assert b"%d" % entry.offset in line.split()


def test_the_indexes_agree_with_their_readers() -> None:
    """DALI's index has offset and size, MXNet's key and offset, the list key, label and name."""
    entries = [
        IndexEntry(number=7, label=3, offset=0, length=36, name=r"a b/x\x09y.jpg"),
        IndexEntry(number=9, label=999, offset=2**33, length=40, name="z.jpg"),
    ]
    assert get_format("tfrecord").indexes(entries) == {".idx": b"0 36\n8589934592 40\n"}
    assert get_format("recordio").indexes(entries) == {
        ".idx": b"7\t0\n9\t8589934592\n",
        ".lst": b"7\t3.000000\ta b/x\\x09y.jpg\n9\t999.000000\tz.jpg\n",
    }


def test_an_empty_shard_is_no_bytes(fmt: RecordFormat) -> None:
    """A shard without samples is empty, reads as no records, and has empty indexes."""
    assert get_format(fmt.name).name == fmt.name
    assert fmt.extension == "" or fmt.extension.startswith(".")
    assert write(fmt, []) == (b"", [])
    assert read(fmt, b"") == []
    assert set(fmt.indexes([]).values()) <= {b""}


@given(shard=shards)
def test_records_are_found_without_an_index(fmt: RecordFormat, shard: list[Sample]) -> None:
    """``span_at`` gives the span of each record from its first byte, and None at the trailer."""
    data, spans = write(fmt, shard)
    file_content = memoryview(data + fmt.trailer)
    for number, span in enumerate(spans):
        assert fmt.span_at(file_content, span[0], ("shard", number)) == span
    if fmt.trailer:
        assert fmt.span_at(file_content, len(data), ("shard", len(shard))) is None


@given(shard=shards)
def test_a_shard_is_read_with_and_without_its_trailer(
    fmt: RecordFormat, shard: list[Sample]
) -> None:
    """A shard is read with and without its trailer, which is not a record."""
    data, spans = write(fmt, shard)
    records = read(fmt, data + fmt.trailer)
    assert [(record.offset, record.length) for record in records] == spans


@given(parts=st.lists(shards, max_size=3))
def test_a_shard_is_runs_of_records(fmt: RecordFormat, parts: list[list[Sample]]) -> None:
    """Records of several writers make one shard with the bytes that one writer writes."""
    data = b"".join(write(fmt, part)[0] for part in parts)
    assert data == write(fmt, [sample for part in parts for sample in part])[0]


@given(sample=samples, label_offset=offsets)
def test_the_image_is_read_alone(fmt: RecordFormat, sample: Sample, label_offset: int) -> None:
    """``image`` returns a view of the payload with the same bytes as ``decode``."""
    data, _ = write(fmt, [sample], label_offset)
    (record,) = read(fmt, data)
    image = fmt.image(record.payload, RecordOptions(label_offset))
    assert isinstance(image, memoryview)
    assert bytes(image) == bytes(sample.image)


@given(shard=st.lists(samples, min_size=1, max_size=3))
def test_a_format_knows_its_own_shards(fmt: RecordFormat, shard: list[Sample]) -> None:
    """A format recognises its own shards by their first bytes, and no shard of another format.

    This includes shorter shards. Texts and images are not recognised as shards.
    """
    data, _ = write(fmt, shard)
    assert formats_like((data + fmt.trailer)[:HEAD_BYTES]) == [fmt.name]
    for other in (b"", b"\xff\xd8\xff\xe0" + bytes(2000), b"number,label\n" * 200, bytes(4000)):
        assert not fmt.matches(other[:HEAD_BYTES])


def test_an_empty_shard_is_known_by_its_trailer(fmt: RecordFormat) -> None:
    """An empty shard is recognised by its trailer, if its format has a trailer."""
    assert fmt.matches(fmt.trailer) == bool(fmt.trailer)


def test_fields_show_the_image_and_the_label(fmt: RecordFormat) -> None:
    """Every format shows the image and the label as they are stored, under a name of its own."""
    data, _ = write(fmt, FEW[2:], 5)
    (record,) = read(fmt, data)
    fields = fmt.fields(record.payload)
    values = [value for feature in fields.values() for value in feature.values]
    assert 7 in values
    assert FEW[2].image in [bytes(value) for value in values if isinstance(value, memoryview)]


def test_truncation_is_found_at_every_byte(fmt: RecordFormat) -> None:
    """A shard cut inside a record gives the records before it, then an error with the position."""
    data, spans = write(fmt, FEW)
    all_payloads = [bytes(record.payload) for record in read(fmt, data)]
    starts = [offset for offset, _ in spans]
    for size in range(1, len(data)):
        before = sum(offset + length <= size for offset, length in spans)
        reader = fmt.read(data[:size], "cut")
        assert [bytes(next(reader).payload) for _ in range(before)] == all_payloads[:before]
        if size in starts:
            assert list(reader) == []
            continue
        with pytest.raises(EOFError, match=rf"cut: record {before} at byte ") as caught:
            next(reader)
        assert isinstance(caught.value, RecordError)
        assert (caught.value.record, caught.value.offset) == (before, starts[before])


def test_a_flipped_byte_never_crashes(fmt: RecordFormat) -> None:
    """One flipped byte is detected or gives another sample. A format with checksums detects all."""
    data, _ = write(fmt, FEW)
    detected = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x81
        try:
            for record in fmt.read(bytes(damaged), "flipped"):
                assert isinstance(fmt.decode(record.payload, RecordOptions(0)), Sample)
        except RecordError:
            detected += 1
    assert detected == len(data) if fmt.has_checksums else detected >= 8 * len(FEW)


@given(
    data=payloads
    | magic_payloads
    | mutated(shards.map(lambda shard: write(get_format("tfrecord"), shard)[0]))
)
def test_any_bytes_read_or_raise(fmt: RecordFormat, data: bytes) -> None:
    """Arbitrary bytes, as a shard or as a payload, are read or raise a RecordError."""
    for read_any in (
        lambda: [record.payload for record in fmt.read(data, "any")],
        lambda: [data],
    ):
        with contextlib.suppress(RecordError):
            for payload in read_any():
                assert isinstance(fmt.decode(payload, RecordOptions(1)), Sample)
    assert fmt.matches(data[:HEAD_BYTES]) in (True, False)
    for look in (
        lambda: fmt.image(data, RecordOptions(1)),
        lambda: fmt.fields(data),
        lambda: fmt.span_at(memoryview(data), 0, ("any", 0)),
    ):
        with contextlib.suppress(RecordError):
            look()
