"""PURE. Several hosts on the page: tables of trials and of hosts, and the figures of two charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from iobench.analysis.hosts import KINDS, HostPoint, host_points, host_problems, leading_point
from iobench.report.charts import Bar
from iobench.report.tables import Table
from iobench.results.numbers import duration, number, precise_percent, with_interval
from iobench.results.result import HostFacts, Result
from iobench.results.statistics import Estimate
from iobench.results.wording import rates_words

_MAX_SHOWN_HOSTS = 16
"""The maximum number of hosts in a chart or in a cell of a table."""
_UNITS = {
    "samples_per_s": "samples/s",
    "samples_per_s_low": "samples/s or more",
    "mb_per_s": "MB/s",
    "requests_per_s": "requests/s",
    "iops": "IOPS",
}
"""The units of rates, by the name of the metric."""
_TRIAL_COLUMNS = (
    "trial",
    "hosts",
    "sum over hosts",
    "other sums",
    "slowest host",
    "evenness",
    "rate of each host",
    "spread of starts",
    "measured at the same time",
)
_TRIALS_NOTE = (
    "The figures are medians over repeats. The spread of starts is the widest of all repeats."
)
_REQUEST_KINDS = ("puts", "gets", "lists", "deletes")


def tables(result: Result) -> Iterator[Table]:
    """A table for each kind of trial, the hosts without results, and the requests of each host.

    There are no tables for a run on a single host.
    """
    if not result.hosts:
        return
    points = host_points(result.trials)
    for kind, title in KINDS.items():
        rows = [_row(point) for point in points if point.kind == kind]
        if rows:
            yield Table(title, _TRIAL_COLUMNS, rows, _TRIALS_NOTE)
    yield _hosts_without_result(result)
    yield _requests(result.hosts)


def _hosts_without_result(result: Result) -> Table:
    """A row for each host that has no result of some trials."""
    rows = []
    for problem in host_problems(result.trials):
        missing = f"{problem.trials} of {problem.planned}"
        rows.append([f"host {problem.host}", missing, problem.reason])
    columns = ("host", "trials without a result", "first reason")
    return Table("Hosts without a result", columns, rows)


def _requests(hosts: Sequence[HostFacts]) -> Table:
    """A row for each host with its requests to the rendezvous."""
    rows = []
    for facts in hosts:
        requests = [str(facts.requests.get(kind, 0)) for kind in _REQUEST_KINDS]
        differences = ", ".join(key.replace("_", " ") for key in facts.differs)
        rows.append([f"host {facts.host}", *requests, differences])
    columns = ("host", "PUT", "GET", "LIST", "DELETE", "properties that differ from host 0")
    return Table("Requests to the rendezvous", columns, rows)


def notes(result: Result) -> list[str]:
    """A sentence about the rest of the report; no sentence for a run on a single host."""
    if not result.hosts:
        return []
    return ["All other figures of this report are from host 0, while all hosts were measuring."]


def host_bars(result: Result) -> tuple[HostPoint, list[Bar]] | None:
    """The trial that represents the run, and a bar for each of its hosts, the slowest first.

    There are at most ``_MAX_SHOWN_HOSTS`` bars. The result is None if no trial has several hosts.
    """
    point = leading_point(result)
    if point is None or point.hosts < 2:
        return None
    slowest_first = sorted(point.host_rates, key=lambda host: host.rate.median)
    bars = []
    for host in slowest_first[:_MAX_SHOWN_HOSTS]:
        rate = host.rate
        text = with_interval(rate)
        bars.append(Bar(f"host {host.host}", rate.median, text, "s0", rate.low, rate.high))
    return point, bars


def growth(result: Result) -> list[tuple[str, dict[int, Estimate]]]:
    """How the sum over hosts grows with the number of hosts.

    The sums are multiples of a base rate: the mean rate of a host in the trial on the fewest hosts.

    Returns:
        For each trial that ran on several numbers of hosts, its name, and the multiples by the
        number of hosts.
    """
    points_by_name: dict[str, list[HostPoint]] = {}
    for point in host_points(result.trials):
        points_by_name.setdefault(point.description, []).append(point)
    curves = []
    for name, points in points_by_name.items():
        base_rate = points[0].total.median / points[0].hosts
        if len(points) > 1 and base_rate > 0:
            multiples = {point.hosts: _multiple(point.total, base_rate) for point in points}
            curves.append((name, multiples))
    return curves


def _multiple(estimate: Estimate, base: float) -> Estimate:
    """An estimate divided by a base value."""
    return replace(
        estimate,
        median=estimate.median / base,
        low=estimate.low / base,
        high=estimate.high / base,
    )


def unit(point: HostPoint) -> str:
    """The unit of the rate that is compared between hosts."""
    return _UNITS.get(point.metric, point.metric)


def _row(point: HostPoint) -> Sequence[str]:
    """The cells of a trial, over its repeats, in the order of ``_TRIAL_COLUMNS``."""
    rates = [number(host.rate.median) for host in point.host_rates[:_MAX_SHOWN_HOSTS]]
    if len(point.host_rates) > _MAX_SHOWN_HOSTS:
        rates.append("...")
    other_sums = {name: rate for name, rate in point.sums.items() if name != point.metric}
    hosts = str(point.hosts)
    if point.hosts < point.planned_hosts:
        hosts = f"{point.hosts} of {point.planned_hosts}"
    spread_s, share = point.start_spread_s, point.together_share
    return [
        point.description,
        hosts,
        f"{with_interval(point.total)} {unit(point)}",
        rates_words(other_sums, number),
        f"host {point.slowest.host}: {number(point.slowest.rate.median)}",
        precise_percent(point.evenness),
        ", ".join(rates),
        duration(spread_s) if spread_s is not None else "",
        precise_percent(share) if share is not None else "",
    ]
