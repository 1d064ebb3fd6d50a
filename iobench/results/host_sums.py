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
"""Metrics that can be summed over hosts. Hosts are compared by the first of them that they have."""


def combine_host_parts(hosts: int, parts: Sequence[HostPart]) -> Together:
    """Combine the parts of all hosts in one trial: sums of rates, the slowest host, start times.

    Args:
        hosts: the number of hosts that should have run the trial.
        parts: the part of each of these hosts, in any order.
    """
    ordered = sorted(parts, key=lambda part: part.host)
    measured = [part for part in ordered if part.status == "done"]
    sums = {}
    for name in RATE_METRICS:
        rates = [_rate(part.metrics, name) for part in measured]
        known_rates = [rate for rate in rates if rate is not None]
        # A sum over some of the hosts would look like the sum over all hosts.
        if known_rates and len(known_rates) == len(measured):
            sums[name] = sum(known_rates)
    return Together(
        hosts=hosts,
        parts=ordered,
        sums=sums,
        slowest=_slowest_host(measured),
        start_spread_s=_start_spread_s(measured),
        together_share=_together_share(measured),
    )


def main_rate(metrics: Metrics) -> tuple[str, float] | None:
    """Return the name and value of the rate by which hosts are compared; None without a rate."""
    for name in RATE_METRICS:
        rate = _rate(metrics, name)
        if rate is not None:
            return name, rate
    return None


def _slowest_host(measured: Sequence[HostPart]) -> int | None:
    """Return the number of the host with the lowest rate; None if no host has a rate.

    Of hosts with equal rates, it is the one with the smallest number.
    """
    rate_of_host: dict[int, float] = {}
    for part in measured:
        rate = main_rate(part.metrics)
        if rate is not None:
            _, rate_of_host[part.host] = rate
    if not rate_of_host:
        return None
    return min(rate_of_host, key=lambda host: (rate_of_host[host], host))


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
