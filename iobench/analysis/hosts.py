"""PURE. Trials that several hosts ran at the same time: sums, the slowest host, and problems."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.finding_remarks import remark_on
from iobench.analysis.finding_rules import make_finding
from iobench.analysis.repeats import cold_label, estimate_as_dict, is_number
from iobench.results.host_sums import common_rate
from iobench.results.numbers import percent
from iobench.results.result import Finding, Result
from iobench.results.statistics import Estimate, estimate, median
from iobench.results.trial import HostPart, Params, Together, Trial
from iobench.results.wording import params_words, rates_words
from iobench.trials.ladder import RUNGS

KINDS = {
    "train": "Training loops",
    "loader": "Loaders",
    "object": "Object stores",
    "disk": "Disks",
    "layout": "Layouts",
}
"""Kinds of trials in the order of the report, with the titles of their tables."""

MIN_EVENNESS = 0.8
"""Hosts are uneven if the slowest host has less than this share of the rate of the median host."""
MIN_TOGETHER_SHARE = 0.8
"""Minimum share of the time in which all hosts must measure, so that sums of rates are valid."""


@dataclass(frozen=True, slots=True)
class HostRate:
    """The rate of one host, by its number, over the repeats of one setting."""

    host: int
    rate: Estimate


@dataclass(frozen=True, slots=True)
class HostPoint:
    """The repeats of one setting on one number of hosts.

    Attributes:
        kind: the kind of the trials.
        params: their parameters, without the number of hosts.
        hosts: the number of hosts that measured.
        planned_hosts: the number of hosts that should have measured.
        metric: the rate by which hosts are compared, such as ``mb_per_s``.
        total: the sum of this rate over hosts.
        sums: for each rate, the median over repeats of its sum over hosts.
        host_rates: the rate ``metric`` of each host, in the order of their numbers.
        start_spread_s: the seconds between the first and the last start of a host; the maximum over
            repeats. None if unknown.
        together_share: the share of the time in which all hosts measured; the minimum over repeats.
            None if unknown.
        label: the proved state of the page cache on host 0, such as ``cold``.
    """

    kind: str
    params: Params
    hosts: int
    planned_hosts: int
    metric: str
    total: Estimate
    sums: Mapping[str, float]
    host_rates: Sequence[HostRate]
    start_spread_s: float | None
    together_share: float | None
    label: str

    @property
    def slowest(self) -> HostRate:
        """The host with the lowest median rate."""
        return min(self.host_rates, key=lambda host_rate: host_rate.rate.median)

    @property
    def evenness(self) -> float:
        """The rate of the slowest host / the median of the rates of all hosts."""
        median_host = median([host_rate.rate.median for host_rate in self.host_rates])
        return self.slowest.rate.median / median_host if median_host > 0 else 1.0

    @property
    def description(self) -> str:
        """The setting in words."""
        return params_words(self.kind, self.params)

    def as_dict(self) -> dict[str, Any]:
        """Return the point as ``result.json`` stores it."""
        return {
            "kind": self.kind,
            "hosts": self.hosts,
            "wanted": self.planned_hosts,
            "metric": self.metric,
            "params": dict(self.params),
            "total": estimate_as_dict(self.total),
            "sums": dict(self.sums),
            "slowest": {
                "host": self.slowest.host,
                "rate": estimate_as_dict(self.slowest.rate),
            },
            "each": [asdict(host_rate) for host_rate in self.host_rates],
            "start_spread_s": self.start_spread_s,
            "together_share": self.together_share,
        }


@dataclass(frozen=True, slots=True)
class HostProblem:
    """A host that has no result in some trials, because it failed or was absent.

    Attributes:
        host: the number of the host.
        trials: the number of trials without a result of this host.
        planned: the number of trials that it should have run.
        reason: the reason for the first of the missing results.
    """

    host: int
    trials: int
    planned: int
    reason: str

    @property
    def sentence(self) -> str:
        """``host 2 has no result in 1 of 6 trials: it has disappeared``."""
        trials = f"{self.trials:,} of {counted(self.planned, 'trial')}"
        return f"host {self.host} has no result in {trials}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HostsTable:
    """The part of the summary about several hosts.

    Attributes:
        hosts: the number of hosts.
        points: the figures of each setting and number of hosts.
        problems: the hosts that have no result in some trials.
        requests: the requests of each host to the rendezvous, by the number of the host.
    """

    hosts: int
    points: Sequence[HostPoint]
    problems: Sequence[HostProblem]
    requests: Mapping[int, Mapping[str, int]]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as ``result.json`` stores it."""
        return {
            "hosts": self.hosts,
            "points": [point.as_dict() for point in self.points],
            "problems": [asdict(problem) for problem in self.problems],
            "requests": {str(host): dict(counts) for host, counts in self.requests.items()},
        }


def without_fewer_hosts(result: Result) -> Result:
    """Return the result without trials that were planned for some of the hosts.

    Only trials on all hosts are compared with each other and with predictions. A trial on fewer
    hosts, as the config asks for, has the parameter ``hosts``.
    """
    trials = tuple(trial for trial in result.trials if "hosts" not in trial.params)
    return replace(result, trials=trials)


def host_points(trials: Sequence[Trial]) -> list[HostPoint]:
    """Return a point for each setting and number of hosts that measured it.

    Points are ordered by kind, then by setting, then by the number of hosts, the smallest first.
    Trials whose hosts have no rate in common are left out.
    """
    groups: dict[tuple[str, str, int], list[tuple[Trial, Together]]] = {}
    metrics: dict[tuple[str, str, int], str] = {}
    for trial in trials:
        together = trial.hosts
        if trial.status != "done" or trial.kind not in KINDS or together is None:
            continue
        measured = [part for part in together.parts if part.status == "done"]
        metric = common_rate(measured)
        if metric is not None and metric in together.sums:
            key = (trial.kind, _params_key(trial.params), len(measured))
            groups.setdefault(key, []).append((trial, together))
            metrics.setdefault(key, metric)
    kinds = list(KINDS)
    # Settings of one kind stay in the order of their first trial.
    params_keys = list(dict.fromkeys(params_key for _, params_key, _ in groups))

    def position(key: tuple[str, str, int]) -> tuple[int, int, int]:
        kind, params_key, hosts = key
        return kinds.index(kind), params_keys.index(params_key), hosts

    return [_host_point(key[2], metrics[key], groups[key]) for key in sorted(groups, key=position)]


def host_problems(trials: Sequence[Trial]) -> list[HostProblem]:
    """Return the hosts that failed or were absent in some trials, in the order of their numbers.

    A host that was skipped, because another host could not measure, is not one of them.
    """
    planned: dict[int, int] = {}
    failed: dict[int, list[HostPart]] = {}
    all_parts = [trial.hosts.parts for trial in trials if trial.hosts is not None]
    for parts in all_parts:
        for part in parts:
            planned[part.host] = planned.get(part.host, 0) + 1
            if part.status == "failed":
                failed.setdefault(part.host, []).append(part)
    return [
        HostProblem(host, len(failed_parts), planned[host], failed_parts[0].reason)
        for host, failed_parts in sorted(failed.items())
    ]


def hosts_table(result: Result) -> HostsTable | None:
    """Return the part of the summary about several hosts; None for a run on a single host."""
    if not result.hosts:
        return None
    return HostsTable(
        hosts=len(result.hosts),
        points=host_points(result.trials),
        problems=host_problems(result.trials),
        requests={facts.host: facts.requests for facts in result.hosts},
    )


def leading_point(result: Result) -> HostPoint | None:
    """Return the point that represents the run; None if no point was measured.

    It is a point of the first kind in ``KINDS`` that was measured. Of the points of this kind, it
    is one on the largest number of hosts, and of several of these, the one with the largest sum.
    Of training loops, points of the farthest input come before all others, even on fewer hosts,
    because a loop on data in the memory of its device says nothing about storage.
    """
    points = host_points(result.trials)
    if not points:
        return None
    of_kind = [point for point in points if point.kind == points[0].kind]
    return max(of_kind, key=lambda point: (_input_index(point), point.hosts, point.total.median))


def hosts_headline(result: Result) -> str:
    """Return the sum over hosts and the slowest host as a sentence.

    Empty if no trial was measured on several hosts at the same time.
    """
    point = leading_point(result)
    if point is None:
        return ""
    total = rates_words({point.metric: point.total.median})
    slowest = rates_words({point.metric: point.slowest.rate.median})
    hosts = counted(point.planned_hosts, "host")
    if point.hosts < point.planned_hosts:
        hosts = f"{point.hosts:,} of {hosts}"
    return f"{hosts} together get {total}; the slowest, host {point.slowest.host}, gets {slowest}."


def hosts_findings(result: Result) -> Iterator[Finding]:
    """Yield findings: hosts without results, uneven hosts, hosts that measured at different times.

    There is a finding for each host without results. Of uneven settings, and of settings that hosts
    measured at different times, there is a finding only for the worst.
    """
    for problem in host_problems(result.trials):
        yield make_finding("host-missing", problem.sentence, remark_on("host-missing"))
    uneven, apart = [], []
    for point in host_points(result.trials):
        if point.hosts > 1 and point.evenness < MIN_EVENNESS:
            uneven.append((point.evenness, point))
        if point.together_share is not None and point.together_share < MIN_TOGETHER_SHARE:
            apart.append((point.together_share, point))
    if uneven:
        evenness, worst = min(uneven, key=lambda share_and_point: share_and_point[0])
        yield make_finding(
            "hosts-uneven",
            f"host {worst.slowest.host} gets {percent(evenness)} of the rate of the median "
            f"host: {worst.description}",
            remark_on("hosts-uneven"),
        )
    if apart:
        share, worst = min(apart, key=lambda share_and_point: share_and_point[0])
        yield make_finding(
            "hosts-apart",
            f"all hosts measured in {percent(share)} of the time: {worst.description}",
            remark_on("hosts-apart"),
        )


def _input_index(point: HostPoint) -> int:
    """Return the position of a loop's input on the ladder; the farthest has the largest position.

    0 for other kinds of trials.
    """
    source = str(point.params.get("input", ""))
    return RUNGS.index(source) if source in RUNGS else 0


def _params_key(params: Params) -> str:
    """Return a key that is equal for equal settings on any number of hosts."""
    return json.dumps(_params_without_hosts(params), sort_keys=True)


def _params_without_hosts(params: Params) -> Params:
    """Return the parameters of a trial without the number of hosts."""
    return {key: value for key, value in params.items() if key != "hosts"}


def _host_point(hosts: int, metric: str, repeats: Sequence[tuple[Trial, Together]]) -> HostPoint:
    """Return the point of all repeats of one setting.

    Args:
        hosts: the number of hosts that measured.
        metric: the rate by which hosts are compared; the first repeat has its sum.
        repeats: the trials of host 0, each with the parts of all hosts; at least one.
    """
    first_trial, first = repeats[0]
    all_repeats = [together for _, together in repeats]
    totals = [together.sums[metric] for together in all_repeats if metric in together.sums]
    sums = {}
    for name in first.sums:
        values = [together.sums[name] for together in all_repeats if name in together.sums]
        sums[name] = median(values)
    spreads_s = []
    shares = []
    for together in all_repeats:
        if together.start_spread_s is not None:
            spreads_s.append(together.start_spread_s)
        if together.together_share is not None:
            shares.append(together.together_share)
    return HostPoint(
        kind=first_trial.kind,
        params=_params_without_hosts(first_trial.params),
        hosts=hosts,
        planned_hosts=first.hosts,
        metric=metric,
        total=estimate(totals),
        sums=sums,
        host_rates=_host_rates(all_repeats, metric),
        start_spread_s=max(spreads_s, default=None),
        together_share=min(shares, default=None),
        label=cold_label([trial for trial, _ in repeats]),
    )


def _host_rates(repeats: Sequence[Together], metric: str) -> list[HostRate]:
    """Return the rate of each host over all repeats, in the order of the hosts' numbers."""
    rates: dict[int, list[float]] = {}
    for together in repeats:
        for part in together.parts:
            rate = part.metrics.get(metric)
            if part.status == "done" and is_number(rate):
                rates.setdefault(part.host, []).append(float(rate))
    return [HostRate(host, estimate(values)) for host, values in sorted(rates.items())]
