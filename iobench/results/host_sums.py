"""PURE. Combine the figures of all hosts that ran a trial at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.results.trial import HostPart, Metrics, Together

RATE_METRICS = (
    "samples_per_s",
    "samples_per_s_low",
    "samples_per_s_high",
    "mb_per_s",
    "requests_per_s",
    "iops",
)
"""Metrics that can be summed over hosts. Hosts are compared by the first that all of them have."""

_BOUNDS = ("samples_per_s_low", "samples_per_s_high")
"""Metrics that are bounds of ``samples_per_s``. A trial has either the rate or its bounds."""


def combine_host_parts(hosts: int, parts: Sequence[HostPart]) -> Together:
    """Combine the parts of all hosts in one trial: sums of rates, the slowest host, start times.

    Args:
        hosts: the number of hosts that should have run the trial.
        parts: the part of each of these hosts, in any order.
    """
    ordered = sorted(parts, key=lambda part: part.host)
    measured = [part for part in ordered if part.status == "done"]
    return Together(
        hosts=hosts,
        parts=ordered,
        sums=_sums(measured),
        slowest=_slowest_host(measured),
        start_spread_s=_start_spread_s(measured),
        together_share=_together_share(measured),
    )


def common_rate(measured: Sequence[HostPart]) -> str | None:
    """Return the name of the rate by which hosts are compared; None if they have none in common.

    A rate of one host is not compared with a bound of another host's rate.

    Args:
        measured: the parts of the hosts that have a result.
    """
    for name in RATE_METRICS:
        if measured and all(_rate(part.metrics, name) is not None for part in measured):
            return name
    return None


def _sums(measured: Sequence[HostPart]) -> dict[str, float]:
    """Return the sum over hosts of each rate that all of them have, by its name.

    A sum over some of the hosts would look like the sum over all hosts. If some hosts have a rate
    in samples/s and all others have bounds of it, there are sums of bounds: a host's rate is then
    both its lower and its upper bound.
    """
    has_bounds = any(_rate(part.metrics, name) is not None for part in measured for name in _BOUNDS)
    sums = {}
    for name in RATE_METRICS:
        known_rates = []
        for part in measured:
            rate = _rate(part.metrics, name)
            if rate is None and has_bounds and name in _BOUNDS:
                rate = _rate(part.metrics, "samples_per_s")
            if rate is not None:
                known_rates.append(rate)
        if known_rates and len(known_rates) == len(measured):
            sums[name] = sum(known_rates)
    return sums


def _slowest_host(measured: Sequence[HostPart]) -> int | None:
    """Return the number of the host with the lowest rate; None if hosts have no rate in common.

    Of hosts with equal rates, it is the one with the smallest number.
    """
    name = common_rate(measured)
    if name is None:
        return None
    return min(measured, key=lambda part: (float(part.metrics[name]), part.host)).host


def _start_spread_s(measured: Sequence[HostPart]) -> float | None:
    """Return the largest possible seconds between the first and the last start.

    None if fewer than two hosts measured, or if the start of any of them is unknown.

    The signal to begin appears in the store for all hosts at the same moment. Each host knows two
    limits for the time from this moment to its own start, both by its own clock: the signal was not
    there yet when its last unsuccessful look began, and it was there when the successful look
    ended. Therefore clocks of different hosts are never compared.
    """
    starts = [part.began_s for part in measured if part.began_s is not None]
    if len(starts) < 2 or len(starts) < len(measured):
        return None
    latest_start_s = max(latest for _, latest in starts)
    earliest_start_s = min(earliest for earliest, _ in starts)
    return latest_start_s - earliest_start_s


def _together_share(measured: Sequence[HostPart]) -> float | None:
    """Return the share of the time in which all hosts measured.

    The time begins with the first start and ends with the last end. None if it is 0, if fewer than
    two hosts measured, or if a start or an end is unknown.
    """
    begins_s = []
    ends_s = []
    for part in measured:
        if part.began_s is not None and part.ended_s is not None:
            begin_s = sum(part.began_s) / 2  # the middle of the two limits of the start
            begins_s.append(begin_s)
            ends_s.append(begin_s + part.ended_s)
    if len(begins_s) < 2 or len(begins_s) < len(measured):
        return None
    total_s = max(ends_s) - min(begins_s)
    if total_s <= 0:
        return None
    return max(0.0, min(ends_s) - max(begins_s)) / total_s


def _rate(metrics: Metrics, name: str) -> float | None:
    """Return a metric as a number; None if the trial does not have it."""
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)
