"""One shard: read, convert, write records, store, confirm, receipt."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

from dataprep import keys
from dataprep.boxes import Annotated, BoxOptions, Shown, follow
from dataprep.errors import ImageError, ImageTooSmall, NotAnImage
from dataprep.execution import USUAL_LIMIT, SampleLimit
from dataprep.formats import IMAGENET, Box, Layout, RecordOptions, Sample, get_format
from dataprep.image import Converted, ImagePolicy
from dataprep.in_hand import UNNOTED, InHand
from dataprep.labels import Label, LabelSpace
from dataprep.names import escape, to_bytes
from dataprep.outcomes import Outcome, outcomes
from dataprep.receipt import Receipt, Row
from dataprep.sources import Located, Source
from dataprep.sources.imagefolder import promises_image
from dataprep.spool import Spool
from dataprep.stores import Store, leave
from dataprep.versions import require_versions

_REPORT_EVERY_S = 0.25
_EXAMPLES = 3


class Item(NamedTuple):
    """One sample to be: where its bytes lie, its 0-based label, all its labels, its boxes.

    ``values`` is empty where a sample has one label, ``annotated`` None where a job has no boxes.
    """

    located: Located
    label: int
    values: tuple[float, ...] = ()
    annotated: Annotated | None = None


@dataclass(frozen=True, slots=True)
class ShardTask:
    """All that a worker needs; ``items`` stand in the order of the records.

    ``label_offsets`` names the formats to write. ``first_number`` is the plan position of the
    first sample. ``versions`` are the libraries that the job was planned with. ``boxes`` says
    how boxes follow their images, where the job has any. ``limit`` is that of one sample.
    ``permit`` raises LeaseLost where another run may write by now; None where none can.
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
    limit: SampleLimit = USUAL_LIMIT
    permit: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What a worker has done since it last reported."""

    samples: int = 0
    source_bytes: int = 0
    failed: int = 0

    def __add__(self, other: Progress) -> Progress:
        return Progress(
            self.samples + other.samples,
            self.source_bytes + other.source_bytes,
            self.failed + other.failed,
        )

    def __neg__(self) -> Progress:
        return Progress(-self.samples, -self.source_bytes, -self.failed)


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A short account for the driver; the receipt has the rest.

    ``examples`` are names and reasons of the first few samples that failed.
    """

    shard: int
    samples: int
    failed: int
    examples: tuple[tuple[str, str], ...] = ()


Report = Callable[[Progress], None]


def make_shard(
    task: ShardTask,
    report: Report,
    upload_slot: AbstractContextManager[object] | None = None,
    threads: int = 0,
    *,
    isolated: bool = False,
    in_hand: InHand = UNNOTED,
) -> ShardResult:
    """Make one shard in every format, store it, and write its receipt last.

    ``report`` is called about four times a second and may raise to stop the work.
    ``upload_slot`` is held while storing. ``threads`` convert its images; with 0 the caller's does,
    and with ``isolated`` a process of its own, one after the other. ``in_hand`` is told of each.

    Raises:
        SourceChanged: a sample is gone or has another size than planned.
        StoreError: the source could not be read or the shard not be stored.
        LeaseLost: another run may write there by now.
        SampleLost: isolated, a sample again and again kills who converts it, or does not end.
    """
    require_versions(task.versions)
    with leave.writing_while(task.permit):
        leave.require()
        return _made(task, report, upload_slot, threads, isolated, in_hand)


def _made(
    task: ShardTask,
    report: Report,
    upload_slot: AbstractContextManager[object] | None,
    threads: int,
    isolated: bool,
    in_hand: InHand,
) -> ShardResult:
    spools = [
        Spool(get_format(name), RecordOptions(offset, task.layout))
        for name, offset in task.label_offsets
    ]
    rows = []
    located = [item.located for item in task.items]
    if isolated:
        from dataprep.isolation import isolated_outcomes

        converted = isolated_outcomes(task.source, located, task.policy, task.limit, in_hand)
    else:
        converted = outcomes(task.source, located, task.policy, threads, in_hand)
    with _Ticker(report) as ticker, closing(converted):
        for number, (outcome, item) in enumerate(zip(converted, task.items, strict=True)):
            row = _one(task, spools, task.first_number + number, outcome, item)
            rows.append(row)
            ticker.tick(item.located.bytes, failed=row.status == "failed")
    with upload_slot or nullcontext():
        place = (task.split, task.shard, task.shards)
        stored = {}
        while spools:
            spool = spools.pop(0)  # each lets go of its memory once it is stored
            stored[spool.format.name] = spool.put(task.store, place, rows)
        receipt = Receipt(task.fingerprint, task.split, task.shard, task.shards, stored, rows)
        encoded = receipt.to_json()
        leave.require()
        task.store.put(keys.receipt(*place), encoded)
    failed = [(row.source, row.reason) for row in rows if row.status == "failed"]
    return ShardResult(
        shard=task.shard,
        samples=len(rows),
        failed=len(failed),
        examples=tuple(failed[:_EXAMPLES]),
    )


def _one(
    task: ShardTask,
    spools: Sequence[Spool],
    number: int,
    outcome: Outcome,
    item: Item,
) -> Row:
    """Write the records of one sample, and account for it."""
    name, size = item.located.name, item.located.bytes
    group = task.label_space.labels[item.label]
    identity = (number, escape(name), item.label, escape(group.synset))
    converted, digest = outcome
    if isinstance(converted, ImageError):
        promised = promises_image(name) or getattr(task.source, "only_images", False)
        clutter = isinstance(converted, NotAnImage) and not promised
        small = isinstance(converted, ImageTooSmall)
        return Row(
            *identity,
            "skipped" if clutter or small else "failed",
            reason=str(converted),
            kind=converted.kind,
            notes=converted.kind if small else "",
            source_bytes=size,
            source_sha256=digest,
        )
    boxes, box_notes = _boxes(task, item, converted)
    sample = _sample(converted, number, item, group, boxes)
    notes = (*converted.notes, *box_notes)
    return Row(
        *identity,
        "written",
        action=converted.action,
        notes=",".join(notes),
        source_width=converted.source_width,
        source_height=converted.source_height,
        source_bytes=size,
        source_sha256=digest,
        colorspace=converted.source_colorspace,
        exif_orientation=converted.exif_orientation,
        width=converted.width,
        height=converted.height,
        image_bytes=len(converted.data),
        boxes=None if item.annotated is None else len(boxes),
        values=item.values or None,
        records={spool.format.name: spool.write(sample) for spool in spools},
    )


def _boxes(
    task: ShardTask, item: Item, converted: Converted
) -> tuple[tuple[Box, ...], tuple[str, ...]]:
    if task.boxes is None or item.annotated is None:
        return (), ()
    shown = Shown(
        width=converted.source_width,
        height=converted.source_height,
        orientation=converted.exif_orientation,
        applied=converted.orientation_applied,
        geometry=converted.geometry,
    )
    return follow(
        item.annotated,
        shown,
        item.label,
        frame=task.boxes.frame,
        least_visible=task.boxes.least_visible,
    )


def _sample(
    converted: Converted, number: int, item: Item, label: Label, boxes: tuple[Box, ...]
) -> Sample:
    name = item.located.name
    return Sample(
        image=converted.data,
        label=label.index,
        number=number,
        width=converted.width,
        height=converted.height,
        channels=converted.channels,
        colorspace=converted.colorspace,
        filename=to_bytes(name.rpartition("/")[2]),
        synset=to_bytes(label.synset),
        text=to_bytes(label.text),
        encoding=converted.encoding,
        values=item.values,
        boxes=boxes,
        source=to_bytes(name),
    )


@dataclass
class _Ticker:
    """Adds up progress and passes it on a few times a second."""

    report: Report
    _counts: Counter[str] = field(default_factory=Counter)
    _last_s: float = field(default_factory=time.monotonic)

    def tick(self, source_bytes: int, *, failed: bool) -> None:
        self._counts.update(samples=1, source_bytes=source_bytes, failed=int(failed))
        if time.monotonic() - self._last_s >= _REPORT_EVERY_S:
            self._flush()

    def _flush(self) -> None:
        self.report(Progress(**self._counts))
        self._counts.clear()
        self._last_s = time.monotonic()

    def __enter__(self) -> _Ticker:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
