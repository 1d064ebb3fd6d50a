"""PURE. Boxes from CSV: as TensorFlow's script writes it, with a header, or as Kaggle has it.

TensorFlow's ``process_bounding_boxes.py``: ``filename,xmin,ymin,xmax,ymax``, relative, no header.
Kaggle's ``LOC_train_solution.csv``: ``ImageId,PredictionString``, where the latter is
``synset xmin ymin xmax ymax`` in pixels, once for each box.
"""

from __future__ import annotations

import codecs
import csv
import io
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa

from dataprep.boxes.annotations import SCHEMA, SIDES, without_extension
from dataprep.boxes.options import BoxOptions
from dataprep.errors import ConfigError

_KAGGLE = ["ImageId", "PredictionString"]
_PLAIN = ("filename", *SIDES, "label")


def parse_boxes(data: bytes, options: BoxOptions, name: str) -> pa.Table:
    """The annotations in a CSV file, boxes in the order of its lines.

    Raises:
        ConfigError: a column is missing or a line is no box; it names the line.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    first = _first_line(data)
    if first == _KAGGLE:
        return _grouped(_of_kaggle(_read(data, 0, name), name), "pixels", name)
    if _has_header(first):
        table = _read(data, 0, name)
        names = {key: _latin(column) for key, column in options.columns.model_dump().items()}
        wanted = {names[key]: key for key in _PLAIN if key != "label" or names[key] in table}
        if missing := [column for column in wanted if column not in table]:
            raise ConfigError(
                f"{name} has no column {', '.join(repr(_text(column)) for column in missing)}: it "
                f"has {', '.join(repr(_text(column)) for column in table.columns)}; name them by "
                "boxes.columns"
            )
        table = table[list(wanted)].rename(columns=wanted)
        return _grouped(table, options.units, name, first_line=2)
    table = _read(data, None, name)
    if table.shape[1] not in (5, 6):
        raise ConfigError(
            f"{name} has {table.shape[1]} columns and no header: five or six are expected, "
            "filename,xmin,ymin,xmax,ymax[,label]"
        )
    table.columns = pd.Index(_PLAIN[: table.shape[1]])
    return _grouped(table, options.units, name)


def _first_line(data: bytes) -> list[str]:
    line = io.BytesIO(data).readline().decode("utf-8", "replace")
    try:
        return [value.strip() for value in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _has_header(first: list[str]) -> bool:
    """Whether a line has words where boxes have numbers."""
    return not any(_is_number(value) for value in first[1:5])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(data: bytes, header: int | None, name: str) -> pd.DataFrame:
    try:
        return pd.read_csv(
            io.BytesIO(data),
            header=header,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            encoding="latin-1",  # a character a byte, since names may be in any encoding
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise ConfigError(
            f"{name}: not a CSV file of boxes: {' '.join(str(error).split())}"
        ) from None


def _of_kaggle(table: pd.DataFrame, name: str) -> pd.DataFrame:
    tokens = [text.split() for text in table["PredictionString"]]
    counts = np.array([len(boxes) for boxes in tokens], np.int64)
    if (wrong := np.flatnonzero(counts % 5)).size:
        _refuse(name, int(wrong[0]) + 2, "no fives of synset and sides in pixels")
    flat = np.array([token for boxes in tokens for token in boxes], dtype=object).reshape(-1, 5)
    images = np.repeat(table["ImageId"].to_numpy(object), counts // 5)
    columns = {"filename": images, "label": flat[:, 0]}
    return pd.DataFrame({**columns, **{side: flat[:, i + 1] for i, side in enumerate(SIDES)}})


def _grouped(table: pd.DataFrame, units: str, name: str, first_line: int = 1) -> pa.Table:
    """One row an image, in the order in which images first occur."""
    sides = np.empty((len(table), 4), np.float32)
    for i, side in enumerate(SIDES):
        numbers = pd.to_numeric(table[side], errors="coerce").to_numpy(np.float64)
        if (wrong := np.flatnonzero(~(np.abs(numbers) < 2**24))).size:
            line = int(wrong[0])
            _refuse(name, line + first_line, f"{side} is {table[side].iloc[line]!r}, not a number")
        sides[:, i] = numbers
    if units == "relative" and len(sides) and float(np.median(sides[:, 2:])) > 1.5:
        raise ConfigError(
            f"{name}: its boxes look like pixels, not like shares of the image: give "
            "boxes.units=pixels"
        )
    codes, keys = pd.factorize(table["filename"].map(without_extension))
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(keys)))])
    labels = table["label"].str.strip() if "label" in table else pd.Series([""] * len(table))
    size = np.full(len(keys), 1 if units == "relative" else 0, np.int32)

    def lists(values: Any) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)

    return pa.Table.from_arrays(
        [
            pa.array([key.encode("latin-1") for key in keys], pa.binary()),
            pa.array(size),
            pa.array(size),
            *(lists(pa.array(np.ascontiguousarray(sides[order, i]))) for i in range(4)),
            lists(pa.array([_text(text) for text in labels.to_numpy(object)[order]], pa.string())),
            pa.nulls(len(keys), pa.string()),
        ],
        schema=SCHEMA,
    )


def _latin(text: str) -> str:
    """As ``_read`` has it: a character for each byte."""
    return text.encode().decode("latin-1")


def _text(latin: str) -> str:
    return latin.encode("latin-1").decode("utf-8", "backslashreplace")


def _refuse(name: str, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{name}, line {line:,}: {problem}")
