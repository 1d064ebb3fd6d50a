"""Estimate the time of a run, and the number and the price of its requests to Amazon's S3.

``iobench.trials.lengths`` has the assumptions about the durations of trials.

The numbers of requests are upper limits. They assume:

- A probe ends after its seconds or its ``max_requests``. A loader or a training loop ends when its
  rate is known and its minimum duration is over, or after ``trial_timeout_s``.
- S3 takes at least 10 ms to answer (20 ms were measured within a region), so that a connection
  sends at most 100 requests per second.
- A loader of another package has at most two requests in flight for each worker.
- Loaders start up to 10 s before their measurement.
- No sample is read twice in an epoch.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.config.prices import Price, read_prices, storage_price
from dataprep.counted import counted
from dataprep.names import escape
from dataprep.reading.record_reader import RANGES_AT_ONCE
from dataprep.stores import StoreOptions
from iobench.analysis.store_limits import connections_of
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import clashes, in_config_order, others, places_of, trials
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
from iobench.trials.ladder import HELD_RUNGS
from iobench.trials.trial_duration import TrialDuration, estimate_duration, rate_key
from iobench.trials.window import MIN_EPOCHS

_MAX_REQUESTS_PER_S = 100  # of a connection
_CONNECTIONS_PER_WORKER = 2  # of a loader of another package
_START_S = 10.0
_GETS_TO_OPEN = 4  # manifest, labels, table of samples
_KEYS_PER_LISTING = 1_000
_PART_BYTES = 5 * 2**20  # s5cmd and awscli copy large objects in parts
_MAX_SHOWN_VALUES = 5
_MAX_DEVICES = 16  # of a machine
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
_SETTINGS_WITH_NAME = ("cache", "input", "workers", "connections", "devices")


@dataclass(frozen=True, slots=True)
class Billed:
    """A location on Amazon's S3.

    Attributes:
        uri: its address.
        price: the price of requests; None if unknown.
        source: where the price comes from.
    """

    uri: str
    price: Price | None
    source: str


Requests: TypeAlias = Counter[str]
"""Numbers of requests by kind: ``puts``, ``gets`` (with HEAD, which costs the same), ``lists``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A planned trial and its estimated duration."""

    spec: TrialSpec
    length: TrialDuration


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimated time and cost of a run.

    Attributes:
        name: the name of the config.
        steps: the trials in the order in which they run.
        listed: the trials in the order in which the config names them.
        most_s: the time if every trial takes ``trial_timeout_s``.
        requests: the maximum numbers of requests to each store.
        measured_before: the number of trials that a continued run already has.
        from_other_packages: loaders, consumers and clients of other packages: ``loader mine`` to
            ``package 1.0``.
        warnings: what could not be determined, or should be changed.
    """

    name: str
    steps: Sequence[Step]
    listed: Sequence[TrialSpec]
    most_s: float
    requests: Mapping[Billed, Requests] = field(default_factory=dict)
    measured_before: int = 0
    from_other_packages: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def likely_s(self) -> tuple[float, int]:
        """The time of all trials with a likely duration, and the number of trials without one."""
        durations_s = [
            step.length.likely_s for step in self.steps if step.length.likely_s is not None
        ]
        return sum(durations_s), len(self.steps) - len(durations_s)

    def on_hosts(self, hosts: int, counts: Sequence[int]) -> Forecast:
        """The estimate for a run on several hosts.

        Trials on different numbers of hosts run one after another. Every host sends the requests of
        its own trials.

        Args:
            hosts: the number of hosts.
            counts: smaller numbers of hosts on which each trial runs, too.
        """
        rounds = 1 + len(counts)
        trials_of_hosts = hosts + sum(counts)
        requests = {}
        for store, numbers in self.requests.items():
            requests[store] = Counter(
                {kind: count * trials_of_hosts for kind, count in numbers.items()}
            )
        return replace(
            self, steps=[*self.steps] * rounds, most_s=self.most_s * rounds, requests=requests
        )

    @property
    def range_s(self) -> tuple[float, float]:
        """The shortest time, and the time at the lowest rates that are assumed."""
        return _range_s(self.steps)

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
            "trials": len(self.steps),
            "measured_before": self.measured_before,
            "likely_s": round(likely_s, 3),
            "trials_of_unknown_length": unknown,
            "least_s": round(self.range_s[0], 3),
            "slowest_s": round(self.range_s[1], 3),
            "most_s": self.most_s,
            "usd": self.usd,
        }

    def content(self) -> dict[str, Any]:
        """The estimate as JSON."""
        return {
            "trials": [_step_content(step) for step in self.steps],
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
            f"{self.name}: {counted(len(self.steps), 'trial')} to come{before}{unknown}, "
            f"about {rough_duration_range(*self.range_s)} (at most {rough_duration(self.most_s)}), "
            f"{self.cost}"
        )

    def _trial_lines(self) -> Iterator[str]:
        for step in self.steps:
            duration = rough_duration_range(step.length.min_s, step.length.max_s)
            yield f"  {duration:>16}  {escape(point_words(step.spec))}"

    def _kind_lines(self) -> Iterator[str]:
        counts = Counter(spec.kind for spec in self.listed)
        for kind, count in counts.items():
            steps = [step for step in self.steps if step.spec.kind == kind]
            duration = rough_duration_range(*_range_s(steps))
            yield f"  {kind:<8} {count:>5,}  {duration:<16}  {self._settings_words(kind)}"

    def _settings_words(self, kind: str) -> str:
        """The settings of trials of a kind: ``torch-iterable; shards@disk; workers 1, 2``."""
        params_of_kind = [spec.params for spec in self.listed if spec.kind == kind]
        texts = []
        for key in (*_SETTINGS_WITHOUT_NAME, *_SETTINGS_WITH_NAME):
            values = dict.fromkeys(
                str(params[key]) for params in params_of_kind if params.get(key) not in (None, "")
            )
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
    """Estimate the time and the cost of a run. Nothing is written.

    Args:
        config: the config of the run.
        resumed: the folder of a run that is continued. Its trials are not run again.
        like: the folder of a saved run. Equal trials are assumed to take as long as in that run.

    Raises:
        ResultError: ``like`` holds no run.
        ConfigError: the file of prices cannot be read.
    """
    specs = trials(config)
    resumed_run = read(resumed) if resumed is not None and holds_run(resumed) else None
    like_run = read(like) if like is not None else None
    done_ids = set()
    if resumed_run is not None:
        done_ids = {trial.id for trial in resumed_run.trials if trial.status == "done"}
    to_come = [spec for spec in specs if spec.id not in done_ids]
    warnings = list(clashes(to_come))
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
    steps = []
    for spec in to_come:
        data_name = str(spec.params.get("over") or spec.params.get("data") or "")
        reads_data = spec.kind in ("loader", "train") and data_name != ""
        stored = data.stored(data_name) if reads_data else None
        steps.append(Step(spec, earlier.length(spec, stored, timeout_s)))
    requests = _requests(config, to_come, data)
    length_problems = [step.length.problem for step in steps if step.length.problem]
    return Forecast(
        name=config.name,
        steps=steps,
        listed=in_config_order(config, to_come),
        most_s=timeout_s * len(to_come),
        requests=requests,
        measured_before=len(specs) - len(to_come),
        from_other_packages=others(to_come),
        warnings=[*warnings, *data.problems, *dict.fromkeys(length_problems)],
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


def _step_content(step: Step) -> dict[str, Any]:
    """A planned trial as JSON."""
    return {
        "id": step.spec.id,
        "kind": step.spec.kind,
        "params": dict(step.spec.params),
        "repeat": step.spec.repeat,
        **step.length.content(),
    }


def _range_s(steps: Sequence[Step]) -> tuple[float, float]:
    """The shortest and the longest time of trials."""
    least_s = sum(step.length.min_s for step in steps)
    return least_s, sum(step.length.max_s for step in steps)


class _EarlierRuns:
    """The durations of trials in earlier runs, and the rates of their loops.

    Args:
        runs: the results. Loaders and loops that were measured by the rule of earlier versions are
            left out, because they took another time.
    """

    def __init__(self, runs: Sequence[Result]) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._rates: dict[str, list[float]] = defaultdict(list)
        for run in runs:
            for trial in run.trials:
                has_earlier_rule = trial.kind in ("loader", "train") and run.rates != STEADY_STATE
                if trial.status == "done" and trial.seconds > 0 and not has_earlier_rule:
                    self._add(trial)

    def _add(self, trial: Trial) -> None:
        spec = TrialSpec(trial.kind, trial.params)
        self._seconds[spec.id].append(trial.seconds)
        rate = trial.metrics.get("samples_per_s") or trial.metrics.get("samples_per_s_low")
        if rate:
            self._rates[rate_key(spec)].append(float(rate))

    def length(self, spec: TrialSpec, data: DataSummary | None, timeout_s: float) -> TrialDuration:
        """The durations of equal trials, or else a duration by the rates of similar trials."""
        rates = self._rates.get(rate_key(spec))
        length = estimate_duration(
            spec, data, timeout_s, statistics.median(rates) if rates else None
        )
        seconds = self._seconds.get(TrialSpec(spec.kind, spec.params).id)
        if not seconds:
            return length
        return replace(
            length,
            min_s=min(*seconds, timeout_s),
            likely_s=min(statistics.median(seconds), timeout_s),
            max_s=min(max(seconds), timeout_s),
        )


def _requests(
    config: BenchConfig, specs: Sequence[TrialSpec], data: ExpectedData
) -> dict[Billed, Requests]:
    """The maximum numbers of requests to each store on Amazon's S3."""
    stores = _billed(config, specs)
    on_s3 = any("@s3" in name for name in stores)
    samples = data.samples if on_s3 else 0
    found: dict[Billed, Requests] = defaultdict(Counter)
    for name, store in stores.items():
        objects = 0
        if "@s3" in name and lies_on_a_store(name, config.data) is None:
            objects = _copied_objects(name, config.data, samples)
        found[store] += Requests(puts=objects, gets=objects)
    for spec in specs:
        for name in stores.keys() & set(places_of(spec)):
            if spec.kind == "object":
                found[stores[name]] += _of_probe(spec.params)
            else:
                found[stores[name]] += _of_reading(name, spec, samples, config.trial_timeout_s)
    return found


def _copied_objects(name: str, data: DataSettings, samples: int) -> int:
    """The number of objects that are copied to the store before they are read."""
    form, size, _ = split_name(name)
    if form in AS_FILES:
        return samples
    # An image in a shard has at most 1 MB. Each shard also has indexes and a receipt.
    shards = samples * 1_000_000 // (size or int(data.shard_size)) + 1
    return 6 * min(shards, samples) + 5


def _of_probe(params: Params) -> Requests:
    """The maximum requests of a probe.

    It sends two listings, a GET of one byte for each connection to open it, and then requests until
    it ends. Objects that are read are written and checked before. In the worst case each trial does
    so.
    """
    size, streams = params["object_bytes"], int(params["connections"])
    objects = probe_objects.to_get(size, params["pool_bytes"]).count
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


def _of_reading(name: str, spec: TrialSpec, samples: int, timeout_s: float) -> Requests:
    """The maximum requests of a loader, a training loop or a layout probe."""
    params = spec.params
    processes = int(params.get("processes", 1))
    workers = max(1, int(params.get("workers", params.get("parallelism", 1))))
    ranks = params.get("accelerators") or params.get("devices", 1)
    ranks = _MAX_DEVICES if ranks == "all" else int(ranks)
    streams = _connections(spec, workers) * processes * ranks
    if params.get("input") in HELD_RUNGS or params.get("access") == "file":
        streams = max(streams, MAX_THREADS)
    max_gets = _requests_in(timeout_s, streams)
    if spec.kind == "layout":
        max_gets = _requests_in(params["seconds"] + _START_S, streams)
    else:
        read = _max_samples(params, samples, ranks)
        if "seconds" in params and not params.get("epochs"):
            # The rate may be known long before the seconds are over.
            read += _requests_in(params["seconds"] + _START_S, streams)
        max_gets = min(max_gets, read)
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
    # The last epoch may be read in part, and half of each epoch may not be counted.
    return whole_epochs + samples + 2 * int(params["steps"]) * int(params["batch_size"]) * ranks


def _requests_in(seconds: float, streams: int) -> int:
    """The maximum number of requests that connections send in a time."""
    return int(streams * (seconds * _MAX_REQUESTS_PER_S + 1))


def lies_on_a_store(name: str, data: DataSettings) -> str | None:
    """The address of data that is read from the user's own store; None if a copy is read."""
    location = {"shards@s3": data.shards, "photos@s3": data.source}.get(name) or ""
    return location if "://" in location else None


def _billed(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, Billed]:
    """The locations on Amazon's S3 by their name. Requests to other endpoints have no price."""
    data = config.data
    billed = {}
    targets = config.object_store.targets if config.object_store else ()
    stores = {f"store/{target.label}": (target.uri, target.store) for target in targets}
    path = Path(config.prices).expanduser() if config.prices else None
    for name in dict.fromkeys(name for spec in specs for name in places_of(spec)):
        if "@s3" in name:
            own_uri = lies_on_a_store(name, data)
            if own_uri:
                stores[name] = own_uri, data.store
            else:
                stores[name] = data.bucket.uri, data.bucket.store
        uri, options = stores.get(name, ("", StoreOptions()))
        # A store without a known endpoint is assumed to be Amazon's.
        endpoint = endpoint_of(options)[0] or "https://amazonaws.com"
        if describe_store(uri, endpoint)["kind"].startswith("aws-s3"):
            price, remark = storage_price(read_prices(path), options)
            source = config.prices or "example prices, to be edited"
            billed[name] = Billed(uri, price, f"{source}: {remark}")
    return billed
