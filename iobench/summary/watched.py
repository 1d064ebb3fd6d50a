"""PURE. Somebody's own loop, watched: how much of its time it waits for data.

Shares of a step that are spent on input: under 5 % is fine, to 20 % moderate, above high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.summary.points import by_point, figure
from iobench.trial import Trial

_FINE, _HIGH = 0.05, 0.20
_FEW = 20  # steps, below which not even a median is given
_FIGURES = (
    *("samples_per_s", "wait_share", "device_wait_share", "time_to_first_batch_s"),
    *("epoch_start_s", "epoch_start_share", "seconds", "steps", "epochs"),
)


def watched(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """One entry a loader, that of the longest loop first: its params and its figures."""
    entries = [
        {**params, **{name: figure(repeats, name) for name in _FIGURES}}
        for params, repeats in by_point(trials, "watch")
    ]
    return sorted(entries, key=_seconds, reverse=True)


def sentence(entries: Sequence[Mapping[str, Any]]) -> str:
    """Of the loop that ran longest."""
    first = entries[0]
    share = first["wait_share"]["median"]
    subject = "Your loop" if len(entries) == 1 else f"Your loop over {first['loader']}"
    said = f"{subject} waits for data {_percent(share)} of its time{_grade(share)}"
    steps = int(first["steps"]["median"]) if first["steps"] else _FEW
    if steps < _FEW:
        said += f" (over only {counted(steps, 'step')})"
    if first["samples_per_s"]:
        said += f", at {first['samples_per_s']['median']:,.0f} samples/s"
    if first["device_wait_share"]:
        idle = first["device_wait_share"]["median"]
        return f"{said}; its GPU is idle for {_percent(idle)} because of that."
    return f"{said}; what its device could take was not measured."


def _grade(share: float) -> str:
    if share < _FINE:
        return ", which is fine"
    return ", which is high" if share > _HIGH else ", which is moderate"


def _seconds(entry: Mapping[str, Any]) -> float:
    return float(entry["seconds"]["median"]) if entry["seconds"] else 0.0


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
