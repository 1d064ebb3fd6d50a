"""Targets: framing, Examples, image records, and the indexes beside them."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.formats.example import (
    BytesList,
    Feature,
    FloatList,
    Int64List,
    decode_example,
    encode_example,
)
from dataprep.formats.protocol import Box
from dataprep.formats.recordio import (
    RecordIOWriter,
    parse_mxnet_index,
    read_recordio,
    resynchronise,
    unpack_image_record,
)
from dataprep.formats.tfrecord import TFRecordWriter, parse_dali_index, read_tfrecords
from dataprep.inspection.framing import SPANS
from dataprep.inspection.record_head import read_head
from dataprep.sources.lst import parse_lst
from dataprep.sources.ranges import Ranges
from dataprep.sources.record_content import LAYOUTS
from dataprep.sources.record_scan import scan_recordio, scan_tfrecord
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import NAME, Target

GOLDEN = Path(__file__).parents[2] / "golden"
_RECORD = rf"{NAME}: record \d+ at byte \d+"
_FORMATS = ("dataprep/formats/",)
_SIZE = 2**20


def jpeg() -> bytes:
    """A small image."""
    return (GOLDEN / "image-2.jpg").read_bytes()


def drawn(rng: Random) -> Sample:
    """A sample of anything that a record holds."""
    boxes = tuple(Box(0.0, 0.1, 0.5, 1.0, n) for n in range(rng.randrange(4)))
    image = rng.choice((jpeg(), b"", m.MAGIC * 3, rng.randbytes(rng.randrange(300))))
    label = rng.randrange(1000)
    return Sample(
        image=image,
        label=label,
        number=rng.choice((0, 7, 2**40)),
        width=16,
        height=12,
        channels=3,
        colorspace="RGB",
        filename=rng.choice((b"", b"a.jpg", b"\xff\xfe", "é.jpg".encode())),
        synset=b"n01440764",
        text=rng.choice((b"", b"tench, Tinca tinca")),
        values=rng.choice(((), (float(label), 0.5, -2.0))),
        boxes=boxes,
    )


def shards(name: str) -> Sequence[bytes]:
    """Shards of our own writer: of drawn samples, and one without any."""
    found = []
    for seed in range(6):
        rng, sink = Random(seed), io.BytesIO()
        writer = get_format(name).writer(sink, RecordOptions(label_offset=seed % 2))
        for _ in range(seed):
            writer.write(drawn(rng))
        found.append(sink.getvalue())
    return found


def tfrecord_shards() -> Sequence[bytes]:
    """Ours, and TensorFlow's."""
    return [*shards("tfrecord"), (GOLDEN / "tensorflow-2.21.tfrecord").read_bytes()]


def recordio_shards() -> Sequence[bytes]:
    """Ours, and MXNet's."""
    return [*shards("recordio"), (GOLDEN / "mxnet-1.9.1.rec").read_bytes()]


def examples() -> Sequence[bytes]:
    """The payloads of all of them, and one of numbers that are not packed."""
    found = [payload for shard in tfrecord_shards() for payload in m.tfrecord_payloads(shard)]
    return [*found, b"\x0a\x11\x0a\x0f\x0a\x05label\x12\x06\x1a\x04\x08\x05\x08\x06", b""]


def image_records() -> Sequence[bytes]:
    """The payloads of all image records."""
    return [bytes(one.payload) for shard in recordio_shards() for one in read_recordio(shard)]


def framed(payloads: Sequence[bytes]) -> bytes:
    """As RecordIO."""
    sink = io.BytesIO()
    writer = RecordIOWriter(sink)
    for payload in payloads:
        writer.write(payload)
    return sink.getvalue()


def recordio_payloads(data: bytes) -> Sequence[bytes]:
    """Of a sound file; none of another."""
    try:
        return [bytes(record.payload) for record in read_recordio(data)]
    except ValueError:
        return []


def read_tfrecord(data: bytes) -> None:
    """Records that are read are those that were written."""
    sink = io.BytesIO()
    writer = TFRecordWriter(sink)
    for record in read_tfrecords(data, name=NAME):
        assert writer.write(record.payload) == (record.offset, record.length)
    assert sink.getvalue() == data


def read_rec(data: bytes) -> None:
    """Records that are read are those that were written; padding is not looked at."""
    records = list(read_recordio(data, name=NAME))
    assert [record.offset for record in records] == [
        sum(record.length for record in records[:number]) for number in range(len(records))
    ]
    again = list(read_recordio(framed([bytes(record.payload) for record in records])))
    assert [bytes(a.payload) for a in again] == [bytes(r.payload) for r in records]
    at: int | None = 0
    while at is not None:
        found = resynchronise(data, at)
        assert found is None or (found >= at and data[found : found + 4] == m.MAGIC)
        at = None if found is None else found + 4


def read_example(data: bytes) -> None:
    """What is read can be written, and is then read as the same."""
    found = decode_example(data)
    again = decode_example(encode_example(found))
    assert again.keys() == found.keys()
    for key, feature in found.items():
        assert type(again[key]) is type(feature)
        assert _values(again[key]) == _values(feature), key


def _values(feature: Feature) -> object:
    if isinstance(feature, FloatList):
        return ["nan" if math.isnan(value) else value for value in feature.values]
    if isinstance(feature, BytesList):
        return [bytes(value) for value in feature.values]
    assert isinstance(feature, Int64List)
    assert all(-(2**63) <= value < 2**63 for value in feature.values)
    return list(feature.values)


def read_samples(name: str) -> Callable[[bytes], None]:
    """A shard's records decoded to samples, as verify --deep and the library do."""
    record_format = get_format(name)

    def read(data: bytes) -> None:
        for record in record_format.read(data, NAME):
            sample = record_format.decode(record.payload, RecordOptions())
            assert isinstance(sample.label, int)
            assert len(sample.image) <= len(data)

    return read


def read_image_record(data: bytes) -> None:
    """Labels, ids and image are those bytes."""
    record = unpack_image_record(data)
    labels = struct.pack(f"<{len(record.labels)}f", *record.labels)
    start = struct.pack("<I", record.flag)
    assert data.startswith(start)
    assert data.endswith(bytes(record.image))
    assert len(data) == 24 + (len(labels) if record.flag else 0) + len(record.image)


def scanned(name: str) -> Callable[[bytes], None]:
    """A pass over a shard of anybody's: every record once, damage as its problem."""

    def read(data: bytes) -> None:
        ranges = Ranges(lambda offset, length: data[offset : offset + length], 512, len(data))
        if name == "recordio":
            found = list(scan_recordio(ranges, NAME, len(data)))
        else:
            found = list(scan_tfrecord(ranges, NAME, len(data), LAYOUTS["imagenet"]))
        offsets = [one.offset for one in found]
        assert offsets == sorted(set(offsets))
        assert all(0 <= offset < len(data) for offset in offsets)
        assert all(one.problem or one.bytes <= len(data) for one in found)
        assert all(one.bytes >= 0 for one in found)
        assert all(f"byte {one.offset}" in one.problem for one in found if one.problem)

    return read


class Held:
    """Bytes, read as a part of a shard is."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size = data, len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Some of them."""
        assert offset >= 0, offset
        assert length >= 0, length
        assert length <= _SIZE, length
        return self._data[offset : offset + length]


def heads(name: str) -> Callable[[bytes], None]:
    """What inspect tells of each record by its beginning."""

    def read(data: bytes) -> None:
        held = Held(data)
        for span in SPANS[name](held, NAME):
            assert span.offset + span.length <= len(data)
            read_head(held, span, name)

    return read


def index(parse: Callable[..., list[tuple[int, int]]], separator: bytes) -> Callable[[bytes], None]:
    """Pairs that are read are those that stand there."""

    def read(data: bytes) -> None:
        pairs = parse(data, name=NAME)
        lines = data.split(b"\n")[:-1]
        assert len(pairs) == len(lines)
        for (first, second), line in zip(pairs, lines, strict=True):
            assert [first, second] == [int(number) for number in line.split(separator)]

    return read


def read_lst(data: bytes) -> None:
    """A row for each line that is not empty; a class is one or its problem is told."""
    found = parse_lst(data, NAME)
    assert len(found.paths) == len(found.classes)
    assert all(bool(name) != (row in found.problems) for row, name in enumerate(found.classes))


_EXAMPLE = m.stacked(m.nested, m.nested, m.message, m.bytes_at_random)
_TF = m.stacked(
    m.bytes_at_random,
    m.tfrecord_length,
    m.inside(m.tfrecord_payloads, m.tfrecords, _EXAMPLE),
)
_IO = m.stacked(
    m.bytes_at_random,
    m.recordio_part,
    m.inside(recordio_payloads, framed, m.stacked(m.image_header, m.bytes_at_random)),
)
_LINES = m.stacked(m.cells, m.bytes_at_random)


def _dali() -> Sequence[bytes]:
    return [b"", b"0 100\n100 55\n", b"0 18446744073709551615\n"]


def _mxnet() -> Sequence[bytes]:
    return [b"", (GOLDEN / "mxnet-1.9.1.idx").read_bytes(), b"7\t0\n3\t4294967296\n"]


def _lst() -> Sequence[bytes]:
    return [b"", b"0\t1.000000\ta/b.jpg\n1\t0\tc d.jpg\n", b"5\t1\t0.5\t0.25\tx\\x09y.jpg\r\n"]


def targets() -> list[Target]:
    """All of them."""
    family = "records"
    inspected = ("dataprep/inspection/", *_FORMATS)
    sources = ("dataprep/sources/", *_FORMATS)
    return [
        Target("TFRecord", family, tfrecord_shards, _TF, read_tfrecord, _FORMATS, _RECORD),
        Target("RecordIO", family, recordio_shards, _IO, read_rec, _FORMATS, _RECORD),
        Target("Example", family, examples, _EXAMPLE, read_example, _FORMATS, r"at its byte \d+"),
        Target(
            "image record",
            family,
            image_records,
            m.stacked(m.image_header, m.bytes_at_random),
            read_image_record,
            _FORMATS,
            r"an image record of \d+ bytes",
        ),
        *(
            Target(f"samples of {name}", family, seeds, mutate, read_samples(name), _FORMATS, "")
            for name, seeds, mutate in _BOTH
        ),
        *(
            Target(f"scan of {name}", family, seeds, mutate, scanned(name), sources, "$^")
            for name, seeds, mutate in _BOTH
        ),
        *(
            Target(f"heads of {name}", family, seeds, mutate, heads(name), inspected, _RECORD)
            for name, seeds, mutate in _BOTH
        ),
        Target(
            "DALI index",
            family,
            _dali,
            _LINES,
            index(parse_dali_index, b" "),
            _FORMATS,
            _RECORD,
        ),
        Target(
            "MXNet index",
            family,
            _mxnet,
            _LINES,
            index(parse_mxnet_index, b"\t"),
            _FORMATS,
            _RECORD,
        ),
        Target(".lst", family, _lst, _LINES, read_lst, sources, rf"{NAME}, line \d+"),
    ]


_BOTH = (("tfrecord", tfrecord_shards, _TF), ("recordio", recordio_shards, _IO))
