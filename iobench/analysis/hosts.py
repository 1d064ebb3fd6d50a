"""PURE. Trials that several hosts ran at the same time: sums, slowest host, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dataprep.counted import counted
from iobench.analysis.points import cold_label, is_number, kept
from iobench.analysis.rules import found as finding_of
from iobench.ladder import RUNGS
from iobench.numbers import percent
from iobench.result import Finding, Result
from iobench.stats import Estimate, estimate, median
from iobench.together import main_rate
from iobench.trial import HostPart, Params, Together, Trial
from iobench.words import params_words, rates_words

KINDS = {
    "train": "Training loops",
    "loader": "Loaders",
    "object": "Object stores",
    "disk": "Disks",
    "layout": "Layouts",
}
"""Kinds of trials in the order of the report, with the titles of their tables."""

EVEN = 0.8
"""Rate of the slowest host / rate of the median host, below which hosts are uneven."""
TOGETHER = 0.8
"""Part of the time in which all hosts must measure."""


@dataclass(frozen=True, slots=True)
class HostRate:
    """The rate of one host in a point."""

    host: int
    rate: Estimate


@dataclass(frozen=True, slots=True)
class HostPoint:
    """The repeats of one point on one number of hosts.

    Attributes:
        kind, params: what was measured, without the number of hosts.
        hosts: the number of hosts that measured.
        wanted: the number of hosts that were to measure.
        metric: the rate that is compared, such as ``mb_per_s``.
        total: its sum over hosts.
        sums: medians of the sums of all rates.
        each: the rate of each host.
        start_spread_s: the largest possible spread of the starts of all repeats.
        together_share: the smallest part of the time in which all hosts measured.
        label: what the page cache held, on host 0.
    """

    kind: str
    params: Params
    hosts: int
    wanted: int
    metric: str
    total: Estimate
    sums: Mapping[str, float]
    each: Sequence[HostRate]
    start_spread_s: float | None
    together_share: float | None
    label: str

    @property
    def slowest(self) -> HostRate:
        """The host with the lowest median rate."""
        return min(self.each, key=lambda each: each.rate.median)

    @property
    def evenness(self) -> float:
        """The rate of the slowest host / that of the median host."""
        middle = median([each.rate.median for each in self.each])
        return self.slowest.rate.median / middle if middle > 0 else 1.0

    @property
    def words(self) -> str:
        """The point in words."""
        return params_words(self.kind, self.params)

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {
            **{name: getattr(self, name) for name in ("kind", "hosts", "wanted", "metric")},
            "params": dict(self.params),
            "total": kept(self.total),
            "sums": dict(self.sums),
            "slowest": {"host": self.slowest.host, "rate": kept(self.slowest.rate)},
            "each": [asdict(each) for each in self.each],
            "start_spread_s": self.start_spread_s,
            "together_share": self.together_share,
        }


@dataclass(frozen=True, slots=True)
class HostProblem:
    """A host that has no result in some trials.

    Attributes:
        host: its number.
        trials: the number of these trials.
        planned: the number of trials that it was to run.
        reason: the first reason.
    """

    host: int
    trials: int
    planned: int
    reason: str

    @property
    def words(self) -> str:
        """``host 2 has no result in 1 of 6 trials: it has disappeared``."""
        of = f"{self.trials:,} of {counted(self.planned, 'trial')}"
        return f"host {self.host} has no result in {of}: {self.reason}"


def on_all_hosts(result: Result) -> Result:
    """The result without trials that ran on a smaller number of hosts on purpose.

    Only these are compared with each other and with predictions.
    """
    return replace(
        result, trials=tuple(trial for trial in result.trials if "hosts" not in trial.params)
    )


def host_points(trials: Sequence[Trial]) -> list[HostPoint]:
    """Every point that several hosts have measured, by kind; fewer hosts come first."""
    groups: dict[tuple[str, str, int], list[tuple[Trial, Together]]] = {}
    for trial in trials:
        is_measured = trial.status == "done" and trial.kind in KINDS
        if is_measured and trial.hosts is not None and trial.hosts.sums:
            measured = sum(part.status == "done" for part in trial.hosts.parts)
            key = (trial.kind, _name(trial.params), measured)
            groups.setdefault(key, []).append((trial, trial.hosts))
    kinds = list(KINDS)
    # Points of one kind stay in the order of their first trial.
    names = list(dict.fromkeys(name for _, name, _ in groups))
    ordered = sorted(
        groups.items(),
        key=lambda group: (kinds.index(group[0][0]), names.index(group[0][1]), group[0][2]),
    )
    return [_host_point(hosts, repeats) for (_, _, hosts), repeats in ordered]


def problems(trials: Sequence[Trial]) -> list[HostProblem]:
    """The hosts that have no result in some trials, in the order of their numbers."""
    planned: dict[int, int] = {}
    missing: dict[int, list[HostPart]] = {}
    for trial in trials:
        for part in trial.hosts.parts if trial.hosts is not None else ():
            planned[part.host] = planned.get(part.host, 0) + 1
            if part.status == "failed":
                missing.setdefault(part.host, []).append(part)
    return [
        HostProblem(host, len(parts), planned[host], parts[0].reason)
        for host, parts in sorted(missing.items())
    ]


def summary(result: Result) -> dict[str, Any]:
    """The part of a summary about several hosts; empty for a single host."""
    if not result.hosts:
        return {}
    return {
        "hosts": {
            "hosts": len(result.hosts),
            "points": [point.as_dict() for point in host_points(result.trials)],
            "problems": [asdict(problem) for problem in problems(result.trials)],
            "requests": {str(facts.host): dict(facts.requests) for facts in result.hosts},
        }
    }


def leading_point(result: Result) -> HostPoint | None:
    """The point that stands for the run: of the first kind, the one on most hosts.

    Of training loops it has the farthest input, also if this was measured on fewer hosts: a loop on
    data in the memory of its device says nothing about storage. Equal points are ordered by sum.
    """
    points = host_points(result.trials)
    if not points:
        return None
    of_kind = [point for point in points if point.kind == points[0].kind]
    return max(of_kind, key=lambda point: (_farness(point), point.hosts, point.total.median))


def headline(result: Result) -> str:
    """The sum over hosts and the slowest host, as a sentence; empty for a single host."""
    point = leading_point(result)
    if point is None:
        return ""
    total = rates_words({point.metric: point.total.median})
    slowest = rates_words({point.metric: point.slowest.rate.median})
    hosts = counted(point.wanted, "host")
    if point.hosts < point.wanted:
        hosts = f"{point.hosts:,} of {hosts}"
    return f"{hosts} together get {total}; the slowest, host {point.slowest.host}, gets {slowest}."


def findings(result: Result) -> Iterator[Finding]:
    """Hosts without results, uneven hosts, and hosts that did not measure at the same time."""
    for problem in problems(result.trials):
        yield finding_of(
            "host-missing", problem.words, "mend this host, then continue with --resume"
        )
    points = host_points(result.trials)
    uneven = [point for point in points if point.hosts > 1 and point.evenness < EVEN]
    if uneven:
        worst = min(uneven, key=lambda point: point.evenness)
        yield finding_of(
            "hosts-uneven",
            f"host {worst.slowest.host} gets {percent(worst.evenness)} of the median host: "
            f"{worst.words}",
            "compare the network and the machine of this host with those of the others",
        )
    apart = [
        point
        for point in points
        if point.together_share is not None and point.together_share < TOGETHER
    ]
    if apart:
        worst = min(apart, key=lambda point: point.together_share or 0.0)
        yield finding_of(
            "hosts-apart",
            f"all hosts measured in {percent(worst.together_share or 0.0)} of the time: "
            f"{worst.words}",
            "raise the seconds or steps of each trial: sums over hosts are too high",
        )


def _farness(point: HostPoint) -> int:
    """How far a loop's samples come: 0 from the device itself; also 0 for other kinds."""
    source = str(point.params.get("input", ""))
    return RUNGS.index(source) if source in RUNGS else 0


def _name(params: Params) -> str:
    """The params of a point without its number of hosts, as one text."""
    return json.dumps(_point(params), sort_keys=True)


def _point(params: Params) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != "hosts"}


def _host_point(hosts: int, repeats: Sequence[tuple[Trial, Together]]) -> HostPoint:
    first, of_first = repeats[0]
    done = [part for part in of_first.parts if part.status == "done"]
    compared = main_rate(done[0].metrics)
    metric = compared[0] if compared is not None else next(iter(of_first.sums))
    rates: dict[int, list[float]] = {}
    for _, of_hosts in repeats:
        for part in of_hosts.parts:
            rate = part.metrics.get(metric)
            if part.status == "done" and is_number(rate):
                rates.setdefault(part.host, []).append(float(rate))
    sums = {
        name: median([of.sums[name] for _, of in repeats if name in of.sums])
        for name in of_first.sums
    }
    spreads = [of.start_spread_s for _, of in repeats if of.start_spread_s is not None]
    shares = [of.together_share for _, of in repeats if of.together_share is not None]
    return HostPoint(
        kind=first.kind,
        params=_point(first.params),
        hosts=hosts,
        wanted=of_first.hosts,
        metric=metric,
        total=estimate([of.sums[metric] for _, of in repeats if metric in of.sums]),
        sums=sums,
        each=[HostRate(host, estimate(values)) for host, values in sorted(rates.items())],
        start_spread_s=max(spreads, default=None),
        together_share=min(shares, default=None),
        label=cold_label([trial for trial, _ in repeats]),
    )
