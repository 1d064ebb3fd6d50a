"""Estimate the time of a run, and the number and the price of its requests to Amazon's S3.

``iobench.trials.trial_duration`` has the assumptions about the durations of trials, and
``iobench.runner.billed_requests`` has the assumptions about requests.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import (
    from_other_packages,
    in_config_order,
    name_clashes,
    trials,
)
from iobench.data.data_summary import DataSummary
from iobench.data.expected_size import ExpectedData
from iobench.errors import NotApproved
from iobench.results.numbers import rough_duration, rough_duration_range
from iobench.results.result import STEADY_STATE, Result, errors_naming
from iobench.results.trial import Trial, TrialSpec
from iobench.results.wording import point_words
from iobench.runner.billed_requests import BilledStore, RequestCounts, max_requests_by_store
from iobench.runner.run_differences import differing_machine
from iobench.runner.run_folder import holds_run, read
from iobench.trials.trial_duration import TrialDuration, estimate_duration, rate_key

_MAX_SHOWN_VALUES = 5
"""The maximum number of values of a setting in a line of the forecast. It keeps lines short."""

_SETTINGS_WITHOUT_NAME = (
    "group",
    "loader",
    "client",
    "operation",
    "consumer",
    "target",
    "store",
    "data",
    "access",
)
"""Settings whose values are shown without the name of the setting, since values such as
``torch-map`` or ``shards@disk`` can be understood without it."""
_SETTINGS_WITH_NAME = ("cache", "input", "workers", "connections", "devices")
"""Settings whose values are shown after the name of the setting: ``workers 1, 2``."""


class ForecastTotals(TypedDict):
    """The sums over all trials of a forecast, as in ``result.json``. Times are in seconds.

    Attributes:
        trials: the number of trials to measure.
        measured_before: as in ``Forecast``.
        likely_s: the sum of the likely durations, over the trials that have one.
        trials_of_unknown_length: the number of trials that have no likely duration.
        least_s: the sum of the shortest durations (``TrialDuration.min_s``).
        slowest_s: the sum of the longest estimated durations (``TrialDuration.max_s``).
        most_s: the time if every trial takes ``trial_timeout_s``.
        usd: the maximum cost of the requests in dollars; None if a price is unknown.
    """

    trials: int
    measured_before: int
    likely_s: float
    trials_of_unknown_length: int
    least_s: float
    slowest_s: float
    most_s: float
    usd: float | None


class ForecastContent(TypedDict):
    """A forecast, as ``iobench run --dry-run --json`` prints it.

    Attributes:
        trials: the trials with their durations, in the order of ``Forecast.planned``.
        total: the sums over all trials.
        from_other_packages: as in ``Forecast``.
        warnings: as in ``Forecast``.
    """

    trials: list[dict[str, Any]]
    total: ForecastTotals
    from_other_packages: dict[str, str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A planned trial and its estimated duration."""

    spec: TrialSpec
    duration: TrialDuration


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimated time and cost of a run.

    Attributes:
        name: the name of the config.
        planned: the trials to measure, in the order in which one host runs them. For several hosts,
            the list is repeated (see ``on_hosts``).
        in_config_order: the same trials in the order in which the config names them. The list is
            not repeated for several hosts.
        max_s: the time in seconds if every trial takes ``trial_timeout_s``.
        requests: the maximum numbers of requests to each store whose requests Amazon bills.
        measured_before: the number of trials that are not measured again, because the continued run
            has them with the status ``done``.
        from_other_packages: the packages that provide plug-ins, by the kind and the name of the
            plug-in. ``loader mine`` has the value ``package 1.0``.
        warnings: sentences about facts that could not be determined, or settings to change.
    """

    name: str
    planned: Sequence[PlannedTrial]
    in_config_order: Sequence[TrialSpec]
    max_s: float
    requests: Mapping[BilledStore, RequestCounts] = field(default_factory=dict)
    measured_before: int = 0
    from_other_packages: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def likely_s(self) -> tuple[float, int]:
        """The sum of the likely durations, and the number of trials that have none."""
        durations_s = [trial.duration.likely_s for trial in self.planned]
        likely_durations_s = [duration_s for duration_s in durations_s if duration_s is not None]
        return sum(likely_durations_s), len(durations_s) - len(likely_durations_s)

    def on_hosts(self, hosts: int, counts: Sequence[int]) -> Forecast:
        """The estimate for a run on several hosts.

        Each trial runs once on all hosts, and once on each smaller number of hosts. Assumes that
        it takes the same time on any number of hosts. In each of these measurements, every host
        that takes part sends as many requests as a single host.

        Args:
            hosts: the number of all hosts.
            counts: the smaller numbers of hosts.
        """
        measurements = 1 + len(counts)
        hosts_of_all_measurements = hosts + sum(counts)
        requests = {}
        for store, request_counts in self.requests.items():
            requests[store] = RequestCounts()
            for request, count in request_counts.items():
                requests[store][request] = count * hosts_of_all_measurements
        return replace(
            self,
            planned=[*self.planned] * measurements,
            max_s=self.max_s * measurements,
            requests=requests,
        )

    @property
    def range_s(self) -> tuple[float, float]:
        """The sums of the shortest and of the longest estimated durations, in seconds."""
        return _range_s(self.planned)

    @property
    def usd(self) -> float | None:
        """The maximum cost of the requests in dollars; None if the price of a store is unknown."""
        total_usd = 0.0
        for store, counts in self.requests.items():
            if store.price is None:
                return None
            total_usd += store.price.requests_cost(counts["puts"], counts["gets"], counts["lists"])
        return total_usd

    @property
    def cost(self) -> str:
        """The cost as text: ``requests to S3 for $0.12 at most``."""
        if not self.requests:
            return "no requests that are billed"
        usd = self.usd
        if usd is None:
            return "requests to S3 at an unknown price"
        # An amount below ten cents has two significant digits, since in whole cents it may be 0.
        amount = f"${usd:,.2f}" if usd >= 0.1 else f"${usd:.2g}"
        return f"requests to S3 for {amount} at most"

    def totals(self) -> ForecastTotals:
        """The sums over all trials, as in ``result.json``."""
        likely_s, unknown = self.likely_s
        shortest_s, slowest_s = self.range_s
        return {
            "trials": len(self.planned),
            "measured_before": self.measured_before,
            "likely_s": round(likely_s, 3),
            "trials_of_unknown_length": unknown,
            "least_s": round(shortest_s, 3),
            "slowest_s": round(slowest_s, 3),
            "most_s": self.max_s,
            "usd": self.usd,
        }

    def content(self) -> ForecastContent:
        """The estimate as JSON."""
        return {
            "trials": [_trial_content(trial) for trial in self.planned],
            "total": self.totals(),
            "from_other_packages": dict(self.from_other_packages),
            "warnings": list(self.warnings),
        }

    def text(self, *, verbose: bool = False) -> str:
        """The estimate for a terminal.

        Args:
            verbose: whether to show a line for each trial, instead of a line for each kind of
                trials.
        """
        lines = [self._summary_line()]
        lines += self._trial_lines() if verbose else self._kind_lines()
        for store, counts in self.requests.items():
            requests = f"{counts['puts']:,} PUT, {counts['gets']:,} GET, {counts['lists']:,} LIST"
            lines.append(f"  {escape(store.uri)}: at most {requests} ({store.source})")
        for name, package in self.from_other_packages.items():
            lines.append(f"  {escape(name)}: provided by {escape(package)}")
        lines += [f"warning: {escape(warning)}" for warning in self.warnings]
        if not verbose:
            lines.append("Add --verbose for a line for each trial.")
        return "\n".join(lines)

    def _summary_line(self) -> str:
        trials = f"{counted(len(self.planned), 'trial')} to come"
        if self.measured_before:
            trials += f", {self.measured_before:,} measured before"
        _, unknown_count = self.likely_s
        if unknown_count:
            trials += f", {unknown_count:,} of unknown length"
        likely, longest = rough_duration_range(*self.range_s), rough_duration(self.max_s)
        return f"{self.name}: {trials}, about {likely} (at most {longest}), {self.cost}"

    def _trial_lines(self) -> Iterator[str]:
        for trial in self.planned:
            duration = rough_duration_range(trial.duration.min_s, trial.duration.max_s)
            yield f"  {duration:>16}  {escape(point_words(trial.spec))}"

    def _kind_lines(self) -> Iterator[str]:
        counts = Counter(spec.kind for spec in self.in_config_order)
        for kind, count in counts.items():
            trials_of_kind = [trial for trial in self.planned if trial.spec.kind == kind]
            duration = rough_duration_range(*_range_s(trials_of_kind))
            yield f"  {kind:<8} {count:>5,}  {duration:<16}  {self._describe_settings(kind)}"

    def _describe_settings(self, kind: str) -> str:
        """The settings of trials of a kind: ``torch-iterable; shards@disk; workers 1, 2``."""
        params_of_kind = [spec.params for spec in self.in_config_order if spec.kind == kind]
        texts = []
        for key in (*_SETTINGS_WITHOUT_NAME, *_SETTINGS_WITH_NAME):
            values: dict[str, None] = {}  # a set that keeps the order
            for params in params_of_kind:
                if params.get(key) not in (None, ""):
                    values[str(params[key])] = None
            if not values:
                continue
            text = ", ".join(list(values)[:_MAX_SHOWN_VALUES])
            if len(values) > _MAX_SHOWN_VALUES:
                text += ", ..."
            texts.append(f"{key} {text}" if key in _SETTINGS_WITH_NAME else text)
        return escape("; ".join(texts))


def forecast(
    config: BenchConfig, *, resumed: Path | None = None, like: Path | None = None
) -> Forecast:
    """Estimate the time and the cost of a run on one host. This function writes no files.

    The durations in the runs of both folders replace the computed durations of the same trials.

    Args:
        config: the config of the run.
        resumed: the folder of a run that is continued. Its trials with the status ``done`` are not
            measured again. A folder that holds no run is ignored.
        like: the folder of a saved run whose durations are used.

    Raises:
        ResultError: the folder ``like`` holds no run, or the run in one of the folders is damaged.
        SchemaTooNew: a newer version wrote one of the runs.
        ConfigError: the file of prices cannot be read.
    """
    specs = trials(config)
    resumed_run = read(resumed) if resumed is not None and holds_run(resumed) else None
    like_run = read(like) if like is not None else None
    done_ids = set()
    if resumed_run is not None:
        done_ids = {trial.id for trial in resumed_run.trials if trial.status == "done"}
    remaining = [spec for spec in specs if spec.id not in done_ids]
    warnings = list(name_clashes(remaining))
    if like_run is not None:
        warnings += _warnings_about(like_run, str(like))
    folders = [folder for folder in (like, resumed) if folder is not None]
    with errors_naming(*folders):
        earlier_runs = _EarlierRuns([run for run in (like_run, resumed_run) if run is not None])
    data = ExpectedData(config.data)
    planned = [_plan(spec, earlier_runs, data, config.trial_timeout_s) for spec in remaining]
    requests = max_requests_by_store(config, remaining, data)
    problems = [trial.duration.problem for trial in planned if trial.duration.problem]
    unique_problems = dict.fromkeys(problems)  # The repeats of a point have the same problem.
    return Forecast(
        name=config.name,
        planned=planned,
        in_config_order=in_config_order(config, remaining),
        max_s=config.trial_timeout_s * len(remaining),
        requests=requests,
        measured_before=len(specs) - len(remaining),
        from_other_packages=from_other_packages(remaining),
        warnings=[*warnings, *data.problems, *unique_problems],
    )


def require_approval(
    estimate: Forecast, limit_usd: float, *, yes: bool, ask: Callable[[str], bool] | None
) -> None:
    """Check that the requests cost at most ``limit_usd``, or that the user agrees.

    If the cost is unknown, the user must agree.

    Args:
        estimate: the estimate of the run.
        limit_usd: the maximum cost without approval, in dollars.
        yes: whether the user agreed on the command line.
        ask: asks the user a question, and returns whether the answer is yes; None if there is no
            terminal.

    Raises:
        NotApproved: the answer is no, or the user cannot be asked.
    """
    if yes or (estimate.usd is not None and estimate.usd <= limit_usd):
        return
    cost = f"{estimate.cost}; cost_limit_usd is {limit_usd:g}"
    if ask is None:
        raise NotApproved(
            f"{cost}: give --yes, or --set cost_limit_usd=DOLLARS; --dry-run lists the costs"
        )
    if not ask(f"{cost}. Start?"):
        raise NotApproved("not started: nothing was measured and nothing was written")


def _warnings_about(run: Result, name: str) -> Iterator[str]:
    """Warnings that the times of a saved run may not apply to the run that is estimated.

    Args:
        run: the saved run.
        name: the path of its folder, for the warnings.
    """
    differing = differing_machine(run.environment)
    if differing:
        yield f"the times were measured on another machine ({differing} differ)"
    if run.rates != STEADY_STATE:
        yield (
            f"{name} measured rates by an earlier rule: the times of its loaders and training "
            "loops are not used"
        )


def _plan(
    spec: TrialSpec, earlier_runs: _EarlierRuns, data: ExpectedData, timeout_s: float
) -> PlannedTrial:
    """A trial with its estimated duration.

    Args:
        spec: the trial.
        earlier_runs: the durations and rates in saved runs.
        data: the sizes of the data that trials read.
        timeout_s: ``trial_timeout_s``.
    """
    # ``over`` names the data that limit the number of samples, even if the trial reads none.
    data_name = str(spec.params.get("over") or spec.params.get("data") or "")
    reads_data = spec.kind in ("loader", "train") and data_name != ""
    data_summary = data.summary(data_name) if reads_data else None
    return PlannedTrial(spec, earlier_runs.duration(spec, data_summary, timeout_s))


def _trial_content(trial: PlannedTrial) -> dict[str, Any]:
    """A planned trial as JSON."""
    return {
        "id": trial.spec.id,
        "kind": trial.spec.kind,
        "params": dict(trial.spec.params),
        "repeat": trial.spec.repeat,
        **trial.duration.content(),
    }


def _range_s(planned: Sequence[PlannedTrial]) -> tuple[float, float]:
    """The sums of the shortest and of the longest estimated durations of trials, in seconds."""
    min_s = sum(trial.duration.min_s for trial in planned)
    max_s = sum(trial.duration.max_s for trial in planned)
    return min_s, max_s


class _EarlierRuns:
    """The durations of trials in earlier runs, and the rates of loaders and training loops.

    Only trials with the status ``done`` are used. A *point* is a trial without the number of its
    repeat.

    Args:
        runs: the results of the runs. Trials of loaders and training loops whose rates do not
            follow the present rule (``STEADY_STATE``) are left out, because that rule decides when
            a trial ends.
    """

    def __init__(self, runs: Sequence[Result]) -> None:
        self._durations_s: dict[str, list[float]] = defaultdict(list)
        """The durations of the repeats of each point, by the id of its repeat 0."""
        self._rates: dict[str, list[float]] = defaultdict(list)
        """The samples/s of loaders and training loops, by the ``rate_key`` of the trial."""
        for run in runs:
            for trial in run.trials:
                has_earlier_rule = trial.kind in ("loader", "train") and run.rates != STEADY_STATE
                if trial.status == "done" and trial.seconds > 0 and not has_earlier_rule:
                    self._add(trial)

    def _add(self, trial: Trial) -> None:
        first_repeat = TrialSpec(trial.kind, trial.params)
        self._durations_s[first_repeat.id].append(trial.seconds)
        # Some rates are known only by their bounds. The lower bound gives the longer duration.
        rate = trial.metrics.get("samples_per_s") or trial.metrics.get("samples_per_s_low")
        if rate:
            self._rates[rate_key(first_repeat)].append(float(rate))

    def duration(
        self, spec: TrialSpec, data: DataSummary | None, timeout_s: float
    ) -> TrialDuration:
        """Estimate the duration of a trial.

        If the earlier runs have measured the same point, the estimate is the range of its
        durations, with their median as the likely duration. Otherwise the duration is computed.
        The computation uses the median rate of the earlier trials with the same ``rate_key``, if
        there are any.

        Args:
            spec: the trial.
            data: the data that limit the number of samples of the trial; None if there are none.
            timeout_s: ``trial_timeout_s``, the maximum of all durations.
        """
        rates = self._rates.get(rate_key(spec))
        median_rate = statistics.median(rates) if rates else None
        estimate = estimate_duration(spec, data, timeout_s, median_rate)
        first_repeat = TrialSpec(spec.kind, spec.params)
        durations_s = self._durations_s.get(first_repeat.id)
        if not durations_s:
            return estimate
        return replace(
            estimate,
            min_s=min(*durations_s, timeout_s),
            likely_s=min(statistics.median(durations_s), timeout_s),
            max_s=min(max(durations_s), timeout_s),
        )
