"""Predict a run: its time, and its requests to Amazon's S3 with their price.

Requests are upper bounds. A trial ends after its seconds, its ``max_requests`` or
``trial_timeout_s``. S3 takes 10 ms or more to answer (20 ms were measured within a region), so one
connection sends at most 100 requests a second. A loader has at most two requests of each worker
under way, and starts up to 10 s before its clock. No sample is read twice in an epoch.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.counted import counted
from dataprep.dataset import open_dataset
from dataprep.errors import DataprepError
from dataprep.names import escape
from dataprep.prices import Price, price_at, read_prices
from dataprep.sources import open_source
from dataprep.stores import StoreOptions
from iobench.config import BenchConfig
from iobench.consumers.accelerators import RATES
from iobench.data.given import expanded
from iobench.data.settings import AS_FILES, DataSettings, split_name
from iobench.errors import NotApproved
from iobench.ladder import HELD_RUNGS
from iobench.loaders.memory import MOST_THREADS
from iobench.machine.object_stores import describe_store, endpoint_of
from iobench.plan import clashes, in_config_order, others, places_of, trials
from iobench.probes.object_store import pool
from iobench.result import usable
from iobench.rundir import differing_machine, holds_run, read
from iobench.trial import Params, TrialSpec
from iobench.words import duration_words, point_words

_START_S = {
    "disk": 0.5,
    "layout": 1.0,
    "object": 1.0,
    "null": 0.5,
    "mock": 0.5,
    "raw": 1.0,
    "tf-data": 5.0,
    "mxnet-record": 4.0,
}
"""By the loader, or by the kind of a trial without one."""

_OTHER_START_S = 3.0
_REQUESTS_PER_S = 100
_BEFORE_S = 10.0
_GETS_TO_OPEN = 4  # manifest, labels, table of samples
_KEYS_A_LISTING = 1_000
_PART_BYTES = 5 * 2**20  # s5cmd and awscli copy large objects in parts
_MOST_DEVICES = 16  # of one machine
_MANY = 10_000_000  # images, where they cannot be counted
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
    """A trial to come, and about how long it takes; None if unknown."""

    spec: TrialSpec
    likely_s: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """A run to come.

    Attributes:
        steps: the trials in the order in which they run.
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
        """The time of trials of known length, and the number of the others."""
        known = [step.likely_s for step in self.steps if step.likely_s is not None]
        return sum(known), len(self.steps) - len(known)

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
            "most_s": self.most_s,
            "usd": self.usd,
        }

    def content(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        steps = [
            {"id": step.spec.id, "kind": step.spec.kind, "params": dict(step.spec.params)}
            | {"repeat": step.spec.repeat, "likely_s": step.likely_s}
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
        known_s, unknown = self.likely_s
        before = f", {self.before:,} measured before" if self.before else ""
        about = [f"about {duration_words(known_s)}"] if known_s or not unknown else []
        about += [f"{counted(unknown, 'trial')} of unknown length"] if unknown else []
        lines = [
            f"{self.name}: {counted(len(self.steps), 'trial')} to come{before}, "
            f"{' and '.join(about)} (at most {duration_words(self.most_s)}), {self.cost}"
        ]
        if verbose:
            for step in self.steps:
                length = "unknown" if step.likely_s is None else duration_words(step.likely_s)
                lines.append(f"  {length:>8}  {escape(point_words(step.spec))}")
        else:
            kinds = Counter(spec.kind for spec in self.listed)
            lines += [f"  {kind:<8} {n:>5,}  {self._kind(kind)}" for kind, n in kinds.items()]
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
    spans: dict[str, list[float]] = defaultdict(list)
    with usable(*[folder for folder in (like, resumed) if folder is not None]):
        for trial in [trial for run in (model, begun) if run is not None for trial in run.trials]:
            if trial.status == "done" and trial.seconds > 0:
                spans[TrialSpec(trial.kind, trial.params).id].append(trial.seconds)
        known_s = {point: statistics.median(each) for point, each in spans.items()}
    timeout_s = config.trial_timeout_s
    return Forecast(
        name=config.name,
        steps=[Step(spec, _likely_s(spec, known_s, timeout_s)) for spec in to_come],
        listed=in_config_order(config, to_come),
        most_s=timeout_s * len(to_come),
        requests=_requests(config, to_come, problems),
        before=len(specs) - len(to_come),
        others=others(to_come),
        problems=problems,
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


def _likely_s(spec: TrialSpec, known_s: Mapping[str, float], timeout_s: float) -> float | None:
    """As long as equal trials took before, else the seconds that it measures and its start."""
    params = spec.params
    before = known_s.get(TrialSpec(spec.kind, params).id)
    if before is not None:
        return min(before, timeout_s)
    start_s = _START_S.get(params.get("loader", spec.kind), _OTHER_START_S)
    if "seconds" in params and not params.get("epochs"):
        return float(min(params["seconds"] + start_s, timeout_s))
    preset = RATES.get(str(params.get("preset")))
    rate = preset.samples_per_s if preset else params.get("images_per_s")
    if spec.kind != "train" or not rate:
        return None  # it takes as long as the loader, or the model and its device, do
    images = params["steps"] * params["batch_size"] * params.get("epochs", 1)
    return float(min(images / rate + start_s, timeout_s))


def _requests(
    config: BenchConfig, specs: Sequence[TrialSpec], problems: list[str]
) -> dict[Billed, Requests]:
    """At most how many requests each store on Amazon's S3 gets."""
    stores = _billed(config, specs)
    on_s3 = any("@s3" in name for name in stores)
    samples = _samples(config.data, problems) if on_s3 else 0
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
    """Requests of a loop or a layout; in a known number of epochs at most one a sample."""
    params = spec.params
    processes = int(params.get("processes", 1))
    workers = max(1, int(params.get("workers", params.get("parallelism", 1))))
    devices = params.get("devices", 1)
    streams = 2 * workers * processes * (_MOST_DEVICES if devices == "all" else int(devices))
    if params.get("input") in HELD_RUNGS or params.get("access") == "file":
        streams = max(streams, MOST_THREADS)
    epochs = params.get("epochs") or (1 if spec.kind == "train" else None)
    most = _in(timeout_s if epochs else params["seconds"] + _BEFORE_S, streams)
    if epochs:
        most = min(most, epochs * samples)
    keys = samples if split_name(name)[0] in AS_FILES else 0
    lists = (1 + keys // _KEYS_A_LISTING) * (1 + processes)
    return Requests(gets=most + _GETS_TO_OPEN * (1 + streams), lists=lists)


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


def _samples(data: DataSettings, problems: list[str]) -> int:
    """The number of images, from a manifest, a listing or the config."""
    try:
        if data.shards is not None:
            shards = expanded(data.shards)
            with open_dataset(shards, data.split, options=data.store) as found:
                return len(found)
        if data.source is not None:
            return len(open_source(expanded(data.source), options=data.store).list())
    except (DataprepError, OSError) as error:
        problems.append(f"the data could not be counted, {_MANY:,} images are assumed: {error}")
        return _MANY
    return data.images
