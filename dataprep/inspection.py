"""Show what an output, a shard of anybody or a record contains."""

from __future__ import annotations

import io
import json
import math
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw, ImageFont

from dataprep.counted import counted
from dataprep.dataset import Dataset, open_split, splits_in, why_missing
from dataprep.errors import (
    ConfigError,
    ImageError,
    ManifestMissing,
    ObjectNotFound,
    PermissionRefused,
    RecordError,
    StoreError,
)
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.image.rgb import decode_whole
from dataprep.names import escape
from dataprep.ordered import in_order
from dataprep.samples import stored_table
from dataprep.shard_records import (
    ImageFacts,
    Record,
    Shard,
    image_facts,
    read_record,
    require_number,
)
from dataprep.stores import ObjectInfo, Store, StoreOptions, open_store
from dataprep.stores.protocol import location

IMAGES = 48
"""The number of images on a contact sheet."""

_TYPES = {BytesList: "bytes", FloatList: "float", Int64List: "int64"}
_NUMBERS = (Int64List, FloatList)
_SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_THUMB, _CELL, _LINE = 176, 188, 17
_REQUESTS = 16
_VALUES = 8
_TEXT_BYTES = 60
_SIDES = ("width", "height", "source_width", "source_height", "source_bytes")
_COLUMNS = ("label", "synset", "status", "reason", "action", "colorspace", *_SIDES)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found: as text, as ``--json`` prints it, and whether nothing is damaged."""

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text


class _Samples:
    """The records of the samples of a split, by number."""

    fault = ""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.uri = f"{dataset.split} in {dataset.store.uri}"
        self._first = {shard.key: shard.samples.start for shard in dataset.shards()}

    def count(self) -> int:
        """The number of samples that were written."""
        return len(self._dataset)

    def read(self, number: int) -> Record:
        """One record, in one request; raises ConfigError if there is none of this number."""
        require_number(number, self.count(), self.uri)
        key, offset, length = self._dataset.place(number)
        row = self._dataset.written.iloc[[number]].to_json(orient="records")
        known = {name: value for name, value in json.loads(row)[0].items() if value is not None}
        uri, data = location(self._dataset.store, key), self._dataset.read(key, offset, length)
        record = read_record(data, uri, self._dataset.format, number - self._first[key], offset)
        return replace(record, sample=number, known=known)


def inspect(
    target: str | os.PathLike[str],
    *,
    split: str | None = None,
    format: str | None = None,
    record: int | None = None,
    save: str | os.PathLike[str] | None = None,
    contact_sheet: str | os.PathLike[str] | None = None,
    images: int | None = None,
    options: StoreOptions | None = None,
) -> Inspection:
    """Show an output or a shard: all of it, one record, or a picture of many.

    Args:
        target: an output, or one TFRecord or RecordIO file of anybody: a path or URI.
        split: a split of an output; all by default.
        format: the format of an output in which a record or picture is read.
        record: the number of one record, from 0.
        save: the file for the image of that record.
        contact_sheet: the file for a picture, ``.png`` or ``.jpg``.
        images: the number of images on it; 48 by default.
        options: endpoint, profile and other options of the store.

    Raises:
        ConfigError: options that do not fit, no such record, or not a shard.
        ManifestMissing: there is no such data set.
        RecordError: the record is damaged.
        StoreError: the store cannot be read.
    """
    sheet = None if contact_sheet is None else Path(contact_sheet)
    store, info = _found(target, options)
    suffixes = " or ".join(_SUFFIXES)
    for refused, why in (
        (save and record is None, "--save needs --record N, the record whose image it stores"),
        (images is not None and sheet is None, "--images needs --contact-sheet FILE"),
        (images is not None and images < 1, f"--images {images}: give 1 or more"),
        (sheet and record is not None, "give --record or --contact-sheet, not both"),
        (
            sheet and sheet.suffix.lower() not in _SUFFIXES,
            f"--contact-sheet {sheet}: give a name that ends in {suffixes}",
        ),
        (info and split, f"--split {split}: {target} is one shard, not an output"),
        (info and format, f"--format {format}: {target} is one shard, not an output"),
        (
            format and record is None and sheet is None,
            f"--format {format} needs --record or --contact-sheet",
        ),
    ):
        if refused:
            raise ConfigError(why)
    if record is None and sheet is None:
        return _overview(store, split) if info is None else _table(Shard(store, info))
    records = _samples(store, split, format) if info is None else Shard(store, info)
    if sheet is not None:
        return _sheet(records, sheet, images or IMAGES)
    return _one(records.read(record or 0), save)


def _found(
    target: str | os.PathLike[str], options: StoreOptions | None
) -> tuple[Store, ObjectInfo | None]:
    """The store and the shard at a path or URI, or the store of an output there."""
    uri = os.fspath(target)
    if "://" not in uri:
        uri = os.path.abspath(uri)  # noqa: PTH100  links are not followed
    folder, _, name = uri.rstrip("/").rpartition("/")
    try:
        store = open_store(folder or "/", options)
        return store, store.head(name)
    except (ConfigError, ObjectNotFound, PermissionRefused):  # no object, or s3://bucket itself
        return open_store(uri, options), None
    except StoreError as error:
        error.exit_code = 2  # the request named what cannot be reached
        raise


def _samples(store: Store, split: str | None, format: str | None) -> _Samples:
    splits = [split] if split else splits_in(store)
    if len(splits) > 1 and "train" not in splits:
        raise ConfigError(f"{store.uri!r} has {', '.join(splits)}: choose one with --split")
    return _Samples(Dataset(store, splits[0] if len(splits) == 1 else "train", format))


def _overview(store: Store, split: str | None) -> Inspection:
    """Every split, or one."""
    splits = [_summary(store, name, split) for name in ([split] if split else splits_in(store))]
    lines = [line for one in splits for line in _summary_lines(one)]
    return Inspection("\n".join(lines), {"output": store.uri, "splits": splits})


def _summary(store: Store, split: str, wanted: str | None) -> dict[str, Any]:
    """The figures of a split from its manifest and its table of samples."""
    try:
        manifest, snapshot = open_split(store, split)
    except ManifestMissing:
        if wanted:
            raise
        return {"split": split, "complete": False, "why": why_missing(store, split)}
    columns = [*_COLUMNS, *(f"{name}_length" for name in manifest.formats)]
    with snapshot.unchanged():
        table = stored_table(store, manifest).frame(columns)
    written = table[table["status"] == "written"]
    lost = table[table["status"] != "written"]
    formats = [
        {
            "name": name,
            "label_offset": entry.label_offset,
            "shards": _spread([shard.bytes for shard in entry.shards]),
            "records": _spread(written[f"{name}_length"]),
        }
        for name, entry in manifest.formats.items()
    ]
    return {
        "split": split,
        "complete": True,
        "created": manifest.created,
        "samples": asdict(manifest.samples),
        "formats": formats,
        "classes": _spread(written["label"].value_counts()),
        **{name: _spread(written[name]) for name in _SIDES},
        "actions": _counts(written["action"]),
        "colorspaces": _counts(written["colorspace"]),
        "quirks": dict(manifest.warnings),
        "reasons": _counts(lost["status"] + ": " + lost["reason"].fillna("")),
    }


def _spread(values: ArrayLike) -> dict[str, Any]:
    """How whole numbers, of which there is one at least, are distributed."""
    array = np.asarray(values, np.int64)
    quantiles = np.quantile(array, (0, 0.05, 0.5, 0.95, 1), method="nearest").tolist()
    found = dict(zip(("least", "p5", "median", "p95", "most"), quantiles, strict=True))
    return {"count": len(array), **found, "mean": float(array.mean()), "total": int(array.sum())}


def _counts(column: pd.Series[str]) -> dict[str, int]:
    return {str(name): int(count) for name, count in column.value_counts().items()}


def _summary_lines(one: Mapping[str, Any]) -> Iterator[str]:
    if not one["complete"]:
        yield f"{one['split']}: not complete: {one['why']}"
        return
    samples, sources = one["samples"], one["source_bytes"]
    yield (
        f"{one['split']}: {samples['written']:,} of {samples['total']:,} samples in "
        f"{counted(one['formats'][0]['shards']['count'], 'shard')} ({samples['failed']:,} failed, "
        f"{samples['skipped']:,} skipped), made {one['created']}"
    )
    for form in one["formats"]:
        least, most = (form["shards"][name] / 1e6 for name in ("least", "most"))
        yield (
            f"  {form['name']}: {form['shards']['total'] / 1e6:,.1f} MB, shards of {least:.1f} to "
            f"{most:.1f} MB, records of {_range(form['records'])} bytes, "
            f"labels in records from {form['label_offset']}"
        )
    yield f"  classes: {one['classes']['count']:,} of {_range(one['classes'])} samples"
    yield f"  images: {_range(one['width'])} wide, {_range(one['height'])} high"
    yield (
        f"  sources: {_range(one['source_width'])} wide, {_range(one['source_height'])} high, "
        f"{sources['total'] / 1e6:,.1f} MB, files of {_range(sources)} bytes"
    )
    for name in ("colorspaces", "actions", "quirks", "reasons"):
        if one[name]:
            pairs = [f"{what} {count:,}" for what, count in one[name].items()]
            yield f"  {name}: {', '.join(pairs)}"


def _range(spread: Mapping[str, Any]) -> str:
    return f"{spread['least']:,} to {spread['most']:,} (median {spread['median']:,})"


def _table(shard: Shard) -> Inspection:
    """A line per record, up to the place where the framing is damaged."""
    lines: list[dict[str, Any]] = []
    fault, offset = None, None
    try:
        for record in shard:
            lines.append(_line(record))  # noqa: PERF401  those before damage are kept
    except RecordError as error:
        fault, offset = str(error), error.offset
    text = [
        f"{escape(shard.uri)}: {shard.format}, {counted(len(lines), 'record')}, "
        f"{len(shard) / 1e6:,.1f} MB; labels as they are stored",
        " record       offset     length  labels    class      image              filename",
    ]
    for line in lines:
        place = f"{line['number']:>7,} {line['offset']:>12,} {line['length']:>10,}"
        labels = ",".join(f"{label:g}" for label in line["labels"])
        image = line["problem"] or f"{line['format']} {line['width']} x {line['height']}"
        text.append(f"{place}  {labels:<8}  {line['synset']:<9}  {image:<17}  {line['filename']}")
    if fault:
        text.append(f"fault: {escape(fault)}")
    content = {
        "uri": shard.uri,
        "format": shard.format,
        "bytes": len(shard),
        "records": lines,
        "fault": fault,
        "fault_offset": offset,
    }
    sound = not fault and not any(line["damaged"] for line in lines)
    return Inspection("\n".join(map(str.rstrip, text)), content, sound)


def _line(record: Record) -> dict[str, Any]:
    """A record in short, for the table and for ``--json``."""
    facts = record.facts or ImageFacts("", 0, 0, "")
    return {
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "labels": tuple(record.first(_NUMBERS, "image/class/label", "label")),
        "synset": record.text("image/class/synset"),
        "filename": record.text("image/filename", "file_name"),
        "width": facts.width,
        "height": facts.height,
        "format": facts.container,
        "problem": record.damage or ("" if record.facts else "no image that can be read"),
        "damaged": bool(record.damage),
    }


def _one(record: Record, save: str | os.PathLike[str] | None) -> Inspection:
    """All of one record."""
    if record.damage:
        raise RecordError(f"{record.place}: {record.damage}")
    fields = [_field(name, record.features[name]) for name in sorted(record.features)]
    image = record.facts.text if record.facts else "it cannot be read, or there is none"
    place = f"bytes={record.offset}-{record.offset + record.length - 1}"
    lines = [
        f"record {record.number:,} of {escape(record.uri)}",
        f"  {record.format}, {record.length:,} bytes; HTTP range: {place}",
        *(f"  {name} of sample {record.sample}: {value}" for name, value in record.known.items()),
        *(f"  {one['name']}  {one['type']} [{one['count']}]  {one['shown']}" for one in fields),
        f"  image: {image}",
    ]
    content = asdict(replace(record, features={}, image=b""))
    del content["features"], content["image"]
    content |= {"fields": fields, "range": place}
    if save is not None:
        if not record.image:
            raise ConfigError(f"--save: {record.place} has no image to store")
        _write(Path(save), record.image)
        lines.append(f"  image stored as {escape(str(save))}")
        content["saved"] = str(save)
    return Inspection("\n".join(lines), content)


def _field(name: str, feature: Feature) -> dict[str, Any]:
    shown = [_value(value) for value in feature.values[:_VALUES]]
    shown += ["…"] if len(feature.values) > _VALUES else []
    return {
        "name": escape(name),
        "type": _TYPES[type(feature)],
        "count": len(feature.values),
        "shown": ", ".join(shown),
    }


def _value(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    data = bytes(value)
    facts = image_facts(data)
    if facts:
        return f"{facts.container}, {len(data):,} bytes"
    text = escape(data[:_TEXT_BYTES].decode("utf-8", "surrogateescape"))
    return f"'{text}'" if len(data) <= _TEXT_BYTES else f"'{text}…', {len(data):,} bytes"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None


def _sheet(records: _Samples | Shard, path: Path, images: int) -> Inspection:
    """A picture of records that are evenly spread."""
    count = records.count()
    wanted = min(count, images)
    numbers = [(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]
    if not numbers:
        raise ConfigError(f"--contact-sheet: {records.uri} has no records. {records.fault}")
    found = list(in_order(records.read, numbers, _REQUESTS))
    shown = f"{wanted:,} of {counted(count, 'record')}"
    sheet = _drawn(found, f"{records.uri}: {shown}")
    sink = io.BytesIO()
    sheet.save(sink, _SUFFIXES[path.suffix.lower()], quality=90)
    _write(path, sink.getvalue())
    faults = [f"{record.place}: {record.damage}" for record in found if record.damage]
    faults += [records.fault] if records.fault else []
    content = {"contact_sheet": str(path), "records": numbers, "of": count, "faults": faults}
    lines = [f"{path}: {shown} of {records.uri}", *faults]
    return Inspection("\n  fault: ".join(map(escape, lines)), content, not faults)


def _drawn(records: Sequence[Record], title: str) -> Image.Image:
    """All images in rows, about four wide for three high, with captions below them."""
    columns = math.ceil(math.sqrt(len(records) * 4 / 3))
    rows, height = math.ceil(len(records) / columns), _CELL + 2 * _LINE
    sheet = Image.new("RGB", (columns * _CELL, rows * height + 2 * _LINE), "white")
    font = ImageFont.load_default(13)
    ImageDraw.Draw(sheet).text((6, 6), escape(title), "black", font)
    for number, record in enumerate(records):
        cell = Image.new("RGB", (_CELL, height), "white")  # cuts off long captions
        draw = ImageDraw.Draw(cell)
        try:
            thumb = Image.fromarray(decode_whole(record.image))
            thumb.thumbnail((_THUMB, _THUMB))
            cell.paste(thumb, ((_CELL - thumb.width) // 2, (_CELL - thumb.height) // 2))
        except ImageError as error:
            draw.text((6, 6), textwrap.fill(record.damage or str(error), 24), "red", font)
        for line, text in enumerate(_caption(record)):
            draw.text((6, _CELL + line * _LINE), text, "black", font)
        sheet.paste(cell, (number % columns * _CELL, number // columns * height + 2 * _LINE))
    return sheet


def _caption(record: Record) -> tuple[str, str]:
    """Label and class, and the base name of the file. Labels of samples count from 0."""
    line = _line(record)
    label = record.known.get("label", ", ".join(f"{label:g}" for label in line["labels"]))
    name = str(record.known.get("source", line["filename"]))
    return f"{label}  {record.known.get('synset', line['synset'])}", name.rpartition("/")[2]
