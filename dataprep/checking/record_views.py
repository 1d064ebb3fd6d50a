"""Show the records of a shard as text and as JSON: a line for each, or one record in detail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd

from dataprep.checking.result import Inspection
from dataprep.errors import ConfigError, RecordError
from dataprep.formats.example import BytesList, Feature, FloatList, Int64List
from dataprep.formats.shard_reader import ImageHeader, Record, ShardReader, read_image_header
from dataprep.message_text import counted
from dataprep.name_encoding import escape

_MAX_SHOWN_VALUES = 8  # of a feature
_MAX_SHOWN_BYTES = 60  # of a byte string
_TYPES = {BytesList: "bytes", FloatList: "float", Int64List: "int64"}
_NO_IMAGE = ImageHeader("", 0, 0, "")


class RecordLine(TypedDict):
    """The summary of a record, as ``--json`` prints it.

    Attributes:
        number: the number of the record in the shard, from 0.
        offset, length: the location of the record in the shard in bytes, with framing.
        labels: the labels that the record stores.
        synset, filename: the texts that the record stores; empty if it stores none.
        width, height, format: the size and the format of the image; 0 and empty if the header of
            the image cannot be read.
        problem: the damage of the record, or that it has no image that can be read; else empty.
        damaged: whether the record is damaged. A record without a readable image is not damaged,
            because it may have been written so.
    """

    number: int
    offset: int
    length: int
    labels: tuple[float, ...]
    synset: str
    filename: str
    width: int
    height: int
    format: str
    problem: str
    damaged: bool


class FeatureLine(TypedDict):
    """The description of a feature, as ``--json`` prints it. ``shown`` has its first values."""

    name: str
    type: str
    count: int
    shown: str


def list_records(shard: ShardReader) -> Inspection:
    """Show a line for each record of a shard, until the end, or until the framing is damaged.

    The shard is sound if neither its framing nor a record is damaged. Images that cannot be read
    are shown as problems, but they are no damage.
    """
    lines = [record_line(record) for record in shard]
    count = counted(len(lines), "record")
    shard_bytes = len(shard)
    text = [f"{escape(shard.uri)}: {shard.format}, {count}, {shard_bytes / 1e6:,.1f} MB"]
    if lines:
        table = pd.DataFrame(lines).drop(columns="damaged")
        text.append(table.to_string(index=False, formatters={"labels": format_labels}))
    if shard.fault:
        text.append(f"fault: {escape(str(shard.fault))}")
    content = {
        "uri": shard.uri,
        "format": shard.format,
        "bytes": shard_bytes,
        "records": lines,
        "fault": str(shard.fault) if shard.fault else None,
        "fault_offset": shard.fault.offset if shard.fault else None,
    }
    is_sound = not shard.fault and not any(line["damaged"] for line in lines)
    return Inspection("\n".join(text), content, is_sound)


def record_line(record: Record) -> RecordLine:
    """Summarise a record."""
    image_header = record.image_header or _NO_IMAGE
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


def format_labels(labels: Sequence[float]) -> str:
    """Return labels as one text, separated by commas."""
    return ",".join(f"{label:g}" for label in labels)


def show_record(record: Record, save: str | os.PathLike[str] | None) -> Inspection:
    """Show all features of one record. Write its image to the file ``save``, unless that is None.

    Of a feature with many values, only the first ones are shown.

    Raises:
        RecordError: the record is damaged.
        ConfigError: there is no image to save.
        OSError: the file cannot be written.
    """
    if record.damage:
        raise RecordError(f"{record.location}: {record.damage}")
    fields = [_feature_line(name, feature) for name, feature in sorted(record.features.items())]
    http_range = f"bytes={record.offset}-{record.offset + record.length - 1}"
    lines = _lines_about(record, fields, http_range)
    header = record.image_header
    content = {
        "uri": record.uri,
        "format": record.format,
        "number": record.number,
        "offset": record.offset,
        "length": record.length,
        "facts": asdict(header) if header else None,  # the header of the image
        "damage": record.damage,  # always empty, because a damaged record raises an error
        "sample": record.sample,
        "known": dict(record.row),  # the row of the sample in the table of samples
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


def _lines_about(record: Record, fields: Sequence[FeatureLine], http_range: str) -> list[str]:
    """Describe a record in lines of text: its location, its row, its features and its image."""
    lines = [
        f"record {record.number:,} of {escape(record.uri)}",
        f"{record.format}, {record.length:,} bytes; HTTP range: {http_range}",
    ]
    for name, value in record.row.items():
        lines.append(f"{name} of sample {record.sample}: {value}")
    lines += ["{name}  {type} [{count}]  {shown}".format_map(field) for field in fields]
    header = record.image_header
    image = "it cannot be read, or there is none"
    if header:
        image = f"{header.container} of {header.width} x {header.height}, {header.mode}"
    lines.append(f"image: {image}")
    return lines


def _feature_line(name: str, feature: Feature) -> FeatureLine:
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
