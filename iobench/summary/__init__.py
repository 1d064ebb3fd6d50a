"""PURE. Trials into figures and a verdict."""

from __future__ import annotations

from typing import Any

from iobench.result import Result
from iobench.summary.access import access_modes
from iobench.summary.ladder import ladders
from iobench.summary.scaling import scaling
from iobench.summary.supplies import disks, layouts, loaders, object_stores
from iobench.summary.training import leading, training
from iobench.summary.verdict import verdict
from iobench.summary.watched import watched

__all__ = ["summarise"]


def summarise(result: Result) -> dict[str, Any]:
    """The ``summary`` of a result: estimates by point, and the verdict.

    ``au_mlperf``, ``au_ceiling``, ``samples_per_second`` and ``stall_fraction`` are medians of
    the loop of which the verdict speaks, None where there is none.
    """
    groups = training(result.trials)
    first = leading(groups)
    summary = {
        "training": groups,
        "ladder": ladders(result.trials),
        "scaling": scaling(result.trials),
        "loaders": loaders(result.trials),
        "disks": disks(result.trials),
        "access": access_modes(result.trials),
        "layouts": layouts(result.trials),
        "object_stores": object_stores(result.trials),
        "watched": watched(result.trials),
        "au_mlperf": _median(first.get("au_mlperf")),
        "au_ceiling": _median(first.get("au_ceiling")),
        "samples_per_second": _median(first.get("achieved")),
        "stall_fraction": _median(first.get("stall_fraction")),
    }
    return {"verdict": verdict(summary, result.trials), **summary}


def _median(estimate: dict[str, Any] | None) -> float | None:
    return estimate["median"] if estimate else None
