"""What an output, a shard or a record holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataprep import keys
from dataprep.counted import counted
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError, DataprepError, ObjectNotFound, StoreError
from dataprep.inspection.captions import caption
from dataprep.inspection.contact_sheet import FORMATS, Picture, draw_sheet, encode_sheet
from dataprep.inspection.outputs import summaries
from dataprep.inspection.records import (
    OutputRecords,
    Records,
    ShardRecords,
    fetch,
    fetch_some,
    spread_evenly,
)
from dataprep.inspection.table import shard_table
from dataprep.inspection.target import OutputTarget, ShardTarget, find_target, splits_of
from dataprep.inspection.words import record_text, summary_text, table_text
from dataprep.labels import LabelSpace
from dataprep.names import escape
from dataprep.stores import Store, StoreOptions

DEFAULT_IMAGES = 48


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found: in words, as ``--json`` prints it, and whether nothing is damaged."""

    text: str
    content: dict[str, Any]
    ok: bool = True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What ``inspect`` was asked for."""

    split: str | None
    format: str | None
    record: int | None
    save: Path | None
    contact_sheet: Path | None
    images: int | None


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
    """Look into an output or a shard, reading no more than it takes.

    The whole of it is told, unless one record or a picture of many is asked for.

    Args:
        target: an output, or one TFRecord or RecordIO file of anybody's: a path or URI.
        split: of an output; all of them where none is named.
        format: in which of an output's formats a record or picture is read; TFRecord if it has it.
        record: the number of one record, from 0.
        save: where that record's image goes.
        contact_sheet: where a picture goes, ``.png`` or ``.jpg``.
        images: how many are on it; 48 unless told.
        options: endpoint, profile and the like.

    Raises:
        ConfigError: a combination that cannot be, or no such record.
        ManifestMissing: there is no such data set.
        RecordError: the file is neither TFRecord nor RecordIO, or the one record is damaged.
        StoreError: it cannot be read.
    """
    save = None if save is None else Path(save)
    contact_sheet = None if contact_sheet is None else Path(contact_sheet)
    wanted = _Wanted(split, format, record, save, contact_sheet, images)
    _refuse_nonsense(wanted)
    try:
        found = find_target(target, options)
    except StoreError as error:
        error.exit_code = 2  # nothing to look into can be reached: the request was wrong
        raise
    _refuse_what_is_of_the_other(found, wanted)
    if record is None and contact_sheet is None:
        return _overview(found, split)
    records = _records(found, wanted)
    if record is not None:
        return _one_record(records, record, save)
    assert contact_sheet is not None  # noqa: S101  for the type checker
    return _contact_sheet(records, _label_space(found), contact_sheet, images or DEFAULT_IMAGES)


def _refuse_nonsense(wanted: _Wanted) -> None:
    if wanted.save is not None and wanted.record is None:
        raise ConfigError("--save needs --record N: the record whose image it stores")
    if wanted.images is not None:
        if wanted.contact_sheet is None:
            raise ConfigError("--images needs --contact-sheet FILE: the picture that they are on")
        if wanted.images < 1:
            raise ConfigError(f"--images {wanted.images}: a picture has at least 1")
    if wanted.contact_sheet is not None:
        if wanted.record is not None:
            raise ConfigError("--contact-sheet and --record exclude each other: give one")
        if wanted.contact_sheet.suffix.lower() not in FORMATS:
            raise ConfigError(
                f"--contact-sheet {wanted.contact_sheet}: give a name that ends in "
                + " or ".join(FORMATS)
            )


def _refuse_what_is_of_the_other(found: OutputTarget | ShardTarget, wanted: _Wanted) -> None:
    if isinstance(found, ShardTarget):
        for name, value in (("--split", wanted.split), ("--format", wanted.format)):
            if value is not None:
                raise ConfigError(
                    f"{name} {value}: {found.uri} is one shard, no output: leave it out"
                )
    elif wanted.format is not None and wanted.record is None and wanted.contact_sheet is None:
        raise ConfigError(
            f"--format {wanted.format} needs --record or --contact-sheet: without them all "
            "formats are told"
        )


def _overview(found: OutputTarget | ShardTarget, split: str | None) -> Inspection:
    if isinstance(found, OutputTarget):
        splits = summaries(found.store, split)
        content = {"output": found.store.uri, "splits": [one.as_dict() for one in splits]}
        return Inspection(summary_text(splits), content)
    table = shard_table(found)
    return Inspection(table_text(table), table.as_dict(), table.fault is None)


def _records(found: OutputTarget | ShardTarget, wanted: _Wanted) -> Records:
    if isinstance(found, ShardTarget):
        return ShardRecords(found)
    split = wanted.split or _split(found.store)
    return OutputRecords(Dataset(found.store, split, wanted.format))


def _split(store: Store) -> str:
    splits = splits_of(store)
    if len(splits) == 1 or "train" in splits:
        return "train" if "train" in splits else splits[0]
    raise ConfigError(f"--split: {store.uri!r} has {', '.join(splits)}: say which")


def _one_record(records: Records, number: int, save: Path | None) -> Inspection:
    record = fetch(records, number)
    text = record_text(record)
    content = record.as_dict()
    if save is not None:
        if record.image is None:
            raise ConfigError(f"--save: record {number} of {records.title} has no image")
        _write(save, record.image)
        text += f"\n  stored as {escape(str(save))}"
        content["saved"] = str(save)
    return Inspection(text, content)


def _contact_sheet(
    records: Records, labels: LabelSpace | None, path: Path, images: int
) -> Inspection:
    numbers = spread_evenly(len(records), images)
    if not numbers:
        why = f": {records.fault}" if records.fault else ""
        raise ConfigError(f"--contact-sheet: {records.title} has no records{why}")
    found = list(fetch_some(records, numbers))
    pictures = [Picture(one.image, caption(one, labels), one.problem) for one in found]
    shown = f"{len(numbers):,} of {counted(len(records), 'record')}"
    sheet = draw_sheet(pictures, f"{records.title}: {shown}")
    _write(path, encode_sheet(sheet, path.suffix))
    faults = [one.damage for one in found if one.damage]
    faults += [records.fault] if records.fault else []
    content = {
        "contact_sheet": str(path),
        "records": numbers,
        "of": len(records),
        "faults": faults,
    }
    text = f"{escape(str(path))}: {shown} of {escape(records.title)}"
    return Inspection("\n  fault: ".join([text, *faults]), content, not faults)


def _label_space(found: OutputTarget | ShardTarget) -> LabelSpace | None:
    if isinstance(found, ShardTarget) and found.receipt is None:
        return None
    try:
        return LabelSpace.from_json(found.store.get(keys.LABELS))
    except (ObjectNotFound, DataprepError):
        return None  # captions then have no words for their classes


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None
