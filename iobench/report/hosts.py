"""PURE. Several hosts on the page: a table for each kind of trial, and the hosts themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from iobench.analysis.hosts import (
    KINDS,
    HostPoint,
    host_points,
    host_problems,
    leading_point,
)
from iobench.report.charts import Bar
from iobench.report.numbers import number, percent, seconds, with_interval
from iobench.report.tables import Table
from iobench.result import HostFacts, Result
from iobench.stats import Estimate
from iobench.words import rates_words

_SHOWN_HOSTS = 16
_UNITS = {
    "samples_per_s": "samples/s",
    "samples_per_s_low": "samples/s at least",
    "mb_per_s": "MB/s",
    "requests_per_s": "requests/s",
    "iops": "IOPS",
}


def tables(result: Result) -> Iterator[Table]:
    """A table for each kind of trial, then the hosts without results, and the machines."""
    if not result.hosts:
        return
    points = host_points(result.trials)
    columns = (
        *("point", "hosts", "sum", "other sums", "slowest host", "evenness", "of each"),
        *("started within", "measured at the same time"),
    )
    for kind, title in KINDS.items():
        rows = [_row(point) for point in points if point.kind == kind]
        if rows:
            yield Table(title, columns, rows, "Medians over repeats; the widest spread of starts.")
    missing = [
        [f"host {problem.host}", f"{problem.trials} of {problem.planned}", problem.reason]
        for problem in host_problems(result.trials)
    ]
    yield Table("Hosts without a result", ("host", "trials", "first reason"), missing)
    yield Table(
        "Requests to the rendezvous",
        ("host", "PUT", "GET", "LIST", "DELETE", "machine differs from host 0 in"),
        [_host_row(facts) for facts in result.hosts],
    )


def notes(result: Result) -> list[str]:
    """How to read the tables; empty for a single host."""
    if not result.hosts:
        return []
    return [
        "All other figures of this report are those of host 0, while all hosts measured.",
    ]


def rates(result: Result) -> tuple[HostPoint, list[Bar]] | None:
    """The point that stands for the run, and a bar for each of its hosts, the slowest first."""
    point = leading_point(result)
    if point is None or point.hosts < 2:
        return None
    slowest_first = sorted(point.host_rates, key=lambda host_rate: host_rate.rate.median)
    bars = [
        Bar(
            f"host {each.host}",
            each.rate.median,
            with_interval(each.rate),
            "s0",
            each.rate.low,
            each.rate.high,
        )
        for each in slowest_first[:_SHOWN_HOSTS]
    ]
    return point, bars


def growth(result: Result) -> list[tuple[str, dict[int, Estimate]]]:
    """How the sum of each point grows with the number of hosts, if several were measured.

    For each point its words, and by the number of hosts the sum as a multiple of the rate that one
    host has where the fewest measured.
    """
    alike: dict[str, list[HostPoint]] = {}
    for point in host_points(result.trials):
        alike.setdefault(point.description, []).append(point)
    grown = []
    for words, points in alike.items():
        of_one = points[0].total.median / points[0].hosts
        if len(points) > 1 and of_one > 0:
            grown.append((words, {point.hosts: _times(point.total, of_one) for point in points}))
    return grown


def _times(total: Estimate, of_one: float) -> Estimate:
    """The sum as a multiple of the rate of one host."""
    return replace(
        total, median=total.median / of_one, low=total.low / of_one, high=total.high / of_one
    )


def unit(point: HostPoint) -> str:
    """The unit of the rate by which hosts are compared."""
    return _UNITS.get(point.metric, point.metric)


def _row(point: HostPoint) -> Sequence[str]:
    each = [number(host.rate.median) for host in point.host_rates[:_SHOWN_HOSTS]]
    if len(point.host_rates) > _SHOWN_HOSTS:
        each.append("...")
    others = {name: rate for name, rate in point.sums.items() if name != point.metric}
    hosts = str(point.hosts)
    if point.hosts < point.planned_hosts:
        hosts = f"{point.hosts} of {point.planned_hosts}"
    slowest = f"host {point.slowest.host}: {number(point.slowest.rate.median)}"
    spread, share = point.start_spread_s, point.together_share
    return [
        point.description,
        hosts,
        f"{with_interval(point.total)} {unit(point)}",
        rates_words(others, number),
        slowest,
        percent(point.evenness),
        ", ".join(each),
        seconds(spread) if spread is not None else "",
        percent(share) if share is not None else "",
    ]


def _host_row(facts: HostFacts) -> Sequence[str]:
    sent = [str(facts.requests.get(kind, 0)) for kind in ("puts", "gets", "lists", "deletes")]
    differs = ", ".join(key.replace("_", " ") for key in facts.differs)
    return [f"host {facts.host}", *sent, differs]
