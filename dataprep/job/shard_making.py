"""Make one shard, from its source files to its receipt.

``make_shard`` converts the samples in batches (``conversion.py``), encodes their records
(``encode_batches``), and stores the shard and then its receipt (``assemble_shard``). If several
workers share a shard, each of them converts and encodes chunks of it. One worker then assembles
the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from dataprep.errors import ImageError, ImageTooSmall, JobError
from dataprep.formats import Box, IndexEntry, RecordOptions, Sample, get_format
from dataprep.image import Converted
from dataprep.job.conversion import Batches, Outcome, Report, convert_batches, status_of
from dataprep.job.shard_buffer import Records, ShardBuffer
from dataprep.job.shard_task import ShardResult, ShardTask
from dataprep.job.split_plan import PlannedSample
from dataprep.labels.boxes import convert_boxes
from dataprep.name_encoding import escape_all, to_bytes
from dataprep.output import keys
from dataprep.output.receipt import Receipt, RecordLocation, Row, Samples, StoredShard
from dataprep.output.versions import require_versions
from dataprep.stores.locked_writes import put_under_lock

_MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Neighbouring samples of a shard: their rows, and their records in each format."""

    rows: list[Row]
    records: dict[str, Records]

    def __sizeof__(self) -> int:
        """The bytes of the records. Dask assembles a shard on the worker with most of its bytes."""
        return sum(sum(records.lengths) for records in self.records.values())


def make_shard(
    task: ShardTask,
    report: Report,
    upload_slot: AbstractContextManager[object] | None = None,
    batches: Batches | None = None,
) -> ShardResult:
    """Make one shard in every format, store it, and write its receipt last.

    Args:
        task: the shard.
        report: called with the progress; it may raise an error to stop the work.
        upload_slot: a context that is entered while the shard is stored.
        batches: the converted samples; None to convert them in this process.

    Raises:
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read or the shard could not be stored.
        LeaseLost: another run has taken over the lock.
    """
    require_versions(task.versions)
    if batches is None:
        batches = convert_task(task, report)
    with closing(batches):
        return assemble_shard(task, encode_batches(task, batches), upload_slot)


def convert_task(task: ShardTask, report: Report) -> Batches:
    """Convert the samples of a task. Raises the errors of ``convert_batches``."""
    located = [sample.located for sample in task.samples]
    return convert_batches(task.source, located, task.policy, report)


class _ClassNames(NamedTuple):
    """The names of a class in the forms that rows and records contain."""

    escaped_synset: str
    synset: bytes
    text: bytes


def encode_batches(task: ShardTask, batches: Iterable[Sequence[Outcome]]) -> Iterator[EncodedBatch]:
    """Encode the records of converted samples.

    Args:
        task: the shard or chunk.
        batches: the outcomes of all its samples, in their order.

    Raises:
        JobError: the batches do not have as many outcomes as the task has samples.
    """
    class_names = _class_names_by_label(task)
    formats = [
        (get_format(name), RecordOptions(offset, task.layout))
        for name, offset in task.label_offsets
    ]
    escaped_names = escape_all([sample.located.name for sample in task.samples])
    start = 0
    for batch in batches:
        stop = start + len(batch)
        rows = []
        samples_to_encode = []
        for number, planned, escaped_name, outcome in zip(
            range(task.first_number + start, task.first_number + stop),
            task.samples[start:stop],
            escaped_names[start:stop],
            batch,
            strict=True,
        ):
            names = class_names[planned.label]
            image = outcome.converted
            if isinstance(image, ImageError):
                row = Row(
                    number=number,
                    source=escaped_name,
                    label=planned.label,
                    synset=names.escaped_synset,
                    status=status_of(image, planned.located.name, task.source),
                    reason=str(image),
                    kind=image.kind,
                    notes=image.kind if isinstance(image, ImageTooSmall) else "",
                    source_bytes=outcome.source_bytes or planned.located.bytes,
                    source_sha256=outcome.sha256,
                )
                rows.append(row)
                continue
            boxes: tuple[Box, ...] = ()
            notes = image.notes
            if task.boxes is not None and planned.annotated is not None:
                boxes, box_notes = convert_boxes(
                    planned.annotated, image, planned.label, task.boxes
                )
                notes = (*notes, *box_notes)
            samples_to_encode.append(_sample_of(number, planned, names, image, boxes))
            row = Row(
                number=number,
                source=escaped_name,
                label=planned.label,
                synset=names.escaped_synset,
                status="written",
                action=image.action,
                notes=",".join(notes),
                source_width=image.source_width,
                source_height=image.source_height,
                source_bytes=outcome.source_bytes or planned.located.bytes,
                source_sha256=outcome.sha256,
                colorspace=image.source_colorspace,
                exif_orientation=image.exif_orientation,
                width=image.width,
                height=image.height,
                image_bytes=len(image.data),
                boxes=None if planned.annotated is None else len(boxes),
                values=planned.values or None,
            )
            rows.append(row)
        records = {}
        for record_format, options in formats:
            records[record_format.name] = Records.of(record_format, options, samples_to_encode)
        yield EncodedBatch(rows, records)
        start = stop
    if start != len(task.samples):
        raise JobError(f"{task.name}: {start} of {len(task.samples)} samples were converted")


def _sample_of(
    number: int,
    planned: PlannedSample,
    names: _ClassNames,
    image: Converted,
    boxes: tuple[Box, ...],
) -> Sample:
    """The sample that a format encodes as a record."""
    source_name = to_bytes(planned.located.name)
    return Sample(
        image=image.data,
        label=planned.label,
        number=number,
        width=image.width,
        height=image.height,
        channels=image.channels,
        colorspace=image.colorspace,
        filename=source_name.rpartition(b"/")[2],
        synset=names.synset,
        text=names.text,
        encoding=image.encoding,
        values=planned.values,
        boxes=boxes,
        source=source_name,
    )


def _class_names_by_label(task: ShardTask) -> dict[int, _ClassNames]:
    """The names of each class in a shard, by its label. The label -1 (no class) has empty names."""
    class_names = {-1: _ClassNames("", b"", b"")}
    indices = {sample.label for sample in task.samples} - {-1}
    labels = [task.label_space.labels[index] for index in indices]
    escaped_synsets = escape_all([label.synset for label in labels])
    for label, escaped_synset in zip(labels, escaped_synsets, strict=True):
        class_names[label.index] = _ClassNames(
            escaped_synset, to_bytes(label.synset), to_bytes(label.text)
        )
    return class_names


def assemble_shard(
    task: ShardTask,
    batches: Iterable[EncodedBatch],
    upload_slot: AbstractContextManager[object] | None = None,
) -> ShardResult:
    """Join the records of a shard, store it in every format, and store its receipt last.

    Args:
        task: the shard.
        batches: the samples of the shard and their records, in order.
        upload_slot: a context that is entered while the shard is stored.

    Raises:
        StoreError: the shard could not be stored.
        LeaseLost: another run has taken over the lock.
    """
    label_offsets = dict(task.label_offsets)
    buffers = [ShardBuffer(get_format(name), task.store) for name in label_offsets]
    rows: list[Row] = []
    for batch in batches:
        rows += batch.rows
        for buffer in buffers:
            buffer.append(batch.records[buffer.format.name])
    samples = _with_record_locations(rows, buffers)
    shard_identity = (task.split, task.shard, task.shards)

    def put(buffer: ShardBuffer) -> StoredShard:
        entries = _index_entries(samples, buffer.format.name, label_offsets[buffer.format.name])
        return buffer.put(shard_identity, entries, task.check_lock)

    # All formats are stored at the same time.
    with upload_slot or nullcontext(), ThreadPoolExecutor(len(buffers)) as pool:
        stored_shards = dict(zip(label_offsets, pool.map(put, buffers), strict=True))
        receipt = Receipt(task.fingerprint, *shard_identity, stored_shards, samples)
        receipt_key = keys.receipt(*shard_identity)
        put_under_lock(task.store, receipt_key, receipt.to_json(), task.check_lock)
    failures = [(row.source, row.reason) for row in rows if row.status == "failed"]
    return ShardResult(task.shard, len(rows), len(failures), tuple(failures[:_MAX_EXAMPLES]))


def _with_record_locations(rows: Sequence[Row], buffers: Sequence[ShardBuffer]) -> Samples:
    """The samples table of a shard, with the location of each record in each format."""
    samples = Samples.of(rows)
    statuses = samples.columns["status"]
    locations_by_format: dict[str, list[RecordLocation | None]] = {}
    for buffer in buffers:
        locations = zip(buffer.offsets, buffer.lengths, buffer.crcs, strict=True)
        locations_by_format[buffer.format.name] = [
            next(locations) if status == "written" else None for status in statuses
        ]
    return Samples(samples.columns, locations_by_format)


def _index_entries(samples: Samples, format_name: str, label_offset: int) -> list[IndexEntry]:
    """The entries of the index of a shard in one format. Each record has an entry."""
    columns = samples.columns
    values: Sequence[Any] = columns.get("values") or [None] * len(samples)
    entries = []
    for number, label, source, labels, location in zip(
        columns["number"],
        columns["label"],
        columns["source"],
        values,
        samples.records[format_name],
        strict=True,
    ):
        if location is not None:
            offset, length = location[0], location[1]
            entry = IndexEntry(number, label + label_offset, offset, length, source, labels or ())
            entries.append(entry)
    return entries
