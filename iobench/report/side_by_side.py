"""PURE. Tables that compare access modes, loader processes, emulated accelerators and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.summary_rows import access_rows, processes_rows
from iobench.report.tables import Table, estimate_cell
from iobench.results.numbers import duration, number, precise_percent, size, with_interval
from iobench.results.result import Result
from iobench.results.statistics import Estimate
from iobench.results.trial import Trial

_ACCESS_FIGURES: Sequence[tuple[str, str, Callable[[float], str]]] = (
    ("first epoch", "first_epoch_s", duration),
    ("samples/s in later epochs", "steady_samples_per_s", number),
    ("disk space", "disk_needed_bytes", size),
    ("memory", "memory_needed_bytes", size),
    ("requests to the store", "store_requests", number),
)
"""The columns of the table of access modes: the title, the metric, and how its value is written."""


def tables(analysis: Analysis, result: Result) -> Iterator[Table]:
    """The four tables. If nothing was measured for a table, it has no rows.

    Args:
        analysis: the analysis of the run.
        result: the result of the run, without the trials on fewer hosts.
    """
    yield _access_modes(result.trials)
    yield _loader_processes(result.trials)
    yield _accelerators(analysis.summary["accelerators"])
    yield _devices(analysis.summary["scaling"])


def _access_modes(trials: Sequence[Trial]) -> Table:
    """A row for each loader or loop that was measured with an access mode."""
    rows = []
    for row in access_rows(trials):
        params = row.params
        cells = [
            f"{params['access']}, {params['loader']}, {counted(params.get('workers', 0), 'worker')}"
        ]
        for _, metric, text_of in _ACCESS_FIGURES:
            cells.append(_interval_cell(row.figures.get(metric), text_of))
        rows.append(cells)
    titles = [title for title, _, _ in _ACCESS_FIGURES]
    return Table("Access modes", ("access mode", *titles), rows)


def _loader_processes(trials: Sequence[Trial]) -> Table:
    """A row for each number of processes of a loader that ran at the same time."""
    rows = []
    for row in processes_rows(trials):
        rate = _interval_cell(row.samples_per_s, number)
        efficiency = _interval_cell(row.efficiency, precise_percent)
        name = f"{row.params['loader']}, {row.params['data']}"
        rows.append([name, str(row.processes), rate, efficiency])
    columns = ("loader", "processes", "samples/s", "scaling efficiency")
    return Table("Loader processes", columns, rows)


def _accelerators(entries: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each setting and number of emulated accelerators that ran side by side.

    Args:
        entries: the ``accelerators`` of the summary.
    """
    rows = []
    for entry in entries:
        rates = [number(rate) for rate in entry["rank_samples_per_s"]]
        rows.append(
            [
                f"{entry['name']}, {entry['loader']}, {entry['source']}",
                str(entry["accelerators"]),
                number(entry["samples_per_s"]),
                ", ".join(rates),
                precise_percent(entry["au_mean"]),
                precise_percent(entry["au_slowest"]),
                _fed_words(entry),
            ]
        )
    columns = (
        "accelerator, loader, input",
        "accelerators",
        "samples/s of all",
        "samples/s of each",
        "mean utilisation",
        "utilisation of the slowest",
        "slowest at 90 % or more",
    )
    note = (
        "Each accelerator is simulated by a process that has its own loader and sleeps for each "
        "step."
    )
    return Table("Accelerators side by side", columns, rows, note)


def _fed_words(entry: Mapping[str, Any]) -> str:
    """Whether the slowest accelerator gets enough batches, and if not, why."""
    if entry["is_fed"]:
        return "yes"
    return f"no: {entry['limit'] or 'the cause is unknown'}"


def _devices(entries: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each number of devices that trained together.

    Args:
        entries: the ``scaling`` of the summary.
    """
    rows = []
    for entry in entries:
        rate = estimate_cell(entry["samples_per_s"], number)
        efficiency = estimate_cell(entry["efficiency"], precise_percent)
        name = f"{entry['model']}, {entry['input']}"
        rows.append([name, str(entry["devices"]), rate, efficiency])
    columns = ("loop", "devices", "samples/s", "scaling efficiency")
    note = "Published efficiencies: 97.5 % from 4 to 8 GPUs, 92 % at 64 GPUs, 90 % at 256 GPUs."
    return Table("Devices", columns, rows, note)


def _interval_cell(estimate: Estimate | None, text_of: Callable[[float], str]) -> str:
    """An estimate with its interval; empty if there is none."""
    return with_interval(estimate, text_of) if estimate is not None else ""
