"""PURE. What loaders take for the rate that they give: memory and processor time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from iobench.report.model.cells import Cell, cells
from iobench.report.model.numbers import between, number
from iobench.report.model.params import joined, varying
from iobench.report.model.shapes import Entry, Table
from iobench.result import Result

_APART = ("loader", "data", "cache")
_FIGURES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("memory_bytes", "memory, MB", lambda value: number(value / 1e6)),
    ("cpu_s_per_1000_samples", "CPU s per 1,000 samples", number),
    ("cores_busy", "cores busy", number),
)
USE = tuple(words for _, words, _ in _FIGURES)
"""Columns of ``use_of``."""


def is_known(measured: Iterable[Cell]) -> bool:
    """Whether any of them has such a figure: earlier versions and short trials have none."""
    return any(cell.figure(metric) for cell in measured for metric, _, _ in _FIGURES)


def use_of(cell: Cell) -> tuple[Entry, ...]:
    """Memory, processor time, cores kept busy; empty where it was not measured."""
    counted = {trial.metrics.get("memory_counted") for trial in cell.trials} - {None, "PSS"}
    entries = []
    for metric, _, say in _FIGURES:
        found = cell.figure(metric)
        if found is None:
            entries.append(Entry(""))
            continue
        by = ", ".join(map(str, counted)) if metric == "memory_bytes" else ""
        note = "; ".join(filter(None, (by, between(found, say))))
        entries.append(Entry(say(found.median), repr(found.median), True, note))
    return tuple(entries)


def memory_words(cell: Cell) -> str:
    """``412 MB``; empty where it was not measured."""
    found = cell.figure("memory_bytes")
    return f"{number(found.median / 1e6)} MB" if found else ""


def use_table(result: Result) -> tuple[Table, ...]:
    """Every loader with every setting; empty of runs that did not measure it."""
    measured = [cell for cell in cells(result.trials, "loader") if cell.figure("samples_per_s")]
    if not is_known(measured):
        return ()
    differ = [key for key in varying([cell.params for cell in measured])[0] if key not in _APART]
    columns = ("loader", "data", "cache shown", "settings", "samples/s", *USE)
    rows = tuple(_row(cell, differ) for cell in measured)
    return (Table("What loaders take of memory and processors", columns, rows, folded=True),)


def _row(cell: Cell, differ: Sequence[str]) -> tuple[Entry, ...]:
    rate = cell.figure("samples_per_s")
    assert rate is not None  # noqa: S101  only such cells are listed
    return (
        Entry(str(cell.params.get("loader", ""))),
        Entry(str(cell.params.get("data", ""))),
        cell.cache_entry,
        Entry(joined(cell.params, differ)),
        Entry(number(rate.median), repr(rate.median), True, between(rate)),
        *use_of(cell),
    )
