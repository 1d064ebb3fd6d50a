"""RecordIO of MXNet: framed records, the header of image records, and the ``.idx`` file.

``u32 magic | u32 (cflag << 29 | length) | payload | zeros up to a multiple of 4``, all
little-endian. Where the magic stands in a payload at a multiple of 4, the record is split into
parts there and the magic left out, so that an aligned magic always begins a part. Sources:
dmlc-core, ``include/dmlc/recordio.h`` and ``src/recordio.cc``; MXNet,
``src/io/image_recordio.h`` and ``python/mxnet/recordio.py``.

A sample with several labels has them all after the image header, as float32: the number of its
class first, so that every reader finds it there, then the others as they came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import (
    Buffer,
    Extent,
    IndexEntry,
    RawRecord,
    RecordOptions,
    Sample,
    Sink,
    Span,
    Where,
    Window,
    damaged,
    encoding_of,
    records_in,
)

MAGIC = b"\x0a\x23\xd7\xce"
LENGTH_LIMIT_BYTES = 2**29
"""A payload is shorter than this: its length shares 32 bits with the cflag."""

HEADER_BYTES = 8
"""Of a part: its magic, cflag and length."""

WHOLE, FIRST, MIDDLE, LAST = range(4)  # cflag
_HEADER = struct.Struct("<4sI")
_IMAGE_HEADER = struct.Struct("<IfQQ")
_WORDS = np.dtype("<u4")
_MAGIC_WORD = np.frombuffer(MAGIC, _WORDS)  # NumPy would turn a number into an array each time


class RecordIOWriter:
    """Writes records to a sink, copying no payload unless it has to be split.

    ``offset`` is where the next record begins, in bytes; give one to append to a file.
    """

    def __init__(self, sink: Sink, offset: int = 0) -> None:
        self._sink = sink
        self.offset = offset

    def write(self, payload: Buffer) -> Extent:
        """Write one record; return the offset and length in bytes of the encoded record.

        Raises ``RecordError`` for a payload of 2^29 bytes or more.
        """
        return self.write_parts((payload,))

    def write_parts(self, parts: Sequence[Buffer]) -> Extent:
        """Write one record whose payload is ``parts``, one after the other; as ``write``."""
        sizes = [memoryview(part).nbytes for part in parts]
        size = sum(sizes)
        if size >= LENGTH_LIMIT_BYTES:
            raise RecordError(f"a payload of {size} bytes; a RecordIO record is below 2^29 bytes")
        # A magic may begin in one part and end in the next, unless all but the last are aligned.
        if any(length % 4 for length in sizes[:-1]):
            parts = [b"".join(parts)]
        if any(_aligned_magics(part) for part in parts):
            length = self._write_split(b"".join(parts))
        else:
            length = self._write_part(WHOLE, parts, size)
        offset = self.offset
        self.offset += length
        return offset, length

    def _write_split(self, payload: bytes) -> int:
        magics = _aligned_magics(payload)
        bounds = pairwise([-len(MAGIC), *magics, len(payload)])
        cflags = [FIRST, *[MIDDLE] * (len(magics) - 1), LAST]
        length = 0
        for cflag, (magic, end) in zip(cflags, bounds, strict=True):
            part = payload[magic + len(MAGIC) : end]
            length += self._write_part(cflag, [part], len(part))
        return length

    def _write_part(self, cflag: int, pieces: Sequence[Buffer], size: int) -> int:
        write = self._sink.write
        write(_HEADER.pack(MAGIC, cflag << 29 | size))
        for piece in pieces:
            write(piece)
        padding = -size % 4
        if padding:
            write(bytes(padding))
        return HEADER_BYTES + size + padding


def _aligned_magics(payload: Buffer) -> list[int]:
    """Offsets that are multiples of 4 at which the magic stands."""
    words = np.frombuffer(payload, _WORDS, memoryview(payload).nbytes // 4)
    return [4 * index for index in (words == _MAGIC_WORD).nonzero()[0].tolist()]


def read_recordio(data: Buffer, *, name: str = "RecordIO") -> Iterator[RawRecord]:
    """Yield the records of a whole file, payloads as views of ``data`` where not split.

    Raises ``CorruptRecord`` where a magic is missing or parts are out of order, and
    ``TruncatedRecord`` where the file ends inside a record, which includes a length that runs
    past its end; both name ``name``, the record and its byte offset. RecordIO has no checksum:
    a change inside a payload is not noticed. Padding is not read.
    """

    def record_at(view: memoryview, offset: int, where: Where) -> RawRecord:
        span = span_at(view, offset, where)
        return RawRecord(offset, span.length, payload_at(view, span))

    return records_in(data, name, record_at)


def span_at(data: Window, offset: int, where: Where = ("RecordIO", 0)) -> Span:
    """The place of the record at ``offset``, all its parts together, from their headers alone.

    ``where`` is the file's name and the record's number. Raises as ``read_recordio``.
    """
    at, cflag, sizes = offset, FIRST, list[int]()
    while cflag in (FIRST, MIDDLE):
        cflag, size = _part_header(data, at, (*where, offset))
        sizes.append(size)
        at += HEADER_BYTES + size + -size % 4
    return Span(offset, at - offset, offset + HEADER_BYTES, sizes[0], len(sizes))


def payload_at(data: Window, span: Span) -> Buffer:
    """The payload of the record at ``span``, the parts of a split one joined."""
    if span.parts == 1:
        return data[span.payload : span.payload + span.payload_bytes]
    pieces, at = [], span.offset
    for _ in range(span.parts):
        _, word = _HEADER.unpack(data[at : at + HEADER_BYTES])
        at += HEADER_BYTES
        size = word & LENGTH_LIMIT_BYTES - 1
        pieces.append(data[at : at + size])
        at += size + -size % 4
    return MAGIC.join(pieces)


def _part_header(data: Window, at: int, where: tuple[str, int, int]) -> tuple[int, int]:
    """The cflag of the part at byte ``at``, and the length of its payload in bytes.

    ``where`` is the file's name and the number and offset of the record that has the part.
    """
    header, end = bytes(data[at : at + HEADER_BYTES]), len(data)
    if not MAGIC.startswith(header[: len(MAGIC)]):
        raise damaged(CorruptRecord, *where, f"no magic at byte {at}")
    if len(header) < HEADER_BYTES:
        raise damaged(TruncatedRecord, *where, f"the file ends at byte {end}, inside it")
    _, word = _HEADER.unpack(header)
    cflag, size = word >> 29, word & LENGTH_LIMIT_BYTES - 1
    in_order = cflag in ((WHOLE, FIRST) if at == where[2] else (MIDDLE, LAST))
    if not in_order or (size % 4 and cflag in (FIRST, MIDDLE)):
        problem = f"a part of {size} bytes with cflag {cflag} cannot be at byte {at}"
        raise damaged(CorruptRecord, *where, problem)
    start = at + HEADER_BYTES
    if start + size + -size % 4 > end:
        problem = f"the {size} bytes from {start} run past the end of the file at {end}"
        raise damaged(TruncatedRecord, *where, problem)
    return cflag, size


class ImageRecord(NamedTuple):
    """An image record's labels (float32), ids and image file.

    ``flag`` is how the labels are stored: 0 for one in the header, else their number.
    """

    labels: tuple[float, ...]
    id: int
    id2: int
    image: Buffer
    flag: int


def pack_image_header(labels: Sequence[float], id: int, id2: int = 0) -> bytes:
    """The header of an image record, which precedes the image; its length is a multiple of 4.

    One label goes into the header (flag 0); several follow it as float32, the header's own label
    then being 0, as ``mxnet.recordio.pack`` writes it. Raises ``RecordError`` for no label, or a
    number that does not fit.
    """
    if not labels:
        raise RecordError("an image record without a label; give it at least one")
    flag, label = (len(labels), 0.0) if len(labels) > 1 else (0, labels[0])
    try:
        header = _IMAGE_HEADER.pack(flag, label, id, id2)
        return header + struct.pack(f"<{flag}f", *labels[:flag])
    except (struct.error, OverflowError) as error:
        problem = f"image header of labels {list(labels)}, id {id}, id2 {id2}: {error}"
        raise RecordError(f"{problem}; labels are float32, ids 0 to 2^64 - 1") from error


def unpack_image_record(payload: Buffer) -> ImageRecord:
    """Read by ``flag``, since writers differ in what they leave in the header's label.

    The image is a view of ``payload``. Raises ``CorruptRecord`` where ``payload`` is shorter
    than its header and labels.
    """
    view = memoryview(payload).cast("B")
    if len(view) < _IMAGE_HEADER.size:
        raise CorruptRecord(f"an image record of {len(view)} bytes, less than its header's 24")
    flag, label, id_, id2 = _IMAGE_HEADER.unpack_from(view)
    end = _IMAGE_HEADER.size + 4 * flag
    if end > len(view):
        raise CorruptRecord(f"an image record of {len(view)} bytes announces {flag} labels")
    labels = struct.unpack_from(f"<{flag}f", view, _IMAGE_HEADER.size) if flag else (label,)
    return ImageRecord(labels, id_, id2, view[end:], flag)


def label_count(record: Buffer) -> int:
    """The number of labels of an encoded image record, from its first 32 bytes.

    Raises ``CorruptRecord`` where no record with an image header begins there.
    """
    start = bytes(memoryview(record).cast("B")[: HEADER_BYTES + _IMAGE_HEADER.size])
    if len(start) < HEADER_BYTES + _IMAGE_HEADER.size or not start.startswith(MAGIC):
        raise CorruptRecord("no image record begins here")
    flag, *_ = _IMAGE_HEADER.unpack_from(start, HEADER_BYTES)
    return int(flag) or 1


def mxnet_index(pairs: Iterable[tuple[int, int]]) -> bytes:
    """MXNet's ``.idx`` file of ``(key, offset)``: a line ``key TAB offset``, offset in bytes."""
    return b"".join([b"%d\t%d\n" % pair for pair in pairs])


class RecordIOFormat:
    """``recordio``: labels from 0, an index by plan position, and a ``.lst``."""

    name = "recordio"
    extension = ".rec"
    trailer = b""
    has_checksums = False

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """0: MXNet counts classes from 0."""
        return 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """No: an image record has labels only."""
        return False

    def writer(self, sink: Sink, options: RecordOptions) -> ImageRecordWriter:
        """A writer of one shard."""
        return ImageRecordWriter(sink, options.label_offset)

    def matches(self, head: Buffer) -> bool:
        """Whether they begin with the magic."""
        return bytes(head[: len(MAGIC)]) == MAGIC

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """Where the record ends, all its parts together."""
        return span_at(data, offset, where)[:2]

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records, the parts of split ones joined."""
        return read_recordio(data, name=name)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one image record; its first label must be a whole number."""
        record = unpack_image_record(payload)
        if not record.labels[0].is_integer():
            raise CorruptRecord(f"labels {record.labels!r} do not begin with a class index")
        label = int(record.labels[0]) - options.label_offset
        return Sample(
            image=record.image,
            label=label,
            number=record.id,
            encoding=encoding_of(record.image),
            values=(float(label), *record.labels[1:]) if len(record.labels) > 1 else (),
        )

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """What follows the header and the labels, as a view."""
        return unpack_image_record(payload).image

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """The fields of the header, all labels, and the image."""
        record = unpack_image_record(payload)
        return {
            "flag": Int64List([record.flag]),
            "label": FloatList(record.labels),
            "id": Int64List([record.id]),
            "id2": Int64List([record.id2]),
            "image": BytesList([record.image]),
        }

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """MXNet's ``.idx`` and im2rec's ``.lst``: ``number TAB label[ TAB label…] TAB name``."""
        rows = []
        for entry in entries:
            labels = [f"{label:.6f}" for label in (entry.label, *entry.values[1:])]
            rows.append("\t".join([str(entry.number), *labels, entry.name]) + "\n")
        pairs = [(entry.number, entry.offset) for entry in entries]
        return {".idx": mxnet_index(pairs), ".lst": "".join(rows).encode()}


class ImageRecordWriter:
    """Writes image records."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records, self._label_offset = RecordIOWriter(sink), label_offset

    def write(self, sample: Sample) -> Extent:
        """Append one record; the image is not copied on its way to the sink."""
        labels = [sample.label + self._label_offset, *sample.values[1:]]
        return self._records.write_parts([pack_image_header(labels, sample.number), sample.image])
