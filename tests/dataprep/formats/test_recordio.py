"""RecordIO and image records have the bytes of MXNet and dmlc-core."""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats import Buffer, IndexEntry, RecordOptions, Sample, get_format
from dataprep.formats.recordio import (
    MAGIC,
    ImageRecord,
    RecordIOWriter,
    label_count,
    mxnet_index,
    pack_image_header,
    read_recordio,
    unpack_image_record,
)
from tests.dataprep.formats.test_framing import RECORDIO
from tests.strategies import buffers, label_lists, magic_payloads

FORM = get_format("recordio")
SPLIT = bytes.fromhex("0a23d7ce 04000020 61626364 0a23d7ce 02000060 78790000")


def encode(payloads: Sequence[Buffer]) -> bytes:
    """The file of ``payloads``."""
    return RECORDIO.encode(payloads)


def part(cflag: int, data: bytes) -> bytes:
    """One padded part."""
    return MAGIC + struct.pack("<I", cflag << 29 | len(data)) + data + bytes(-len(data) % 4)


def encode_as_dmlc(payload: bytes) -> bytes:
    """One record as dmlc-core's own loop encodes it, word by word."""
    parts, begin = [], 0
    for at in range(0, len(payload) // 4 * 4, 4):
        if payload[at : at + 4] == MAGIC:
            parts.append(part(2 if begin else 1, payload[begin:at]))
            begin = at + 4
    return b"".join(parts) + part(3 if begin else 0, payload[begin:])


def test_a_known_split_record() -> None:
    """An aligned magic splits the record as MXNet does, and reading puts it back."""
    payload = b"abcd" + MAGIC + b"xy"
    assert encode([payload]) == SPLIT
    (record,) = read_recordio(SPLIT)
    assert record == (0, len(SPLIT), payload)


@pytest.mark.parametrize("size", range(9))
def test_a_record_is_padded_with_zeros(size: int) -> None:
    """A record has eight bytes of header, and its payload padded to a multiple of four."""
    data = encode([b"x" * size])
    assert data == MAGIC + bytes((size, 0, 0, 0)) + b"x" * size + bytes(-size % 4)
    assert [bytes(record.payload) for record in read_recordio(data)] == [b"x" * size]


@pytest.mark.parametrize("before", range(9))
@pytest.mark.parametrize("after", range(9))
def test_the_magic_splits_at_multiples_of_four_only(before: int, after: int) -> None:
    """A magic splits a payload only if its offset is a multiple of four."""
    payload = b"a" * before + MAGIC + b"b" * after
    data = encode([payload])
    assert data == encode_as_dmlc(payload)
    assert data[7] >> 5 == (0 if before % 4 else 1)
    assert [bytes(record.payload) for record in read_recordio(data)] == [payload]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_payload_of_magics_alone_is_all_empty_parts(count: int) -> None:
    """Consecutive magics leave empty parts between them."""
    data = encode([MAGIC * count])
    assert data == part(1, b"") + part(2, b"") * (count - 1) + part(3, b"")
    assert [record.payload for record in read_recordio(data)] == [MAGIC * count]


@given(payload=magic_payloads)
def test_records_are_those_of_dmlc(payload: bytes) -> None:
    """A record is split where dmlc-core's loop splits it."""
    assert encode([payload]) == encode_as_dmlc(payload)


def test_the_image_header_counts_for_alignment() -> None:
    """The offset of a magic counts from the image header, with which the payload begins."""
    header = pack_image_header([1.0], 0)
    sink = io.BytesIO()
    RecordIOWriter(sink).write_parts([header, b"ab" + MAGIC + b"ab" + MAGIC])
    assert sink.getvalue() == part(1, header + b"ab" + MAGIC + b"ab") + part(3, b"")


def test_a_payload_of_half_a_gibibyte_is_refused() -> None:
    """The length has 29 bits. A longer payload is a ValueError, and nothing is written."""
    sink = io.BytesIO()
    writer = RecordIOWriter(sink)
    with (
        mmap.mmap(-1, 2**29) as zeros,
        memoryview(zeros) as payload,
        pytest.raises(RecordError, match=r"below 2\^29") as caught,
    ):
        writer.write(payload)
    assert isinstance(caught.value, ValueError)
    assert (sink.getvalue(), writer.offset) == (b"", 0)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x00" * 8, "no magic at byte 16"),
        (b"\x00", "no magic at byte 16"),
        (MAGIC[:3] + b"\x00", "no magic at byte 16"),
        (part(2, b"abcd") + part(3, b""), "with cflag 2 cannot be at byte 16"),
        (part(3, b"abcd"), "with cflag 3 cannot be at byte 16"),
        (part(4, b"abcd"), "with cflag 4 cannot be at byte 16"),
        (part(1, b"abcd") + part(0, b"abcd"), "with cflag 0 cannot be at byte 28"),
        (part(1, b"abcd") + part(1, b"abcd"), "with cflag 1 cannot be at byte 28"),
        (part(1, b"abcd") + part(7, b"abcd"), "with cflag 7 cannot be at byte 28"),
        (part(1, b"abcd") + bytes(8), "no magic at byte 28"),
        (part(1, b"abc") + part(3, b"abcd"), "a part of 3 bytes with cflag 1 cannot be at byte 16"),
        (
            part(1, b"") + part(2, b"abc") + part(3, b""),
            "a part of 3 bytes with cflag 2 cannot be at byte 24",
        ),
    ],
)
def test_what_is_not_a_record_is_corrupt(data: bytes, problem: str) -> None:
    """A missing magic and parts in a wrong order are a CorruptRecord with the position."""
    reader = read_recordio(part(0, b"abcdefg") + data, name="shard")
    next(reader)
    with pytest.raises(CorruptRecord, match="shard: record 1 at byte 16") as caught:
        next(reader)
    assert problem in str(caught.value)
    assert (caught.value.record, caught.value.offset) == (1, 16)


def test_known_image_headers() -> None:
    """One label is in the header, and several labels follow it."""
    assert pack_image_header([7.0], 5) == struct.pack("<IfQQ", 0, 7.0, 5, 0)
    assert pack_image_header([1.0, 2.0], 5) == struct.pack("<IfQQff", 2, 0, 5, 0, 1.0, 2.0)


@given(
    labels=label_lists,
    number=st.integers(0, 2**64 - 1),
    id2=st.integers(0, 2**64 - 1),
    image=buffers,
)
def test_image_records_come_back(labels: list[float], number: int, id2: int, image: Buffer) -> None:
    """Labels, ids and image are read back, and flag counts the labels behind the header."""
    header = pack_image_header(labels, number, id2)
    assert len(header) % 4 == 0
    flag = len(labels) if len(labels) > 1 else 0
    record = unpack_image_record(header + bytes(image))
    assert record == ImageRecord(tuple(labels), number, id2, bytes(image), flag)


def test_labels_are_read_by_flag() -> None:
    """If labels follow the header, the label in the header is ignored."""
    payload = struct.pack("<IfQQ2f", 2, 99.0, 5, 0, 1.0, 2.0) + b"image"
    assert unpack_image_record(payload).labels == (1.0, 2.0)


@pytest.mark.parametrize(
    ("labels", "number"), [([], 0), ([1.0], -1), ([1.0], 2**64), ([1e39], 0), ([1.0, 1e39], 0)]
)
def test_a_header_that_cannot_be_is_refused(labels: list[float], number: int) -> None:
    """No label, or a number that does not fit its field, is a RecordError."""
    with pytest.raises(RecordError):
        pack_image_header(labels, number)


@pytest.mark.parametrize("size", range(24 + 8))
def test_an_image_record_shorter_than_its_header_and_labels_is_corrupt(size: int) -> None:
    """Labels that exceed the payload are corrupt, at every size of the payload."""
    with pytest.raises(CorruptRecord):
        unpack_image_record(pack_image_header([1.0, 2.0], 0)[:size])


def test_a_flag_of_billions_is_corrupt() -> None:
    """More labels than bytes are corrupt, and no memory is allocated for them."""
    with pytest.raises(CorruptRecord, match="4294967295 labels"):
        unpack_image_record(b"\xff" * 100)


@given(data=st.binary())
def test_any_bytes_are_an_image_record_or_corrupt(data: bytes) -> None:
    """Arbitrary bytes are unpacked or raise a RecordError, and nothing else."""
    try:
        record = unpack_image_record(data)
    except RecordError:
        return
    assert 24 + 4 * record.flag + len(record.image) == len(data)


def test_the_mxnet_index_of_known_offsets() -> None:
    """Each line has a key, a tab and the offset of the record's first magic, even above 4 GiB."""
    assert mxnet_index([(0, 0), (7, 2**33)]) == b"0\t0\n7\t8589934592\n"


def written(sample: Sample, offset: int = 0) -> bytes:
    """One encoded record."""
    sink = io.BytesIO()
    FORM.writer(sink, RecordOptions(offset)).write(sample)
    return sink.getvalue()


def decoded(record: bytes, offset: int = 0) -> Sample:
    """The sample of one encoded record."""
    (raw,) = FORM.read(record, "record")
    return FORM.decode(raw.payload, RecordOptions(offset))


def test_several_labels_byte_for_byte() -> None:
    """The flag is the number of labels.

    The first is the class with its offset; the header has 0.
    """
    record = written(Sample(image=b"JPEG", label=2, number=5, values=(2.0, 0.5, 7.0)), 1)
    assert record == struct.pack("<II", 0xCED7230A, 40) + struct.pack(
        "<IfQQ3f4s", 3, 0.0, 5, 0, 3.0, 0.5, 7.0, b"JPEG"
    )


@given(
    label=st.integers(0, 2**20),
    others=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
    offset=st.integers(0, 9),
)
def test_labels_come_back(label: int, others: list[float], offset: int) -> None:
    """The class is read without its offset, and then the other labels."""
    values = (float(label), *others)
    record = written(Sample(image=b"x", label=label, values=values), offset)
    decoded_sample = decoded(record, offset)
    assert (decoded_sample.label, decoded_sample.values) == (label, values)
    assert label_count(record) == len(values)


def test_the_class_is_that_of_labels_json() -> None:
    """The class has the label of this output, and not the number in the listing."""
    decoded_sample = decoded(written(Sample(image=b"x", label=4, values=(281.0, 0.5))))
    assert (decoded_sample.label, decoded_sample.values) == (4, (4.0, 0.5))


def test_one_label_is_in_the_header() -> None:
    """A single label is in the image header, with flag 0."""
    record = written(Sample(image=b"x", label=4))
    assert struct.unpack_from("<If", record, 8) == (0, 4.0)
    assert decoded(record).values == ()
    assert label_count(record) == 1


@pytest.mark.parametrize("label", [0.5, float("nan"), float("inf")])
def test_labels_that_begin_with_no_class(label: float) -> None:
    """A first label that is no whole number is an error."""
    payload = pack_image_header([label, 1.0], 0) + b"x"
    with pytest.raises(CorruptRecord, match="do not begin with a class index"):
        FORM.decode(payload, RecordOptions())


@pytest.mark.parametrize("start", [b"", b"\x0a\x23\xd7\xce", bytes(40)])
def test_no_record_has_no_labels(start: bytes) -> None:
    """Bytes that begin no image record have no labels."""
    with pytest.raises(CorruptRecord, match="no image record"):
        label_count(start)


def test_the_list_has_all_labels() -> None:
    """``.lst`` has a column for each label, so that im2rec can pack it again."""
    entries = [IndexEntry(7, 3, 0, 36, "a/x.jpg", (9.0, 0.5)), IndexEntry(8, 2, 36, 40, "b.jpg")]
    assert FORM.indexes(entries)[".lst"] == (
        b"7\t3.000000\t0.500000\ta/x.jpg\n8\t2.000000\tb.jpg\n"
    )
