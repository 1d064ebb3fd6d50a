"""PURE. Watched loops: the one figure for what their input costs, and their rates in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iobench.analysis.rules import FINE, HIGH
from iobench.numbers import percent, precise_number
from iobench.stats import Estimate

UNKNOWN_RATE = "unknown"

_ENDINGS = ("wait_share", "loss_share", "loss_share_low", "loss_share_high")


By = Literal["loss", "device", "host"]


@dataclass(frozen=True, slots=True)
class InputCost:
    """The share of its time that a loop loses because of its input.

    Attributes:
        low, high: the ends of its range; equal where it is one figure.
        by: how it was measured. ``loss``: the loop's rate beside its rate without the loader, from
            a replay. ``device``: the time that the GPU was idle. ``host``: the time that the host
            waited, during which a GPU may have computed.
    """

    low: float
    high: float
    by: By

    @property
    def grade(self) -> str:
        """``fine``, ``moderate`` or ``high``; of a range that has two: ``fine to high``."""
        ends = [_grade(self.low), _grade(self.high)]
        return ends[0] if ends[0] == ends[1] else " to ".join(ends)

    @property
    def words(self) -> str:
        """``32 %``, ``28 to 36 %``; a loss below zero is no loss."""
        low, high = max(0.0, self.low), max(0.0, self.high)
        if low == high:
            return percent(low)
        return f"{percent(low).removesuffix(' %')} to {percent(high)}"

    @property
    def as_estimate(self) -> Estimate:
        """The lower end: what is lost at least."""
        return Estimate(self.low, self.low, self.low, 0.0, 1)


def _grade(share: float) -> str:
    if share < FINE:
        return "fine"
    return "high" if share > HIGH else "moderate"


def input_cost(figures: Mapping[str, float | None]) -> InputCost | None:
    """The loss where it was measured, else the device's idle share, else the host's waiting."""
    loss = figures.get("loss_share")
    low, high = figures.get("loss_share_low"), figures.get("loss_share_high")
    if loss is not None:
        return InputCost(loss, loss, "loss")
    if low is not None and high is not None:
        return InputCost(low, high, "loss")
    by: By
    for by, name in (("device", "device_wait_share"), ("host", "wait_share")):
        share = figures.get(name)
        if share is not None:
            return InputCost(share, share, by)
    return None


def entry_input_cost(entry: Mapping[str, Any]) -> InputCost | None:
    """``input_cost`` of an entry of the summary."""
    return input_cost({name: median_of(entry, name) for name in entry if name.endswith(_ENDINGS)})


def most_gain(entry: Mapping[str, Any]) -> float | None:
    """How many times faster the loop is without its loader, in an entry of the summary.

    The upper end of a range; None if no loss was measured.
    """
    cost = entry_input_cost(entry)
    if cost is None or cost.by != "loss" or cost.high >= 1:
        return None
    return max(1.0, 1 / (1 - cost.high))


def rate_words(entry: Mapping[str, Any], name: str = "samples_per_s") -> str:
    """A rate of an entry of the summary: ``412``, ``290 to 1,256`` or ``unknown``.

    It is empty where the samples of the batches were not counted.
    """
    rate = median_of(entry, name)
    low, high = (median_of(entry, f"{name}_{end}") for end in ("low", "high"))
    if rate is not None:
        return precise_number(rate)
    if low is not None and high is not None:
        return f"{precise_number(low)} to {precise_number(high)}"
    return UNKNOWN_RATE if entry.get("samples") else ""


def ceiling_words(entry: Mapping[str, Any]) -> str:
    """The rate without the loader: ``2,000``, a range, or empty if it was not measured."""
    words = rate_words(entry, "ceiling_samples_per_s")
    return "" if words == UNKNOWN_RATE else words


def loss_words(entry: Mapping[str, Any]) -> str:
    """``50 %``, ``45 to 52 %``, or empty if no loss was measured."""
    cost = entry_input_cost(entry)
    return cost.words if cost is not None and cost.by == "loss" else ""


def median_of(entry: Mapping[str, Any], figure: str) -> float | None:
    """The median of a figure in an entry of the summary; None if it was not measured."""
    estimate = entry.get(figure)
    return float(estimate["median"]) if estimate else None
