"""Estimate the time of a run, and the number and the price of its requests to Amazon's S3.

``iobench.trials.trial_duration`` has the assumptions about the durations of trials.

The numbers of requests are upper limits. The limits assume that:

- a probe ends after its seconds or its ``max_requests``. A loader or a training loop ends when its
  rate is known and its minimum duration is over, or after ``trial_timeout_s``;
- S3 takes at least 10 ms to answer (20 ms were measured within a region), so that a connection
  sends at most 100 requests per second;
- a loader of another package has at most two requests in flight for each worker;
- loaders start at most 10 s before their measurement;
- no sample is read twice in an epoch.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.config.prices import Price, read_prices, storage_price
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.reading.record_reader import RANGES_AT_ONCE
from dataprep.stores import StoreOptions
from iobench.analysis.store_limits import connections_of
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import (
    from_other_packages,
    in_config_order,
    location_names,
    name_clashes,
    trials,
)
from iobench.data.data_summary import DataSummary
from iobench.data.expected_size import ExpectedData
from iobench.data.settings import AS_FILES, DataSettings, split_name
from iobench.errors import NotApproved
from iobench.loaders.samples_in_memory import MAX_THREADS
from iobench.machine.object_stores import describe_store, endpoint_of
from iobench.probes.object_store import objects as probe_objects
from iobench.results.numbers import rough_duration, rough_duration_range
from iobench.results.result import STEADY_STATE, Result, errors_naming
from iobench.results.trial import Params, Trial, TrialSpec
from iobench.results.wording import point_words
from iobench.runner.run_folder import differing_machine, holds_run, read
from iobench.trials.ladder import PRELOADED_RUNGS
from iobench.trials.trial_duration import TrialDuration, estimate_duration, rate_key
from iobench.trials.window import MIN_EPOCHS

_MAX_REQUESTS_PER_S = 100
"""The largest number of requests that one connection sends in a second."""
_CONNECTIONS_PER_WORKER = 2
"""The number of connections of a worker in a loader of another package."""
_START_S = 10.0
"""Loaders start at most this long before their measurement."""
_GETS_TO_OPEN = 4
"""The GET requests that open a data set: its manifest, its labels and its table of samples."""
_KEYS_PER_LISTING = 1_000
"""The number of keys in one answer of S3 to LIST."""
_PART_BYTES = 5 * 2**20
"""The size of the parts in which s5cmd and awscli copy large objects."""
_MAX_SHOWN_VALUES = 5
_MAX_DEVICES = 16
"""The assumed number of devices for ``devices: all``."""
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
"""Settings whose values are shown without the name of the setting."""
_SETTINGS_WITH_NAME = ("cache", "input", "workers", "connections", "devices")


@dataclass(frozen=True, slots=True)
class BilledStore:
    """A store whose requests Amazon bills.

    Attributes:
        uri: its address.
        price: the price of requests; None if it is unknown.
        source: the file of the price, with a remark about the price.
    """

    uri: str
    price: Price | None
    source: str


Requests: TypeAlias = Counter[str]
"""Numbers of requests by kind: ``puts``, ``gets`` and ``lists``. HEAD counts as GET, because both
have the same price."""


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
        planned: the trials in the order in which they run.
        in_config_order: the trials in the order in which the config names them.
        max_s: the time if every trial takes ``trial_timeout_s``.
        requests: the maximum numbers of requests to each store.
        measured_before: the number of trials that a continued run already has.
        from_other_packages: loaders, consumers and clients of other packages: ``loader mine`` to
            ``package 1.0``.
        warnings: sentences about facts that could not be determined, or settings to change.
    """

    name: str
    planned: Sequence[PlannedTrial]
    in_config_order: Sequence[TrialSpec]
    max_s: float
    requests: Mapping[BilledStore, Requests] = field(default_factory=dict)
    measured_before: int = 0
    from_other_packages: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def likely_s(self) -> tuple[float, int]:
        """The time of all trials with a likely duration, and the number of trials without one."""
        durations_s = [trial.duration.likely_s for trial in self.planned]
        known_s = [duration_s for duration_s in durations_s if duration_s is not None]
        return sum(known_s), len(durations_s) - len(known_s)

    def on_hosts(self, hosts: int, counts: Sequence[int]) -> Forecast:
        """The estimate for a run on several hosts.

        Each trial runs on all hosts, and then again on each smaller number of hosts. Every host
        sends all requests of the trials in which it takes part.

        Args:
            hosts: the number of hosts.
            counts: the smaller numbers of hosts.
        """
        rounds = 1 + len(counts)
        trials_of_hosts = hosts + sum(counts)
        requests = {}
        for store, numbers in self.requests.items():
            requests[store] = Counter(
                {kind: count * trials_of_hosts for kind, count in numbers.items()}
            )
        return replace(
            self, planned=[*self.planned] * rounds, max_s=self.max_s * rounds, requests=requests
        )

    @property
    def range_s(self) -> tuple[float, float]:
        """The shortest time, and the time at the lowest assumed rates."""
        return _range_s(self.planned)

    @property
    def usd(self) -> float | None:
        """The maximum cost in dollars; None if it is unknown."""
        total = 0.0
        for store, numbers in self.requests.items():
            if store.price is None:
                return None
            total += store.price.requests_cost(numbers["puts"], numbers["gets"], numbers["lists"])
        return total

    @property
    def cost(self) -> str:
        """The cost as text: ``requests to S3 for $0.12 at most``."""
        if not self.requests:
            return "no requests that are billed"
        usd = self.usd
        if usd is None:
            return "requests to S3 at an unknown price"
        amount = f"${usd:,.2f}" if usd >= 0.1 else f"${usd:.2g}"
        return f"requests to S3 for {amount} at most"

    def totals(self) -> dict[str, Any]:
        """The sums over all trials, as in ``result.json``."""
        likely_s, unknown = self.likely_s
        return {
            "trials": len(self.planned),
            "measured_before": self.measured_before,
            "likely_s": round(likely_s, 3),
            "trials_of_unknown_length": unknown,
            "least_s": round(self.range_s[0], 3),
            "slowest_s": round(self.range_s[1], 3),
            "most_s": self.max_s,
            "usd": self.usd,
        }

    def content(self) -> dict[str, Any]:
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
            verbose: whether to print a line for each trial instead of a line for each kind.
        """
        lines = [self._summary_line()]
        lines += self._trial_lines() if verbose else self._kind_lines()
        for store, numbers in self.requests.items():
            requests = (
                f"{numbers['puts']:,} PUT, {numbers['gets']:,} GET, {numbers['lists']:,} LIST"
            )
            lines.append(f"  {escape(store.uri)}: at most {requests} ({store.source})")
        for name, package in self.from_other_packages.items():
            lines.append(f"  {escape(name)}: provided by {escape(package)}")
        lines += [f"warning: {escape(warning)}" for warning in self.warnings]
        if not verbose:
            lines.append("Add --verbose for a line for each trial.")
        return "\n".join(lines)

    def _summary_line(self) -> str:
        before = f", {self.measured_before:,} measured before" if self.measured_before else ""
        _, unknown_count = self.likely_s
        unknown = f", {unknown_count:,} of unknown length" if unknown_count else ""
        return (
            f"{self.name}: {counted(len(self.planned), 'trial')} to come{before}{unknown}, "
            f"about {rough_duration_range(*self.range_s)} (at most {rough_duration(self.max_s)}), "
            f"{self.cost}"
        )

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
    """Estimate the time and the cost of a run. This function writes no files.

    Args:
        config: the config of the run.
        resumed: the folder of a run that is continued. Its trials are not run again.
        like: the folder of a saved run. The same trials are assumed to take as long as they took in
            that run.

    Raises:
        ResultError: the folder ``like`` holds no run.
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
        differing = differing_machine(like_run.environment)
        if differing:
            warnings.append(f"the times were measured on another machine ({differing} differ)")
        if like_run.rates != STEADY_STATE:
            warnings.append(
                f"{like} measured rates by an earlier rule: the times of its loaders and training "
                "loops are not used"
            )
    folders = [folder for folder in (like, resumed) if folder is not None]
    with errors_naming(*folders):
        earlier = _EarlierRuns([run for run in (like_run, resumed_run) if run is not None])
    data = ExpectedData(config.data)
    timeout_s = config.trial_timeout_s
    planned = []
    for spec in remaining:
        data_name = str(spec.params.get("over") or spec.params.get("data") or "")
        reads_data = spec.kind in ("loader", "train") and data_name != ""
        data_summary = data.summary(data_name) if reads_data else None
        planned.append(PlannedTrial(spec, earlier.duration(spec, data_summary, timeout_s)))
    requests = _requests(config, remaining, data)
    problems = [trial.duration.problem for trial in planned if trial.duration.problem]
    return Forecast(
        name=config.name,
        planned=planned,
        in_config_order=in_config_order(config, remaining),
        max_s=timeout_s * len(remaining),
        requests=requests,
        measured_before=len(specs) - len(remaining),
        from_other_packages=from_other_packages(remaining),
        warnings=[*warnings, *data.problems, *dict.fromkeys(problems)],
    )


def require_approval(
    estimate: Forecast, limit_usd: float, *, yes: bool, ask: Callable[[str], bool] | None
) -> None:
    """Check that the requests cost at most ``limit_usd``, or that the user agrees.

    Args:
        estimate: the estimate of the run.
        limit_usd: the maximum cost without approval, in dollars.
        yes: whether the user agreed on the command line.
        ask: a function that asks the user a question; None if there is no terminal.

    Raises:
        NotApproved: the answer is no, or there is no terminal to ask.
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
    """The sums of the shortest and of the longest durations of trials."""
    min_s = sum(trial.duration.min_s for trial in planned)
    max_s = sum(trial.duration.max_s for trial in planned)
    return min_s, max_s


class _EarlierRuns:
    """The durations of trials in earlier runs, and the rates of their loops.

    Args:
        runs: the results of the runs. Trials of loaders and training loops that earlier versions
            measured by another rule are left out, because they took another time.
    """

    def __init__(self, runs: Sequence[Result]) -> None:
        self._durations_s: dict[str, list[float]] = defaultdict(list)
        """The durations of the trials of each point, by the id of its first trial."""
        self._rates: dict[str, list[float]] = defaultdict(list)
        """The samples/s of loops, by their ``rate_key``."""
        for run in runs:
            for trial in run.trials:
                has_earlier_rule = trial.kind in ("loader", "train") and run.rates != STEADY_STATE
                if trial.status == "done" and trial.seconds > 0 and not has_earlier_rule:
                    self._add(trial)

    def _add(self, trial: Trial) -> None:
        spec = TrialSpec(trial.kind, trial.params)
        self._durations_s[spec.id].append(trial.seconds)
        rate = trial.metrics.get("samples_per_s") or trial.metrics.get("samples_per_s_low")
        if rate:
            self._rates[rate_key(spec)].append(float(rate))

    def duration(
        self, spec: TrialSpec, data: DataSummary | None, timeout_s: float
    ) -> TrialDuration:
        """Estimate the duration of a trial.

        If the earlier runs have measured the same point, the estimate is the range of its
        durations. Otherwise it is computed, with the median rate of earlier trials of this loop if
        there are any.
        """
        rates = self._rates.get(rate_key(spec))
        median_rate = statistics.median(rates) if rates else None
        estimate = estimate_duration(spec, data, timeout_s, median_rate)
        durations_s = self._durations_s.get(TrialSpec(spec.kind, spec.params).id)
        if not durations_s:
            return estimate
        return replace(
            estimate,
            min_s=min(*durations_s, timeout_s),
            likely_s=min(statistics.median(durations_s), timeout_s),
            max_s=min(max(durations_s), timeout_s),
        )


def _requests(
    config: BenchConfig, specs: Sequence[TrialSpec], data: ExpectedData
) -> dict[BilledStore, Requests]:
    """The maximum numbers of requests to each store on Amazon's S3."""
    stores = _billed(config, specs)
    on_s3 = any("@s3" in name for name in stores)
    samples = data.samples if on_s3 else 0
    requests: dict[BilledStore, Requests] = defaultdict(Counter)
    for name, store in stores.items():
        objects = 0
        if "@s3" in name and own_store_uri(name, config.data) is None:
            objects = _copied_objects(name, config.data, samples)
        requests[store] += Requests(puts=objects, gets=objects)
    for spec in specs:
        for name in stores.keys() & set(location_names(spec)):
            store = stores[name]
            if spec.kind == "object":
                requests[store] += _probe_requests(spec.params)
            else:
                requests[store] += _reading_requests(name, spec, samples, config.trial_timeout_s)
    return requests


def _copied_objects(name: str, data: DataSettings, samples: int) -> int:
    """The number of objects that are copied to the store before they are read."""
    form, size, _ = split_name(name)
    if form in AS_FILES:
        return samples
    # An image in a shard has at most 1 MB. Each shard also has indexes and a receipt.
    shards = samples * 1_000_000 // (size or int(data.shard_size)) + 1
    return 6 * min(shards, samples) + 5


def _probe_requests(params: Params) -> Requests:
    """The maximum numbers of requests of a trial of the probe of object stores.

    The trial sends two listings, and a GET of one byte to open each connection. Then it sends
    requests until it ends. Before objects are read, they are written and checked. In the worst case
    every trial does this.
    """
    size, streams = params["object_bytes"], int(params["connections"])
    objects = probe_objects.whole_objects(size, params["pool_bytes"]).count
    count = min(max(params["max_requests"], streams), _requests_in(params["seconds"], streams))
    opening = Requests(gets=1 + streams, lists=2)
    if params["client"] in ("s5cmd", "awscli"):  # whole rounds over all objects
        count += objects
        opening += Requests(gets=count * (1 + size // _PART_BYTES), lists=count)
    if params["operation"] in ("get", "range_get"):
        return opening + Requests(puts=objects, gets=count + objects)
    parts = 1
    if params["operation"] == "multipart":
        parts = -(-size // params["part_bytes"]) + 2
    return opening + Requests(puts=count * parts)


def _reading_requests(name: str, spec: TrialSpec, samples: int, timeout_s: float) -> Requests:
    """The maximum numbers of requests of a loader, a training loop or a layout probe."""
    params = spec.params
    processes = int(params.get("processes", 1))
    workers = max(1, int(params.get("workers", params.get("parallelism", 1))))
    ranks = params.get("accelerators") or params.get("devices", 1)
    ranks = _MAX_DEVICES if ranks == "all" else int(ranks)
    streams = _connections(spec, workers) * processes * ranks
    if params.get("input") in PRELOADED_RUNGS or params.get("access") == "file":
        streams = max(streams, MAX_THREADS)
    max_gets = _requests_in(timeout_s, streams)
    if spec.kind == "layout":
        max_gets = _requests_in(params["seconds"] + _START_S, streams)
    else:
        gets = _max_samples(params, samples, ranks)  # In the worst case, one GET for each sample.
        if "seconds" in params and not params.get("epochs"):
            # The loader goes on until the seconds are over, also if its rate is known long before.
            gets += _requests_in(params["seconds"] + _START_S, streams)
        max_gets = min(max_gets, gets)
    keys = samples if split_name(name)[0] in AS_FILES else 0
    lists = (1 + keys // _KEYS_PER_LISTING) * (1 + processes)
    return Requests(gets=max_gets + _GETS_TO_OPEN * (1 + streams), lists=lists)


def _connections(spec: TrialSpec, workers: int) -> int:
    """The maximum number of requests that a process has in flight."""
    if spec.kind == "layout":
        return 2 * workers
    connections = connections_of(spec.params)
    if connections is None:
        return _CONNECTIONS_PER_WORKER * workers
    is_by_window = spec.params.get("loader") in ("torch-iterable", "tf-data")
    return connections * RANGES_AT_ONCE if is_by_window else connections


def _max_samples(params: Params, samples: int, ranks: int) -> int:
    """The maximum number of samples that a trial reads until it ends by itself."""
    whole_epochs = max(MIN_EPOCHS, int(params.get("epochs") or 1)) * samples
    if "steps" not in params:
        return whole_epochs
    # The trial may stop within an epoch. Of each epoch, half of the samples may not count.
    return whole_epochs + samples + 2 * int(params["steps"]) * int(params["batch_size"]) * ranks


def _requests_in(seconds: float, streams: int) -> int:
    """The maximum number of requests that connections send in a time."""
    return int(streams * (seconds * _MAX_REQUESTS_PER_S + 1))


def own_store_uri(name: str, data: DataSettings) -> str | None:
    """The address of data on the user's own store; None if the trials read a copy of the data."""
    uri = {"shards@s3": data.shards, "photos@s3": data.source}.get(name) or ""
    return uri if "://" in uri else None


def _billed(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, BilledStore]:
    """The stores on Amazon's S3, by the names of the data and targets on them.

    Stores at other endpoints are left out, since their requests have no known price.
    """
    data = config.data
    billed = {}
    targets = config.object_store.targets if config.object_store else ()
    stores = {f"store/{target.label}": (target.uri, target.store) for target in targets}
    prices_path = Path(config.prices).expanduser() if config.prices else None
    for name in dict.fromkeys(name for spec in specs for name in location_names(spec)):
        if "@s3" in name:
            own_uri = own_store_uri(name, data)
            if own_uri:
                stores[name] = own_uri, data.store
            else:
                stores[name] = data.bucket.uri, data.bucket.store
        uri, options = stores.get(name, ("", StoreOptions()))
        # A store without a known endpoint is assumed to be Amazon's.
        endpoint = endpoint_of(options)[0] or "https://amazonaws.com"
        if describe_store(uri, endpoint)["kind"].startswith("aws-s3"):
            price, remark = storage_price(read_prices(prices_path), options)
            source = config.prices or "example prices, to be edited"
            billed[name] = BilledStore(uri, price, f"{source}: {remark}")
    return billed
