"""Predict a run: its time, and its requests to Amazon's S3 with their price.

``iobench.loops.lengths`` has the assumptions about the lengths of trials.

Requests are upper bounds. A probe ends after its seconds or its ``max_requests``. A loader or a
loop ends when its rate is known and its least length is over, or after ``trial_timeout_s``. S3
takes 10 ms or more to answer (20 ms were measured within a region), so one connection sends at most
100 requests a second. A loader of another package has at most two requests of each worker under
way. Loaders start up to 10 s before their clock. No sample is read twice in an epoch.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.adapters.records import RANGES_AT_ONCE
from dataprep.counted import counted
from dataprep.names import escape
from dataprep.prices import Price, price_at, read_prices
from dataprep.stores import StoreOptions
from iobench.analysis.store_limits import connections_of
from iobench.config import BenchConfig
from iobench.data.expected import ExpectedData
from iobench.data.settings import AS_FILES, DataSettings, split_name
from iobench.errors import NotApproved
from iobench.ladder import HELD_RUNGS
from iobench.loaders.memory import MOST_THREADS
from iobench.loops.counted import LEAST_EPOCHS
from iobench.loops.lengths import Length, length_of, rate_key
from iobench.machine.object_stores import describe_store, endpoint_of
from iobench.numbers import rough_duration, rough_duration_range
from iobench.plan import clashes, in_config_order, others, places_of, trials
from iobench.probes.object_store import pool
from iobench.result import STEADY_STATE, Result, usable
from iobench.rundir import differing_machine, holds_run, read
from iobench.stored import Stored
from iobench.trial import Params, Trial, TrialSpec
from iobench.words import point_words

_REQUESTS_PER_S = 100
_CONNECTIONS_A_WORKER = 2  # of another package's loader
_BEFORE_S = 10.0
_GETS_TO_OPEN = 4  # manifest, labels, table of samples
_KEYS_A_LISTING = 1_000
_PART_BYTES = 5 * 2**20  # s5cmd and awscli copy large objects in parts
_MOST_DEVICES = 16  # of one machine
_SHOWN = ("group", "loader", "client", "operation", "consumer", "target", "store", "data", "access")
_VARIED = ("cache", "input", "workers", "connections", "devices")


@dataclass(frozen=True, slots=True)
class Billed:
    """A place on Amazon's S3: its address, and the price of requests; None if unknown."""

    uri: str
    price: Price | None
    source: str


Requests: TypeAlias = Counter[str]
"""Numbers of requests by price: ``puts``, ``gets`` (with HEAD, which costs the same), ``lists``."""


@dataclass(frozen=True, slots=True)
class Step:
    """A trial to come, and about how long it takes."""

    spec: TrialSpec
    length: Length


@dataclass(frozen=True, slots=True)
class Forecast:
    """A run to come.

    Attributes:
        steps: the trials in the order in which they run.
        most_s: the time if every trial takes ``trial_timeout_s``.
        listed: the trials in the order in which the config names them.
        requests: their largest numbers, by store.
        before: the number of trials that are measured already.
        others: what other packages bring: ``loader mine`` to ``package 1.0``.
        problems: warnings about what could not be found out.
    """

    name: str
    steps: Sequence[Step]
    listed: Sequence[TrialSpec]
    most_s: float
    requests: Mapping[Billed, Requests] = field(default_factory=dict)
    before: int = 0
    others: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[str] = ()

    @property
    def likely_s(self) -> tuple[float, int]:
        """The time of trials with a likely length, and the number of the others."""
        known = [step.length.likely_s for step in self.steps if step.length.likely_s is not None]
        return sum(known), len(self.steps) - len(known)

    def on_hosts(self, hosts: int, fewer: Sequence[int]) -> Forecast:
        """The same run on several hosts, and each trial also on ``fewer`` of them.

        Trials of different numbers of hosts follow each other. Every host sends the requests of its
        own trials.
        """
        rounds = 1 + len(fewer)
        factor = hosts + sum(fewer)
        requests = {
            store: Counter({kind: count * factor for kind, count in asked.items()})
            for store, asked in self.requests.items()
        }
        return replace(
            self, steps=[*self.steps] * rounds, most_s=self.most_s * rounds, requests=requests
        )

    @property
    def range_s(self) -> tuple[float, float]:
        """The least time, and the time at the slowest rates that are assumed."""
        return _range_s(self.steps)

    @property
    def usd(self) -> float | None:
        """Dollars at most; None if unknown."""
        total = 0.0
        for store, asked in self.requests.items():
            if store.price is None:
                return None
            total += store.price.of_requests(asked["puts"], asked["gets"], asked["lists"])
        return total

    @property
    def cost(self) -> str:
        """``requests to S3 for $0.12 at most``."""
        if not self.requests:
            return "no requests that are billed"
        usd = self.usd
        if usd is None:
            return "requests to S3 at an unknown price"
        return f"requests to S3 for {f'${usd:,.2f}' if usd >= 0.1 else f'${usd:.2g}'} at most"

    def totals(self) -> dict[str, Any]:
        """The sums, as ``result.json`` keeps them."""
        likely_s, unknown = self.likely_s
        return {
            "trials": len(self.steps),
            "measured_before": self.before,
            "likely_s": round(likely_s, 3),
            "trials_of_unknown_length": unknown,
            "least_s": round(self.range_s[0], 3),
            "slowest_s": round(self.range_s[1], 3),
            "most_s": self.most_s,
            "usd": self.usd,
        }

    def content(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        steps = [
            {"id": step.spec.id, "kind": step.spec.kind, "params": dict(step.spec.params)}
            | {"repeat": step.spec.repeat, **step.length.content()}
            for step in self.steps
        ]
        return {
            "trials": steps,
            "total": self.totals(),
            "from_other_packages": dict(self.others),
            "warnings": list(self.problems),
        }

    def text(self, *, verbose: bool = False) -> str:
        """The sums, then a line for each kind of trials, or for each trial."""
        before = f", {self.before:,} measured before" if self.before else ""
        unknown = f", {self.likely_s[1]:,} of unknown length" if self.likely_s[1] else ""
        lines = [
            f"{self.name}: {counted(len(self.steps), 'trial')} to come{before}{unknown}, "
            f"about {rough_duration_range(*self.range_s)} (at most {rough_duration(self.most_s)}), "
            f"{self.cost}"
        ]
        if verbose:
            for step in self.steps:
                range_s = rough_duration_range(step.length.least_s, step.length.most_s)
                lines.append(f"  {range_s:>16}  {escape(point_words(step.spec))}")
        else:
            kinds = Counter(spec.kind for spec in self.listed)
            for kind, count in kinds.items():
                steps = [step for step in self.steps if step.spec.kind == kind]
                range_s = rough_duration_range(*_range_s(steps))
                lines.append(f"  {kind:<8} {count:>5,}  {range_s:<16}  {self._kind(kind)}")
        for store, asked in self.requests.items():
            most = f"{asked['puts']:,} PUT, {asked['gets']:,} GET, {asked['lists']:,} LIST"
            lines.append(f"  {escape(store.uri)}: at most {most} ({store.source})")
        lines += [f"  {escape(it)}: brought by {escape(by)}" for it, by in self.others.items()]
        lines += [f"warning: {escape(why)}" for why in self.problems]
        return "\n".join([*lines, *([] if verbose else ["Each trial: --verbose"])])

    def _kind(self, kind: str) -> str:
        """``torch-iterable; shards@disk; cache warm; workers 1, 2``."""
        params = [spec.params for spec in self.listed if spec.kind == kind]
        words = []
        for key in (*_SHOWN, *_VARIED):
            found = dict.fromkeys(str(one[key]) for one in params if one.get(key) not in (None, ""))
            if found:
                few = ", ".join([*found][:5]) + ", ..." * (len(found) > 5)
                words.append(f"{key} {few}" if key in _VARIED else few)
        return escape("; ".join(words))


def forecast(
    config: BenchConfig, *, resumed: Path | None = None, like: Path | None = None
) -> Forecast:
    """Predict what ``config`` will take, without writing anything.

    Args:
        config: of the run.
        resumed: the folder of a run that is continued; its trials are not run again.
        like: the folder of another run; equal trials take as long as there.

    Raises:
        ResultError: ``like`` holds no run.
        ConfigError: no such file of prices.
    """
    specs = trials(config)
    begun = read(resumed) if resumed is not None and holds_run(resumed) else None
    model = read(like) if like is not None else None
    done = {trial.id for trial in begun.trials if trial.status == "done"} if begun else set()
    to_come = [spec for spec in specs if spec.id not in done]
    problems = list(clashes(to_come))
    if model is not None and (differing := differing_machine(model.environment)):
        problems.append(f"times are those of another machine ({differing} differ)")
    if model is not None and model.rates != STEADY_STATE:
        problems.append(
            f"{like} measured rates by an earlier rule: the times of its loaders and training "
            "loops are not used"
        )
    with usable(*[folder for folder in (like, resumed) if folder is not None]):
        earlier = _Earlier([run for run in (model, begun) if run is not None])
    data = ExpectedData(config.data)
    timeout_s = config.trial_timeout_s
    steps = []
    for spec in to_come:
        name = str(spec.params.get("over") or spec.params.get("data") or "")
        has_data = spec.kind in ("loader", "train") and name != ""
        stored = data.stored(name) if has_data else None
        steps.append(Step(spec, earlier.length(spec, stored, timeout_s)))
    requests = _requests(config, to_come, data)
    failing = [step.length.problem for step in steps if step.length.problem]
    return Forecast(
        name=config.name,
        steps=steps,
        listed=in_config_order(config, to_come),
        most_s=timeout_s * len(to_come),
        requests=requests,
        before=len(specs) - len(to_come),
        others=others(to_come),
        problems=[*problems, *data.problems, *dict.fromkeys(failing)],
    )


def require_leave(
    found: Forecast, limit_usd: float, *, yes: bool, ask: Callable[[str], bool] | None
) -> None:
    """Check that requests cost no more than ``limit_usd``, or that the user agrees.

    ``ask`` asks the user a question; None if there is no terminal.

    Raises:
        NotApproved: the answer is no, or there is no terminal.
    """
    if yes or (found.usd is not None and found.usd <= limit_usd):
        return
    what = f"{found.cost}; cost_limit_usd is {limit_usd:g}"
    if ask is None:
        raise NotApproved(
            f"{what}: give --yes, or --set cost_limit_usd=DOLLARS; --dry-run lists the costs"
        )
    if not ask(f"{what}. Begin?"):
        raise NotApproved("not begun: nothing was measured, nothing was written")


def _range_s(steps: Sequence[Step]) -> tuple[float, float]:
    least_s = sum(step.length.least_s for step in steps)
    return least_s, sum(step.length.most_s for step in steps)


class _Earlier:
    """What earlier runs measured: how long trials took, and the rates of their loops.

    Args:
        runs: the results. Trials of the former rule of rates took another time, and are left out.
    """

    def __init__(self, runs: Sequence[Result]) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._rates: dict[str, list[float]] = defaultdict(list)
        for run in runs:
            for trial in run.trials:
                is_former = trial.kind in ("loader", "train") and run.rates != STEADY_STATE
                if trial.status == "done" and trial.seconds > 0 and not is_former:
                    self._add(trial)

    def _add(self, trial: Trial) -> None:
        spec = TrialSpec(trial.kind, trial.params)
        self._seconds[spec.id].append(trial.seconds)
        rate = trial.metrics.get("samples_per_s") or trial.metrics.get("samples_per_s_low")
        if rate:
            self._rates[rate_key(spec)].append(float(rate))

    def length(self, spec: TrialSpec, data: Stored | None, timeout_s: float) -> Length:
        """The times of equal trials; else a time by the rate of a trial of another length."""
        rates = self._rates.get(rate_key(spec))
        length = length_of(spec, data, timeout_s, statistics.median(rates) if rates else None)
        seconds = self._seconds.get(TrialSpec(spec.kind, spec.params).id)
        if not seconds:
            return length
        return replace(
            length,
            least_s=min(*seconds, timeout_s),
            likely_s=min(statistics.median(seconds), timeout_s),
            most_s=min(max(seconds), timeout_s),
        )


def _requests(
    config: BenchConfig, specs: Sequence[TrialSpec], data: ExpectedData
) -> dict[Billed, Requests]:
    """At most how many requests each store on Amazon's S3 gets."""
    stores = _billed(config, specs)
    on_s3 = any("@s3" in name for name in stores)
    samples = data.samples if on_s3 else 0
    found: dict[Billed, Requests] = defaultdict(Counter)
    for name, store in stores.items():
        objects = 0
        if "@s3" in name and lies_on_a_store(name, config.data) is None:
            objects = _copies(name, config.data, samples)
        found[store] += Requests(puts=objects, gets=objects)
    for spec in specs:
        for name in stores.keys() & set(places_of(spec)):
            if spec.kind == "object":
                found[stores[name]] += _of_probe(spec.params)
            else:
                found[stores[name]] += _of_reading(name, spec, samples, config.trial_timeout_s)
    return found


def _copies(name: str, data: DataSettings, samples: int) -> int:
    """Objects that are put on the store before they are read."""
    form, size, _ = split_name(name)
    if form in AS_FILES:
        return samples
    # An image in shards has up to 1 MB; beside a shard there are indexes and a receipt.
    shards = samples * 1_000_000 // (size or int(data.shard_size)) + 1
    return 6 * min(shards, samples) + 5


def _of_probe(params: Params) -> Requests:
    """Two listings, one byte for each connection to open it, then requests until the end.

    Objects that are read are put first and confirmed, at worst in each trial.
    """
    size, streams = params["object_bytes"], int(params["connections"])
    objects = pool.to_get(size, params["pool_bytes"]).count
    count = min(max(params["max_requests"], streams), _in(params["seconds"], streams))
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
    """Requests of a loader, a loop or a layout."""
    params = spec.params
    processes = int(params.get("processes", 1))
    workers = max(1, int(params.get("workers", params.get("parallelism", 1))))
    ranks = params.get("accelerators") or params.get("devices", 1)
    ranks = _MOST_DEVICES if ranks == "all" else int(ranks)
    streams = _connections(spec, workers) * processes * ranks
    if params.get("input") in HELD_RUNGS or params.get("access") == "file":
        streams = max(streams, MOST_THREADS)
    most = _in(timeout_s, streams)
    if spec.kind == "layout":
        most = _in(params["seconds"] + _BEFORE_S, streams)
    else:
        read = _most_samples(params, samples, ranks)
        if "seconds" in params and not params.get("epochs"):
            # The rate may be known long before the seconds are over.
            read += _in(params["seconds"] + _BEFORE_S, streams)
        most = min(most, read)
    keys = samples if split_name(name)[0] in AS_FILES else 0
    lists = (1 + keys // _KEYS_A_LISTING) * (1 + processes)
    return Requests(gets=most + _GETS_TO_OPEN * (1 + streams), lists=lists)


def _connections(spec: TrialSpec, workers: int) -> int:
    """The most requests that one process has under way at a time."""
    if spec.kind == "layout":
        return 2 * workers
    connections = connections_of(spec.params)
    if connections is None:
        return _CONNECTIONS_A_WORKER * workers
    is_by_window = spec.params.get("loader") in ("torch-iterable", "tf-data")
    return connections * RANGES_AT_ONCE if is_by_window else connections


def _most_samples(params: Params, samples: int, ranks: int) -> int:
    """The most samples that a trial reads until its rate is known, and its steps are done."""
    whole_epochs = max(LEAST_EPOCHS, int(params.get("epochs") or 1)) * samples
    if "steps" not in params:
        return whole_epochs
    # The last epoch may be read in part, and half of each epoch may not count.
    return whole_epochs + samples + 2 * int(params["steps"]) * int(params["batch_size"]) * ranks


def _in(seconds: float, streams: int) -> int:
    return int(streams * (seconds * _REQUESTS_PER_S + 1))


def lies_on_a_store(name: str, data: DataSettings) -> str | None:
    """The address of data that are read from the given store; None if a copy is read."""
    given = {"shards@s3": data.shards, "photos@s3": data.source}.get(name) or ""
    return given if "://" in given else None


def _billed(config: BenchConfig, specs: Sequence[TrialSpec]) -> dict[str, Billed]:
    """Places on Amazon's S3; requests to any other endpoint have no price."""
    data, found = config.data, {}
    targets = config.object_store.targets if config.object_store else ()
    stores = {f"store/{target.label}": (target.uri, target.store) for target in targets}
    path = Path(config.prices).expanduser() if config.prices else None
    for name in dict.fromkeys(name for spec in specs for name in places_of(spec)):
        if "@s3" in name:
            straight = lies_on_a_store(name, data)
            bucket = data.bucket
            stores[name] = (straight, data.store) if straight else (bucket.uri, bucket.store)
        uri, options = stores.get(name, ("", StoreOptions()))
        # Without a known endpoint it is taken for Amazon's.
        endpoint = endpoint_of(options)[0] or "https://amazonaws.com"
        if describe_store(uri, endpoint)["kind"].startswith("aws-s3"):
            price, about = price_at(read_prices(path), options)
            whose = config.prices or "example prices, to be edited"
            found[name] = Billed(uri, price, f"{whose}: {about}")
    return found
