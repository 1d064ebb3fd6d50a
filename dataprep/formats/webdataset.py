"""PURE. WebDataset: tars in which neighbouring members with the same key form a sample.

A record has the members of one sample, in this order:

- the image (``.jpg``, ``.png`` or ``.webp``),
- the label plus the label offset, as a decimal number (``.cls``), unless the sample has no class,
- a JSON object with everything else (``.json``).

A key is the number of the sample in the plan, with at least nine digits. ``tar_members`` describes
the bytes of a member.

Reference: https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.layout import IMAGENET, Layout
from dataprep.formats.protocol import (
    Box,
    Buffer,
    Extent,
    IndexEntry,
    RawRecord,
    RecordOptions,
    Sample,
    Sink,
    Where,
    Window,
    damaged,
    records_in,
)
from dataprep.formats.tar_members import (
    BLOCK_BYTES,
    OTHER_TARS_HINT,
    TRAILER,
    ZEROS,
    Member,
    encode_header,
    encode_member,
    has_checksum,
    member_at,
)
from dataprep.name_encoding import escape, to_bytes, unescape

_EXTENSIONS = {"JPEG": b"jpg", "PNG": b"png", "WEBP": b"webp"}
_ENCODINGS = {b"jpg": "JPEG", b"jpeg": "JPEG", b"png": "PNG", b"webp": "WEBP"}
_MAX_DIGITS = 18  # of a label or a key, so that it fits into an int64
_to_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class WebDatasetFormat:
    """The format ``webdataset``: tars for the webdataset library. Labels count from 0."""

    name = "webdataset"
    extension = ".tar"
    trailer = TRAILER
    has_checksums = False

    def default_label_offset(self, are_synsets: bool, layout: Layout = IMAGENET) -> int:
        """0, because training code counts classes from 0."""
        return 0

    def keeps_boxes(self, options: RecordOptions) -> bool:
        """True: boxes are in the ``.json``."""
        return True

    def writer(self, sink: Sink, options: RecordOptions) -> SampleWriter:
        """A writer that appends the members of samples."""
        return SampleWriter(sink, options.label_offset)

    def matches(self, head: Buffer) -> bool:
        """Whether ``head`` begins with the header of a member, or is an empty tar."""
        header = bytes(memoryview(head).cast("B")[:BLOCK_BYTES])
        if header == ZEROS:
            return bytes(head) == TRAILER
        return len(header) == BLOCK_BYTES and has_checksum(header)

    def span_at(self, data: Window, offset: int, where: Where) -> Extent | None:
        """The location of all members of the sample at ``offset``."""
        members = _members_at(data, offset, where)
        return None if members is None else (offset, members[-1].end - offset)

    def read(self, data: Buffer, name: str) -> Iterator[RawRecord]:
        """Yield the members of each sample. The checksums of their headers are verified."""
        return records_in(data, name, _record_at)

    def decode(self, payload: Buffer, options: RecordOptions) -> Sample:
        """The sample that the members describe."""
        view, members = _members_of(payload)
        image, offset = members[0], options.label_offset
        stored_label = _label_of(view, members)
        label = -1 if stored_label is None else stored_label - offset
        metadata = _metadata_of(view, members)
        values = _numbers(metadata.get("values", []), "values")
        if values:  # the first value is the label, from which the offset is subtracted
            values = (float(label), *values[1:])
        return Sample(
            image=view[image.start : image.start + image.size],
            label=label,
            number=_number_of(image.key),
            width=_whole_number(metadata, "width"),
            height=_whole_number(metadata, "height"),
            synset=_text(metadata, "synset"),
            encoding=_ENCODINGS[image.extension],
            values=values,
            boxes=_boxes(metadata, offset),
            source=_text(metadata, "name"),
        )

    def image(self, payload: Buffer, options: RecordOptions) -> Buffer:
        """The content of the first member, as a view."""
        view = memoryview(payload).cast("B")
        image = member_at(view, 0, ("record", 0, 0))
        return view[image.start : image.start + image.size]

    def fields(self, payload: Buffer) -> Mapping[str, Feature]:
        """The key of the sample, its image and label, and the entries of the ``.json``."""
        view, members = _members_of(payload)
        image, label = members[0], _label_of(view, members)
        metadata = _metadata_of(view, members)
        fields: dict[str, Feature] = {
            "key": BytesList([image.key]),
            "image": BytesList([view[image.start : image.start + image.size]]),
        }
        if label is not None:
            fields["label"] = Int64List([label])
        if values := _numbers(metadata.get("values", []), "values"):
            fields["label"] = FloatList(values)
        if boxes := _boxes(metadata, 0):
            fields["bbox/xmin"] = FloatList([box.xmin for box in boxes])
            fields["bbox/ymin"] = FloatList([box.ymin for box in boxes])
            fields["bbox/xmax"] = FloatList([box.xmax for box in boxes])
            fields["bbox/ymax"] = FloatList([box.ymax for box in boxes])
            fields["bbox/label"] = Int64List([box.label for box in boxes])
        if "name" in metadata:
            fields["file_name"] = BytesList([_text(metadata, "name")])
        for name, value in metadata.items():
            if name in ("values", "boxes", "name"):
                continue
            # The .json of another program may use the names "key", "image" or "label".
            is_reserved = name in fields or name == "label"
            field_name = f"json/{name}" if is_reserved else name
            fields[field_name] = _feature(value)
        return fields

    def indexes(self, entries: Sequence[IndexEntry]) -> Mapping[str, bytes]:
        """No index files, because readers of tars do not use any."""
        return {}


class SampleWriter:
    """Writes the members of samples."""

    def __init__(self, sink: Sink, label_offset: int) -> None:
        self._sink, self._label_offset = sink, label_offset
        self._offset = 0

    def write(self, sample: Sample) -> Extent:
        """Append one record, without copying the image.

        Raises:
            RecordError: the image is too large for a tar, or a number is not finite.
        """
        key = b"%09d" % sample.number
        image_bytes = memoryview(sample.image).nbytes
        header = encode_header(key + b"." + _EXTENSIONS[sample.encoding], image_bytes)
        after_image = [bytes(-image_bytes % BLOCK_BYTES)]  # padding
        if sample.label >= 0:
            label = b"%d" % (sample.label + self._label_offset)
            after_image.append(encode_member(key + b".cls", label))
        after_image.append(encode_member(key + b".json", self._encode_json(sample)))
        tail = b"".join(after_image)
        self._sink.write(header)
        self._sink.write(sample.image)
        self._sink.write(tail)
        offset = self._offset
        length = len(header) + image_bytes + len(tail)
        self._offset += length
        return offset, length

    def _encode_json(self, sample: Sample) -> bytes:
        """The content of the ``.json``. Raises RecordError for NaN and infinite numbers."""
        offset = self._label_offset
        metadata: dict[str, object] = {"height": sample.height, "width": sample.width}
        if sample.source:
            metadata["name"] = escape(os.fsdecode(sample.source))
        if sample.synset:
            metadata["synset"] = escape(os.fsdecode(sample.synset))
        if sample.values:
            metadata["values"] = [sample.label + offset, *sample.values[1:]]
        if sample.boxes:
            metadata["boxes"] = [[*box[:4], box.label + offset] for box in sample.boxes]
        try:
            return _to_json(metadata).encode()
        except ValueError as error:
            raise RecordError(
                f"sample {sample.number}: {error}; values and boxes must be finite numbers"
            ) from error


def _record_at(data: memoryview, offset: int, where: Where) -> RawRecord | None:
    """The record at ``offset``; None if the trailer begins there. Raises as ``_members_at``."""
    members = _members_at(data, offset, where)
    if members is None:
        return None
    end = members[-1].end
    return RawRecord(offset, end - offset, data[offset:end])


def _members_at(data: Window, offset: int, where: Where) -> list[Member] | None:
    """The members of the record at ``offset``; None if the trailer begins there.

    Raises CorruptRecord or TruncatedRecord unless the members are an image, at most one ``.cls``
    and a ``.json``, in this order and with the same key.
    """
    location = (*where, offset)
    start = bytes(data[offset : offset + len(TRAILER)])
    if start[:BLOCK_BYTES] == ZEROS:
        if start == TRAILER:
            return None
        if any(start):
            raise damaged(CorruptRecord, *location, "a block of zeros is followed by other bytes")
        raise damaged(TruncatedRecord, *location, "the file ends inside its end marker")
    image = member_at(data, offset, location)
    if image.extension not in _ENCODINGS:
        problem = f"the sample begins with {image.name}, not with a .jpg, .png or .webp"
        raise damaged(CorruptRecord, *location, f"{problem} ({OTHER_TARS_HINT})")
    members = [image]
    while members[-1].extension != b"json":
        members.append(_next_member(data, members[-1], location))
    return members


def _next_member(data: Window, last: Member, location: tuple[str, int, int]) -> Member:
    """The member after ``last`` of the same sample. Raises CorruptRecord if it is not there."""
    expected = (b"json",) if last.extension == b"cls" else (b"cls", b"json")
    if data[last.end : last.end + BLOCK_BYTES] == ZEROS:
        follower = "the end of the tar"
    else:
        member = member_at(data, last.end, location)
        if member.key == last.key and member.extension in expected:
            return member
        follower = member.name
    names = " or ".join(f".{extension.decode()}" for extension in expected)
    problem = f"{follower} follows {last.name}, where its {names} belongs"
    raise damaged(CorruptRecord, *location, f"{problem} ({OTHER_TARS_HINT})")


def _members_of(payload: Buffer) -> tuple[memoryview, list[Member]]:
    """The bytes of a record and its members."""
    view = memoryview(payload).cast("B")
    members = _members_at(view, 0, ("record", 0))
    if members is None:
        raise CorruptRecord("the end of a tar where a sample is expected")
    return view, members


def _content(view: memoryview, members: Sequence[Member], extension: bytes) -> bytes | None:
    """The content of the ``.cls`` or ``.json`` after the image; None if there is no such member."""
    for member in members[1:]:
        if member.extension == extension:
            return bytes(view[member.start : member.start + member.size])
    return None


def _label_of(view: memoryview, members: Sequence[Member]) -> int | None:
    """The number in the ``.cls``; None if the sample has no ``.cls``."""
    content = _content(view, members, b"cls")
    if content is None:
        return None
    digits = content.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        raise CorruptRecord(f"{members[0].name}: its .cls is {content[:40]!r}, not a whole number")
    return int(content)


def _number_of(key: bytes) -> int:
    """The number of the sample in the plan, from its key; 0 if the key is not a number."""
    return int(key) if key.isdigit() and len(key) <= _MAX_DIGITS else 0


def _metadata_of(view: memoryview, members: Sequence[Member]) -> dict[str, Any]:
    """The object in the ``.json``."""
    try:
        metadata = json.loads(_content(view, members, b"json") or b"")
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise CorruptRecord(f"{members[0].name}: its .json is not a JSON object")
    return metadata


def _text(metadata: Mapping[str, Any], key: str) -> bytes:
    """The bytes of an escaped text in the ``.json``; empty if there is no such entry."""
    try:
        return to_bytes(unescape(metadata.get(key, "")))
    except (TypeError, UnicodeError, AttributeError):
        raise _unexpected(key, "a text") from None


def _whole_number(metadata: Mapping[str, Any], key: str) -> int:
    """A whole number in the ``.json``; 0 if there is no such entry."""
    number = metadata.get(key, 0)
    if type(number) is not int:
        raise _unexpected(key, "a whole number")
    return number


def _numbers(values: Any, key: str) -> tuple[float, ...]:
    """A list of numbers as floats. Errors contain the ``key`` of the list in the ``.json``."""
    if not isinstance(values, list):
        raise _unexpected(key, "a list of numbers")
    if any(type(value) not in (int, float) for value in values):
        raise _unexpected(key, "a list of numbers")
    try:
        return tuple(map(float, values))
    except OverflowError:
        raise _unexpected(key, "a list of numbers") from None


def _boxes(metadata: Mapping[str, Any], label_offset: int) -> tuple[Box, ...]:
    """The boxes of a sample; empty if it has no list of boxes."""
    rows = metadata.get("boxes", [])
    if not isinstance(rows, list):
        raise _unexpected("boxes", "a list")
    return tuple(_box(row, label_offset) for row in rows)


def _box(row: Any, label_offset: int) -> Box:
    """A box from its row in the ``.json``: four sides and a class."""
    numbers = _numbers(row, "boxes")
    if len(numbers) != len(Box._fields) or type(row[-1]) is not int:
        raise _unexpected("boxes", "xmin, ymin, xmax, ymax and a class for each box")
    xmin, ymin, xmax, ymax, _ = numbers
    return Box(xmin, ymin, xmax, ymax, row[-1] - label_offset)


def _unexpected(key: str, expected: str) -> CorruptRecord:
    """The error for an entry of the ``.json`` that has another type."""
    return CorruptRecord(f"the {key!r} of its .json is not {expected}")


def _feature(value: Any) -> Feature:
    """Convert a value of the ``.json``. Values that are not numbers or texts become JSON texts."""
    if type(value) is int and abs(value) < 2**63:
        return Int64List([value])
    if isinstance(value, float):
        return FloatList([value])
    text = value if isinstance(value, str) else json.dumps(value)
    return BytesList([text.encode("utf-8", "backslashreplace")])
