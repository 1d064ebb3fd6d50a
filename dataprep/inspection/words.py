"""PURE. What was found, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dataprep.counted import counted
from dataprep.inspection.outputs import Unfinished
from dataprep.inspection.record import Record
from dataprep.inspection.summary import ClassCount, SplitSummary, Spread
from dataprep.inspection.table import Line, ShardTable
from dataprep.names import escape

_HEADINGS = ("record", "offset", "length", "label", "synset", "filename", "size", "format")
_TO_THE_RIGHT = 4  # numbers: the first columns


def table_text(table: ShardTable) -> str:
    """A line a record, and what the table rests on."""
    of_labels = "labels count from 0" if table.ours else "labels as they stand in the records"
    rows = [_HEADINGS, *(_cells(line) for line in table.lines)]
    read = f"{table.bytes_read:,} of {table.bytes:,} bytes read"
    unread = "images are not looked at, " + (
        "dataprep verify does that" if table.ours else "--record N does that for one"
    )
    how = "its receipt and " if table.ours else ""
    lines = [
        f"{escape(table.uri)}: {table.format}, {counted(len(table.lines), 'record')}, "
        f"{table.bytes / 1e6:,.1f} MB; {of_labels}",
        *_columns(rows),
        f"from {how}{counted(table.requests, 'range request')}, {read}: {unread}",
    ]
    if table.fault is not None:
        lines.append(f"fault: {table.fault}")
    return "\n".join(lines)


def _cells(line: Line) -> tuple[str, ...]:
    return (
        f"{line.number:,}",
        f"{line.offset:,}",
        f"{line.length:,}",
        ",".join(f"{label:g}" for label in line.labels) or "-",
        line.synset or "-",
        line.filename or "-",
        f"{line.width} x {line.height}" if line.width else "-",
        line.problem or line.format or "-",
    )


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i < _TO_THE_RIGHT else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def record_text(record: Record) -> str:
    """A record in full."""
    sample = f", sample {record.sample:,} of the split" if record.sample >= 0 else ""
    lines = [
        f"record {record.number:,} of {escape(record.uri)}{sample}",
        f"  {record.format}, {record.length:,} bytes at byte {record.offset:,}: "
        f"Range: {record.range}",
    ]
    if record.known:
        lines += _known(record.known)
    width = max((len(field.name) for field in record.fields), default=0)
    for field in record.fields:
        kind = f"{field.type} [{field.count}]"
        lines.append(f"  {field.name.ljust(width)}  {kind:<11}  {field.shown}".rstrip())
    lines.append(f"  image: {record.facts if record.facts else record.problem}")
    return "\n".join(lines)


def _known(known: Any) -> list[str]:
    source = f"{known.get('source', '?')}"
    if known.get("source_width"):
        source += f", {known['source_width']} x {known['source_height']}"
    source += f", {known.get('source_bytes', 0):,} bytes, {known.get('colorspace') or '?'}"
    notes = f" ({known['notes'].replace(',', ', ')})" if known.get("notes") else ""
    return [
        f"  label {known.get('label', '-')}, counted from 0: {known.get('synset', '')}",
        f"  source: {source}; {known.get('action', '')}{notes}",
        f"  SHA-256 of the source: {known.get('source_sha256', '')}",
    ]


def summary_text(found: Iterable[SplitSummary | Unfinished]) -> str:
    """A paragraph a split."""
    return "\n".join(
        f"{one.split}: not complete: {one.why}" if isinstance(one, Unfinished) else _summary(one)
        for one in found
    )


def _summary(one: SplitSummary) -> str:
    samples = one.samples
    lines = [
        f"{one.split}: {samples['written']:,} of {samples['total']:,} samples in "
        f"{counted(one.formats[0].shards.count, 'shard')}; {samples['failed']:,} failed, "
        f"{samples['skipped']:,} skipped; made {one.created}",
    ]
    for form in one.formats:
        shards, records = form.shards, form.records
        lines.append(
            f"  {form.name}: {shards.total / 1e6:,.1f} MB; shards of {_megabytes(shards)}; "
            f"records of {_three(records)} bytes; labels in records from {form.label_offset}"
        )
    lines += [
        f"  labels: {counted(one.classes.count, 'class')} of {_three(one.classes)} samples",
        f"    most: {_classes(one.most)}",
        f"    fewest: {_classes(one.fewest)}",
        f"  stored: width {_five(one.width)}; height {_five(one.height)}",
        f"  sources: width {_five(one.source_width)}; height {_five(one.source_height)}",
        f"  sources: {one.source_bytes.total / 1e6:,.1f} MB, files of "
        f"{_three(one.source_bytes)} bytes; {_pairs(one.colorspaces)}",
        f"  done: {_pairs(one.actions)}",
    ]
    if one.met:
        lines.append(f"  met: {_pairs(one.met)}")
    lines += [f"  {count:,} x {reason}" for reason, count in one.reasons.items()]
    return "\n".join(lines)


def _megabytes(values: Spread) -> str:
    low, middle, high = (size / 1e6 for size in (values.least, values.median, values.most))
    return f"{low:,.1f} / {middle:,.1f} / {high:,.1f} MB (least, median, most)"


def _three(values: Spread) -> str:
    return f"{values.least:,} / {values.median:,} / {values.most:,}"


def _five(values: Spread) -> str:
    five = (values.least, values.p5, values.median, values.p95, values.most)
    return " / ".join(f"{value:,}" for value in five)


def _classes(classes: Iterable[ClassCount]) -> str:
    return ", ".join(
        f"{one.label} {one.synset} {one.samples:,}".replace("  ", " ") for one in classes
    )


def _pairs(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "nothing"
