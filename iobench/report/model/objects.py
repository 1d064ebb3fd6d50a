"""PURE. Object stores: clients side by side, where 95 % of the peak begins, the first byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.report.model.cells import Cell, cells
from iobench.report.model.numbers import between, is_number, number, size
from iobench.report.model.shapes import Entry, Table, Words
from iobench.result import Result
from iobench.stats import Estimate

UNSEEN = "server cache unknown"


def peaks(result: Result) -> tuple[Words, ...]:
    """Which object size and how many streams reach 95 % of the peak, in words."""
    lines = []
    for stored in result.summary.get("object_stores") or ():
        if not isinstance(stored, Mapping) or not is_number(stored.get("peak_mb_per_s")):
            continue
        client, operation, store = (
            str(stored.get(key, "")) for key in ("client", "operation", "store")
        )
        line = f"{client}, {operation.replace('_', ' ')} at {store}: "
        line += f"peak {number(stored['peak_mb_per_s'])} MB/s"
        line += f" ({UNSEEN})" if "get" in operation else ""
        if stored.get("said"):
            lines.append(f"{line}; {stored['said']}.")
            continue
        reached = []
        if is_number(stored.get("object_bytes_95")):
            reached.append(f"objects of {size(stored['object_bytes_95'])}")
        if is_number(stored.get("connections_95")):
            count = stored["connections_95"]
            reached.append(f"{number(count)} connection{'s' * (count != 1)}")
        if reached:
            line += f"; 95 % of it is reached from {' and '.join(reached)} on"
        lines.append(line + ".")
    return (Words(tuple(lines), listed=True),) if lines else ()


def clients(result: Result) -> tuple[Table, ...]:
    """What each client reaches, with how many connections, and what of the processor it takes."""
    stored = [
        entry
        for entry in result.summary.get("object_stores") or ()
        if isinstance(entry, Mapping) and isinstance(entry.get("mb_per_s"), Mapping)
    ]
    if not stored:
        return ()
    first = {(entry["store"], entry["operation"]): n for n, entry in reversed([*enumerate(stored)])}
    stored.sort(
        key=lambda entry: (
            first[entry["store"], entry["operation"]],
            -float(entry["mb_per_s"]["median"]),
        )
    )
    columns = (
        *("store", "operation", "client", "peak, MB/s", "cache", "of objects", "over connections"),
        *("95 % from connections", "processor, s/GB"),
    )
    return (Table("Clients side by side", columns, tuple(map(_client_row, stored))),)


def _client_row(entry: Mapping[str, Any]) -> tuple[Entry, ...]:
    enough = entry.get("connections_95")
    return (
        *(Entry(str(entry.get(key, ""))) for key in ("store", "operation", "client")),
        _interval(entry["mb_per_s"]),
        _cache(entry.get("operation")),
        Entry(size(entry["object_bytes"]), str(entry["object_bytes"]), True),
        Entry(str(entry["connections"]), is_number=True),
        Entry(str(enough) if enough is not None else "still rising", is_number=enough is not None),
        _interval(entry.get("cpu_s_per_gb")),
    )


def _cache(operation: Any) -> Entry:
    """What is read may come from a cache of the store's; writes have none to come from."""
    return Entry(UNSEEN if "get" in str(operation) else "")


def _interval(found: Mapping[str, Any] | None) -> Entry:
    if not found:
        return Entry("not measured")
    told = Estimate(**found)
    return Entry(number(told.median), repr(told.median), True, between(told))


def first_bytes(result: Result) -> tuple[Table, ...]:
    """Time to the first byte apart from the body's, with errors and retries."""
    measured = [
        cell
        for cell in cells(result.trials, "object")
        if cell.figure("first_byte_s_p50") or cell.figure("body_s_p50")
    ]
    if not measured:
        return ()
    quantiles = ("p50", "p90", "p99")
    keys = [
        (f"{part}_s_{q}", f"{words} {q}, ms")
        for part, words in (("first_byte", "first byte"), ("body", "body"))
        for q in quantiles
        if any(cell.figure(f"{part}_s_{q}") for cell in measured)
    ]
    rows = tuple(_latency_row(cell, [key for key, _ in keys]) for cell in measured)
    columns = (
        "store",
        "client",
        "operation",
        "object",
        "connections",
        "cache",
        "MB/s",
        *(words for _, words in keys),
        "retries",
        "errors",
        "repeats",
    )
    return (Table("First byte and body", columns, rows, folded=len(rows) > 12),)


def _latency_row(cell: Cell, keys: Sequence[str]) -> tuple[Entry, ...]:
    params = cell.params
    rate = cell.figure("mb_per_s")
    errors: dict[str, int] = {}
    for trial in cell.trials:
        for status, count in (trial.metrics.get("errors") or {}).items():
            errors[str(status)] = errors.get(str(status), 0) + int(count)
    retries = sum(int(trial.metrics.get("retries") or 0) for trial in cell.trials)
    times = [cell.figure(key) for key in keys]
    return (
        *(Entry(str(params.get(key, ""))) for key in ("store", "client", "operation")),
        Entry(size(params.get("object_bytes") or 0), str(params.get("object_bytes")), True),
        Entry(str(params.get("connections", "")), is_number=True),
        cell.cache_entry,
        Entry(number(rate.median), repr(rate.median), True) if rate else Entry(""),
        *(
            Entry(number(time.median * 1000), repr(time.median * 1000), True) if time else Entry("")
            for time in times
        ),
        Entry(str(retries), is_number=True),
        Entry(", ".join(f"{status}: {count}" for status, count in errors.items()) or "none"),
        Entry(str(len(cell.trials)), is_number=True),
    )
