"""PURE. Several processes on this machine, and a cluster on paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iobench.report.model.numbers import as_estimate, between, number, percent
from iobench.report.model.params import joined, varying
from iobench.report.model.shapes import Block, Entry, Section, Table, Words
from iobench.result import Result
from iobench.scale.words import demand, streams, verdict

_NOTE = (
    "Efficiency: the rate of n processes together ÷ n times the rate of one, of repeats that ran "
    "in the same round; n processes have n times the workers. Evenness: the slowest process’ rate "
    "÷ the fastest one’s."
)


def section(result: Result) -> Section | None:
    """Processes side by side as measured; then a cluster, where one was asked for."""
    blocks: tuple[Block, ...] = (*_processes(result), *_cluster(result))
    return Section("scale", "More processes, more machines", blocks) if blocks else None


def _processes(result: Result) -> Iterator[Block]:
    stored = result.summary.get("processes") or ()
    entries = [entry for entry in stored if as_estimate(entry.get("samples_per_s"))]
    if not entries:
        return
    differ, alike = varying(entries)
    told = [key for key in differ if key in _settings(entries)]
    said = joined(entries[0], [key for key in alike if key in _settings(entries)])
    rows = tuple(
        (
            Entry(str(entry["processes"]), is_number=True),
            Entry(joined(entry, told) or str(entry.get("loader", ""))),
            _cell(entry, "samples_per_s"),
            _cell(entry, "efficiency", share=True),
            _cell(entry, "evenness", share=True),
        )
        for entry in entries
    )
    columns = ("processes", "setting", "together, samples/s", "efficiency", "evenness")
    yield Table("Loader processes at once, as ranks on this machine", columns, rows)
    yield Words((*([f"All with {said}."] if said else []), _NOTE))


def _settings(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys that are params, in their order."""
    figures = {"processes", "samples_per_s", "mb_per_s", "efficiency", "evenness"}
    return [key for key in entries[0] if key not in figures]


def _cell(entry: Mapping[str, Any], key: str, *, share: bool = False) -> Entry:
    found = as_estimate(entry.get(key))
    if found is None:
        return Entry("", is_number=True)
    say = percent if share else number
    note = between(found, say) if found.low < found.high else ""
    return Entry(say(found.median), repr(found.median), True, note)


def _cluster(result: Result) -> Iterator[Block]:
    found = result.summary.get("scale")
    if not isinstance(found, Mapping):
        return
    if "parts" not in found:
        unknown = ("A cluster on paper: not to be told.", *map(str, found.get("unknown") or ()))
        yield Words(unknown)
        return
    said = [demand(found), *(verdict(found, way) for way in found["ways"]), streams(found)]
    yield Words(tuple(line for line in said if line))
    rows = tuple(
        (
            Entry(str(part["part"]), note=str(part["basis"])),
            Entry(number(part["samples_per_s"]), repr(part["samples_per_s"]), True),
            Entry(number(part["devices_fed"]), repr(part["devices_fed"]), True),
            Entry(number(part["hosts"]), repr(part["hosts"]), True),
        )
        for part in found["parts"]
    )
    columns = ("part of a host", "gives, samples/s", "devices fed", "hosts for all devices")
    yield Table(f"A cluster of {found['devices']:,} devices, on paper", columns, rows)
    rests = [*found["assumptions"], *(f"unknown: {line}" for line in found["unknown"])]
    yield Words(("What this rests on:",))
    yield Words(tuple(str(line) for line in rests), listed=True)
