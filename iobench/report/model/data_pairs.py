"""PURE. The same loader over the same images in two forms, as ratios of pairs.

What resizing beforehand brings, and what storing images decoded would bring.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.report.model.cells import Cell, cells
from iobench.report.model.numbers import between, number
from iobench.report.model.params import joined, varying
from iobench.report.model.shapes import Block, Entry, Table, Words
from iobench.result import Result
from iobench.stats import Estimate, ratio
from iobench.summary.points import in_pairs

_NAMED = ("loader", "data", "cache")


@dataclass(frozen=True, slots=True)
class _Question:
    """Two forms of data, by name without size and place; ``said`` is what a pair is."""

    title: str
    forms: Mapping[str, str]
    before: str
    after: str
    said: str


_RESIZED = _Question(
    "Resized beforehand",
    {"photos": "files", "originals": "shards"},
    "at access",
    "beforehand",
    "Each pair is one loader with the same settings over the source’s images as they are, cut and "
    "scaled when a sample is made, and over the same images resized beforehand{how}.",
)
_DECODED = _Question(
    "Compressed or decoded",
    {"shards": "pixels"},
    "compressed",
    "decoded",
    "Each pair is one loader with the same settings over the same shards, whose records hold a "
    "JPEG, or the pixels of it: more bytes, and nothing to decode.",
)
_RATIOS = (
    " Ratios are taken within rounds, in which both ran; above 1 the second form is the "
    "faster. kB are those of a sample, as stored."
)


def data_pairs(result: Result) -> tuple[Block, ...]:
    """A table for each question that the run answers, and what it compares."""
    data = result.config.get("data")
    settings: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    measured = [cell for cell in cells(result.trials, "loader") if cell.figure("samples_per_s")]
    blocks: list[Block] = []
    # Of shards that were given nobody knows what they were made of.
    if not settings.get("shards"):
        blocks += _answered(_RESIZED, measured, _how(settings))
    blocks += _answered(_DECODED, measured)
    return tuple(blocks)


def _how(settings: Mapping[str, Any]) -> str:
    if not settings.get("size"):
        return ""
    return f" to {settings['size']} pixels, quality {settings.get('quality', '')}"


def _answered(question: _Question, measured: Sequence[Cell], how: str = "") -> Iterator[Block]:
    found = {_key(cell.params, cell.cache): cell for cell in measured}
    pairs = []
    for cell in measured:
        partner = _partner(str(cell.params.get("data", "")), question.forms)
        other = found.get(_key({**cell.params, "data": partner}, cell.cache)) if partner else None
        if other is not None and (times := _times(other, cell)) is not None:
            pairs.append((cell, other, times))
    if not pairs:
        return
    differ = varying([cell.params for cell, _, _ in pairs])[0]
    settings = [key for key in differ if key not in _NAMED]
    before, after = question.before, question.after
    columns = (
        *("loader", before, after, "cache shown", *(("settings",) if settings else ())),
        *(f"samples/s {before}", f"samples/s {after}", "ratio"),
        *(f"kB {before}", f"kB {after}"),
    )
    rows = tuple(_row(*pair, settings) for pair in pairs)
    yield Words((question.said.format(how=how) + _RATIOS,))
    yield Table(question.title, columns, rows)


def _partner(name: str, forms: Mapping[str, str]) -> str:
    """``shards-16MB@disk`` for ``originals-16MB@disk``; empty where there is none."""
    form, at, place = name.partition("@")
    kind, dash, size = form.partition("-")
    return f"{forms[kind]}{dash}{size}{at}{place}" if kind in forms else ""


def _key(params: Mapping[str, Any], cache: str) -> str:
    return json.dumps([dict(params), cache], sort_keys=True, default=str)


def _times(cell: Cell, other: Cell) -> Estimate | None:
    pairs = [pair for pair in in_pairs(cell.trials, other.trials, "samples_per_s") if pair[1] > 0]
    return ratio([rate for rate, _ in pairs], [rate for _, rate in pairs]) if pairs else None


def _row(cell: Cell, other: Cell, times: Estimate, settings: Sequence[str]) -> tuple[Entry, ...]:
    return (
        Entry(str(cell.params.get("loader", ""))),
        Entry(str(cell.params.get("data", ""))),
        Entry(str(other.params.get("data", ""))),
        cell.cache_entry,
        *((Entry(joined(cell.params, settings)),) if settings else ()),
        _rate(cell),
        _rate(other),
        Entry(f"{number(times.median)} ×", repr(times.median), True, _rounds(times)),
        _sample_bytes(cell),
        _sample_bytes(other),
    )


def _rate(cell: Cell) -> Entry:
    found = cell.figure("samples_per_s")
    assert found is not None  # noqa: S101  only such cells are compared
    return Entry(number(found.median), repr(found.median), True, between(found))


def _sample_bytes(cell: Cell) -> Entry:
    """As stored, in kB: what ``mb_per_s`` is of."""
    rate, moved = cell.figure("samples_per_s"), cell.figure("mb_per_s")
    if rate is None or moved is None or rate.median <= 0:
        return Entry("")
    each = moved.median * 1000 / rate.median
    return Entry(number(each), repr(each), True)


def _rounds(times: Estimate) -> str:
    """The interval, and of how many pairs."""
    if times.repeats <= 1:
        return "1 round, no interval"
    return f"{between(times)}, {times.repeats} rounds"
