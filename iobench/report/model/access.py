"""PURE. Access modes side by side: what each took to begin, gave later, and needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iobench.report.model.numbers import as_estimate, between, number, seconds, size
from iobench.report.model.params import joined
from iobench.report.model.shapes import Entry, Section, Table, Words
from iobench.result import Result
from iobench.summary.access import access_modes, sentences

_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("time_to_first_batch_s", "first batch", seconds),
    ("first_epoch_s", "first epoch", seconds),
    ("steady_samples_per_s", "steady rate, samples/s", number),
    ("disk_needed_bytes", "disk needed", size),
    ("memory_needed_bytes", "memory needed", size),
    ("store_read_bytes", "from the store", size),
)
_BESIDE: Mapping[str, tuple[str, str, Callable[[float], str]]] = {
    "memory_needed_bytes": ("shuffle_buffer_bytes", "{} in shuffle buffers", size),
    "store_read_bytes": ("store_requests", "{} GETs", number),
}
_SETTINGS = ("group", "loader", "data", "workers", "connections", "shuffle_buffer")
_NOTES = (
    "First epoch: from asking for it to its last batch, a download included. Steady rate: of all "
    "later whole epochs; where none was seen, of the steps that count, marked so.",
    "Disk needed: blocks of the files that the mode itself writes. Memory needed: the most that "
    "the trial’s processes came to hold above what they held before the first epoch, anonymous "
    "pages and shared memory by proportional set size; the page cache is no part of it. "
    "From the store: bodies of GETs, of all epochs of the trial.",
)


def section(result: Result) -> Section | None:
    """A sentence, the table, what its columns mean; none where no mode was measured."""
    entries = access_modes(result.trials)
    if not entries:
        return None
    used = [column for column in _COLUMNS if any(_measured(e, column[0]) for e in entries)]
    rows = tuple(
        (
            Entry(str(entry["access"]), note=joined(entry, _SETTINGS)),
            *(_cell(entry, key, say) for key, _, say in used),
            _memory(entry),
        )
        for entry in entries
    )
    columns = ("mode", *(words for _, words, _ in used), "data ÷ memory")
    said = tuple(sentences(entries))
    opening = (Words(said),) if said else ()
    return Section(
        "access",
        "Access modes",
        (*opening, Table("Modes side by side", columns, rows), Words(_NOTES)),
    )


def _measured(entry: Mapping[str, Any], key: str) -> bool:
    return bool(entry.get(key)) or (key == "steady_samples_per_s" and bool(entry["samples_per_s"]))


def _cell(entry: Mapping[str, Any], key: str, say: Callable[[float], str]) -> Entry:
    found, mark = as_estimate(entry.get(key)), ""
    if found is None and key == "steady_samples_per_s":
        found, mark = as_estimate(entry["samples_per_s"]), "within the first epoch"
    if found is None:
        return Entry("")
    interval = between(found, say) if found.low < found.high else ""
    note = ", ".join(filter(None, (interval, mark, _beside(entry, key))))
    return Entry(say(found.median), repr(found.median), True, note)


def _beside(entry: Mapping[str, Any], key: str) -> str:
    """Another figure that belongs to this one; nothing where there is none."""
    if key not in _BESIDE:
        return ""
    name, words, say = _BESIDE[key]
    found = as_estimate(entry.get(name))
    return words.format(say(found.median)) if found is not None and found.median > 0 else ""


def _memory(entry: Mapping[str, Any]) -> Entry:
    """The size of the data beside the memory that there is for it."""
    data, limit = as_estimate(entry["data_bytes"]), as_estimate(entry["memory_limit_bytes"])
    if data is None or limit is None or limit.median <= 0:
        return Entry("unknown")
    share = data.median / limit.median
    note = "fits in memory" if share < 1 else "larger than memory"
    if entry["cache_resident"]:
        note += ", cache-resident"
    return Entry(number(share), repr(share), True, note)
