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
from numpy.typing import NDArray

from dataprep.boxes.annotations import SCHEMA, SIDES, without_extension
from dataprep.boxes.options import BoxOptions
from dataprep.errors import ConfigError

_KAGGLE = ["ImageId", "PredictionString"]
_PLAIN = ("filename", *SIDES, "label")
_SIZE = ["width", "height"]
_OTHER_SEPARATORS = ";\t|"


def parse_boxes(data: bytes, options: BoxOptions, name: str) -> pa.Table:
    """The annotations in a CSV file, boxes in the order of its lines.

    Raises:
        ConfigError: a column is missing or stands twice, or a line is no box; it names the line.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    first = _first_line(data)
    if len(first) == 1 and any(separator in first[0] for separator in _OTHER_SEPARATORS):
        raise ConfigError(f"{name} is not separated by commas: its first line is {first[0]!r}")
    if first == _KAGGLE:
        return _grouped(_of_kaggle(_with_header(_read(data, name)), name), "pixels", name)
    if _has_header(first):
        table = _with_header(_read(data, name))
        names = {key: _latin(column) for key, column in options.columns.model_dump().items()}
        wanted = {names[key]: key for key in _PLAIN if key != "label" or names[key] in table}
        if missing := [column for column in wanted if column not in table]:
            raise ConfigError(
                f"{name} has no column {', '.join(repr(_text(column)) for column in missing)}: it "
                f"has {', '.join(repr(_text(column)) for column in table.columns)}; name them by "
                "boxes.columns"
            )
        told = _SIZE if options.units == "pixels" and {*_SIZE} <= {*table.columns} else []
        table = table[[*wanted, *told]].rename(columns=wanted)
        if not table.columns.is_unique:
            raise ConfigError(f"{name} has two columns of one name: {', '.join(first)}")
        return _grouped(table, options.units, name)
    table = _read(data, name)
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


def _read(data: bytes, name: str) -> pd.DataFrame:
    """All lines but blank ones, which are not missing in the index."""
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            header=None,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            encoding="latin-1",  # a character a byte, since names may be in any encoding
        ).fillna("")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise ConfigError(
            f"{name}: not a CSV file of boxes: {' '.join(str(error).split())}"
        ) from None
    table = table[(table != "").any(axis=1)]
    if table.empty:
        raise ConfigError(f"{name}: not a CSV file of boxes: it has blank lines only")
    return table


def _with_header(table: pd.DataFrame) -> pd.DataFrame:
    names = [value.strip() for value in table.iloc[0]]
    return table.iloc[1:].set_axis(names, axis=1)


def _of_kaggle(table: pd.DataFrame, name: str) -> pd.DataFrame:
    tokens = [text.split() for text in table["PredictionString"]]
    counts = np.array([len(boxes) for boxes in tokens], np.int64)
    if (wrong := np.flatnonzero(counts % 5)).size:
        _refuse(name, table.index[wrong[0]] + 1, "no fives of synset and sides in pixels")
    flat = np.array([token for boxes in tokens for token in boxes], dtype=object).reshape(-1, 5)
    images = np.repeat(table["ImageId"].to_numpy(object), counts // 5)
    columns = {"filename": images, "label": flat[:, 0]}
    sides = {side: flat[:, i + 1] for i, side in enumerate(SIDES)}
    return pd.DataFrame({**columns, **sides}, index=np.repeat(table.index, counts // 5))


def _grouped(table: pd.DataFrame, units: str, name: str) -> pa.Table:
    """One row an image, in the order in which images first occur."""
    sides = np.stack([_numbers(table, side, name) for side in SIDES], axis=1).astype(np.float32)
    if units == "relative" and len(sides) and float(np.median(sides[:, 2:])) > 1.5:
        raise ConfigError(
            f"{name}: its boxes look like pixels, not like shares of the image: give "
            "boxes.units=pixels"
        )
    codes, keys = pd.factorize(table["filename"].map(without_extension))
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(keys)))])
    labels = table["label"].str.strip() if "label" in table else pd.Series([""] * len(table))
    sizes = _sizes(table, units, codes, len(keys), name)

    def lists(values: Any) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values)

    return pa.Table.from_arrays(
        [
            pa.array([key.encode("latin-1") for key in keys], pa.binary()),
            *(pa.array(size) for size in sizes),
            *(lists(pa.array(np.ascontiguousarray(sides[order, i]))) for i in range(4)),
            lists(pa.array([_text(text) for text in labels.to_numpy(object)[order]], pa.string())),
            pa.nulls(len(keys), pa.string()),
        ],
        schema=SCHEMA,
    )


def _numbers(table: pd.DataFrame, column: str, name: str) -> NDArray[np.float64]:
    numbers = pd.to_numeric(table[column], errors="coerce").to_numpy(np.float64)
    if (wrong := np.flatnonzero(~(np.abs(numbers) < 2**24))).size:
        said = table[column].iloc[wrong[0]]
        _refuse(name, table.index[wrong[0]] + 1, f"{column} is {said!r}, not a number")
    return numbers


def _sizes(
    table: pd.DataFrame, units: str, codes: NDArray[np.intp], images: int, name: str
) -> list[NDArray[np.int32]]:
    """Width and height of the image that its boxes were drawn on, 0 where that is not told."""
    if not {*_SIZE} <= {*table.columns}:
        return [np.full(images, 1 if units == "relative" else 0, np.int32)] * 2
    sizes = []
    for side in _SIZE:
        told = _numbers(table, side, name).astype(np.int32)
        size = np.zeros(images, np.int32)
        size[codes[::-1]] = told[::-1]
        if (wrong := np.flatnonzero((size[codes] != told) | (told < 1))).size:
            line = table.index[wrong[0]] + 1
            _refuse(
                name, line, f"{side} is {told[wrong[0]]}, that of its image {size[codes[wrong[0]]]}"
            )
        sizes.append(size)
    return sizes


def _latin(text: str) -> str:
    """As ``_read`` has it: a character for each byte."""
    return text.encode().decode("latin-1")


def _text(latin: str) -> str:
    return latin.encode("latin-1").decode("utf-8", "backslashreplace")


def _refuse(name: str, line: int, problem: str) -> NoReturn:
    raise ConfigError(f"{name}, line {line:,}: {problem}")
