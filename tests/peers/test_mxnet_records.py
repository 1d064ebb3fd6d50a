"""RecordIO and image records agree with MXNet's own readers and writers."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.formats.recordio import (
    MAGIC,
    RecordIOWriter,
    mxnet_index,
    pack_image_header,
    read_recordio,
    unpack_image_record,
)
from tests.golden.expected import image

pytestmark = [
    pytest.mark.frameworks,
    # MXNet packs a list of labels with ndarray.tostring.
    pytest.mark.filterwarnings("ignore:tostring\\(\\) is deprecated:DeprecationWarning"),
]

PAYLOADS = [
    *(b"a" * before + MAGIC + b"b" * after for before in range(9) for after in range(9)),
    b"hello",
    MAGIC,
    MAGIC * 5,
    b"abcd" + MAGIC + b"xy",
    b"a" + MAGIC + b"bcd" + MAGIC + b"e" * 70_000 + MAGIC + MAGIC[:3],
    bytes(range(256)) * 300,
]


def write_ours(path: Path, payloads: list[bytes]) -> list[int]:
    """Write a file with our writer. Return the offset of each record."""
    with path.open("wb") as file:
        writer = RecordIOWriter(file)
        return [writer.write_parts([payload[:8], payload[8:]])[0] for payload in payloads]


def test_mxnet_reads_our_file(mxnet: ModuleType, tmp_path: Path) -> None:
    """MXRecordIO reads our payloads, including magics at every alignment."""
    path = tmp_path / "ours.rec"
    write_ours(path, PAYLOADS)
    reader = mxnet.recordio.MXRecordIO(str(path), "r")
    assert [reader.read() for _ in PAYLOADS] == PAYLOADS
    assert reader.read() is None
    reader.close()


def test_we_read_mxnets_file(mxnet: ModuleType, tmp_path: Path) -> None:
    """We read the payloads of MXRecordIO, and write the same bytes."""
    theirs, ours = tmp_path / "theirs.rec", tmp_path / "ours.rec"
    writer = mxnet.recordio.MXRecordIO(str(theirs), "w")
    for payload in PAYLOADS:
        writer.write(payload)
    writer.close()
    data = theirs.read_bytes()
    assert [bytes(record.payload) for record in read_recordio(data)] == PAYLOADS
    write_ours(ours, PAYLOADS)
    assert ours.read_bytes() == data


def test_mxnet_finds_records_by_our_index(mxnet: ModuleType, tmp_path: Path) -> None:
    """MXIndexedRecordIO reads each record by its key, in any order."""
    rec, idx = tmp_path / "ours.rec", tmp_path / "ours.idx"
    offsets = write_ours(rec, PAYLOADS)
    idx.write_bytes(mxnet_index((7 * key, offset) for key, offset in enumerate(offsets)))
    reader = mxnet.recordio.MXIndexedRecordIO(str(idx), str(rec), "r")
    for key in reversed(range(len(PAYLOADS))):
        assert reader.read_idx(7 * key) == PAYLOADS[key]
    reader.close()


def test_we_read_mxnets_index(mxnet: ModuleType, tmp_path: Path) -> None:
    """The offsets in MXNet's index are those of the records that we read."""
    rec, idx = tmp_path / "theirs.rec", tmp_path / "theirs.idx"
    writer = mxnet.recordio.MXIndexedRecordIO(str(idx), str(rec), "w")
    for key, payload in enumerate(PAYLOADS):
        writer.write_idx(key, payload)
    writer.close()
    offsets = [record.offset for record in read_recordio(rec.read_bytes())]
    assert idx.read_bytes() == mxnet_index(enumerate(offsets))


@pytest.mark.parametrize("labels", [[7.0], [1.0, 0.25, -3.5]], ids=["one label", "three labels"])
def test_mxnet_unpacks_our_image_record(mxnet: ModuleType, labels: list[float]) -> None:
    """recordio.unpack returns the labels, ids and image that we have packed."""
    header, values = mxnet.recordio.unpack(pack_image_header(labels, 5, 6) + b"image")
    assert values == b"image"
    assert (header.id, header.id2) == (5, 6)
    assert header.flag == (0 if len(labels) == 1 else len(labels))
    assert (header.label if header.flag == 0 else header.label.tolist()) in (labels, labels[0])


@pytest.mark.parametrize("label", [7.0, [7.0], [1.0, 0.25, -3.5]], ids=str)
def test_we_unpack_mxnets_image_record(mxnet: ModuleType, label: float | list[float]) -> None:
    """We read an image record of recordio.pack, and write the same header."""
    labels = label if isinstance(label, list) else [label]
    packed = mxnet.recordio.pack(mxnet.recordio.IRHeader(0, label, 5, 6), b"image")
    record = unpack_image_record(packed)
    assert (list(record.labels), record.id, record.id2) == (labels, 5, 6)
    assert bytes(record.image) == b"image"
    if label != [7.0]:  # given a list, MXNet writes even one label as a list, and we never do
        assert packed == pack_image_header(labels, 5, 6) + b"image"


def test_labels_are_read_by_flag_as_mxnet_does(mxnet: ModuleType) -> None:
    """If labels follow the header, both MXNet and we ignore the label in the header."""
    packed = struct.pack("<IfQQ2f", 2, 99.0, 5, 0, 1.0, 2.0) + b"image"
    assert mxnet.recordio.unpack(packed)[0].label.tolist() == [1.0, 2.0]
    assert unpack_image_record(packed).labels == (1.0, 2.0)


@pytest.mark.parametrize("width", [1, 3])
def test_the_image_iterator_reads_our_records(
    mxnet: ModuleType, tmp_path: Path, width: int
) -> None:
    """ImageRecordIter, MXNet's C++ reader, decodes our images and returns their labels."""
    rec, idx = tmp_path / "ours.rec", tmp_path / "ours.idx"
    labels = [[10.0 * number + position for position in range(width)] for number in range(6)]
    with rec.open("wb") as file:
        writer = RecordIOWriter(file)
        offsets = [
            writer.write_parts([pack_image_header(values, number), image(number % 3)])[0]
            for number, values in enumerate(labels)
        ]
    idx.write_bytes(mxnet_index(enumerate(offsets)))
    iterator = mxnet.io.ImageRecordIter(
        path_imgrec=str(rec),
        path_imgidx=str(idx),
        data_shape=(3, 12, 16),
        batch_size=2,
        label_width=width,
        preprocess_threads=1,
    )
    batches = list(iterator)
    labels_read = [row for batch in batches for row in batch.label[0].asnumpy().reshape(2, width)]
    assert [row.tolist() for row in labels_read] == labels
    reds = [pixels[0].mean() for batch in batches for pixels in batch.data[0].asnumpy()]
    assert reds == pytest.approx([0, 90, 180] * 2, abs=6)


def test_several_labels_are_mxnets_own(mxnet: ModuleType) -> None:
    """``mx.recordio.unpack`` reads all labels of a sample, and ``pack`` gives the same bytes."""
    sink = io.BytesIO()
    form = get_format("recordio")
    sample = Sample(image=b"\xff\xd8 JPEG", label=7, number=11, values=(7.0, 0.1, -2.5))
    form.writer(sink, RecordOptions(1)).write(sample)
    (record,) = form.read(sink.getvalue(), "shard")
    header, values = mxnet.recordio.unpack(bytes(record.payload))
    assert (header.flag, header.id) == (3, 11)
    assert header.label.tolist() == [8.0, np.float32(0.1), -2.5]
    assert values == sample.image
    packed = mxnet.recordio.pack(mxnet.recordio.IRHeader(0, [8.0, 0.1, -2.5], 11, 0), values)
    assert packed == bytes(record.payload)
