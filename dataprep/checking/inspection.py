"""Inspect an output, a shard or a record: show its content as text, pictures or a page."""

from __future__ import annotations

import json
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw, ImageOps

from dataprep.counted import counted
from dataprep.errors import (
    ConfigError,
    DatasetError,
    ImageError,
    ManifestMissing,
    ObjectNotFound,
    PermissionRefused,
    RecordError,
    StoreError,
)
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.shard_reader import (
    ImageFacts,
    Record,
    Shard,
    image_facts,
    read_record,
    require_number,
)
from dataprep.image.rgb import decode_whole
from dataprep.names import escape
from dataprep.ordered import in_order
from dataprep.output import keys
from dataprep.output.samples_table import stored_table
from dataprep.reading.dataset import Dataset
from dataprep.reading.splits import open_split, splits_in, why_missing
from dataprep.stores import ObjectInfo, Store, StoreOptions, location, open_store

IMAGES = 48
"""The default number of images on a contact sheet, and of each split on a page."""

# The contact sheet, in pixels: a cell has an image and a caption below it.
_CELL_WIDTH = 188
_CELL_HEIGHT = 222
_IMAGE_SIDE = 176
_MARGIN = 6
_FONT_SIZE = 13

_CONCURRENT_REQUESTS = 16
_MAX_SHOWN_VALUES = 8  # of one feature
_MAX_SHOWN_BYTES = 60  # of one byte string
_MAX_SHOWN_ROWS = 20  # of samples that match a query
_TYPES = {BytesList: "bytes", FloatList: "float", Int64List: "int64"}
_COLUMNS = ("label", "status", "reason", "action", "colorspace")
_SIZES = ("width", "height", "source_width", "source_height", "source_bytes")
_QUERY_COLUMNS = ("label", "synset", "source_width", "source_height", "width", "height", "source")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of an inspection.

    Attributes:
        text: the result as text.
        content: the result as ``--json`` prints it.
        ok: whether nothing is damaged.
    """

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text


class _Samples:
    """The records of samples of a split: of the samples in ``numbers``, or of all."""

    fault = None  # as of a Shard: the location of every record is known

    def __init__(self, dataset: Dataset, numbers: Sequence[int] | None = None) -> None:
        self._dataset = dataset
        self._numbers = range(len(dataset)) if numbers is None else numbers
        self._first_samples = {shard.key: shard.samples.start for shard in dataset.shards()}
        self.uri = f"{dataset.split} in {dataset.store.uri}"

    def count(self) -> int:
        """The number of samples."""
        return len(self._numbers)

    def read(self, index: int) -> Record:
        """The record of the sample at ``index``. Raises ConfigError if there are fewer samples."""
        dataset = self._dataset
        require_number(index, len(self._numbers), self.uri)
        number = self._numbers[index]
        key, offset, length = dataset.place(number)
        data = dataset.read(key, offset, length)
        record_number = number - self._first_samples[key]
        uri = location(dataset.store, key)
        record = read_record(data, uri, dataset.format, record_number, offset)
        row = json.loads(dataset.written.iloc[number].dropna().to_json())
        return replace(record, sample=number, known=row)


def inspect(
    target: str | os.PathLike[str],
    *,
    split: str | None = None,
    format: str | None = None,
    record: int | None = None,
    save: str | os.PathLike[str] | None = None,
    contact_sheet: str | os.PathLike[str] | None = None,
    html: str | os.PathLike[str] | None = None,
    images: int | None = None,
    where: str | None = None,
    options: StoreOptions | None = None,
) -> Inspection:
    """Show what an output or a shard contains.

    By default, all splits of an output or all records of a shard are summarised. Other options show
    one record, a picture of many records, a page about an output, or the samples that match a
    query.

    Args:
        target: the path or URI of an output, or of one shard, which any program may have written.
        split: a split of an output. By default, all splits are summarised; a record, a picture and
            a query are of ``train``.
        format: the format of an output in which a record, picture or page is read.
        record: the number of one record, from 0.
        save: the file in which the image of that record is stored.
        contact_sheet: the file for a picture of many records, ``.png`` or ``.jpg``.
        html: the file for a page about an output, ``.html``.
        images: the number of images on the picture, or of each split on the page; 48 by default.
        where: a query over the table of samples, as in ``Dataset.where``. The picture has only
            samples that match the query.
        options: endpoint, profile and other options of the store.

    Raises:
        ConfigError: options do not fit each other, there is no such record, the target is no
            shard, or the query is not allowed.
        ManifestMissing: there is no such data set.
        RecordError: the record is damaged.
        StoreError: the store cannot be read.
        OSError: a file cannot be written.
    """
    if save and record is None:
        raise ConfigError("--save needs --record N, the record whose image it stores")
    _require_one_view(record, contact_sheet, html, where)
    store, info = _open_target(target, options)
    if info:
        _require_shard_options(target, split or format, html, where)
    if html is not None:
        return _page(store, split, format, images or IMAGES, Path(html))
    if where is not None:
        return _matching(Dataset(store, split or "train", format), where, contact_sheet, images)
    shard = _open_shard(store, info, options) if info else None
    if record is None and contact_sheet is None:
        if format or images:
            raise ConfigError("--format and --images need --record, --contact-sheet or --html")
        return _overview(store, split) if shard is None else _list_records(shard)
    records = _Samples(Dataset(store, split or "train", format)) if shard is None else shard
    if contact_sheet is not None:
        return _contact_sheet(records, Path(contact_sheet), images or IMAGES)
    return _show_record(records.read(record or 0), save)


def _require_one_view(
    record: int | None, contact_sheet: object | None, html: object | None, where: str | None
) -> None:
    """Raise ConfigError for options that exclude each other."""
    if [record, contact_sheet, html].count(None) < 2:
        raise ConfigError("give one of --record, --contact-sheet and --html")
    if where is not None and (record is not None or html is not None):
        raise ConfigError("--where counts and shows samples: give it without --record and --html")


def _require_shard_options(
    target: object, choice: str | None, html: object | None, where: str | None
) -> None:
    """Raise ConfigError for options of an output, because the target is one shard.

    ``choice`` is a split or a format.
    """
    if choice:
        raise ConfigError(f"--split and --format choose within an output: {target} is one shard")
    if html is not None:
        raise ConfigError(f"--html is a page about an output: {target} is one shard")
    if where is not None:
        raise ConfigError(
            f"--where is a query over the table of samples of an output: {target} is one shard"
        )


def _matching(
    dataset: Dataset, query: str, contact_sheet: str | os.PathLike[str] | None, images: int | None
) -> Inspection:
    """Show the samples that match a query: their number and first rows, or a picture of them."""
    if images and contact_sheet is None:
        raise ConfigError("--images needs --contact-sheet beside --where")
    numbers: list[int] = dataset.matching(query).tolist()
    count = f"{len(numbers):,} of {counted(len(dataset), 'sample')}"
    line = f"{dataset.split}: {count} where {query}"
    content = {
        "output": dataset.store.uri,
        "split": dataset.split,
        "where": query,
        "count": len(numbers),
        "of": len(dataset),
        "numbers": numbers,
    }
    if contact_sheet is not None:
        if not numbers:
            raise ConfigError(f"--contact-sheet: there is nothing to draw: {line}")
        samples = _Samples(dataset, numbers)
        samples.uri += f" where {query}"
        sheet = _contact_sheet(samples, Path(contact_sheet), images or IMAGES)
        return replace(sheet, content={**content, **sheet.content})
    lines = [line]
    if numbers:
        shown_numbers = numbers[:_MAX_SHOWN_ROWS]
        rows = dataset.written[list(_QUERY_COLUMNS)].iloc[shown_numbers].fillna("")
        rows.insert(0, "number", rows.index)
        lines += rows.to_string(index=False).split("\n")
    if len(numbers) > _MAX_SHOWN_ROWS:
        lines.append(f"and {len(numbers) - _MAX_SHOWN_ROWS:,} more; --json prints all numbers")
    return Inspection("\n  ".join(lines), content)


def _open_target(
    target: str | os.PathLike[str], options: StoreOptions | None
) -> tuple[Store, ObjectInfo | None]:
    """The store that has the shard at a path or URI, and the shard.

    If the target is an output, its store is returned with None as the shard.
    """
    uri = os.fspath(target)
    if "://" not in uri:
        uri = os.path.abspath(uri)  # noqa: PTH100  Path.resolve would follow links
    folder, _, name = uri.rstrip("/").rpartition("/")
    try:
        store = open_store(folder or "/", options)
        return store, store.head(name)
    except (ConfigError, ObjectNotFound, PermissionRefused):
        # There is no such object, or the target is a whole bucket, s3://bucket.
        return open_store(uri, options), None
    except StoreError as error:
        error.exit_code = 2  # an argument of the command names a store that cannot be reached
        raise


def _open_shard(store: Store, info: ObjectInfo, options: StoreOptions | None) -> Shard:
    """Open a shard. If its first bytes do not tell its format, the manifest of its output does."""

    def format_in_manifest(candidates: Sequence[str]) -> str | None:
        split = keys.split_of_shard(info.key)
        parent, _, folder = store.uri.rstrip("/").rpartition("/")
        if split is None or not parent:
            return None
        try:
            manifest, _ = open_split(open_store(parent, options), split)
        except (DatasetError, StoreError, ConfigError):
            return None
        for name, entry in manifest.formats.items():
            if f"{folder}/{info.key}" in {shard.key for shard in entry.shards}:
                return name
        return None

    return Shard(store, info, format_in_manifest)


def _overview(store: Store, split: str | None) -> Inspection:
    """Summarise one split, or all splits."""
    names = [split] if split else splits_in(store)
    summaries = [_summary(store, name, must_be_complete=split is not None) for name in names]
    text = "\n".join([_summary_text(summary) for summary in summaries])
    return Inspection(text, {"output": store.uri, "splits": summaries})


def _summary(store: Store, split: str, *, must_be_complete: bool) -> dict[str, Any]:
    """The figures of a split, from its manifest and its table of samples."""
    try:
        manifest, snapshot = open_split(store, split)
    except ManifestMissing:
        if must_be_complete:
            raise
        return {"split": split, "complete": False, "why": why_missing(store, split)}
    length_columns = [f"{name}_length" for name in manifest.formats]
    with snapshot.unchanged():
        table = stored_table(store, manifest).frame([*_COLUMNS, *_SIZES, *length_columns])
    is_written = table["status"] == "written"
    written = table[is_written]
    not_written = table[~is_written]
    formats = []
    for name, entry in manifest.formats.items():
        formats.append(
            {
                "name": name,
                "label_offset": entry.label_offset,
                "shards": _spread([shard.bytes for shard in entry.shards]),
                "records": _spread(written[f"{name}_length"]),
            }
        )
    labels = written["label"]
    counts = labels[labels >= 0].value_counts()  # a sample without a class has the label -1
    reasons = not_written["status"] + ": " + not_written["reason"].fillna("")
    return {
        "split": split,
        "complete": True,
        "created": manifest.created,
        "samples": asdict(manifest.samples),
        "formats": formats,
        "classes": _spread(counts) if len(counts) else None,
        **{name: _spread(written[name]) for name in _SIZES},
        "actions": written["action"].value_counts().to_dict(),
        "colorspaces": written["colorspace"].value_counts().to_dict(),
        "quirks": dict(manifest.warnings),
        "reasons": reasons.value_counts().to_dict(),
    }


def _spread(values: ArrayLike) -> dict[str, float]:
    """The distribution of one or more whole numbers."""
    array = np.asarray(values, np.int64)
    quantiles = np.quantile(array, (0, 0.05, 0.5, 0.95, 1), method="nearest").tolist()
    minimum, p5, median, p95, maximum = quantiles
    return {
        "count": len(array),
        "least": minimum,
        "p5": p5,
        "median": median,
        "p95": p95,
        "most": maximum,
        "mean": float(array.mean()),
        "total": int(array.sum()),
    }


def _summary_text(split: Mapping[str, Any]) -> str:
    """The summary of a split as text: a line, a table of the distributions, and counts."""
    if not split["complete"]:
        return f"{split['split']}: not complete: {split['why']}"
    spreads: dict[str, Mapping[str, float]] = {}
    for entry in split["formats"]:
        labels = f"labels from {entry['label_offset']}" if split["classes"] else "no labels"
        name = f"{entry['name']}, {labels}"
        spreads[f"{name}: shards"] = entry["shards"]
        spreads[f"{name}: records"] = entry["records"]
    for name in ("classes", *_SIZES):
        if split[name]:
            spreads[name] = split[name]
    table = pd.DataFrame(spreads).T.to_string(float_format="{:,.0f}".format)
    samples = split["samples"]
    count = f"{samples['written']:,} of {samples['total']:,} samples"
    lines = [f"{split['split']}: {count}, made {split['created']}", *table.split("\n")]
    for name in ("colorspaces", "actions", "quirks", "reasons"):
        counts = [f"{value} {count:,}" for value, count in split[name].items()]
        if counts:
            lines.append(f"{name}: {', '.join(counts)}")
    return "\n  ".join(lines)


def _list_records(shard: Shard) -> Inspection:
    """Show a line for each record of a shard, up to damaged framing."""
    lines = [_line(record) for record in shard]
    count = counted(len(lines), "record")
    text = [f"{escape(shard.uri)}: {shard.format}, {count}, {len(shard) / 1e6:,.1f} MB"]
    if lines:
        table = pd.DataFrame(lines).drop(columns="damaged")
        text.append(table.to_string(index=False, formatters={"labels": _labels}))
    if shard.fault:
        text.append(f"fault: {escape(str(shard.fault))}")
    content = {
        "uri": shard.uri,
        "format": shard.format,
        "bytes": len(shard),
        "records": lines,
        "fault": str(shard.fault) if shard.fault else None,
        "fault_offset": shard.fault.offset if shard.fault else None,
    }
    is_sound = not shard.fault and not any(line["damaged"] for line in lines)
    return Inspection("\n".join(text), content, is_sound)


def _line(record: Record) -> dict[str, Any]:
    """A summary of a record, for the table and for ``--json``. Labels are as they are stored."""
    facts = record.facts or ImageFacts("", 0, 0, "")
    labels = record.first_values((Int64List, FloatList), "image/class/label", "label")
    problem = record.damage
    if not problem and record.facts is None:
        problem = "no image that can be read"
    return {
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "labels": tuple(labels),
        "synset": record.text("image/class/synset", "synset"),
        "filename": record.text("image/filename", "file_name"),
        "width": facts.width,
        "height": facts.height,
        "format": facts.container,
        "problem": problem,
        "damaged": bool(record.damage),
    }


def _labels(labels: Sequence[float]) -> str:
    return ",".join(f"{label:g}" for label in labels)


def _show_record(record: Record, save: str | os.PathLike[str] | None) -> Inspection:
    """Show all of one record, and store its image in the file ``save``."""
    if record.damage:
        raise RecordError(f"{record.location}: {record.damage}")
    fields = [_field(name, feature) for name, feature in sorted(record.features.items())]
    facts = record.facts
    image = "it cannot be read, or there is none"
    if facts:
        image = f"{facts.container} of {facts.width} x {facts.height}, {facts.mode}"
    http_range = f"bytes={record.offset}-{record.offset + record.length - 1}"
    lines = [
        f"record {record.number:,} of {escape(record.uri)}",
        f"{record.format}, {record.length:,} bytes; HTTP range: {http_range}",
    ]
    for name, value in record.known.items():
        lines.append(f"{name} of sample {record.sample}: {value}")
    lines += ["{name}  {type} [{count}]  {shown}".format_map(field) for field in fields]
    lines.append(f"image: {image}")
    content = asdict(replace(record, features={}, image=b""))
    del content["features"], content["image"]
    content |= {"fields": fields, "range": http_range}
    if save is not None:
        if not record.image:
            raise ConfigError(f"--save: {record.location} has no image to store")
        Path(save).write_bytes(record.image)
        content["saved"] = str(save)
        lines.append(f"image stored as {escape(str(save))}")
    return Inspection("\n  ".join(lines), content)


def _field(name: str, feature: Feature) -> dict[str, Any]:
    """A feature of a record, with its first values as text."""
    shown = [_value(value) for value in feature.values[:_MAX_SHOWN_VALUES]]
    count = len(feature.values)
    if count > _MAX_SHOWN_VALUES:
        shown.append("…")
    return {
        "name": escape(name),
        "type": _TYPES[type(feature)],
        "count": count,
        "shown": ", ".join(shown),
    }


def _value(value: Any) -> str:
    """A number, a text or a description of an image."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    data = bytes(value)
    facts = image_facts(data)
    if facts:
        return f"{facts.container}, {len(data):,} bytes"
    text = escape(data[:_MAX_SHOWN_BYTES].decode("utf-8", "surrogateescape"))
    if len(data) <= _MAX_SHOWN_BYTES:
        return f"'{text}'"
    return f"'{text}…', {len(data):,} bytes"


def _contact_sheet(records: _Samples | Shard, path: Path, images: int) -> Inspection:
    """Draw evenly spaced records in a grid, with about four columns for three rows."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise ConfigError(f"--contact-sheet {path}: give a name that ends in .png or .jpg")
    total = records.count()
    if not total:
        raise ConfigError(f"--contact-sheet: {records.uri} has no records. {records.fault or ''}")
    drawn = _spaced(records, images)
    numbers = [record.number if record.sample < 0 else record.sample for record in drawn]
    columns = math.ceil(math.sqrt(len(drawn) * 4 / 3))
    rows = math.ceil(len(drawn) / columns)
    sheet = Image.new("RGB", (columns * _CELL_WIDTH, rows * _CELL_HEIGHT), "white")
    for index, record in enumerate(drawn):
        row, column = divmod(index, columns)
        sheet.paste(_cell(record), (column * _CELL_WIDTH, row * _CELL_HEIGHT))
    sheet.save(path, quality=90)
    faults = _faults(drawn)
    if records.fault:
        faults.append(str(records.fault))
    content = {"contact_sheet": str(path), "records": numbers, "of": total, "faults": faults}
    line = f"{path}: {len(drawn):,} of {counted(total, 'record')} of {records.uri}"
    return _with_faults(line, content)


def _spaced(records: _Samples | Shard, images: int) -> list[Record]:
    """Read at most ``images`` records that are evenly spaced."""
    total = records.count()
    count = max(1, min(total, images))
    # The middle of each of ``count`` equal intervals.
    numbers = [(2 * interval + 1) * total // (2 * count) for interval in range(count)]
    return list(in_order(records.read, numbers, _CONCURRENT_REQUESTS))


def _page(
    store: Store, split: str | None, format: str | None, images: int, path: Path
) -> Inspection:
    """Write a page about one split, or about all splits."""
    from dataprep.checking.inspection_page import Split, render

    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a name that ends in .html")
    overview = _overview(store, split)
    splits: list[Split] = []
    missing: dict[str, str] = {}
    shown: list[Record] = []
    for figures in overview.content["splits"]:
        name = figures["split"]
        if not figures["complete"]:
            missing[name] = figures["why"]
            continue
        dataset = Dataset(store, name, format)
        records = _spaced(_Samples(dataset), images)
        splits.append(Split(figures, dataset.samples, dataset.label_space.labels, records))
        shown += records
    path.write_bytes(render(store.uri, splits, missing))
    faults = _faults(shown)
    content = {**overview.content, "html": str(path), "faults": faults}
    return _with_faults(f"{path}: a page about {store.uri}", content)


def _faults(records: Sequence[Record]) -> list[str]:
    return [f"{record.location}: {record.damage}" for record in records if record.damage]


def _with_faults(line: str, content: dict[str, Any]) -> Inspection:
    """A line about a written file, followed by a line for each of the faults in ``content``."""
    faults = content["faults"]
    lines = [escape(line)]
    lines += [escape(fault) for fault in faults]
    return Inspection("\n  fault: ".join(lines), content, not faults)


def _cell(record: Record) -> Image.Image:
    """Draw an image with its label, its class and the name of its file.

    Labels of samples count from 0. Labels of other records are shown as they are stored.
    """
    # An image of its own, so that a long caption is cut off.
    cell = Image.new("RGB", (_CELL_WIDTH, _CELL_HEIGHT), "white")
    draw = ImageDraw.Draw(cell)
    try:
        image = Image.fromarray(decode_whole(record.image))
        square = ImageOps.pad(image, (_IMAGE_SIDE, _IMAGE_SIDE), color="white")
        cell.paste(square, (_MARGIN, _MARGIN))
    except ImageError as error:
        problem = textwrap.fill(record.damage or str(error), 24)
        draw.text((_MARGIN, _MARGIN), problem, "red", font_size=_FONT_SIZE)
    line = _line(record)
    captions = {
        "label": _labels(line["labels"]),
        "synset": line["synset"],
        "source": line["filename"],
        **record.known,
    }
    file_name = captions["source"].rpartition("/")[2]
    caption = f"{captions['label']}  {captions['synset']}\n{file_name}"
    draw.text((_MARGIN, _IMAGE_SIDE + 2 * _MARGIN), caption, "black", font_size=_FONT_SIZE)
    return cell
