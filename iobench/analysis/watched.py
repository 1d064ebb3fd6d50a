"""PURE. Watched loops: the one figure for their waiting, and their rate in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iobench.analysis.rules import FINE, HIGH
from iobench.words import number_words

UNKNOWN_RATE = "unknown"


@dataclass(frozen=True, slots=True)
class DataWait:
    """The share of its time that a loop loses because a batch had not arrived.

    ``by_device``: it is the time that the GPU was idle. Otherwise it is the time that the host
    waited, during which a GPU may have computed.
    """

    share: float
    by_device: bool

    @property
    def grade(self) -> str:
        """``fine``, ``moderate`` or ``high``."""
        if self.share < FINE:
            return "fine"
        return "high" if self.share > HIGH else "moderate"


def data_wait(host_share: float | None, device_share: float | None) -> DataWait | None:
    """The device's idle share where it was measured, else the host's share of waiting."""
    if device_share is not None:
        return DataWait(device_share, by_device=True)
    return DataWait(host_share, by_device=False) if host_share is not None else None


def entry_data_wait(entry: Mapping[str, Any]) -> DataWait | None:
    """``data_wait`` of an entry of the summary."""
    return data_wait(median_of(entry, "wait_share"), median_of(entry, "device_wait_share"))


def rate_words(entry: Mapping[str, Any]) -> str:
    """The rate of an entry of the summary: ``412``, ``290 to 1,256`` or ``unknown``.

    It is empty where the samples of the batches were not counted.
    """
    rate = median_of(entry, "samples_per_s")
    low, high = (median_of(entry, f"samples_per_s_{end}") for end in ("low", "high"))
    if rate is not None:
        return number_words(rate)
    if low is not None and high is not None:
        return f"{number_words(low)} to {number_words(high)}"
    return UNKNOWN_RATE if entry.get("samples") else ""


def median_of(entry: Mapping[str, Any], figure: str) -> float | None:
    """The median of a figure in an entry of the summary; None if it was not measured."""
    estimate = entry.get(figure)
    return float(estimate["median"]) if estimate else None
