"""A scan of shards of others: the place of each record, and the labels and names in it.

The record readers of ``dataprep.formats`` read a shard window by window. A damaged record becomes
a row with the reason, and reading goes on where the next record begins.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List, decode_example
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import Buffer, RawRecord, without_place
from dataprep.formats.recordio import MAGIC, read_recordio, resynchronise, unpack_image_record
from dataprep.formats.tfrecord import read_tfrecords, span_at
from dataprep.labels import Label, LabelSpace
from dataprep.names import by_bytes
from dataprep.sources.class_names import Classes, by_number, first_labels, gaps

_WINDOW_BYTES = 2**23

Fetch = Callable[[int, int], bytes]
"""``length`` bytes from ``offset``; fewer only where the shard ends."""

Fields = Mapping[str, str]
"""The feature of an Example for each field, see docs/layouts.md."""


def fields_of(layout: str | Mapping[str, str]) -> Fields:
    """The feature for each field of a layout. Raises ConfigError for an unknown layout."""
    return {field: feature for feature, field in Layout.of(layout).features}


_IMAGENET, _TFDS = fields_of("imagenet"), fields_of("tfds")


class Content(NamedTuple):
    """The content of a record; labels are as stored, offset included.

    ``from_background`` is true for layouts in which 0 customarily is the background, not a class.
    """

    image: Buffer = b""
    labels: Sequence[float] = ()
    synset: str = ""
    text: str = ""
    filename: str = ""
    from_background: bool = False
    has_boxes: bool = False


class Scanned(NamedTuple):
    """One record of a shard; with a ``problem`` only its place is known.

    ``name`` is the shard and the number of the record there, ``offset`` the byte at which it
    begins, ``bytes`` the size of its image. ``content`` has no image.
    """

    shard: str
    name: str
    offset: int
    bytes: int = 0
    content: Content = Content()
    problem: str = ""


def scan(
    shard: str, size: int, fetch: Fetch, fields: Fields | None, *, recordio: bool
) -> list[Scanned]:
    """The records of a shard of ``size`` bytes in their order, damaged ones as well."""
    found: list[Scanned] = []
    for offset, record in _records(fetch, size, recordio):
        place = Scanned(shard, f"{shard}/{len(found):08d}", offset)
        try:
            if isinstance(record, RecordError):
                raise record
            content = content_of(record.payload, fields, recordio=recordio)
        except RecordError as error:
            why = f"damaged at byte {offset}: {without_place(str(error))}"
            found.append(place._replace(problem=why))
        else:
            image_bytes = memoryview(content.image).nbytes
            found.append(place._replace(bytes=image_bytes, content=content._replace(image=b"")))
    return found


def records_in(data: Buffer, *, recordio: bool) -> Iterator[RawRecord]:
    """The records of a shard, or of what was read of one. Raises RecordError."""
    return read_recordio(data) if recordio else read_tfrecords(data)


def content_of(payload: Buffer, fields: Fields | None, *, recordio: bool) -> Content:
    """Decode a record; if ``fields`` is None, the keys of each Example decide on its layout.

    Of an Example no feature but the image has to be there: writers differ.

    Raises:
        RecordError: it is no record of its format, or an Example without an image.
    """
    if recordio:
        unpacked = unpack_image_record(payload)
        return Content(unpacked.image, unpacked.labels)
    features = decode_example(payload)
    fields = fields or (_IMAGENET if _IMAGENET["encoded"] in features else _TFDS)
    images = _values(features, fields["encoded"], BytesList)
    if len(images) != 1:
        shown = ", ".join(map(repr, sorted(features)[:12])) or "none"
        raise CorruptRecord(
            f"it has not one image under {fields['encoded']!r}, its keys are {shown}: name the "
            "keys with records.layout, as in {my/image: encoded, my/label: label}"
        )
    labels = _values(features, fields.get("values"), FloatList)
    if len(labels) < 2:
        labels = _values(features, fields.get("label"), Int64List | FloatList)
    return Content(
        images[0],
        labels,
        synset=_text(features, fields.get("synset")),
        text=_text(features, fields.get("text")),
        filename=_text(features, fields.get("filename")) or _text(features, fields.get("source")),
        from_background=fields == _IMAGENET,
        has_boxes=len(_values(features, fields.get("bbox/xmin"), FloatList)) > 0,
    )


def _values(features: Mapping[str, Feature], key: str | None, kind: Any) -> Sequence[Any]:
    feature = features.get(key or "")
    return feature.values if isinstance(feature, kind) else ()


def _text(features: Mapping[str, Feature], key: str | None) -> str:
    values = _values(features, key, BytesList)
    return os.fsdecode(bytes(values[0])) if len(values) == 1 else ""


def _records(
    fetch: Fetch, size: int, recordio: bool
) -> Iterator[tuple[int, RawRecord | RecordError]]:
    """The offset of each record of a shard of ``size`` bytes, and the record or its damage."""
    at, window = 0, _WINDOW_BYTES
    while at < size:
        start, data = at, fetch(at, window)
        if len(data) < window:
            size = start + len(data)
        try:
            for record in records_in(data, recordio=recordio):
                # RecordIO has no checksum, but only a damaged length makes a record hold others.
                # A record that was split at the magic is joined, and no view.
                whole = isinstance(record.payload, memoryview)
                if recordio and whole and resynchronise(record.payload, 0) is not None:
                    raise CorruptRecord("another record begins inside it")
                yield at, record
                at = start + record.offset + record.length
        except RecordError as error:
            if isinstance(error, TruncatedRecord) and start + len(data) < size:
                # A record may be longer than a window.
                window = 2 * window if at == start else _WINDOW_BYTES
                continue
            yield at, error
            damaged, at = at, size
            if recordio:
                at = _next_magic(fetch, damaged + len(MAGIC), size)
            else:
                with contextlib.suppress(RecordError):  # where the length itself is damaged
                    at = start + span_at(data, damaged - start).end
        window = _WINDOW_BYTES


def _next_magic(fetch: Fetch, first: int, size: int) -> int:
    """Where the next record of a RecordIO file begins, from byte ``first`` on; else its end."""
    for start in range(first, size, _WINDOW_BYTES - len(MAGIC)):
        found = resynchronise(fetch(start, _WINDOW_BYTES), 0)
        if found is not None:
            return start + found
    return size


def sample_names(records: Sequence[Scanned], classes: Sequence[str]) -> list[str]:
    """``CLASS/FILE`` where every record has a file name and these differ, else ``SHARD/NUMBER``.

    A file name that has folders is the name by itself. Damaged records are ``SHARD/NUMBER``.
    """
    numbered = [record.name for record in records]
    names = list(numbered)
    for row, record in enumerate(records):
        filename, group = record.content.filename, classes[row]
        if filename:
            names[row] = filename if "/" in filename or not group else f"{group}/{filename}"
        elif not record.problem:
            return numbered
    return names if len(set(names)) == len(names) else numbered


def classes_of(
    records: Sequence[Scanned],
    label_offset: int | None,
    given: LabelSpace | None,
    problems: dict[int, str],
) -> tuple[Classes, NDArray[np.float32] | None]:
    """Classes by the records' synsets, or else texts, or else numbers; and all labels.

    Args:
        records: all of them.
        label_offset: what was added to the 0-based label; None to decide by the numbers.
        given: names of the classes by number, which then count for more than the records'.
        problems: row to the reason why it is no sample; labels that are none join it.
    """
    contents = [record.content for record in records]
    numbers, values = first_labels([content.labels for content in contents], problems)
    sound = [row for row in range(len(records)) if row not in problems]
    known = sorted(number for row in sound if (number := numbers[row]) is not None)
    notes: tuple[str, ...] = ()
    from_background = any(content.from_background for content in contents)
    if label_offset is None and from_background and known and known[0] >= 1:
        label_offset = 1
        notes = (
            f"labels in the records are {known[0]} to {known[-1]}: 0 is taken for the "
            "background, so that 1 is the first class; records.label_offset=0 changes that",
        )
    if label_offset:
        numbers = [None if number is None else number - label_offset for number in numbers]
        if values is not None:
            values[:, 0] -= label_offset
    classes = None if given else _by_name(contents, numbers, sound)
    classes = classes or by_number(numbers, given, problems, "records")
    return classes._replace(notes=notes + classes.notes), values


def _by_name(
    contents: Sequence[Content], numbers: Sequence[int | None], sound: Sequence[int]
) -> Classes | None:
    """Classes by names that all sound records have: synsets, or texts that fit the numbers."""
    names = [content.synset for content in contents]
    have_synsets = all(names[row] for row in sound)
    if not have_synsets:
        names = [content.text for content in contents]
    pairs = {(numbers[row], names[row]) for row in sound}
    found = {number for number, _ in pairs}
    ordered = by_bytes({name for _, name in pairs})
    fit = None not in found and len(found) == len(pairs) == len(ordered)
    if not all(ordered) or not (have_synsets or fit or found == {None}):
        return None
    notes: tuple[str, ...] = ()
    if fit:
        ordered = [name for _, name in sorted(pairs, key=lambda pair: pair[0] or 0)]
        notes = gaps(found, "records")
    elif None not in found:
        notes = (
            "numbers and names of classes do not fit each other in the records: the names count, "
            "in their order",
        )
    texts = {names[row]: contents[row].text for row in reversed(sound)}
    labels = [Label(number, name, texts[name]) for number, name in enumerate(ordered)]
    return Classes(names, LabelSpace(tuple(labels)), notes)
