"""PURE. One set of figures from those of all hosts of a trial."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.trial import HostPart, Metrics, Together

RATES = (
    *("samples_per_s", "samples_per_s_low", "samples_per_s_high"),
    *("mb_per_s", "requests_per_s", "iops"),
)
"""Metrics whose sum over hosts has a meaning; the first that a trial has decides who is slowest."""


def together(hosts: int, parts: Sequence[HostPart]) -> Together:
    """The figures of a trial that several hosts ran.

    Args:
        hosts: the number of hosts that were to run it.
        parts: the part of each of these hosts.
    """
    ordered = sorted(parts, key=lambda part: part.host)
    measured = [part for part in ordered if part.status == "done"]
    sums = {}
    for name in RATES:
        rates = [rate for part in measured if (rate := _number(part.metrics, name)) is not None]
        # A sum over some of the hosts would look like the sum over all.
        if rates and len(rates) == len(measured):
            sums[name] = sum(rates)
    return Together(
        hosts=hosts,
        parts=ordered,
        sums=sums,
        slowest=_slowest(measured),
        start_spread_s=_start_spread_s(measured),
        together_share=_together_share(measured),
    )


def main_rate(metrics: Metrics) -> tuple[str, float] | None:
    """The name and value of the rate by which hosts are compared; None if there is none."""
    for name in RATES:
        rate = _number(metrics, name)
        if rate is not None:
            return name, rate
    return None


def _slowest(measured: Sequence[HostPart]) -> int | None:
    rates = [(rate[1], part.host) for part in measured if (rate := main_rate(part.metrics))]
    return min(rates)[1] if rates else None


def _start_spread_s(measured: Sequence[HostPart]) -> float | None:
    """The largest possible time between the first and the last start.

    The store shows the signal to all hosts at one moment. Each host knows, by its own clock, how
    long before its start this moment was at most and at least: the signal was not there when its
    last look but one began, and it was there when its last look ended. So clocks of different
    hosts are never compared.
    """
    begun = [part.began_s for part in measured if part.began_s is not None]
    if len(begun) < 2 or len(begun) < len(measured):
        return None
    return max(latest for _, latest in begun) - min(earliest for earliest, _ in begun)


def _together_share(measured: Sequence[HostPart]) -> float | None:
    """The part of the time from the first start to the last end in which all hosts measured."""
    spans = [
        (sum(part.began_s) / 2, sum(part.began_s) / 2 + part.ended_s)
        for part in measured
        if part.began_s is not None and part.ended_s is not None
    ]
    if len(spans) < 2 or len(spans) < len(measured):
        return None
    begins, ends = zip(*spans, strict=True)
    whole_s = max(ends) - min(begins)
    return max(0.0, min(ends) - max(begins)) / whole_s if whole_s > 0 else None


def _number(metrics: Metrics, name: str) -> float | None:
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)
