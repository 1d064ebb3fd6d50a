"""PURE. Access modes side by side: what each took to begin, gave later, and needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iobench.report.model.numbers import as_estimate, between, number, seconds, size
from iobench.report.model.params import joined
from iobench.report.model.shapes import Entry, Section, Table, Words
from iobench.result import Result
from iobench.summary.access import access_modes, sentences, telling

_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("time_to_first_batch_s", "first batch", seconds),
    ("first_epoch_s", "first epoch", seconds),
    ("steady_samples_per_s", "steady rate, samples/s", number),
    ("disk_needed_bytes", "disk needed", size),
    ("memory_needed_bytes", "memory needed", size),
    ("shuffle_buffer_bytes", "shuffle buffers", size),
    ("store_read_bytes", "from the store", size),
)
_SETTINGS = ("group", "loader")
_NOTES = (
    "First epoch: from asking for it to its last batch, a download included. Steady rate: of all "
    "later whole epochs; where none was seen, of the steps that count, marked so.",
    "Disk needed: blocks of the files that the mode itself writes. Memory needed: the most that "
    "the trial’s processes came to hold above what they held before the first epoch, anonymous "
    "pages and shared memory by proportional set size; the page cache is no part of it, "
    "shuffle buffers are. From the store: bodies of GETs, of all epochs of the trial.",
)


def section(result: Result) -> Section | None:
    """A sentence, the table, what its columns mean; none where no mode was measured."""
    entries = access_modes(result.trials)
    if not entries:
        return None
    used = [column for column in _COLUMNS if any(_measured(e, column[0]) for e in entries)]
    told = dict.fromkeys((*_SETTINGS, *telling(entries)))
    rows = tuple(
        (
            Entry(str(entry["access"]), note=joined(entry, told)),
            Entry(str(entry.get("label") or "")),
            *(_cell(entry, key, say) for key, _, say in used),
            _memory(entry),
        )
        for entry in entries
    )
    columns = ("mode", "cache shown", *(words for _, words, _ in used), "data ÷ memory")
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
    note = ", ".join(filter(None, (interval, mark, _requests(entry, key))))
    return Entry(say(found.median), repr(found.median), True, note)


def _requests(entry: Mapping[str, Any], key: str) -> str:
    """How many requests brought the bytes from a store."""
    found = as_estimate(entry["store_requests"]) if key == "store_read_bytes" else None
    return f"{number(found.median)} GETs" if found is not None else ""


def _memory(entry: Mapping[str, Any]) -> Entry:
    """The size of the data beside the memory that there is for it."""
    data, limit = as_estimate(entry["data_bytes"]), as_estimate(entry["memory_limit_bytes"])
    if data is None or limit is None or limit.median <= 0:
        return Entry("unknown")
    share = data.median / limit.median
    note = "fits" if share < 1 else "does not fit"
    if entry["cache_resident"]:
        note += ", cache-resident"
    return Entry(number(share), repr(share), True, note)
