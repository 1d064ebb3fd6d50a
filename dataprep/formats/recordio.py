"""PURE. RecordIO files of MXNet: records, the header of image records, and index files.

A record is ``u32 magic | u32 (cflag << 29 | length) | payload | zeros``. The zeros fill the record
up to a multiple of 4 bytes. All numbers are little-endian.

If a payload contains the magic at a multiple of 4, the record is split into parts at this offset.
The magic itself is left out, because each part begins with a magic of its own. Therefore an aligned
magic always begins a part. The cflag says whether it is the first, a middle or the last part.

A sample with several labels stores all labels after the image header, as float32. The first label
is the class, because all readers expect the class there.

References: dmlc-core, ``include/dmlc/recordio.h`` and ``src/recordio.cc``; MXNet,
``src/io/image_recordio.h`` and ``python/mxnet/recordio.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.payload_writer import PayloadWriter
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
"""A payload must be shorter than this, because its length shares 32 bits with the cflag."""

HEADER_BYTES = 8
"""The size of the header of a part: magic, cflag and length."""

# The values of cflag: a record that is not split; the first, a middle or the last part of a record.
UNSPLIT = 0
FIRST = 1
MIDDLE = 2
LAST = 3

_LENGTH_MASK = LENGTH_LIMIT_BYTES - 1
_HEADER = struct.Struct("<4sI")
_IMAGE_HEADER = struct.Struct("<IfQQ")
_WORD = np.dtype("<u4")
# This is an array, because NumPy would convert an int to an array in each comparison.
_MAGIC_WORD = np.frombuffer(MAGIC, _WORD)


class RecordIOWriter(PayloadWriter):
    """Write payloads as RecordIO records into a file or another sink.

    >>> with dataprep.RecordIOWriter("photos.rec") as writer:           # doctest: +SKIP
    ...     offset, length = writer.write(payload)

    A payload must be smaller than 512 MiB. It is copied only if the record must be split, or if
    ``write_parts`` must join its parts. The parameters are the same as in ``PayloadWriter``.
    """

    def write_parts(self, parts: Sequence[Buffer]) -> Extent:
        """Write one record. Its payload consists of ``parts``, one after the other.

        The parts are joined in memory if the size of any part except the last is not a multiple of
        4.

        Returns:
            The offset and the length of the encoded record in bytes.

        Raises:
            RecordError: the payload has 2^29 bytes or more.
        """
        sizes_bytes = [memoryview(part).nbytes for part in parts]
        payload_bytes = sum(sizes_bytes)
        if payload_bytes >= LENGTH_LIMIT_BYTES:
            raise RecordError(
                f"a payload of {payload_bytes} bytes is too large: a RecordIO record must be below "
                "2^29 bytes"
            )
        # Join the parts unless they are aligned. Otherwise, a magic could begin in one part and
        # end in the next part, where it would not be found.
        if any(size_bytes % 4 for size_bytes in sizes_bytes[:-1]):
            parts = [b"".join(parts)]
        if any(_aligned_magics(part) for part in parts):
            return self._advance(self._write_split(b"".join(parts)))
        return self._advance(self._write_part(UNSPLIT, parts, payload_bytes))

    def _write_split(self, payload: bytes) -> int:
        """Write a record that is split at each aligned magic; return its length in bytes."""
        magics = _aligned_magics(payload)
        starts = [0] + [magic + len(MAGIC) for magic in magics]
        ends = [*magics, len(payload)]
        cflags = [FIRST] + [MIDDLE] * (len(magics) - 1) + [LAST]
        length = 0
        for cflag, start, end in zip(cflags, starts, ends, strict=True):
            length += self._write_part(cflag, [payload[start:end]], end - start)
        return length

    def _write_part(self, cflag: int, pieces: Sequence[Buffer], size_bytes: int) -> int:
        """Write one part of a record; return its length with header and padding in bytes."""
        write = self._sink.write
        write(_HEADER.pack(MAGIC, cflag << 29 | size_bytes))
        for piece in pieces:
            write(piece)
        padding_bytes = -size_bytes % 4
        if padding_bytes:
            write(bytes(padding_bytes))
        return HEADER_BYTES + size_bytes + padding_bytes


def _aligned_magics(payload: Buffer) -> list[int]:
    """The offsets of all magics in a payload that are multiples of 4."""
    words = np.frombuffer(payload, _WORD, memoryview(payload).nbytes // 4)
    return [4 * index for index in (words == _MAGIC_WORD).nonzero()[0].tolist()]


def read_recordio(data: Buffer, *, name: str = "RecordIO") -> Iterator[RawRecord]:
    """Yield the records of a RecordIO file.

    Payloads are views of ``data``. Only the payloads of split records are copied. RecordIO has no
    checksums. Therefore changed bytes in a payload are not detected. The padding is not checked.

    Args:
        data: the content of the whole file.
        name: the name of the file in errors.

    Raises:
        CorruptRecord: a magic is missing, or parts are out of order.
        TruncatedRecord: the file ends inside a record, or a length runs past the end of the file.
            Both errors name the file, the number of the record, and its byte offset.
    """

    def record_at(view: memoryview, offset: int, where: Where) -> RawRecord:
        span = span_at(view, offset, where)
        return RawRecord(offset, span.length, payload_at(view, span))

    return records_in(data, name, record_at)


def span_at(data: Window, offset: int, where: Where = ("RecordIO", 0)) -> Span:
    """The location of the record at ``offset``, with all its parts. Only headers are read.

    ``where`` is the name of the file and the number of the record, for errors. Raises the same
    errors as ``read_recordio``.
    """
    cflag, first_part_bytes = _part_header(data, offset, (*where, offset))
    position = offset + _part_bytes(first_part_bytes)
    parts = 1
    while cflag in (FIRST, MIDDLE):
        cflag, size_bytes = _part_header(data, position, (*where, offset))
        position += _part_bytes(size_bytes)
        parts += 1
    return Span(offset, position - offset, offset + HEADER_BYTES, first_part_bytes, parts)


def _part_bytes(size_bytes: int) -> int:
    """Compute the length of a part with header and padding from the size of its payload."""
    return HEADER_BYTES + size_bytes + -size_bytes % 4


def payload_at(data: Window, span: Span) -> Buffer:
    """The payload of the record at ``span``. The parts of a split record are joined."""
    if span.parts == 1:
        return data[span.payload_offset : span.payload_offset + span.payload_bytes]
    payloads: list[Buffer] = []
    position = span.offset
    for _ in range(span.parts):
        start = position + HEADER_BYTES
        _, word = _HEADER.unpack(data[position:start])
        size_bytes = word & _LENGTH_MASK
        payloads.append(data[start : start + size_bytes])
        position += _part_bytes(size_bytes)
    return MAGIC.join(payloads)


def _part_header(data: Window, position: int, where: tuple[str, int, int]) -> tuple[int, int]:
    """The cflag of the part at byte ``position``, and the size of its payload in bytes.

    ``where`` is the name of the file, and the number and the offset of the record.
    """
    header = bytes(data[position : position + HEADER_BYTES])
    file_bytes = len(data)
    if not MAGIC.startswith(header[: len(MAGIC)]):
        raise damaged(CorruptRecord, *where, f"no magic at byte {position}")
    if len(header) < HEADER_BYTES:
        problem = f"the file ends at byte {file_bytes}, inside the record"
        raise damaged(TruncatedRecord, *where, problem)
    _, word = _HEADER.unpack(header)
    cflag = word >> 29
    size_bytes = word & _LENGTH_MASK
    _, _, record_offset = where
    allowed_cflags = (UNSPLIT, FIRST) if position == record_offset else (MIDDLE, LAST)
    is_aligned = size_bytes % 4 == 0 or cflag in (UNSPLIT, LAST)
    if cflag not in allowed_cflags or not is_aligned:
        problem = f"a part of {size_bytes} bytes with cflag {cflag} cannot be at byte {position}"
        raise damaged(CorruptRecord, *where, problem)
    if position + _part_bytes(size_bytes) > file_bytes:
        start = position + HEADER_BYTES
        problem = (
            f"the {size_bytes} bytes from {start} run past the end of the file at {file_bytes}"
        )
        raise damaged(TruncatedRecord, *where, problem)
    return cflag, size_bytes


class ImageRecord(NamedTuple):
    """The content of an image record.

    Attributes:
        labels: one label or more, float32.
        id, id2: the numbers of the record.
        image: the encoded image.
        flag: the number of labels that follow the header; 0 if the only label is in the header.
    """

    labels: tuple[float, ...]
    id: int
    id2: int
    image: Buffer
    flag: int


def pack_image_header(labels: Sequence[float], id: int, id2: int = 0) -> bytes:
    """Encode the header and the labels of an image record. The caller writes the image after them.

    A single label is stored in the header. Several labels are stored after the header, and the
    label in the header is 0, as in ``mxnet.recordio.pack``. The length of the result is a multiple
    of 4.

    Args:
        labels: the labels, which are stored as float32.
        id, id2: the numbers of the record, 0 to 2^64 - 1.

    Raises:
        RecordError: there is no label, or a number does not fit.
    """
    if not labels:
        raise RecordError("an image record needs at least one label, but it has none")
    try:
        if len(labels) == 1:
            return _IMAGE_HEADER.pack(0, labels[0], id, id2)
        header = _IMAGE_HEADER.pack(len(labels), 0.0, id, id2)
        return header + struct.pack(f"<{len(labels)}f", *labels)
    except (struct.error, OverflowError) as error:
        raise RecordError(
            f"an image header cannot store labels {list(labels)}, id {id} and id2 {id2}: {error}; "
            "labels are float32, ids 0 to 2^64 - 1"
        ) from error


def unpack_image_record(payload: Buffer) -> ImageRecord:
    """Decode an image record. The image is a view of ``payload``.

    If labels follow the header, the label in the header is ignored, because writers store different
    values there.

    Raises:
        CorruptRecord: the payload is shorter than its header and its labels.
    """
    view = memoryview(payload).cast("B")
    if len(view) < _IMAGE_HEADER.size:
        raise CorruptRecord(
            f"an image record of {len(view)} bytes is shorter than its header of 24 bytes"
        )
    flag, header_label, record_id, id2 = _IMAGE_HEADER.unpack_from(view)
    image_start = _IMAGE_HEADER.size + 4 * flag
    if image_start > len(view):
        raise CorruptRecord(f"an image record of {len(view)} bytes cannot have {flag} labels")
    labels: tuple[float, ...] = (header_label,)
    if flag:
        labels = struct.unpack_from(f"<{flag}f", view, _IMAGE_HEADER.size)
    return ImageRecord(labels, record_id, id2, view[image_start:], flag)


def label_count(record: Buffer) -> int:
    """Read the number of labels from the first 32 bytes of an encoded image record.

    Raises:
        CorruptRecord: ``record`` does not begin with a record that has an image header.
    """
    start = bytes(memoryview(record).cast("B")[: HEADER_BYTES + _IMAGE_HEADER.size])
    if len(start) < HEADER_BYTES + _IMAGE_HEADER.size or not start.startswith(MAGIC):
        raise CorruptRecord("no image record begins here")
    flag, *_ = _IMAGE_HEADER.unpack_from(start, HEADER_BYTES)
    return int(flag) or 1


def mxnet_index(pairs: Iterable[tuple[int, int]]) -> bytes:
    """The content of MXNet's ``.idx`` file: a line ``key TAB offset`` for each record.

    Args:
        pairs: the key and the byte offset of each record.
    """
    return b"".join([b"%d\t%d\n" % pair for pair in pairs])


class RecordIOFormat:
    """The format ``recordio``. Each shard has an index and a ``.lst`` file."""

    name = "recordio"
    extension = ".rec"
    trailer = b""
    has_checksums = False

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """0, because MXNet counts classes from 0."""
        return 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """False, because an image record cannot store boxes."""
        return False

    def writer(self, sink: Sink, options: RecordOptions) -> ImageRecordWriter:
        """A writer that appends image records to one shard."""
        return ImageRecordWriter(sink, options.label_offset)

    def matches(self, head: Buffer) -> bool:
        """Whether ``head`` begins with the magic."""
        return bytes(head[: len(MAGIC)]) == MAGIC

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The location of the record with all its parts."""
        return span_at(data, offset, where)[:2]

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Yield the records of a shard. The parts of split records are joined."""
        return read_recordio(data, name=name)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample in an image record.

        Raises:
            CorruptRecord: the record is too short, or its first label is not a whole number.
        """
        record = unpack_image_record(payload)
        if not record.labels[0].is_integer():
            raise CorruptRecord(f"labels {record.labels!r} do not begin with a class index")
        label = int(record.labels[0]) - options.label_offset
        values: tuple[float, ...] = ()
        if len(record.labels) > 1:
            values = (float(label), *record.labels[1:])
        return Sample(
            image=record.image,
            label=label,
            number=record.id,
            encoding=encoding_of(record.image),
            values=values,
        )

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The image after the header and the labels, as a view."""
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
        """MXNet's ``.idx`` file, and the ``.lst`` file of im2rec.

        A line of the ``.lst`` is ``number TAB label[ TAB label…] TAB name``.
        """
        lines = []
        for entry in entries:
            labels = [f"{label:.6f}" for label in (entry.label, *entry.values[1:])]
            lines.append("\t".join([str(entry.number), *labels, entry.name]) + "\n")
        pairs = [(entry.number, entry.offset) for entry in entries]
        return {".idx": mxnet_index(pairs), ".lst": "".join(lines).encode()}


class ImageRecordWriter:
    """Writes samples as image records."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records = RecordIOWriter(sink)
        self._label_offset = label_offset

    def write(self, sample: Sample) -> Extent:
        """Append one record. The image is not copied."""
        labels = [sample.label + self._label_offset, *sample.values[1:]]
        return self._records.write_parts([pack_image_header(labels, sample.number), sample.image])
