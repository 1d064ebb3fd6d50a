"""The analysis of several hosts: points, problems, findings, the verdict and the sizing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from iobench.analysis.analyse import analyse, summarised
from iobench.analysis.host_scaling import HostCurve
from iobench.analysis.hosts import host_points, host_problems
from iobench.cli.main import app
from iobench.config.benchmark import BenchConfig
from iobench.results.host_sums import combine_host_parts
from iobench.results.result import HostFacts, Result
from iobench.results.trial import HostPart, Trial
from tests.iobench.analysis.made import PROBED, SAMPLE_BYTES, loader, loop, probe, run

Rates = Sequence[float | None]


def on_hosts(trials: Sequence[Trial], rates: Rates, *, share: float = 1.0) -> list[Trial]:
    """Return the same trials on several hosts.

    Args:
        trials: trials of one host.
        rates: for each host, its rate as a multiple of the trials' own; None if the host failed.
        share: the share of the time in which all hosts measured.
    """
    results = []
    for trial in trials:
        parts = []
        for host, rate in enumerate(rates):
            if rate is None:
                parts.append(HostPart(host, "failed", "it gave no result"))
                continue
            metrics = {
                name: value * rate if name in ("samples_per_s", "mb_per_s") else value
                for name, value in trial.metrics.items()
            }
            ended_s = 10.0 if host else 10.0 * share
            parts.append(HostPart(host, "done", "", metrics, trial.cold, (0.0, 0.04), ended_s))
        own = parts[0].metrics
        results.append(replace(trial, metrics=own, hosts=combine_host_parts(len(rates), parts)))
    return results


def fewer(trials: Sequence[Trial], rates: Rates) -> list[Trial]:
    """Return the same trials as planned on this smaller number of hosts."""
    count = len(rates)
    planned = []
    for trial in on_hosts(trials, rates):
        params = {**trial.params, "hosts": count}
        planned.append(replace(trial, params=params, id=f"{trial.id}/{count}"))
    return planned


def of_hosts(hosts: int, *trials: list[Trial], **config: Any) -> Result:
    """Return a run of these trials on this number of hosts."""
    facts = tuple(HostFacts(host) for host in range(hosts))
    return replace(run(*trials, **config), hosts=facts)


GETS = probe({(8_000_000, 8): 30.0})


def test_a_point_has_the_sum_and_the_slowest_host() -> None:
    """The sum, the slowest host and the spread of starts are medians over repeats."""
    (point,) = host_points(on_hosts(GETS, (1.0, 0.5, 1.5)))
    assert (point.hosts, point.planned_hosts, point.metric) == (3, 3, "mb_per_s")
    assert point.total.median == pytest.approx(90.0, rel=0.01)
    assert point.slowest.host == 1
    assert point.slowest.rate.median == pytest.approx(15.0, rel=0.01)
    assert point.evenness == pytest.approx(0.5, rel=0.01)
    assert point.start_spread_s == pytest.approx(0.04)


def test_points_on_other_numbers_of_hosts_stand_apart() -> None:
    """Trials on other numbers of hosts, or with a missing host, are points of their own."""
    one_missing = on_hosts(GETS, (1.0, 1.0, None))
    alone = fewer(GETS, (2.0,))
    complete = on_hosts(GETS, (1.0, 1.0, 1.0))
    points = host_points([*one_missing, *alone, *complete])
    numbers = [(point.hosts, point.planned_hosts) for point in points]
    assert numbers == [(1, 1), (2, 3), (3, 3)]


def test_the_verdict_begins_with_all_hosts() -> None:
    """The verdict gives the rate of all hosts, and then what host 0 saw meanwhile."""
    result = analyse(of_hosts(3, on_hosts(GETS, (1.0, 0.9, 1.1))))
    message = "3 hosts together get 90 MB/s; the slowest, host 1, gets 27 MB/s."
    assert result.verdict.startswith(message)
    assert "Host 0: The object store s3 gives at most 30 MB/s" in result.verdict


def test_a_loop_that_reads_nothing_does_not_stand_for_the_run() -> None:
    """The loop that reads represents the run, also if a host is missing in it."""
    trials = [
        *on_hosts(loop("synthetic", 100.0), (1.0, 1.0, 1.0)),
        *on_hosts(loop("warm", 90.0), (1.0, 0.9, None)),
    ]
    message = "2 of 3 hosts together get 171 samples/s; the slowest, host 1, gets 81 samples/s."
    assert analyse(of_hosts(3, trials)).verdict.startswith(message)


def bounded_hosts(*metrics: Mapping[str, float]) -> list[Trial]:
    """Return trials of a loader whose hosts have these metrics instead of a rate."""
    trials = []
    for trial in loader(1000, 2):
        parts = [
            HostPart(host, "done", "", own, trial.cold, (0.0, 0.04), 10.0)
            for host, own in enumerate(metrics)
        ]
        hosts = combine_host_parts(len(parts), parts)
        trials.append(replace(trial, metrics=metrics[0], hosts=hosts))
    return trials


BOUNDS = {"samples_per_s_low": 290.0, "samples_per_s_high": 1256.0}


def test_the_verdict_names_bounds_where_no_host_has_a_rate() -> None:
    """The sum and the rate of the slowest host are shown as lower bounds."""
    verdict = analyse(of_hosts(2, bounded_hosts(BOUNDS, BOUNDS))).verdict
    assert verdict.startswith(
        "2 hosts together get 580 samples/s or more; the slowest, host 0, gets 290 samples/s or "
        "more."
    )


def test_hosts_are_compared_by_a_rate_that_all_have() -> None:
    """The first host's samples/s are not used if another host has only bounds of them."""
    rate = {"samples_per_s": 1000.0, "mb_per_s": 40.0}
    (point,) = host_points(bounded_hosts(rate, {**BOUNDS, "mb_per_s": 30.0}))
    assert (point.metric, point.total.median, point.slowest.host) == ("mb_per_s", 70.0, 1)
    assert host_points(bounded_hosts(rate, BOUNDS)) == []


def test_a_run_of_one_host_says_nothing_of_hosts() -> None:
    """Neither the verdict nor the summary mentions hosts."""
    result = analyse(run(GETS))
    assert "host" not in result.verdict.lower()
    assert "hosts" not in result.summary


def test_trials_on_fewer_hosts_change_no_other_figure() -> None:
    """Trials on fewer hosts are not taken for faster repeats."""
    two_hosts = on_hosts(GETS, (1.0, 1.0))
    alone = summarised(of_hosts(2, two_hosts)).summary
    both = summarised(of_hosts(2, two_hosts, fewer(GETS, (3.0,)))).summary
    assert both["object_stores"] == alone["object_stores"]
    assert len(both["hosts"]["points"]) == 2


@pytest.mark.parametrize(
    ("rates", "share", "code"),
    [
        ((1.0, 1.0, None), 1.0, "host-missing"),
        ((1.0, 1.0, 0.7), 1.0, "hosts-uneven"),
        ((1.0, 1.0, 1.0), 0.7, "hosts-apart"),
    ],
)
def test_faults_of_hosts_are_findings(rates: Rates, share: float, code: str) -> None:
    """A missing host, a slow host and hosts that measured at other times are findings."""
    findings = analyse(of_hosts(3, on_hosts(GETS, rates, share=share))).findings
    codes = {finding.code for finding in findings}
    assert {"host-missing", "hosts-uneven", "hosts-apart"} & codes == {code}


def test_even_hosts_that_measure_together_are_no_finding() -> None:
    """Differences within the usual spread are no finding."""
    findings = analyse(of_hosts(3, on_hosts(GETS, (1.0, 0.85, 1.1)))).findings
    assert not [finding for finding in findings if finding.code.startswith("host")]


def test_a_missing_host_is_named_with_its_reason() -> None:
    """The message has the host, the number of trials without its result, and the reason."""
    (problem,) = host_problems([*on_hosts(GETS, (1.0, None)), *on_hosts(GETS, (1.0, 1.0))])
    assert problem.sentence == "host 1 has no result in 6 of 12 trials: it gave no result"


CURVE = {1: 100.0, 2: 190.0, 4: 300.0}


@pytest.mark.parametrize(
    ("rate", "hosts"), [(50.0, 1), (100.0, 1), (150.0, 2), (245.0, 3), (300.0, 4)]
)
def test_hosts_between_measured_numbers_are_interpolated(rate: float, hosts: int) -> None:
    """The result is the smallest number of hosts that reaches the rate."""
    assert HostCurve("store", CURVE, "").hosts_for(rate) == hosts


def test_a_store_that_gives_all_hosts_no_more_is_never_enough() -> None:
    """The law fitted to the measured numbers shows that no number of hosts is enough."""
    full = HostCurve("store", {1: 100.0, 2: 110.0, 4: 112.0}, "")
    assert full.hosts_for(1000.0) is None
    assert full.hosts_for(111.0) == 3


def test_one_measured_number_is_extrapolated_in_proportion() -> None:
    """The rate is assumed to be proportional to the hosts if one number was measured."""
    assert HostCurve("store", {3: 300.0}, "").hosts_for(1000.0) == 10


def scaled(folder: Path, result: Result, *options: str) -> str:
    """Return what ``iobench scale`` prints for a result."""
    (folder / "result.json").write_bytes(result.to_json())
    done = CliRunner().invoke(app, ["scale", str(folder), *options])
    assert done.exit_code == 0, done.output
    return done.output


def result_of_hosts(rates: Mapping[int, float]) -> Result:
    """Return a run with a loop that reads a store, and with the probe of the store.

    ``rates`` holds the probe's sum over all hosts in MB/s, by the number of hosts.
    """
    most = max(rates)
    trials = [loader(4000, 2), loop("synthetic", 2000), loop("store", 500)]
    for hosts, rate in sorted(rates.items()):
        single_host = probe({(8_000_000, 8): rate / hosts})
        parts = (1.0,) * hosts
        trials.append(on_hosts(single_host, parts) if hosts == most else fewer(single_host, parts))
    config = BenchConfig().model_dump(mode="json")
    config.pop("data")
    return of_hosts(most, *trials, **{**config, **PROBED})


def test_scale_uses_the_curve_over_hosts(tmp_path: Path) -> None:
    """The output has the measured curve and says from how many hosts on it is extrapolated."""
    result = result_of_hosts({1: 80.0, 2: 160.0, 4: 240.0})
    rate = 4000  # Two devices consume 2,000 samples/s of 40 kB each, which are 160 MB/s.
    assert rate * SAMPLE_BYTES == 160e6
    output = scaled(tmp_path, result, "--devices", "2")
    line = next(line for line in output.splitlines() if "together" in line)
    assert "2,000 on 1 host, 4,000 on 2 hosts, 6,000 on 4 hosts" in line
    assert line.endswith(("2 hosts needed", "3 hosts needed"))
    output = scaled(tmp_path, result, "--devices", "4")
    line = next(line for line in output.splitlines() if "together" in line)
    assert line.endswith("extrapolated beyond 4 measured hosts")


def test_scale_says_where_no_number_of_hosts_is_enough(tmp_path: Path) -> None:
    """A store that gives four hosts what it gives one is never enough."""
    output = scaled(tmp_path, result_of_hosts({1: 80.0, 2: 81.0, 4: 82.0}), "--devices", "64")
    assert "No number of hosts is enough: the store does not get faster." in output
    assert "no number of hosts gets the rate, extrapolated beyond 4 measured hosts" in output
