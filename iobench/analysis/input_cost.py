"""PURE. Watched loops: the share of time that their input costs, and their rates in words.

A watched loop is a user's own loop that ``iobench.watch`` measured. An ``entry`` is such a loop as
``result.json`` stores it in the summary. Each of its metrics is an estimate with a median, or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iobench.analysis.finding_rules import FINE_SHARE, HIGH_SHARE
from iobench.results.numbers import percent, precise_number
from iobench.results.statistics import Estimate, estimate

UNKNOWN_RATE = "unknown"
"""Stands for the rate of a loop whose samples were counted, but whose rate is not known."""

_COST_METRICS = (
    "loss_share",
    "loss_share_low",
    "loss_share_high",
    "device_wait_share",
    "wait_share",
)
"""The metrics that ``input_cost`` uses."""

By = Literal["loss", "device", "host"]
"""How the cost was measured.

``loss``: the loop's rate compared with its rate without the loader, which a replay of batches
measures. ``device``: the time that the GPU was idle. ``host``: the time that the host waited; a GPU
may have computed in this time.
"""


@dataclass(frozen=True, slots=True)
class InputCost:
    """The share of its time that a loop loses because of its input.

    Attributes:
        low: the lower end of the share's range. A loss is negative if the loop was faster with its
            loader.
        high: the upper end of the range; equal to ``low`` if a single share was measured.
        by: how the share was measured.
    """

    low: float
    high: float
    by: By

    @property
    def grade(self) -> str:
        """``fine``, ``moderate`` or ``high``; for a range with two grades: ``fine to high``."""
        low, high = _grade(self.low), _grade(self.high)
        return low if low == high else f"{low} to {high}"

    @property
    def text(self) -> str:
        """The share as a percentage: ``32 %`` or ``28 to 36 %``. A negative loss is shown as 0."""
        low, high = max(0.0, self.low), max(0.0, self.high)
        if low == high:
            return percent(low)
        return f"{percent(low).removesuffix(' %')} to {percent(high)}"

    @property
    def as_estimate(self) -> Estimate:
        """The lower end of the range as an estimate without an interval."""
        return estimate([self.low])


def input_cost(figures: Mapping[str, float | None]) -> InputCost | None:
    """Return the loss if it was measured, else the device's idle share, else the host's waiting.

    None if none of them was measured.

    Args:
        figures: the metrics of a trial, or the medians of a row of the summary.
    """
    loss = figures.get("loss_share")
    low, high = figures.get("loss_share_low"), figures.get("loss_share_high")
    if loss is not None:
        return InputCost(loss, loss, "loss")
    if low is not None and high is not None:
        return InputCost(low, high, "loss")
    device_share, host_share = figures.get("device_wait_share"), figures.get("wait_share")
    if device_share is not None:
        return InputCost(device_share, device_share, "device")
    if host_share is not None:
        return InputCost(host_share, host_share, "host")
    return None


def input_cost_of_entry(entry: Mapping[str, Any]) -> InputCost | None:
    """Return ``input_cost`` of a watched loop in the summary."""
    return input_cost({metric: entry_median(entry, metric) for metric in _COST_METRICS})


def largest_gain(entry: Mapping[str, Any]) -> float | None:
    """Return the largest possible gain of a faster loader, such as 2.0 for a loop that loses 50 %.

    If the loss is a range, its upper end counts. None if no loss was measured, or if it is 100 % or
    more, for which no gain can be computed.
    """
    cost = input_cost_of_entry(entry)
    if cost is None or cost.by != "loss" or cost.high >= 1:
        return None
    return max(1.0, 1 / (1 - cost.high))


def entry_rate_words(entry: Mapping[str, Any], metric: str = "samples_per_s") -> str:
    """Return a rate of a watched loop: ``412``, ``290 to 1,256`` or ``unknown``.

    It is empty if iobench could not count the samples in the batches.

    Args:
        entry: the watched loop.
        metric: the metric of the rate. The ends of a range are the metrics with ``_low`` and
            ``_high`` after this name.
    """
    rate = entry_median(entry, metric)
    if rate is not None:
        return precise_number(rate)
    low, high = entry_median(entry, f"{metric}_low"), entry_median(entry, f"{metric}_high")
    if low is not None and high is not None:
        return f"{precise_number(low)} to {precise_number(high)}"
    return UNKNOWN_RATE if entry.get("samples") else ""


def entry_ceiling_words(entry: Mapping[str, Any]) -> str:
    """Return the rate without the loader: ``2,000``, a range, or empty if it was not measured."""
    rate = entry_rate_words(entry, "ceiling_samples_per_s")
    return "" if rate == UNKNOWN_RATE else rate


def entry_loss_words(entry: Mapping[str, Any]) -> str:
    """Return the loss: ``50 %``, ``45 to 52 %``, or empty if no loss was measured."""
    cost = input_cost_of_entry(entry)
    return cost.text if cost is not None and cost.by == "loss" else ""


def entry_median(entry: Mapping[str, Any], metric: str) -> float | None:
    """Return the median of a metric in a row of the summary; None if it was not measured."""
    figure = entry.get(metric)
    return float(figure["median"]) if figure else None


def _grade(share: float) -> str:
    """Return the grade of a share: ``fine``, ``moderate`` or ``high``."""
    if share < FINE_SHARE:
        return "fine"
    return "high" if share > HIGH_SHARE else "moderate"
