"""PURE. Tails on the page: latencies of steps and of requests to a store."""

from __future__ import annotations

from dataprep.counted import counted
from iobench.analysis.repeats import Repeats, by_settings, median_of
from iobench.report.numbers import number, seconds
from iobench.report.tables import Table
from iobench.result import Result
from iobench.stats import QUANTILES, missing
from iobench.words import params_words

_SHOWN = ("p50", "p90", "p99")


def tables(result: Result) -> list[Table]:
    """Steps of loops, GETs of loops and loaders, and requests of the probe."""
    return [_steps(result), _gets(result), _requests(result)]


def _steps(result: Result) -> Table:
    rows = []
    for params, repeats in by_settings(result.trials, "train"):
        if median_of(repeats, "step_s_p50") is None:
            continue
        steps = _counted_steps(repeats)
        cells = [_quantile(repeats, f"step_s_{name}", name, steps, "step") for name in _SHOWN]
        shown = number(steps) if steps is not None else ""
        rows.append([str(params.get("group")), str(params.get("input")), shown, *cells])
    note = (
        "Medians over repeats. The steps are those of one repeat, without the first step of each "
        "epoch. Set training.steps to measure more."
    )
    columns = ("loop", "input", "steps", "median", "p90", "p99")
    return Table("Steps", columns, rows, note)


def _counted_steps(repeats: Repeats) -> int | None:
    """Steps behind the quantiles of a repeat: those that begin no epoch."""
    counts = []
    for trial in repeats:
        steps = trial.metrics.get("batches")
        if steps is not None:
            is_whole = trial.metrics.get("rate_rule") == "epochs"
            counts.append(int(steps) - (len(trial.metrics.get("epochs") or ()) if is_whole else 0))
    return min(counts) if counts else None


def _quantile(repeats: Repeats, metric: str, name: str, count: int | None, unit: str) -> str:
    """A quantile, or how many more steps or requests it needs."""
    value = median_of(repeats, metric)
    if value is not None:
        return seconds(value)
    lacking = missing(count, QUANTILES[name]) if count is not None else 0
    return f"needs {counted(lacking, f'more {unit}')}" if lacking else ""


def _gets(result: Result) -> Table:
    rows = []
    for kind in ("train", "loader"):
        for params, repeats in by_settings(result.trials, kind):
            first_s, whole_s = (
                median_of(repeats, name) for name in ("store_first_byte_s", "store_get_s")
            )
            requests = median_of(repeats, "store_requests")
            if first_s is not None and whole_s is not None and requests is not None:
                cells = [number(requests), seconds(first_s), seconds(whole_s)]
                rows.append([params_words(kind, params), *cells])
    columns = ("loop or loader", "GETs", "to the first byte, mean", "whole, mean")
    return Table("Requests of loops and loaders to the store", columns, rows)


def _requests(result: Result) -> Table:
    rows = []
    for params, repeats in by_settings(result.trials, "object"):
        requests = median_of(repeats, "requests")
        count = round(requests) if requests is not None else None
        cells = []
        for metric in ("first_byte_s", "total_s"):
            is_measured = median_of(repeats, f"{metric}_p50") is not None
            for name in _SHOWN:
                cell = _quantile(repeats, f"{metric}_{name}", name, count, "request")
                cells.append(cell if is_measured else "")
        if any(cells):
            shown = number(requests) if requests is not None else ""
            rows.append([params_words("object", params), shown, *cells])
    columns = (
        *("request", "number", "first byte, median", "p90", "p99"),
        *("whole, median", "p90", "p99"),
    )
    note = "Medians over repeats. Whole: from the call to the last byte, with retries."
    return Table("Requests of the object-store probe", columns, rows, note)
