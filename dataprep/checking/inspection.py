"""Inspect an output, a shard or a record. The content is shown as text, a picture or a page."""

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
    ImageHeader,
    Record,
    Shard,
    read_image_header,
    read_record,
    require_record_number,
)
from dataprep.image.rgb import decode_rgb
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.output import keys
from dataprep.output.samples_table import stored_table
from dataprep.reading.dataset import Dataset
from dataprep.reading.splits import open_split, splits_in, why_missing
from dataprep.stores import ObjectInfo, Store, StoreOptions, location, open_store
from dataprep.threaded_map import in_order

IMAGES = 48
"""The default number of images on a contact sheet, and of each split on a page."""

# A contact sheet is a grid of cells. A cell has an image and a caption below it. Sizes in pixels.
_CELL_WIDTH = 188
_CELL_HEIGHT = 222
_IMAGE_SIDE = 176
_MARGIN = 6
_FONT_SIZE = 13

_CONCURRENT_REQUESTS = 16
_MAX_SHOWN_VALUES = 8  # of a feature
_MAX_SHOWN_BYTES = 60  # of a byte string
_MAX_SHOWN_ROWS = 20  # of the samples that match a query
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
        ok: whether no damage was found.
    """

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text


class _Samples:
    """The records of samples of a split. It has the same methods as a ``Shard``.

    Args:
        dataset: the split.
        numbers: the numbers of the samples; None for all samples of the split.
    """

    # The table of samples has the location of each record. Therefore damaged framing, which is the
    # ``fault`` of a Shard, does not stop the reading.
    fault = None

    def __init__(self, dataset: Dataset, numbers: Sequence[int] | None = None) -> None:
        self._dataset = dataset
        self._numbers = range(len(dataset)) if numbers is None else numbers
        self._first_samples = {shard.key: shard.samples.start for shard in dataset.shards()}
        self.uri = f"{dataset.split} in {dataset.store.uri}"

    def count(self) -> int:
        """The number of samples."""
        return len(self._numbers)

    def read(self, index: int) -> Record:
        """Read the record of the sample at ``index``. Raises ConfigError if there is none."""
        dataset = self._dataset
        require_record_number(index, len(self._numbers), self.uri)
        number = self._numbers[index]
        key, offset, length = dataset.place(number)
        data = dataset.read(key, offset, length)
        record_number = number - self._first_samples[key]
        uri = location(dataset.store, key)
        record = read_record(data, uri, dataset.format, record_number, offset)
        row = json.loads(dataset.written.iloc[number].dropna().to_json())
        return replace(record, sample=number, row=row)


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

    By default, the result is a summary of each split of an output, or a line for each record of a
    shard. With other options, it shows one record, a picture of many records, a page about an
    output, or the samples that match a query.

    Args:
        target: the path or URI of an output or of one shard. Any program may have written the
            shard.
        split: a split of an output. By default, the summary and the page show all splits, and all
            other options refer to the split ``train``.
        format: the format of an output from which a record, a picture or a page is read.
        record: the number of the record that is shown, from 0.
        save: the file to which the image of this record is written.
        contact_sheet: the file to which a picture of many records is written, ``.png`` or ``.jpg``.
        html: the file to which a page about an output is written, ``.html``.
        images: the number of images in the picture, or for each split on the page. The default is
            48.
        where: a query over the table of samples, as in ``Dataset.where``. The samples that match it
            are counted and listed. With ``contact_sheet``, only these samples are drawn.
        options: endpoint, profile and other options of the store.

    Raises:
        ConfigError: options exclude each other, there is no such record, the target is not a shard,
            or the query is not allowed.
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
        return _write_page(store, split, format, images or IMAGES, Path(html))
    if where is not None:
        dataset = Dataset(store, split or "train", format)
        return _show_matching_samples(dataset, where, contact_sheet, images)
    shard = _open_shard(store, info, options) if info else None
    if record is None and contact_sheet is None:
        if format or images:
            raise ConfigError("--format and --images need --record, --contact-sheet or --html")
        return _overview(store, split) if shard is None else _list_records(shard)
    records = _Samples(Dataset(store, split or "train", format)) if shard is None else shard
    if contact_sheet is not None:
        return _write_contact_sheet(records, Path(contact_sheet), images or IMAGES)
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
    target: object, split_or_format: str | None, html: object | None, where: str | None
) -> None:
    """Raise ConfigError for options that need an output, because the target is one shard."""
    if split_or_format:
        raise ConfigError(f"--split and --format choose within an output: {target} is one shard")
    if html is not None:
        raise ConfigError(f"--html is a page about an output: {target} is one shard")
    if where is not None:
        raise ConfigError(
            f"--where is a query over the table of samples of an output: {target} is one shard"
        )


def _show_matching_samples(
    dataset: Dataset, query: str, contact_sheet: str | os.PathLike[str] | None, images: int | None
) -> Inspection:
    """Show the samples that match a query, as a count with the first rows, or as a picture."""
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
            raise ConfigError(f"--contact-sheet: there is no sample to draw: {line}")
        samples = _Samples(dataset, numbers)
        samples.uri += f" where {query}"
        sheet = _write_contact_sheet(samples, Path(contact_sheet), images or IMAGES)
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
    """Find out whether a path or URI is a shard or an output.

    Returns:
        The store that has the shard, and the listing entry of the shard. If the target is an
        output, the store of the output, and None.
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
        error.exit_code = 2  # an argument is wrong: it names a store that cannot be reached
        raise


def _open_shard(store: Store, info: ObjectInfo, options: StoreOptions | None) -> Shard:
    """Open a shard. If several formats match its first bytes, ask the manifest of its output."""

    def format_in_manifest(candidates: Sequence[str]) -> str | None:
        """The format under which the manifest lists the shard; None if there is no manifest."""
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
    """Summarise a split from its manifest and its table of samples, as ``--json`` prints it."""
    try:
        manifest, snapshot = open_split(store, split)
    except ManifestMissing:
        if must_be_complete:
            raise
        return {"split": split, "complete": False, "why": why_missing(store, split)}
    length_columns = [f"{name}_length" for name in manifest.formats]  # of records, in bytes
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
                "shards": _distribution([shard.bytes for shard in entry.shards]),
                "records": _distribution(written[f"{name}_length"]),
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
        "classes": _distribution(counts) if len(counts) else None,
        **{name: _distribution(written[name]) for name in _SIZES},
        "actions": written["action"].value_counts().to_dict(),
        "colorspaces": written["colorspace"].value_counts().to_dict(),
        "quirks": dict(manifest.warnings),
        "reasons": reasons.value_counts().to_dict(),
    }


def _distribution(values: ArrayLike) -> dict[str, float]:
    """Describe the distribution of whole numbers, of which there must be at least one."""
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
    """Format the summary of a split as a line, a table of the distributions, and counts."""
    if not split["complete"]:
        return f"{split['split']}: not complete: {split['why']}"
    distributions: dict[str, Mapping[str, float]] = {}
    for entry in split["formats"]:
        labels = f"labels from {entry['label_offset']}" if split["classes"] else "no labels"
        name = f"{entry['name']}, {labels}"
        distributions[f"{name}: shards"] = entry["shards"]
        distributions[f"{name}: records"] = entry["records"]
    for name in ("classes", *_SIZES):
        if split[name]:
            distributions[name] = split[name]
    table = pd.DataFrame(distributions).T.to_string(float_format="{:,.0f}".format)
    samples = split["samples"]
    count = f"{samples['written']:,} of {samples['total']:,} samples"
    lines = [f"{split['split']}: {count}, made {split['created']}", *table.split("\n")]
    for name in ("colorspaces", "actions", "quirks", "reasons"):
        counts = [f"{value} {count:,}" for value, count in split[name].items()]
        if counts:
            lines.append(f"{name}: {', '.join(counts)}")
    return "\n  ".join(lines)


def _list_records(shard: Shard) -> Inspection:
    """Show a line for each record of a shard, until the end or the first damaged framing."""
    lines = [_record_line(record) for record in shard]
    count = counted(len(lines), "record")
    text = [f"{escape(shard.uri)}: {shard.format}, {count}, {len(shard) / 1e6:,.1f} MB"]
    if lines:
        table = pd.DataFrame(lines).drop(columns="damaged")
        text.append(table.to_string(index=False, formatters={"labels": _format_labels}))
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


def _record_line(record: Record) -> dict[str, Any]:
    """Summarise a record in one line of a table. The labels are those that the record stores."""
    image_header = record.image_header or ImageHeader("", 0, 0, "")
    labels = record.first_values((Int64List, FloatList), "image/class/label", "label")
    problem = record.damage
    if not problem and record.image_header is None:
        problem = "no image that can be read"
    return {
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "labels": tuple(labels),
        "synset": record.text("image/class/synset", "synset"),
        "filename": record.text("image/filename", "file_name"),
        "width": image_header.width,
        "height": image_header.height,
        "format": image_header.container,
        "problem": problem,
        "damaged": bool(record.damage),
    }


def _format_labels(labels: Sequence[float]) -> str:
    return ",".join(f"{label:g}" for label in labels)


def _show_record(record: Record, save: str | os.PathLike[str] | None) -> Inspection:
    """Show all values of one record, and write its image to the file ``save``."""
    if record.damage:
        raise RecordError(f"{record.location}: {record.damage}")
    fields = [_field(name, feature) for name, feature in sorted(record.features.items())]
    header = record.image_header
    image = "it cannot be read, or there is none"
    if header:
        image = f"{header.container} of {header.width} x {header.height}, {header.mode}"
    http_range = f"bytes={record.offset}-{record.offset + record.length - 1}"
    lines = [
        f"record {record.number:,} of {escape(record.uri)}",
        f"{record.format}, {record.length:,} bytes; HTTP range: {http_range}",
    ]
    for name, value in record.row.items():
        lines.append(f"{name} of sample {record.sample}: {value}")
    lines += ["{name}  {type} [{count}]  {shown}".format_map(field) for field in fields]
    lines.append(f"image: {image}")
    content = {
        "uri": record.uri,
        "format": record.format,
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "facts": asdict(header) if header else None,
        "damage": record.damage,
        "sample": record.sample,
        "known": dict(record.row),
        "fields": fields,
        "range": http_range,
    }
    if save is not None:
        if not record.image:
            raise ConfigError(f"--save: {record.location} has no image to store")
        Path(save).write_bytes(record.image)
        content["saved"] = str(save)
        lines.append(f"image stored as {escape(str(save))}")
    return Inspection("\n  ".join(lines), content)


def _field(name: str, feature: Feature) -> dict[str, Any]:
    """Describe a feature of a record, with its first values as text."""
    value_texts = [_format_value(value) for value in feature.values[:_MAX_SHOWN_VALUES]]
    count = len(feature.values)
    if count > _MAX_SHOWN_VALUES:
        value_texts.append("…")
    return {
        "name": escape(name),
        "type": _TYPES[type(feature)],
        "count": count,
        "shown": ", ".join(value_texts),
    }


def _format_value(value: Any) -> str:
    """Format a number or a text, or describe an image."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    data = bytes(value)
    header = read_image_header(data)
    if header:
        return f"{header.container}, {len(data):,} bytes"
    text = escape(data[:_MAX_SHOWN_BYTES].decode("utf-8", "surrogateescape"))
    if len(data) <= _MAX_SHOWN_BYTES:
        return f"'{text}'"
    return f"'{text}…', {len(data):,} bytes"


def _write_contact_sheet(records: _Samples | Shard, path: Path, images: int) -> Inspection:
    """Draw evenly spaced records in a grid, with about four columns for every three rows."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise ConfigError(f"--contact-sheet {path}: give a name that ends in .png or .jpg")
    total = records.count()
    if not total:
        raise ConfigError(f"--contact-sheet: {records.uri} has no records. {records.fault or ''}")
    drawn_records = _read_evenly_spaced(records, images)
    numbers = [record.number if record.sample < 0 else record.sample for record in drawn_records]
    columns = math.ceil(math.sqrt(len(drawn_records) * 4 / 3))
    rows = math.ceil(len(drawn_records) / columns)
    sheet = Image.new("RGB", (columns * _CELL_WIDTH, rows * _CELL_HEIGHT), "white")
    for index, record in enumerate(drawn_records):
        row, column = divmod(index, columns)
        sheet.paste(_draw_cell(record), (column * _CELL_WIDTH, row * _CELL_HEIGHT))
    sheet.save(path, quality=90)
    faults = _faults(drawn_records)
    if records.fault:
        faults.append(str(records.fault))
    content = {"contact_sheet": str(path), "records": numbers, "of": total, "faults": faults}
    line = f"{path}: {len(drawn_records):,} of {counted(total, 'record')} of {records.uri}"
    return _with_faults(line, content)


def _read_evenly_spaced(records: _Samples | Shard, images: int) -> list[Record]:
    """Read at most ``images`` records that are evenly spaced."""
    total = records.count()
    count = max(1, min(total, images))
    # Divide all records into ``count`` equal intervals, and take the middle of each interval.
    numbers = [(2 * interval + 1) * total // (2 * count) for interval in range(count)]
    return list(in_order(records.read, numbers, _CONCURRENT_REQUESTS))


def _write_page(
    store: Store, split: str | None, format: str | None, images: int, path: Path
) -> Inspection:
    """Write a page about one split, or about all splits."""
    from dataprep.checking.inspection_page import Split, render

    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a name that ends in .html")
    overview = _overview(store, split)
    splits: list[Split] = []
    incomplete: dict[str, str] = {}
    page_records: list[Record] = []
    for summary in overview.content["splits"]:
        name = summary["split"]
        if not summary["complete"]:
            incomplete[name] = summary["why"]
            continue
        dataset = Dataset(store, name, format)
        records = _read_evenly_spaced(_Samples(dataset), images)
        splits.append(Split(summary, dataset.samples, dataset.label_space.labels, records))
        page_records += records
    path.write_bytes(render(store.uri, splits, incomplete))
    faults = _faults(page_records)
    content = {**overview.content, "html": str(path), "faults": faults}
    return _with_faults(f"{path}: a page about {store.uri}", content)


def _faults(records: Sequence[Record]) -> list[str]:
    """Describe the damage of each damaged record."""
    return [f"{record.location}: {record.damage}" for record in records if record.damage]


def _with_faults(line: str, content: dict[str, Any]) -> Inspection:
    """Return a line about a written file, followed by a line for each fault in ``content``."""
    faults = content["faults"]
    lines = [escape(line)]
    lines += [escape(fault) for fault in faults]
    return Inspection("\n  fault: ".join(lines), content, not faults)


def _draw_cell(record: Record) -> Image.Image:
    """Draw an image with its label, its class and the name of its file.

    If the record has a row in the table of samples, the label counts from 0. Otherwise, the label
    is shown as it is stored.
    """
    # Each cell is a separate image, so that long captions are cut off at its edge.
    cell = Image.new("RGB", (_CELL_WIDTH, _CELL_HEIGHT), "white")
    draw = ImageDraw.Draw(cell)
    try:
        image = Image.fromarray(decode_rgb(record.image))
        square = ImageOps.pad(image, (_IMAGE_SIDE, _IMAGE_SIDE), color="white")
        cell.paste(square, (_MARGIN, _MARGIN))
    except ImageError as error:
        problem = textwrap.fill(record.damage or str(error), 24)
        draw.text((_MARGIN, _MARGIN), problem, "red", font_size=_FONT_SIZE)
    line = _record_line(record)
    values = {
        "label": _format_labels(line["labels"]),
        "synset": line["synset"],
        "source": line["filename"],
        **record.row,  # replaces these values, if the record has a row
    }
    file_name = values["source"].rpartition("/")[2]
    caption = f"{values['label']}  {values['synset']}\n{file_name}"
    draw.text((_MARGIN, _IMAGE_SIDE + 2 * _MARGIN), caption, "black", font_size=_FONT_SIZE)
    return cell
