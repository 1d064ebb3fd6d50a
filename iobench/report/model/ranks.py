"""PURE. The ranks of a loop on several devices, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from iobench.diagnosis.ranks import by_rank
from iobench.report.model.cells import Cell, cells
from iobench.report.model.numbers import percent, seconds
from iobench.report.model.shapes import Entry, Table
from iobench.result import Result

_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("rank_wait_s", "waiting, of a step", seconds),
    ("rank_wait_share", "share of time waiting", percent),
    ("rank_step_s", "step", seconds),
    ("rank_compute_s", "computing, of a step", seconds),
    ("rank_au_mlperf", "au_mlperf", percent),
)
_MOST_OPEN = 12


def table(result: Result) -> Table | None:
    """A row a rank of each loop and input, its means as medians over repeats; None without any."""
    several = [
        cell
        for cell in cells(result.trials, "train")
        if any(trial.metrics.get("rank_wait_s") for trial in cell.trials)
    ]
    rows = tuple(row for cell in several for row in _rows(cell))
    if not rows:
        return None
    columns = ("loop", "input", "cache", "rank", *(words for _, words, _ in _COLUMNS))
    title = "Ranks: means of a step, medians over repeats"
    return Table(title, columns, rows, folded=len(rows) > _MOST_OPEN)


def _rows(cell: Cell) -> Iterator[tuple[Entry, ...]]:
    columns = [(by_rank(cell.trials, key), say) for key, _, say in _COLUMNS]
    for rank in range(len(columns[0][0])):
        yield (
            Entry(str(cell.params.get("group", ""))),
            Entry(str(cell.params.get("input", ""))),
            cell.cache_entry,
            Entry(str(rank), is_number=True),
            *(_entry(values, rank, say) for values, say in columns),
        )


def _entry(values: Sequence[float], rank: int, say: Callable[[float], str]) -> Entry:
    if rank >= len(values):
        return Entry("")
    return Entry(say(values[rank]), repr(values[rank]), True)
