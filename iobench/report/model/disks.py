"""PURE. What disks give: every point with its latency."""

from __future__ import annotations

from collections.abc import Mapping

from iobench.report.model.cells import Cell, cells
from iobench.report.model.numbers import between, number, size
from iobench.report.model.shapes import Entry, Table
from iobench.report.model.targets import target_names
from iobench.result import Result

_SECONDS = {f"latency_s_{q}": f"latency {q}, ms" for q in ("p50", "p90", "p99", "p999")}


def disk_table(result: Result) -> tuple[Table, ...]:
    """A row a point; empty without disk trials."""
    measured = [cell for cell in cells(result.trials, "disk") if cell.figure("mb_per_s")]
    if not measured:
        return ()
    present = [key for key in _SECONDS if any(cell.figure(key) for cell in measured)]
    engines = any("engine" in cell.params for cell in measured)
    columns = (
        *(("engine",) if engines else ()),
        *("target", "operation", "pattern", "block", "in parallel", "cache shown"),
        *("MB/s", "operations/s", *(_SECONDS[key] for key in present), "repeats"),
    )
    names = target_names(result.environment)
    rows = tuple(
        ((Entry(str(cell.params.get("engine", "iobench"))),) if engines else ())
        + _row(cell, present, names)
        for cell in measured
    )
    return (Table("Throughput and latency", columns, rows, folded=len(rows) > 12),)


def _row(cell: Cell, keys: list[str], names: Mapping[str, str]) -> tuple[Entry, ...]:
    params = cell.params
    block, target = params.get("block_bytes"), str(params.get("target", ""))
    return (
        Entry(target, note=names.get(target, "")),
        *(Entry(str(params.get(key, ""))) for key in ("operation", "pattern")),
        Entry(size(block), str(block), True) if isinstance(block, int) else Entry(""),
        Entry(str(params.get("parallelism", "")), is_number=True),
        cell.cache_entry,
        _figure(cell, "mb_per_s", noted=True),
        _figure(cell, "iops"),
        *(_figure(cell, key, scale=1000) for key in keys),
        Entry(str(len(cell.trials)), is_number=True),
    )


def _figure(cell: Cell, key: str, scale: float = 1, *, noted: bool = False) -> Entry:
    found = cell.figure(key)
    if found is None:
        return Entry("")
    value = found.median * scale
    return Entry(number(value), repr(value), True, between(found) if noted else "")
