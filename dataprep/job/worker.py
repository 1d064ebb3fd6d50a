"""One shard, from its source files to its receipt.

``convert_items`` reads and converts samples in order, ``encoded`` makes their records, ``assemble``
stores the shard and, last, its receipt. ``make_shard`` does all of that. Where a shard is shared
among workers, each makes chunks of it and one assembles them.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, NamedTuple

from dataprep import keys
from dataprep.config import DEFAULT_SAMPLE_LIMIT, SampleLimit
from dataprep.errors import (
    ImageError,
    ImageTooLarge,
    ImageTooSmall,
    JobError,
    NotAnImage,
    SourceChanged,
)
from dataprep.formats import IMAGENET, Box, IndexEntry, Layout, RecordOptions, Sample, get_format
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.keys import MAX_SHARD_BYTES
from dataprep.labels import LabelSpace
from dataprep.labels.boxes import follow
from dataprep.labels.options import BoxOptions
from dataprep.manifest import Place, Receipt, Row, Samples, StoredShard
from dataprep.names import escape_all, to_bytes
from dataprep.ordered import in_order
from dataprep.process_settings import ONE_OPENCV_THREAD
from dataprep.shard_buffer import Records, ShardBuffer
from dataprep.sources import Located, OnDisk, ReadsRuns, Source
from dataprep.sources.file_names import promises_image
from dataprep.split_plan import Item
from dataprep.stores import Store
from dataprep.stores.permitted import Permitted, always_permitted, put_while_permitted
from dataprep.versions import require_versions

READ_AHEAD_BYTES = 256 * 2**20
"""Of files that are read or wait to be converted: fewer large ones at a time."""

CHUNK_SAMPLES, CHUNK_BYTES = 16, 32_000_000
"""A chunk has so many samples, which fit the processor's caches with their records, and at most so
many source bytes unless one sample has more."""

_LONGEST_RUN = 4
"""Times the samples of a task: a longer run is cut, and each task reads it up to its own end."""

_REPORT_EVERY_S = 0.5
_RECORD_HEADROOM_BYTES = 1_000_000
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Everything a worker needs to make a shard; ``items`` are in the order of the records.

    ``label_offsets`` names the formats to write. ``first_number`` is the plan position of the
    first sample. ``versions`` are the libraries that the job was planned with. ``boxes`` says
    how boxes follow their images, where the job has any. ``limit`` is that of one sample.
    ``permit`` raises LeaseLost where another run has taken over.
    """

    fingerprint: str
    versions: tuple[tuple[str, str], ...]
    split: str
    shard: int
    shards: int
    first_number: int
    items: Sequence[Item]
    label_space: LabelSpace
    policy: ImagePolicy
    label_offsets: tuple[tuple[str, int], ...]
    source: Source
    store: Store
    layout: Layout = IMAGENET
    boxes: BoxOptions | None = None
    limit: SampleLimit = DEFAULT_SAMPLE_LIMIT
    permit: Permitted = always_permitted

    @property
    def name(self) -> str:
        """As in the names of its files: ``train-00000-of-00012``."""
        return keys.numbered(self.split, self.shard, self.shards)


class Outcome(NamedTuple):
    """A converted sample, or why there is none; the SHA-256 and size of its file if it was read."""

    converted: Converted | ImageError
    sha256: str
    source_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some samples of a shard in a row: what the receipt says of them, records by format."""

    rows: list[Row]
    records: dict[str, Records]

    def __sizeof__(self) -> int:
        """In bytes, so that Dask assembles a shard where most of it is."""
        return sum(sum(records.lengths) for records in self.records.values())


@dataclass(frozen=True, slots=True)
class Progress:
    """How many samples and source bytes were converted, and how many samples failed."""

    samples: int = 0
    source_bytes: int = 0
    failed: int = 0

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            self.samples + other.samples,
            self.source_bytes + other.source_bytes,
            self.failed + other.failed,
        )

    def __sub__(self, other: Progress) -> Progress:
        return self + Progress(-other.samples, -other.source_bytes, -other.failed)


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What a worker reports of a finished shard; the receipt has the rest.

    ``examples`` are names and reasons of the first few samples that failed.
    """

    shard: int
    samples: int
    failed: int
    examples: tuple[tuple[str, str], ...] = ()


Report = Callable[[Progress], None]
"""Called with the totals so far of one shard or chunk, at most twice a second."""


def make_shard(
    task: ShardTask,
    report: Report,
    storing: AbstractContextManager[object] | None = None,
    outcomes: Generator[Outcome, None, None] | None = None,
) -> ShardResult:
    """Make one shard in every format, store it, and write its receipt last.

    Args:
        task: the shard.
        report: called with the progress; may raise to stop the work.
        storing: entered while the shard is stored.
        outcomes: its samples, where they are converted in another way.

    Raises:
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read or the shard not be stored.
        LeaseLost: another run has taken over.
    """
    require_versions(task.versions)
    with closing(outcomes or converted(task, report)) as found:
        return assemble(task, encoded(task, found), storing)


def converted(task: ShardTask, report: Report) -> Generator[Outcome, None, None]:
    """Convert the samples of a task; errors as ``convert_items``."""
    located = [item.located for item in task.items]
    return convert_items(task.source, located, task.policy, report)


def parts_of(task: ShardTask, samples: int) -> dict[int, ShardTask]:
    """Cut a shard into tasks of so many samples, by the place of their first one.

    Where a source reads runs, tasks end where a run ends, unless the run is much longer.
    """
    count = len(task.items)
    starts = [*range(0, count, samples)]
    if isinstance(task.source, ReadsRuns):
        starts = _starts_of_runs(task.items, samples)
    parts = {}
    for start, stop in zip(starts, [*starts[1:], count], strict=True):
        items = task.items[start:stop]
        parts[start] = replace(task, items=items, first_number=task.first_number + start)
    return parts


def _starts_of_runs(items: Sequence[Item], samples: int) -> list[int]:
    """Where tasks of at least ``samples`` samples begin, so that few runs are read twice."""
    starts, begin, stop = [0], 0, 0
    for _, run in groupby(items, key=lambda item: item.located.container):
        first, length = stop, len([*run])
        pieces = -(-length // (_LONGEST_RUN * samples))
        for piece in range(1, pieces + 1):
            stop = first + length * piece // pieces
            if stop - begin >= samples and stop < len(items):
                starts.append(stop)
                begin = stop
    return starts if items else []


def chunks(items: Sequence[Located], samples: int = CHUNK_SAMPLES) -> Iterator[Sequence[Located]]:
    """Cut the samples of a shard into chunks of so many, in order."""
    start = size = 0
    for place, item in enumerate(items):
        if place - start == samples or (place > start and size + item.bytes > CHUNK_BYTES):
            yield items[start:place]
            start, size = place, 0
        size += item.bytes
    if items:
        yield items[start:]


def convert_items(
    source: Source, items: Sequence[Located], policy: ImagePolicy, report: Report | None = None
) -> Generator[Outcome, None, None]:
    """Read and convert samples in order.

    Raises:
        SourceChanged: a file is gone or has another size than planned.
        StoreError: a file could not be read this time.
    """
    progress = Reported(report, source)
    files = contents(source, items, policy.max_source_bytes)
    with ONE_OPENCV_THREAD.changed():
        # First all of a batch is read, then all of it is converted: Python's code stays in the
        # caches.
        for batch in chunks(items):
            read = []
            for data in islice(files, len(batch)):
                read.append(data)
                progress.tell()
            outcomes = []
            for item, data in zip(batch, read, strict=True):
                outcome = outcome_of(data, policy, item.name)
                outcomes.append(outcome)
                progress.add(item, outcome)
            yield from outcomes
    progress.tell(now=True)


class Reported:
    """Adds up the progress of samples and reports it twice a second."""

    def __init__(self, report: Report | None, source: Source) -> None:
        self._report, self._source = report, source
        self._samples = self._source_bytes = self._failed = 0
        self._told_s = time.monotonic()

    def add(self, item: Located, outcome: Outcome) -> None:
        """Count a sample."""
        self._samples += 1
        self._source_bytes += item.bytes
        error = outcome.converted
        if isinstance(error, ImageError):
            self._failed += status_of(error, item.name, self._source) == "failed"
        self.tell()

    def tell(self, now: bool = False) -> None:
        """Report the totals so far, if it is time."""
        now_s = time.monotonic()
        if self._report and (now or now_s - self._told_s >= _REPORT_EVERY_S):
            self._report(Progress(self._samples, self._source_bytes, self._failed))
            self._told_s = now_s


def outcome_of(data: bytes | ImageError, policy: ImagePolicy, name: str) -> Outcome:
    """Convert the bytes of one file, or pass on why they could not be read."""
    if isinstance(data, ImageError):
        return Outcome(data, "")
    size = len(data)
    digest = hashlib.sha256(data).hexdigest()
    try:
        converted = convert(data, policy, name=name)
        if len(converted.data) > MAX_SHARD_BYTES - _RECORD_HEADROOM_BYTES:
            why = f"{len(converted.data):,} bytes: too many for a shard of 128 MB"
            return Outcome(ImageTooLarge(why), digest, size)
        return Outcome(converted, digest, size)
    except ImageError as error:
        return Outcome(error, digest, size)


def require_visible(source: Source) -> None:
    """Find out before anything is read whether this machine sees a source on a disk.

    Otherwise each sample would be missing or unreadable.

    Raises:
        JobError: it does not; the error says what to do.
    """
    for path in source.disk_paths() if isinstance(source, OnDisk) else ():
        if not _is_visible(path):
            raise JobError(
                f"the worker on host {socket.gethostname()} does not see the source {path}, or may "
                "not read it: make it available there under the same path, or give a source that "
                "all workers reach, such as s3://BUCKET/PREFIX"
            )


def _is_visible(path: str) -> bool:
    """Whether there is a file, or a folder that holds something: an empty one is no mount."""
    try:
        if not os.path.isdir(path):  # noqa: PTH112  also for a name of any bytes
            return os.access(path, os.R_OK)
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def contents(
    source: Source, items: Sequence[Located], max_bytes: int, *, ahead: bool = True
) -> Generator[bytes | ImageError, None, None]:
    """The files in order, read ahead by as many threads as the source asks for.

    Without ``ahead`` no file is read before its turn comes, unless the source reads runs.
    """
    if isinstance(source, ReadsRuns):
        return (data for data in source.read_runs(items))
    if source.concurrency == 1 or not ahead:
        return (read_one(source, item, max_bytes) for item in items)
    return in_order(
        lambda item: read_one(source, item, max_bytes),
        items,
        source.concurrency,
        weight=lambda item: item.bytes if item.bytes <= max_bytes else 0,
        budget=READ_AHEAD_BYTES,
    )


def read_one(source: Source, item: Located, max_bytes: int) -> bytes | ImageError:
    """A file's bytes, or why this file cannot be read.

    Raises:
        SourceChanged, StoreError: as ``convert_items``.
    """
    if item.bytes > max_bytes:
        return ImageTooLarge(
            f"{item.bytes:,} bytes are more than max_source_bytes allows ({max_bytes:,})"
        )
    try:
        data = source.read(item)
    except ImageError as error:
        return error
    if len(data) != item.bytes:
        raise SourceChanged(
            f"{item.name!r} had {item.bytes:,} bytes when the job was planned and has "
            f"{len(data):,} now: restore it, or start anew with --overwrite"
        )
    return data


def encoded(task: ShardTask, outcomes: Iterable[Outcome]) -> Iterator[Chunk]:
    """Encode the records of a task's samples, a few at a time."""
    groups = _groups(task)
    formats = [
        (get_format(name), RecordOptions(offset, task.layout))
        for name, offset in task.label_offsets
    ]
    located = [item.located for item in task.items]
    names = escape_all([item.name for item in located])
    found = zip(outcomes, enumerate(task.items, task.first_number), names, strict=True)
    for size in map(len, chunks(located)):
        rows, samples = [], []
        for (image, digest, read_bytes), (number, item), name in list(islice(found, size)):
            source_bytes, label = read_bytes or item.located.bytes, item.label
            escaped_synset, synset, text = groups[label]
            sample_of_row = (number, name, label, escaped_synset)
            if isinstance(image, ImageError):
                row = Row(
                    *sample_of_row,
                    status_of(image, item.located.name, task.source),
                    reason=str(image),
                    kind=image.kind,
                    notes=image.kind if isinstance(image, ImageTooSmall) else "",
                    source_bytes=source_bytes,
                    source_sha256=digest,
                )
                rows.append(row)
                continue
            boxes: tuple[Box, ...] = ()
            notes = image.notes
            if task.boxes is not None and item.annotated is not None:
                boxes, changes = follow(item.annotated, image, label, task.boxes)
                notes = (*notes, *changes)
            source = to_bytes(item.located.name)
            sample = Sample(
                image=image.data,
                label=label,
                number=number,
                width=image.width,
                height=image.height,
                channels=image.channels,
                colorspace=image.colorspace,
                filename=source.rpartition(b"/")[2],
                synset=synset,
                text=text,
                encoding=image.encoding,
                values=item.values,
                boxes=boxes,
                source=source,
            )
            samples.append(sample)
            row = Row(
                *sample_of_row,
                "written",
                action=image.action,
                notes=",".join(notes),
                source_width=image.source_width,
                source_height=image.source_height,
                source_bytes=source_bytes,
                source_sha256=digest,
                colorspace=image.source_colorspace,
                exif_orientation=image.exif_orientation,
                width=image.width,
                height=image.height,
                image_bytes=len(image.data),
                boxes=None if item.annotated is None else len(boxes),
                values=item.values or None,
            )
            rows.append(row)
        records = {made.name: Records.of(made, options, samples) for made, options in formats}
        yield Chunk(rows, records)
    next(found, None)  # runs the conversion to its end, where it reports the rest of the progress


def assemble(
    task: ShardTask,
    parts: Iterable[Chunk],
    storing: AbstractContextManager[object] | None = None,
) -> ShardResult:
    """Put the records of a shard together, store the shard, then its receipt.

    Raises:
        StoreError: it could not be stored.
        LeaseLost: another run has taken over.
    """
    label_offsets = dict(task.label_offsets)
    buffers = [ShardBuffer(get_format(name), task.store) for name in label_offsets]
    rows: list[Row] = []
    place = (task.split, task.shard, task.shards)

    def put(buffer: ShardBuffer) -> StoredShard:
        name = buffer.format.name
        return buffer.put(place, _entries(samples, name, label_offsets[name]), task.permit)

    for part in parts:
        rows += part.rows
        for name, buffer in zip(label_offsets, buffers, strict=True):
            buffer.append(part.records[name])
    samples = _with_places(rows, buffers)
    # Formats are stored side by side.
    with storing or nullcontext(), ThreadPoolExecutor(len(buffers)) as pool:
        stored = dict(zip(label_offsets, pool.map(put, buffers), strict=True))
        receipt = Receipt(task.fingerprint, *place, stored, samples)
        put_while_permitted(task.store, keys.receipt(*place), receipt.to_json(), task.permit)
    failed = [(row.source, row.reason) for row in rows if row.status == "failed"]
    return ShardResult(task.shard, len(rows), len(failed), tuple(failed[:_EXAMPLES]))


def _groups(task: ShardTask) -> dict[int, tuple[str, bytes, bytes]]:
    """Escaped synset, synset and text of each label in a shard; empty for -1, which is no class."""
    groups = {-1: ("", b"", b"")}
    indices = {item.label for item in task.items} - {-1}
    labels = [task.label_space.labels[index] for index in indices]
    escaped = escape_all([label.synset for label in labels])
    for label, name in zip(labels, escaped, strict=True):
        groups[label.index] = (name, to_bytes(label.synset), to_bytes(label.text))
    return groups


def status_of(error: ImageError, name: str, source: Source) -> str:
    """``skipped`` where the policy says so, and for a file that does not claim to be an image."""
    if isinstance(error, ImageTooSmall):
        return "skipped"
    claims = promises_image(name) or getattr(source, "only_images", False)
    return "skipped" if isinstance(error, NotAnImage) and not claims else "failed"


def _with_places(rows: Sequence[Row], buffers: Sequence[ShardBuffer]) -> Samples:
    """The rows as columns, with the place of each record."""
    samples = Samples.of(rows)
    written = [status == "written" for status in samples.columns["status"]]
    records: dict[str, list[Place | None]] = {}
    for buffer in buffers:
        places = zip(buffer.offsets, buffer.lengths, buffer.crcs, strict=True)
        records[buffer.format.name] = [next(places) if here else None for here in written]
    return Samples(samples.columns, records)


def _entries(samples: Samples, name: str, label_offset: int) -> list[IndexEntry]:
    """What an index says of each record of one format."""
    columns = [samples.columns[column] for column in ("number", "label", "source")]
    values: Sequence[Any] = samples.columns.get("values") or [None] * len(samples)
    return [
        IndexEntry(number, label + label_offset, place[0], place[1], source, several or ())
        for number, label, source, several, place in zip(
            *columns, values, samples.records[name], strict=True
        )
        if place is not None
    ]
