"""Show what an output, a shard or a record contains."""

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

from dataprep import keys
from dataprep.counted import counted
from dataprep.dataset import Dataset
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
from dataprep.image.rgb import decode_whole
from dataprep.names import escape
from dataprep.ordered import in_order
from dataprep.reading.splits import open_split, splits_in, why_missing
from dataprep.samples import stored_table
from dataprep.shard_records import (
    ImageFacts,
    Record,
    Shard,
    image_facts,
    read_record,
    require_number,
)
from dataprep.stores import ObjectInfo, Store, StoreOptions, location, open_store

IMAGES = 48
"""The number of images on a contact sheet, or of a split on a page."""

_CELL, _ROW, _FONT = 188, 222, 13
_REQUESTS = 16
_VALUES = 8
_TEXT_BYTES = 60
_TYPES = {BytesList: "bytes", FloatList: "float", Int64List: "int64"}
_COLUMNS = ("label", "status", "reason", "action", "colorspace")
_SIZES = ("width", "height", "source_width", "source_height", "source_bytes")
_ROW_COLUMNS = ("label", "synset", "source_width", "source_height", "width", "height", "source")
_ROWS = 20


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found: as text, as ``--json`` prints it, and whether nothing is damaged."""

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text


class _Samples:
    """The records of some samples of a split, or of all that were written."""

    fault = None

    def __init__(self, dataset: Dataset, numbers: Sequence[int] | None = None) -> None:
        self._dataset = dataset
        self._numbers = range(len(dataset)) if numbers is None else numbers
        self._first = {shard.key: shard.samples.start for shard in dataset.shards()}
        self.uri = f"{dataset.split} in {dataset.store.uri}"

    def count(self) -> int:
        """The number of samples."""
        return len(self._numbers)

    def read(self, place: int) -> Record:
        """The record of one of the samples; raises ConfigError if there are fewer."""
        dataset = self._dataset
        require_number(place, len(self._numbers), self.uri)
        number = self._numbers[place]
        key, offset, length = dataset.place(number)
        data = dataset.read(key, offset, length)
        within = number - self._first[key]
        record = read_record(data, location(dataset.store, key), dataset.format, within, offset)
        known = json.loads(dataset.written.iloc[number].dropna().to_json())
        return replace(record, sample=number, known=known)


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
    """Show an output or a shard: all of it, one record, or a picture or page of many.

    With ``where`` it counts and shows the samples of a split that match a query.

    Args:
        target: an output, or one shard of any program: a path or URI.
        split: a split of an output; all by default, ``train`` for one record, a picture or a query.
        format: the format of an output in which a record, picture or page is read.
        record: the number of one record, from 0.
        save: the file for the image of that record.
        contact_sheet: the file for a picture, ``.png`` or ``.jpg``.
        html: the file for a page about an output, ``.html``.
        images: the number of images on the picture, or of a split on the page; 48 by default.
        where: a query over the table of samples, as in ``Dataset.where``. The picture has only the
            samples that match.
        options: endpoint, profile and other options of the store.

    Raises:
        ConfigError: options that do not fit, no such record, not a shard, or a query that is not
            allowed.
        ManifestMissing: there is no such data set.
        RecordError: the record is damaged.
        StoreError: the store cannot be read.
        OSError: a file cannot be written.
    """
    if save and record is None:
        raise ConfigError("--save needs --record N, the record whose image it stores")
    if [record, contact_sheet, html].count(None) < 2:
        raise ConfigError("give one of --record, --contact-sheet and --html")
    if where is not None and (record is not None or html is not None):
        raise ConfigError("--where counts and shows samples: give it without --record and --html")
    store, info = _found(target, options)
    if info:
        _require_shard_options(target, split or format, html, where)
    if html is not None:
        return _page(store, split, format, images or IMAGES, Path(html))
    if where is not None:
        return _matching(Dataset(store, split or "train", format), where, contact_sheet, images)
    whole = record is None and contact_sheet is None
    if whole and (format or images):
        raise ConfigError("--format and --images need --record, --contact-sheet or --html")
    if whole:
        return _table(_shard(store, info, options)) if info else _overview(store, split)
    records = (
        _shard(store, info, options) if info else _Samples(Dataset(store, split or "train", format))
    )
    if contact_sheet is not None:
        return _sheet(records, Path(contact_sheet), images or IMAGES)
    return _one(records.read(record or 0), save)


def _require_shard_options(
    target: object, choice: str | None, html: object | None, where: str | None
) -> None:
    """Refuse options of an output for one shard.

    Raises:
        ConfigError: a split or format, a page or a query was asked for.
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
    """The samples that match a query: their number and the first rows, or a picture of them."""
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
        sheet = _sheet(samples, Path(contact_sheet), images or IMAGES)
        return replace(sheet, content={**content, **sheet.content})
    lines = [line]
    if numbers:
        rows = dataset.written[list(_ROW_COLUMNS)].iloc[numbers[:_ROWS]].fillna("")
        rows.insert(0, "number", rows.index)
        lines += rows.to_string(index=False).split("\n")
    if len(numbers) > _ROWS:
        lines.append(f"and {len(numbers) - _ROWS:,} more; --json prints all numbers")
    return Inspection("\n  ".join(lines), content)


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


def _shard(store: Store, info: ObjectInfo, options: StoreOptions | None) -> Shard:
    """A shard; the output that it belongs to tells its format, if its first bytes do not."""

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
    """Every split, or one."""
    splits = [_summary(store, name, split) for name in ([split] if split else splits_in(store))]
    text = "\n".join(map(_summary_text, splits))
    return Inspection(text, {"output": store.uri, "splits": splits})


def _summary(store: Store, split: str, wanted: str | None) -> dict[str, Any]:
    """The figures of a split from its manifest and its table of samples."""
    try:
        manifest, snapshot = open_split(store, split)
    except ManifestMissing:
        if wanted:
            raise
        return {"split": split, "complete": False, "why": why_missing(store, split)}
    lengths = [f"{name}_length" for name in manifest.formats]
    with snapshot.unchanged():
        table = stored_table(store, manifest).frame([*_COLUMNS, *_SIZES, *lengths])
    is_written = table["status"] == "written"
    written, lost = table[is_written], table[~is_written]
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
    counts = labels[labels >= 0].value_counts()  # without a class the label is -1
    reasons = lost["status"] + ": " + lost["reason"].fillna("")
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
    """How whole numbers, of which there is one at least, are distributed."""
    array = np.asarray(values, np.int64)
    quantiles = np.quantile(array, (0, 0.05, 0.5, 0.95, 1), method="nearest").tolist()
    named = dict(zip(("least", "p5", "median", "p95", "most"), quantiles, strict=True))
    return {"count": len(array), **named, "mean": float(array.mean()), "total": int(array.sum())}


def _summary_text(split: Mapping[str, Any]) -> str:
    """A line, a table of the figures, and counts."""
    if not split["complete"]:
        return f"{split['split']}: not complete: {split['why']}"
    figures: dict[str, Mapping[str, float]] = {}
    for entry in split["formats"]:
        labels = f"labels from {entry['label_offset']}" if split["classes"] else "no labels"
        name = f"{entry['name']}, {labels}"
        figures |= {f"{name}: shards": entry["shards"], f"{name}: records": entry["records"]}
    figures |= {name: split[name] for name in ("classes", *_SIZES) if split[name]}
    table = pd.DataFrame(figures).T.to_string(float_format="{:,.0f}".format)
    samples = split["samples"]
    count = f"{samples['written']:,} of {samples['total']:,} samples"
    lines = [f"{split['split']}: {count}, made {split['created']}", *table.split("\n")]
    for name in ("colorspaces", "actions", "quirks", "reasons"):
        counts = [f"{what} {count:,}" for what, count in split[name].items()]
        if counts:
            lines.append(f"{name}: {', '.join(counts)}")
    return "\n  ".join(lines)


def _table(shard: Shard) -> Inspection:
    """A line per record, up to the place where the framing is damaged."""
    lines = [_line(record) for record in shard]
    count = counted(len(lines), "record")
    text = [f"{escape(shard.uri)}: {shard.format}, {count}, {len(shard) / 1e6:,.1f} MB"]
    if lines:
        table = pd.DataFrame(lines).drop(columns="damaged")
        text.append(
            table.to_string(
                index=False,
                formatters={"labels": _labels},
            )
        )
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
    sound = not shard.fault and not any(line["damaged"] for line in lines)
    return Inspection("\n".join(text), content, sound)


def _line(record: Record) -> dict[str, Any]:
    """A record in short, for the table and for ``--json``. Labels are as they are stored."""
    facts = record.facts or ImageFacts("", 0, 0, "")
    return {
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "labels": tuple(record.first((Int64List, FloatList), "image/class/label", "label")),
        "synset": record.text("image/class/synset", "synset"),
        "filename": record.text("image/filename", "file_name"),
        "width": facts.width,
        "height": facts.height,
        "format": facts.container,
        "problem": record.damage or ("" if record.facts else "no image that can be read"),
        "damaged": bool(record.damage),
    }


def _labels(labels: Sequence[float]) -> str:
    return ",".join(f"{label:g}" for label in labels)


def _one(record: Record, save: str | os.PathLike[str] | None) -> Inspection:
    """All of one record."""
    if record.damage:
        raise RecordError(f"{record.place}: {record.damage}")
    fields = [_field(name, feature) for name, feature in sorted(record.features.items())]
    facts = record.facts
    image = "it cannot be read, or there is none"
    if facts:
        image = f"{facts.container} of {facts.width} x {facts.height}, {facts.mode}"
    place = f"bytes={record.offset}-{record.offset + record.length - 1}"
    lines = [
        f"record {record.number:,} of {escape(record.uri)}",
        f"{record.format}, {record.length:,} bytes; HTTP range: {place}",
    ]
    lines += [f"{name} of sample {record.sample}: {value}" for name, value in record.known.items()]
    lines += ["{name}  {type} [{count}]  {shown}".format_map(field) for field in fields]
    lines.append(f"image: {image}")
    content = asdict(replace(record, features={}, image=b""))
    del content["features"], content["image"]
    content |= {"fields": fields, "range": place}
    if save is not None:
        if not record.image:
            raise ConfigError(f"--save: {record.place} has no image to store")
        Path(save).write_bytes(record.image)
        content["saved"] = str(save)
        lines.append(f"image stored as {escape(str(save))}")
    return Inspection("\n  ".join(lines), content)


def _field(name: str, feature: Feature) -> dict[str, Any]:
    shown = [_value(value) for value in feature.values[:_VALUES]]
    count = len(feature.values)
    if count > _VALUES:
        shown.append("…")
    return {
        "name": escape(name),
        "type": _TYPES[type(feature)],
        "count": count,
        "shown": ", ".join(shown),
    }


def _value(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    data = bytes(value)
    facts = image_facts(data)
    if facts:
        return f"{facts.container}, {len(data):,} bytes"
    text = escape(data[:_TEXT_BYTES].decode("utf-8", "surrogateescape"))
    return f"'{text}'" if len(data) <= _TEXT_BYTES else f"'{text}…', {len(data):,} bytes"


def _sheet(records: _Samples | Shard, path: Path, images: int) -> Inspection:
    """A picture of records that are evenly spread, in rows: about four wide for three high."""
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise ConfigError(f"--contact-sheet {path}: give a name that ends in .png or .jpg")
    count = records.count()
    if not count:
        raise ConfigError(f"--contact-sheet: {records.uri} has no records. {records.fault or ''}")
    found = _spaced(records, images)
    numbers = [record.number if record.sample < 0 else record.sample for record in found]
    wanted = len(found)
    columns = math.ceil(math.sqrt(wanted * 4 / 3))
    rows = math.ceil(wanted / columns)
    sheet = Image.new("RGB", (columns * _CELL, rows * _ROW), "white")
    for place, record in enumerate(found):
        row, column = divmod(place, columns)
        sheet.paste(_cell(record), (column * _CELL, row * _ROW))
    sheet.save(path, quality=90)
    faults = _faults(found)
    if records.fault:
        faults.append(str(records.fault))
    content = {"contact_sheet": str(path), "records": numbers, "of": count, "faults": faults}
    return _drawn(f"{path}: {wanted:,} of {counted(count, 'record')} of {records.uri}", content)


def _spaced(records: _Samples | Shard, images: int) -> list[Record]:
    """Records that are evenly spread."""
    count = records.count()
    wanted = max(1, min(count, images))
    numbers = [(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]
    return list(in_order(records.read, numbers, _REQUESTS))


def _page(
    store: Store, split: str | None, format: str | None, images: int, path: Path
) -> Inspection:
    """A page about every split, or one."""
    from dataprep.inspection_page import Split, render

    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a name that ends in .html")
    overview = _overview(store, split)
    splits, missing, found = [], {}, []
    for figures in overview.content["splits"]:
        name = figures["split"]
        if not figures["complete"]:
            missing[name] = figures["why"]
            continue
        dataset = Dataset(store, name, format)
        records = _spaced(_Samples(dataset), images)
        splits.append(Split(figures, dataset.samples, dataset.label_space.labels, records))
        found += records
    path.write_bytes(render(store.uri, splits, missing))
    faults = _faults(found)
    content = {**overview.content, "html": str(path), "faults": faults}
    return _drawn(f"{path}: a page about {store.uri}", content)


def _faults(records: Sequence[Record]) -> list[str]:
    return [f"{record.place}: {record.damage}" for record in records if record.damage]


def _drawn(line: str, content: dict[str, Any]) -> Inspection:
    """A line, and one for each fault."""
    faults = content["faults"]
    text = "\n  fault: ".join(map(escape, [line, *faults]))
    return Inspection(text, content, not faults)


def _cell(record: Record) -> Image.Image:
    """An image, below it label and class, and the base name of the file.

    Labels of samples count from 0; those of other records are shown as they are stored.
    """
    cell = Image.new("RGB", (_CELL, _ROW), "white")  # cuts off long captions
    draw = ImageDraw.Draw(cell)
    try:
        image = Image.fromarray(decode_whole(record.image))
        cell.paste(ImageOps.pad(image, (176, 176), color="white"), (6, 6))
    except ImageError as error:
        why = textwrap.fill(record.damage or str(error), 24)
        draw.text((6, 6), why, "red", font_size=_FONT)
    line = _line(record)
    known = {
        "label": _labels(line["labels"]),
        "synset": line["synset"],
        "source": line["filename"],
        **record.known,
    }
    name = known["source"].rpartition("/")[2]
    caption = f"{known['label']}  {known['synset']}\n{name}"
    draw.text((6, _CELL), caption, "black", font_size=_FONT)
    return cell
