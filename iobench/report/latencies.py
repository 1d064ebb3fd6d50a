"""PURE. Tables of latencies on the page: of steps, and of requests to a store."""

from __future__ import annotations

from dataprep.message_text import counted
from iobench.analysis.repeats import Repeats, by_settings, median_of
from iobench.report.tables import Table
from iobench.results.numbers import duration, number
from iobench.results.result import Result
from iobench.results.statistics import QUANTILES, missing_values
from iobench.results.wording import params_words

_SHOWN_QUANTILES = ("p50", "p90", "p99")
"""The quantiles in the columns of the tables; ``p50`` is the median."""


def tables(result: Result) -> list[Table]:
    """The tables of steps, of the GETs of loops and loaders, and of the requests of the probe."""
    return [_steps(result), _gets(result), _requests(result)]


def _steps(result: Result) -> Table:
    """A row for each setting of a training loop, with the quantiles of its steps."""
    rows = []
    for params, repeats in by_settings(result.trials, "train"):
        if median_of(repeats, "step_s_p50") is None:
            continue
        steps = _min_steps(repeats)
        cells = [
            _quantile_cell(repeats, f"step_s_{name}", name, steps, "step")
            for name in _SHOWN_QUANTILES
        ]
        steps_text = number(steps) if steps is not None else ""
        rows.append([str(params.get("group")), str(params.get("input")), steps_text, *cells])
    note = (
        "The latencies are medians over repeats. The number of steps is the minimum over repeats, "
        "without the first step of each epoch. Set training.steps to measure more steps."
    )
    columns = ("loop", "input", "steps", "median", "p90", "p99")
    return Table("Steps", columns, rows, note)


def _min_steps(repeats: Repeats) -> int | None:
    """The smallest number of steps in a repeat, without the first step of each epoch.

    It is None if no repeat has a number of steps. The steps that count in a steady state include no
    first step.
    """
    counts = []
    for trial in repeats:
        steps = trial.metrics.get("batches")
        if steps is None:
            continue
        first_steps = 0
        if trial.metrics.get("rate_rule") == "epochs":
            first_steps = len(trial.metrics.get("epochs") or ())
        counts.append(int(steps) - first_steps)
    return min(counts) if counts else None


def _quantile_cell(repeats: Repeats, metric: str, name: str, count: int | None, unit: str) -> str:
    """The cell of a quantile: its value, or how many more steps or requests it needs.

    The cell is empty if neither is known.

    Args:
        repeats: the trials.
        metric: the name of the quantile's metric, which is in seconds.
        name: the quantile, such as ``p99``.
        count: the number of measured steps or requests; None if unknown.
        unit: ``step`` or ``request``.
    """
    quantile_s = median_of(repeats, metric)
    if quantile_s is not None:
        return duration(quantile_s)
    missing = missing_values(count, QUANTILES[name]) if count is not None else 0
    return f"needs {counted(missing, f'more {unit}')}" if missing else ""


def _gets(result: Result) -> Table:
    """A row for each loop and loader that counted its GET requests, with their mean times."""
    rows = []
    for kind in ("train", "loader"):
        for params, repeats in by_settings(result.trials, kind):
            first_byte_s = median_of(repeats, "store_first_byte_s")
            request_s = median_of(repeats, "store_get_s")
            requests = median_of(repeats, "store_requests")
            if first_byte_s is not None and request_s is not None and requests is not None:
                cells = [number(requests), duration(first_byte_s), duration(request_s)]
                rows.append([params_words(kind, params), *cells])
    columns = (
        "loop or loader",
        "GET requests",
        "mean time to the first byte",
        "mean time of a request",
    )
    return Table("Requests of loops and loaders to the store", columns, rows)


def _requests(result: Result) -> Table:
    """A row for each setting of the object-store probe, with the quantiles of its requests."""
    rows = []
    for params, repeats in by_settings(result.trials, "object"):
        requests = median_of(repeats, "requests")
        count = round(requests) if requests is not None else None
        cells = []
        for metric in ("first_byte_s", "total_s"):
            is_measured = median_of(repeats, f"{metric}_p50") is not None
            for name in _SHOWN_QUANTILES:
                cell = _quantile_cell(repeats, f"{metric}_{name}", name, count, "request")
                cells.append(cell if is_measured else "")
        if any(cells):
            requests_text = number(requests) if requests is not None else ""
            rows.append([params_words("object", params), requests_text, *cells])
    columns = (
        "request",
        "requests",
        "time to the first byte, median",
        "p90",
        "p99",
        "time of a request, median",
        "p90",
        "p99",
    )
    note = (
        "Medians over repeats. The time of a request is from the call to the last byte, retries "
        "included."
    )
    return Table("Requests of the object-store probe", columns, rows, note)
