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

from dataprep.errors import CorruptRecord, RecordError
from dataprep.formats.fields import encoding_of
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import IndexEntry, RecordOptions, Sample
from dataprep.formats.records import (
    Buffer,
    RawRecord,
    Sink,
    corrupt,
    index_text,
    parse_index_text,
    truncated,
)

MAGIC = b"\x0a\x23\xd7\xce"
LENGTH_LIMIT_BYTES = 2**29
"""A payload is shorter than this: its length shares 32 bits with the cflag."""

HEADER_BYTES = 8
"""Of a part: its magic, cflag and length."""

WHOLE, FIRST, MIDDLE, LAST = range(4)  # cflag
_WORD = int.from_bytes(MAGIC, "little")
_HEADER = struct.Struct("<II")
_IMAGE_HEADER = struct.Struct("<IfQQ")
_WORDS = np.dtype("<u4")
_MAGIC_WORD = np.array(_WORD, _WORDS)  # NumPy would turn a number into an array each time
_SCAN_BYTES = 2**20


class RecordIOWriter:
    """Writes records to a sink, copying no payload unless it has to be split.

    ``offset`` is where the next record begins, in bytes; give one to append to a file.
    """

    def __init__(self, sink: Sink, offset: int = 0) -> None:
        self._sink = sink
        self.offset = offset

    def write(self, payload: Buffer) -> tuple[int, int]:
        """Write one record; return the offset and length in bytes of the encoded record.

        Raises ``RecordError`` for a payload of 2^29 bytes or more.
        """
        return self.write_parts((payload,))

    def write_parts(self, parts: Sequence[Buffer]) -> tuple[int, int]:
        """Write one record whose payload is ``parts``, one after the other; as ``write``."""
        sizes = [memoryview(part).nbytes for part in parts]
        size = sum(sizes)
        if size >= LENGTH_LIMIT_BYTES:
            raise RecordError(f"a payload of {size} bytes; a RecordIO record is below 2^29 bytes")
        # A magic may lie across two parts.
        if len(parts) > 1 and any(length % 4 for length in sizes[:-1]):
            parts, sizes = [b"".join(parts)], [size]
        may_hold = any(MAGIC in bytes(part) for part in parts)
        magics = _aligned_magics(b"".join(parts)) if may_hold else []
        if magics:
            length = self._write_split(memoryview(b"".join(parts)), magics)
        else:
            length = self._write_part(WHOLE, parts, size)
        offset = self.offset
        self.offset += length
        return offset, length

    def _write_split(self, payload: memoryview, magics: list[int]) -> int:
        bounds = [-len(MAGIC), *magics, len(payload)]
        length = 0
        for index, (before, end) in enumerate(pairwise(bounds)):
            cflag = FIRST if index == 0 else LAST if index == len(magics) else MIDDLE
            part = payload[before + len(MAGIC) : end]
            length += self._write_part(cflag, [part], len(part))
        return length

    def _write_part(self, cflag: int, pieces: Sequence[Buffer], size: int) -> int:
        write = self._sink.write
        write(_HEADER.pack(_WORD, cflag << 29 | size))
        for piece in pieces:
            write(piece)
        padding = -size % 4
        if padding:
            write(bytes(padding))
        return HEADER_BYTES + size + padding


def _aligned_magics(payload: bytes) -> list[int]:
    found = np.frombuffer(payload, _WORDS, len(payload) // 4) == _MAGIC_WORD
    return [4 * index for index in np.flatnonzero(found).tolist()]


def read_recordio(data: Buffer, *, name: str = "RecordIO") -> Iterator[RawRecord]:
    """Yield the records of a whole file, payloads as views of ``data`` where not split.

    Raises ``CorruptRecord`` where a magic is missing or parts are out of order, and
    ``TruncatedRecord`` where the file ends inside a record, which includes a length that runs
    past its end; both name ``name``, the record and its byte offset. RecordIO has no checksum:
    a change inside a payload goes unseen. Padding is not looked at.
    """
    view = memoryview(data).cast("B")
    record = offset = 0
    while offset < len(view):
        cflag, start, stop = _part(view, offset, name, record, offset)
        payload: bytes | memoryview = view[start:stop]
        if cflag != WHOLE:
            pieces = [payload]
            while cflag != LAST:
                cflag, start, stop = _part(view, stop, name, record, offset)
                pieces.append(view[start:stop])
            payload = MAGIC.join(pieces)
        end = stop + (start - stop) % 4
        yield RawRecord(offset, end - offset, payload)
        record += 1
        offset = end


def _part(view: memoryview, at: int, name: str, record: int, offset: int) -> tuple[int, int, int]:
    """The cflag of the part at ``at``, and where its payload begins and ends."""
    header = bytes(view[at : at + HEADER_BYTES])
    cflag, length = part_header(header, at, len(view), (name, record, offset))
    start = at + HEADER_BYTES
    return cflag, start, start + length


def part_header(header: bytes, at: int, size: int, where: tuple[str, int, int]) -> tuple[int, int]:
    """The cflag of a part, and the length of its payload in bytes.

    ``header`` is what ``HEADER_BYTES`` from byte ``at`` of a file of ``size`` bytes hold,
    ``where`` the file's name and the number and offset of the record that the part belongs to.
    Raises as ``read_recordio``.
    """
    if not MAGIC.startswith(header[: len(MAGIC)]):
        raise corrupt(*where, f"no magic at byte {at}")
    if len(header) < HEADER_BYTES:
        raise truncated(*where, f"the file ends at byte {size}, inside it")
    word = _HEADER.unpack(header)[1]
    cflag, length = word >> 29, word & LENGTH_LIMIT_BYTES - 1
    if cflag not in ((WHOLE, FIRST) if at == where[2] else (MIDDLE, LAST)):
        raise corrupt(*where, f"a part of cflag {cflag} out of order at byte {at}")
    if cflag in (FIRST, MIDDLE) and length % 4:
        raise corrupt(*where, f"a part of {length} bytes, before its last, at {at}")
    start = at + HEADER_BYTES
    if start + length + -length % 4 > size:
        problem = f"the {length} bytes from {start} run past the end of the file at {size}"
        raise truncated(*where, problem)
    return cflag, length


def resynchronise(data: Buffer, start: int) -> int | None:
    """Where the next record begins at or after byte ``start``, or ``None``.

    That is the next aligned magic followed by cflag 0 or 1, as dmlc-core's chunk reader looks
    for it; ``data`` begins where the file does, or a multiple of 4 bytes later.
    """
    view = memoryview(data).cast("B")
    for base in range(start + -start % 4, len(view) - HEADER_BYTES + 1, _SCAN_BYTES):
        count = min(_SCAN_BYTES, len(view) - base) // 4
        words = np.frombuffer(view, _WORDS, count, base)
        for index in np.flatnonzero(words == _MAGIC_WORD).tolist():
            at = base + 4 * index
            if at + HEADER_BYTES <= len(view):
                cflag = _HEADER.unpack_from(view, at)[1] >> 29
                if cflag in (WHOLE, FIRST):
                    return at
    return None


class ImageRecord(NamedTuple):
    """An image record's labels (float32), ids and image file.

    ``flag`` is how the labels are stored: 0 for one in the header, else their number.
    """

    labels: tuple[float, ...]
    id: int
    id2: int
    image: bytes | memoryview
    flag: int


def pack_image_header(
    labels: Sequence[float], id: int, id2: int = 0, *, as_list: bool = False
) -> bytes:
    """What stands before the image in an image record; its length is a multiple of 4.

    One label goes into the header (flag 0); several, or one with ``as_list``, follow it as
    float32, the header's own label then being 0, as ``mxnet.recordio.pack`` has it. Raises
    ``RecordError`` for no label, or a number that does not fit.
    """
    if not labels:
        raise RecordError("an image record without a label; give it at least one")
    listed = as_list or len(labels) > 1
    flag, label = (len(labels), 0.0) if listed else (0, labels[0])
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
    """How many labels an encoded image record has, from its first 32 bytes.

    Raises ``CorruptRecord`` where no record with an image header begins there.
    """
    start = bytes(memoryview(record).cast("B")[: HEADER_BYTES + _IMAGE_HEADER.size])
    if len(start) < HEADER_BYTES + _IMAGE_HEADER.size or not start.startswith(MAGIC):
        raise CorruptRecord("no image record begins here")
    flag, *_ = _IMAGE_HEADER.unpack_from(start, HEADER_BYTES)
    return int(flag) or 1


def mxnet_index(pairs: Iterable[tuple[int, int]]) -> bytes:
    """MXNet's ``.idx`` file of ``(key, offset)``: a line ``key TAB offset``, offset in bytes."""
    return index_text(pairs, b"\t")


def parse_mxnet_index(data: Buffer, *, name: str = "MXNet index") -> list[tuple[int, int]]:
    """The ``(key, offset)`` of each line; ``CorruptRecord`` or ``TruncatedRecord`` by line."""
    return parse_index_text(data, b"\t", name)


class RecordIOFormat:
    """``recordio``: labels from 0, an index by plan position, and a ``.lst``."""

    name = "recordio"
    extension = ".rec"

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """0: MXNet counts classes from 0."""
        return 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """No: an image record has labels only."""
        return False

    def writer(self, sink: Sink, options: RecordOptions) -> ImageRecordWriter:
        """A writer of one shard."""
        return ImageRecordWriter(sink, options.label_offset)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Records, the parts of split ones joined."""
        return read_recordio(data, name=name)

    def resynchronise(self, data: Buffer, offset: int) -> int | None:
        """The next magic that begins a record."""
        return resynchronise(data, offset)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample of one image record; its first label must be a whole number."""
        record = unpack_image_record(payload)
        if not record.labels or not float(record.labels[0]).is_integer():
            raise CorruptRecord(f"labels {record.labels!r} do not begin with a class index")
        label = int(record.labels[0]) - options.label_offset
        return Sample(
            image=record.image,
            label=label,
            number=record.id,
            encoding=encoding_of(record.image),
            values=(float(label), *record.labels[1:]) if len(record.labels) > 1 else (),
        )

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """MXNet's ``.idx`` and im2rec's ``.lst``."""
        rows = [
            f"{entry.number}\t{entry.label:.6f}{_others(entry.values)}\t{entry.name}\n"
            if entry.values
            else f"{entry.number}\t{entry.label:.6f}\t{entry.name}\n"
            for entry in entries
        ]
        return {
            ".idx": mxnet_index([(entry.number, entry.offset) for entry in entries]),
            ".lst": "".join(rows).encode(),
        }


def _others(values: Sequence[float]) -> str:
    return "".join([f"\t{label:.6f}" for label in values[1:]])


class ImageRecordWriter:
    """Writes image records."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._records = RecordIOWriter(sink)
        self._label_offset = label_offset

    def write(self, sample: Sample) -> tuple[int, int]:
        """Append one record; the image is not copied on its way to the sink."""
        labels = [sample.label + self._label_offset, *sample.values[1:]]
        header = pack_image_header(labels, sample.number)
        return self._records.write_parts([header, sample.image])
