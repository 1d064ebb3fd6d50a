"""MXNet's image records with one label or several."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord
from dataprep.formats import IndexEntry, RecordOptions, Sample, get_format
from dataprep.formats.recordio import label_count, pack_image_header

FORM = get_format("recordio")
float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


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
    """The flag is their number, the class stands first with its offset, the header's label is 0."""
    record = written(Sample(image=b"JPEG", label=2, number=5, values=(2.0, 0.5, 7.0)), 1)
    assert record == struct.pack("<II", 0xCED7230A, 40) + struct.pack(
        "<IfQQ3f4s", 3, 0.0, 5, 0, 3.0, 0.5, 7.0, b"JPEG"
    )


@given(
    label=st.integers(0, 2**20),
    others=st.lists(float32, min_size=1, max_size=5),
    offset=st.integers(0, 9),
)
def test_labels_come_back(label: int, others: list[float], offset: int) -> None:
    """The class without its offset, then the other labels as they were."""
    values = (float(label), *others)
    record = written(Sample(image=b"x", label=label, values=values), offset)
    found = decoded(record, offset)
    assert (found.label, found.values) == (label, values)
    assert label_count(record) == len(values)


def test_the_class_is_what_labels_json_says() -> None:
    """A list's own number of a class gives way to its place among the classes of this output."""
    found = decoded(written(Sample(image=b"x", label=4, values=(281.0, 0.5))))
    assert (found.label, found.values) == (4, (4.0, 0.5))


def test_one_label_stands_in_the_header() -> None:
    """As before there were several."""
    record = written(Sample(image=b"x", label=4))
    assert struct.unpack_from("<If", record, 8) == (0, 4.0)
    assert decoded(record).values == ()
    assert label_count(record) == 1


@pytest.mark.parametrize("label", [0.5, float("nan"), float("inf")])
def test_labels_that_begin_with_no_class(label: float) -> None:
    """A first label that is no whole number is said to be none."""
    payload = pack_image_header([label, 1.0], 0) + b"x"
    with pytest.raises(CorruptRecord, match="do not begin with a class index"):
        FORM.decode(payload, RecordOptions())


@pytest.mark.parametrize("start", [b"", b"\x0a\x23\xd7\xce", bytes(40)])
def test_no_record_has_no_labels(start: bytes) -> None:
    """Where no image record begins there are no labels to count."""
    with pytest.raises(CorruptRecord, match="no image record"):
        label_count(start)


def test_the_list_has_all_labels() -> None:
    """``.lst`` has a column for each, so that im2rec can pack it again."""
    entries = [IndexEntry(7, 3, 0, 36, "a/x.jpg", (9.0, 0.5)), IndexEntry(8, 2, 36, 40, "b.jpg")]
    assert FORM.indexes(entries)[".lst"] == (
        b"7\t3.000000\t0.500000\ta/x.jpg\n8\t2.000000\tb.jpg\n"
    )
