"""Make one shard, from its source files to its receipt.

``make_shard`` converts the samples in batches (``conversion.py``), encodes their records
(``encode_batches``), and stores the shard and then its receipt (``assemble_shard``). If several
workers or threads share a shard, each of them converts and encodes chunks of it. One of them then
assembles the chunks.
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
"""The maximum number of failed samples that a worker names to the driver for each shard."""


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Neighbouring samples of a shard, with their records.

    Attributes:
        rows: a row of the samples table for each sample.
        records: the records of the written samples, by the name of the format.
    """

    rows: list[Row]
    records: dict[str, Records]

    def __sizeof__(self) -> int:
        """The bytes of the records.

        Dask uses this size when it chooses a worker to assemble a shard. It takes the worker that
        already holds most bytes of the shard's chunks.
        """
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
        report: called with the progress of the conversion in this process; it may raise an error to
            stop the work. It is not used if ``batches`` is given.
        upload_slot: a context that is entered while the shard is stored, to limit the shards that
            are stored at the same time; None for no limit.
        batches: the outcomes of the samples, in order; None to convert the samples in this process.

    Raises:
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read or the shard could not be stored.
        LeaseLost: another run has taken over the lock.
        JobError: the libraries here have other versions than the job, or ``batches`` has too few
            outcomes.
    """
    require_versions(task.versions)
    if batches is None:
        batches = convert_task(task, report)
    with closing(batches):
        return assemble_shard(task, encode_batches(task, batches), upload_slot)


def convert_task(task: ShardTask, report: Report) -> Batches:
    """Yield the outcomes of converting the samples of a shard or chunk.

    Args:
        task: the shard or chunk.
        report: called with the progress; it may raise an error to stop the work.

    Raises:
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read.
    """
    located = [sample.located for sample in task.samples]
    return convert_batches(task.source, located, task.policy, report)


class _ClassNames(NamedTuple):
    """The names of a class in the forms that rows and records contain.

    Attributes:
        escaped_synset: the name of the class as text, escaped; for rows.
        synset: the name of the class as the source has it; for records.
        text: the description of the class; for records.
    """

    escaped_synset: str
    synset: bytes
    text: bytes


def encode_batches(task: ShardTask, batches: Iterable[Sequence[Outcome]]) -> Iterator[EncodedBatch]:
    """Encode the records of converted samples.

    Args:
        task: the shard or chunk.
        batches: the outcomes of all its samples, in their order.

    Yields:
        For each batch, the rows of all its samples, and the records of the samples whose images
        were converted.

    Raises:
        JobError: the batches have fewer outcomes than the task has samples.
    """
    names_by_label = _class_names_by_label(task)
    formats = [
        (get_format(name), RecordOptions(offset, task.layout))
        for name, offset in task.label_offsets
    ]
    escaped_names = escape_all([sample.located.name for sample in task.samples])
    start = 0  # the position of the batch in the task
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
            class_names = names_by_label[planned.label]
            # A file that was not read has the size 0. The row then has the size in the listing.
            source_bytes = outcome.source_bytes or planned.located.bytes
            converted = outcome.converted
            if isinstance(converted, ImageError):
                row = Row(
                    number=number,
                    source=escaped_name,
                    label=planned.label,
                    synset=class_names.escaped_synset,
                    status=status_of(converted, planned.located.name, task.source),
                    reason=str(converted),
                    kind=converted.kind,
                    # The manifest's ``warnings`` count the notes, so that they also count the
                    # images that are skipped because they are too small.
                    notes=converted.kind if isinstance(converted, ImageTooSmall) else "",
                    source_bytes=source_bytes,
                    source_sha256=outcome.sha256,
                )
                rows.append(row)
                continue
            boxes: tuple[Box, ...] = ()
            notes = converted.notes
            if task.boxes is not None and planned.annotated is not None:
                boxes, box_notes = convert_boxes(
                    planned.annotated, converted, planned.label, task.boxes
                )
                notes = (*notes, *box_notes)
            samples_to_encode.append(_sample_of(number, planned, class_names, converted, boxes))
            row = Row(
                number=number,
                source=escaped_name,
                label=planned.label,
                synset=class_names.escaped_synset,
                status="written",
                action=converted.action,
                notes=",".join(notes),
                source_width=converted.source_width,
                source_height=converted.source_height,
                source_bytes=source_bytes,
                source_sha256=outcome.sha256,
                colorspace=converted.source_colorspace,
                exif_orientation=converted.exif_orientation,
                width=converted.width,
                height=converted.height,
                image_bytes=len(converted.data),
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
    class_names: _ClassNames,
    image: Converted,
    boxes: tuple[Box, ...],
) -> Sample:
    """The sample that a format encodes as a record.

    Args:
        number: the position of the sample in the plan of the split.
        planned: the sample as it was planned.
        class_names: the names of its class.
        image: its converted image.
        boxes: its boxes, in the converted image.
    """
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
        synset=class_names.synset,
        text=class_names.text,
        encoding=image.encoding,
        values=planned.values,
        boxes=boxes,
        source=source_name,
    )


def _class_names_by_label(task: ShardTask) -> dict[int, _ClassNames]:
    """The names of each class in a shard, by its label. The label -1 (no class) has empty names."""
    names_by_label = {-1: _ClassNames("", b"", b"")}
    labels = {sample.label for sample in task.samples} - {-1}
    entries = [task.label_space.labels[label] for label in labels]
    escaped_synsets = escape_all([entry.synset for entry in entries])
    for entry, escaped_synset in zip(entries, escaped_synsets, strict=True):
        names_by_label[entry.index] = _ClassNames(
            escaped_synset, to_bytes(entry.synset), to_bytes(entry.text)
        )
    return names_by_label


def assemble_shard(
    task: ShardTask,
    batches: Iterable[EncodedBatch],
    upload_slot: AbstractContextManager[object] | None = None,
) -> ShardResult:
    """Join the records of a shard, store it in every format, and store its receipt last.

    Args:
        task: the shard. Its ``samples`` are not used.
        batches: the rows and records of all samples of the shard, in order.
        upload_slot: a context that is entered while the shard is stored, to limit the shards that
            are stored at the same time; None for no limit.

    Returns:
        The number of samples and of failed samples, with a few examples of failures.

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
    """Return the rows as columns, with the location of each record in each format.

    The buffers have locations only for samples that were written. Other samples get None.
    """
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
    """An index entry for each record of a shard in one format, in the order of the records.

    Args:
        samples: the samples of the shard, with the locations of their records.
        format_name: the format of the shard.
        label_offset: the number that the format adds to a label.
    """
    columns = samples.columns
    all_labels: Sequence[Any] = columns.get("values") or [None] * len(samples)
    entries = []
    for number, label, source, labels_of_sample, location in zip(
        columns["number"],
        columns["label"],
        columns["source"],
        all_labels,
        samples.records[format_name],
        strict=True,
    ):
        if location is not None:
            offset, length = location[0], location[1]
            shifted_label = label + label_offset
            entry = IndexEntry(
                number, shifted_label, offset, length, source, labels_of_sample or ()
            )
            entries.append(entry)
    return entries
