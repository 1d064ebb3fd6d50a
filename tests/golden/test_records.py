"""Files that TensorFlow and MXNet wrote are read, and written again with the same bytes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    decode_example,
)
from dataprep.formats.recordio import (
    RecordIOWriter,
    mxnet_index,
    pack_image_header,
    read_recordio,
    unpack_image_record,
)
from dataprep.formats.tfrecord import TFRecordWriter, read_tfrecords
from tests.dataprep.formats.examples import encode_example
from tests.golden.expected import BOXES, CLASSES, FILENAMES, LABELS, MAGIC, image

HERE = Path(__file__).parent
TFRECORD = HERE / "tensorflow-2.21.tfrecord"
RECORDIO = HERE / "mxnet-1.9.1.rec"
INDEX = HERE / "mxnet-1.9.1.idx"


def index() -> list[tuple[int, int]]:
    """Key and offset of each record in MXNet's index."""
    rows = [line.split("\t") for line in INDEX.read_text().splitlines()]
    return [(int(key), int(offset)) for key, offset in rows]


def features(number: int) -> dict[str, Feature]:
    """The features of one Example."""
    boxes = BOXES[number]
    synset, text = CLASSES[number]
    return {
        "image/channels": Int64List([3]),
        "image/class/label": Int64List([number + 1]),
        "image/class/synset": BytesList([synset]),
        "image/class/text": BytesList([text]),
        "image/colorspace": BytesList([b"RGB"]),
        "image/encoded": BytesList([image(number)]),
        "image/filename": BytesList([FILENAMES[number]]),
        "image/format": BytesList([b"JPEG"]),
        "image/height": Int64List([12]),
        "image/width": Int64List([16]),
        "image/object/bbox/label": Int64List([-1, 300, number + 1][: len(boxes)]),
        "image/object/bbox/xmin": FloatList(np.array(boxes, np.float32).tolist()),
    }


def test_tensorflows_file_is_read_and_written_again() -> None:
    """Each Example has its features, and encoding these gives the same file byte for byte."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink)
    for number, record in enumerate(read_tfrecords(TFRECORD.read_bytes())):
        assert decode_example(record.payload) == features(number)
        writer.write(encode_example(features(number)))
    assert sink.getvalue() == TFRECORD.read_bytes()


def test_mxnets_file_is_read() -> None:
    """Each record of MXNet's file has its labels, id and image, where the index says."""
    records = list(read_recordio(RECORDIO.read_bytes()))
    offsets = [(number, record.offset) for number, record in enumerate(records)]
    assert index() == offsets
    image_records = [unpack_image_record(record.payload) for record in records]
    assert [list(record.labels) for record in image_records] == LABELS
    assert [record.flag for record in image_records] == [0, 3, 0]
    assert [(record.id, record.id2) for record in image_records] == [(0, 0), (1, 0), (2, 0)]
    assert [record.image for record in image_records] == [image(number) for number in range(3)]


def test_mxnets_file_is_written_again() -> None:
    """The same labels and images make MXNet's file and index, byte for byte."""
    sink = io.BytesIO()
    writer = RecordIOWriter(sink)
    offsets = [
        (number, writer.write_parts([pack_image_header(labels, number), image(number)])[0])
        for number, labels in enumerate(LABELS)
    ]
    assert sink.getvalue() == RECORDIO.read_bytes()
    assert mxnet_index(offsets) == INDEX.read_bytes()


@pytest.mark.parametrize("number", range(3))
def test_the_third_image_alone_is_split(number: int) -> None:
    """The file leaves out two aligned magics of the third image, and keeps its unaligned one."""
    assert image(number).count(MAGIC) == (0, 0, 3)[number]
    offsets = [*dict(index()).values(), None]
    record = RECORDIO.read_bytes()[offsets[number] : offsets[number + 1]]
    assert record.count(MAGIC) == (1, 1, 4)[number]
