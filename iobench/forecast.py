"""PURE. What a run will take: time, and the requests to Amazon's S3 with their price.

Requests are upper bounds. Trials end after their seconds, their ``max_requests`` or
``trial_timeout_s``; S3 takes 10 ms or more to answer (20 ms were measured in a region), so that
more than 100 a second cannot be sent by a connection; an epoch asks for no sample twice. A loader
is taken to have two requests of each worker under way, from 10 s before the clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataprep.counted import counted
from dataprep.names import escape
from dataprep.prices import Price
from iobench.consumers.paced import PRESETS
from iobench.data.settings import AS_FILES, DataSettings, split_name
from iobench.ladder import HELD_RUNGS
from iobench.loaders.memory import MOST_THREADS
from iobench.plan import places_of
from iobench.probes.object_store import pool
from iobench.requests import STORED, Requests, listing
from iobench.trial import Params, TrialSpec
from iobench.words import point_words

_START_S = {"disk": 0.5, "layout": 1.0, "object": 1.0}
_LOADER_START_S = {"null": 0.5, "mock": 0.5, "raw": 1.0, "tf-data": 5.0, "mxnet-record": 4.0}
_OTHER_START_S = 3.0
_REQUESTS_PER_S = 100.0
_BEFORE_S = 10.0
_STREAMS_A_WORKER = 2
_OPENING = Requests(gets=4)  # manifest, labels, table of samples
_COPYING = frozenset({"s5cmd", "awscli"})  # clients that copy all objects, large ones in parts
_PART_BYTES = 5 * 2**20
_OBJECTS_A_SHARD, _OBJECTS_BESIDE = 6, 5
_IMAGE_BYTES = 1_000_000  # of an image in shards; pixels of 512 px have as many
_MOST_DEVICES = 16  # of one machine
_MANY = 10_000_000
_SHOWN = ("group", "loader", "client", "operation", "consumer", "target", "store", "data", "access")
_VARIED = ("cache", "input", "workers", "connections", "devices")


@dataclass(frozen=True, slots=True)
class Billed:
    """A place on Amazon's S3: its address, and the price of requests; None if nobody knows it."""

    uri: str
    price: Price | None
    source: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beforehand.

    Attributes:
        billed: the places (``iobench.plan.places_of``) that lie on Amazon's S3.
        samples: how many images the data have; None where nobody could count them.
        seconds: how long trials of a point took before, by ``point_of``.
        problems: what could not be looked at.
        others: what other packages bring: ``loader mine`` to ``package 1.0``.
    """

    billed: Mapping[str, Billed] = field(default_factory=dict)
    samples: int | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    problems: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A trial to come: about how long, None if nobody can say; at most how many requests."""

    spec: TrialSpec
    likely_s: float | None
    requests: Mapping[Billed, Requests]


@dataclass(frozen=True, slots=True)
class Forecast:
    """A run to come. ``before``: trials that are measured already.

    ``first``: requests that put objects there before they are read; None where nothing bounds them.
    """

    name: str
    steps: Sequence[Step]
    first: Sequence[tuple[Billed, Requests | None]]
    before: int
    most_s: float
    facts: Facts

    @property
    def likely_s(self) -> tuple[float, int]:
        """About how long, and of how many trials that is not known."""
        known = [step.likely_s for step in self.steps if step.likely_s is not None]
        return sum(known), len(self.steps) - len(known)

    @property
    def requests(self) -> dict[Billed, Requests | None]:
        """At most so many, by store."""
        found: dict[Billed, Requests | None] = {}
        asked = [pair for step in self.steps for pair in step.requests.items()]
        for store, more in (*self.first, *asked):
            so_far = found.get(store, Requests())
            found[store] = None if so_far is None or more is None else so_far + more
        return found

    @property
    def usd(self) -> float | None:
        """Dollars at most; None where nobody knows."""
        prices = [_usd(*pair) for pair in self.requests.items()]
        known = [price for price in prices if price is not None]
        return sum(known) if len(known) == len(prices) else None

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
            "from_other_packages": dict(self.facts.others),
            "warnings": list(self.facts.problems),
        }


def point_of(kind: str, params: Params) -> str:
    """What repeats of a trial have in common."""
    return TrialSpec(kind, params).id


def forecast(
    name: str,
    data: DataSettings,
    specs: Sequence[TrialSpec],
    facts: Facts,
    timeout_s: float,
    before: int = 0,
) -> Forecast:
    """Predict ``specs``, the trials that are to come."""
    steps = [
        Step(spec, _likely_s(spec, facts, timeout_s), _requests(spec, facts, timeout_s))
        for spec in specs
    ]
    first = [*_copies(data, specs, facts), *_pools(specs, facts)]
    return Forecast(name, steps, first, before, timeout_s * len(specs), facts)


def _likely_s(spec: TrialSpec, facts: Facts, timeout_s: float) -> float | None:
    """As long as before, else the seconds that it measures and its start."""
    params = spec.params
    before = facts.seconds.get(point_of(spec.kind, params))
    if before is not None:
        return min(before, timeout_s)
    start_s = _START_S.get(spec.kind)
    if start_s is None:
        start_s = _LOADER_START_S.get(str(params.get("loader")), _OTHER_START_S)
    if "seconds" in params and not params.get("epochs"):
        return float(min(params["seconds"] + start_s, timeout_s))
    preset = PRESETS.get(str(params.get("preset")))
    rate = preset.images_per_s if preset else params.get("images_per_s")
    if spec.kind != "train" or not rate:
        return None  # it takes as long as the loader, or the model and its device, do
    images = params["steps"] * params["batch_size"] * params.get("epochs", 1)
    return float(min(images / rate + start_s, timeout_s))


def _requests(spec: TrialSpec, facts: Facts, timeout_s: float) -> dict[Billed, Requests]:
    found = {}
    for name in places_of(spec):
        if name in facts.billed:
            asked = _objects(spec.params) if spec.kind == "object" else None
            found[facts.billed[name]] = asked or _reading(name, spec, facts, timeout_s)
    return found


def _objects(params: Params) -> Requests:
    """The bucket and two listings, an opening byte a connection, then requests until the end."""
    streams, each = int(params["connections"]), Requests(gets=1)
    most: int = min(max(params["max_requests"], streams), _in(params["seconds"], streams))
    if params["operation"] == "multipart":
        each = Requests(puts=-(-params["object_bytes"] // params["part_bytes"]) + 2)
    elif params["operation"] not in ("get", "range_get"):
        each = Requests(puts=1)
    if params["client"] in _COPYING:  # whole rounds over all objects
        most += pool.to_get(params["object_bytes"], params["pool_bytes"]).count
        each += Requests(gets=1 + params["object_bytes"] // _PART_BYTES, lists=1)
    return Requests(gets=1 + streams, lists=2) + each * most


def _reading(name: str, spec: TrialSpec, facts: Facts, timeout_s: float) -> Requests:
    """What a loop or a layout asks for; of known epochs no more than their samples."""
    params = spec.params
    processes = int(params.get("processes", 1))
    devices = params.get("devices", 1)
    workers = max(1, int(params.get("workers", params.get("parallelism", 1))))
    streams = (
        _STREAMS_A_WORKER
        * workers
        * processes
        * (_MOST_DEVICES if devices == "all" else int(devices))
    )
    if params.get("input") in HELD_RUNGS or params.get("access") == "file":
        streams = max(streams, MOST_THREADS)
    epochs = params.get("epochs") or (1 if spec.kind == "train" else None)
    most = _in(timeout_s if epochs else params["seconds"] + _BEFORE_S, streams)
    if epochs and facts.samples is not None:
        most = min(most, epochs * facts.samples)
    files = split_name(name)[0] in AS_FILES
    lists = listing(facts.samples or _MANY) if files else Requests(lists=1)
    return Requests(gets=most) + _OPENING * (1 + streams) + lists * (1 + processes)


def _in(seconds: float, streams: int) -> int:
    return int(streams * (seconds * _REQUESTS_PER_S + 1))


def _copies(
    data: DataSettings, specs: Sequence[TrialSpec], facts: Facts
) -> Iterator[tuple[Billed, Requests | None]]:
    """Data that are put on the store, unless they are there from an earlier run."""
    named = dict.fromkeys(name for spec in specs for name in places_of(spec) if "@s3" in name)
    for name in named:
        if name not in facts.billed or lies_on_a_store(name, data):
            continue
        form, size, _ = split_name(name)
        objects = facts.samples
        if objects is not None and form not in AS_FILES:
            shards = objects * _IMAGE_BYTES // (size or int(data.shard_size)) + 1
            objects = _OBJECTS_A_SHARD * min(shards, objects) + _OBJECTS_BESIDE
        yield facts.billed[name], None if objects is None else STORED * objects


def lies_on_a_store(name: str, data: DataSettings) -> str | None:
    """The address of data on a store that are read as they lie; None where a copy is read."""
    given = {"shards@s3": data.shards, "photos@s3": data.source}.get(name) or ""
    return given if "://" in given else None


def _pools(specs: Sequence[TrialSpec], facts: Facts) -> Iterator[tuple[Billed, Requests]]:
    """Objects that are put so that trials can read them."""
    most: dict[tuple[Billed, int], int] = defaultdict(int)
    for spec in specs:
        store = facts.billed.get(f"store/{spec.params.get('store')}")
        put = {"get": pool.to_get, "range_get": pool.to_range}.get(spec.params.get("operation", ""))
        if store and put:
            found = put(spec.params["object_bytes"], spec.params["pool_bytes"])
            key = store, found.bytes
            most[key] = max(most[key], found.count)
    for (store, _), count in most.items():
        yield store, STORED * count


def _usd(store: Billed, requests: Requests | None) -> float | None:
    if store.price is None or requests is None:
        return None
    return store.price.of_requests(requests.puts, requests.gets, requests.lists)


def text(found: Forecast, *, verbose: bool = False) -> str:
    """The sums, then a line for each kind of trials, or for each trial."""
    known_s, unknown = found.likely_s
    before = f", {found.before:,} measured before" if found.before else ""
    about = [f"about {duration(known_s)}"] if known_s or not unknown else []
    about += [f"{counted(unknown, 'trial')} of unknown length"] if unknown else []
    lines = [
        f"{found.name}: {counted(len(found.steps), 'trial')} to come{before}, "
        f"{' and '.join(about)} (at most {duration(found.most_s)}), {cost(found)}"
    ]
    kinds = Counter(step.spec.kind for step in found.steps)
    if verbose:
        lines += [
            f"  {'unknown' if step.likely_s is None else duration(step.likely_s):>8}  "
            f"{escape(point_words(step.spec))}"
            for step in found.steps
        ]
    else:
        lines += [f"  {kind:<8} {count:>5,}  {_kind(kind, found)}" for kind, count in kinds.items()]
    for store, requests in found.requests.items():
        asked = "an unknown number of requests"
        if requests is not None:
            asked = f"{requests.puts:,} PUT, {requests.gets:,} GET, {requests.lists:,} LIST"
        lines.append(f"  {escape(store.uri)}: at most {asked} ({store.source})")
    lines += [
        f"  {escape(what)}: brought by {escape(whose)}"
        for what, whose in found.facts.others.items()
    ]
    lines += [f"warning: {escape(why)}" for why in found.facts.problems]
    return "\n".join([*lines, *([] if verbose else ["Each trial: --verbose"])])


def cost(found: Forecast) -> str:
    """``requests to S3 for $0.12 at most``."""
    if not found.requests:
        return "no requests that are billed"
    usd = found.usd
    if usd is None:
        return "requests to S3 at an unknown price"
    return f"requests to S3 for {f'${usd:,.2f}' if usd >= 0.1 else f'${usd:.2g}'} at most"


def _kind(kind: str, found: Forecast) -> str:
    """``torch-iterable; shards@disk; cache warm; workers 1, 2``."""
    params = [step.spec.params for step in found.steps if step.spec.kind == kind]
    words = []
    for key in (*_SHOWN, *_VARIED):
        values = dict.fromkeys(str(one[key]) for one in params if one.get(key) not in (None, ""))
        if values:
            few = ", ".join([*values][:5]) + ", ..." * (len(values) > 5)
            words.append(f"{key} {few}" if key in _VARIED else few)
    return escape("; ".join(words))


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``, ``4 days``."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    hours, rest = divmod(int(seconds / 60 + 0.5), 60)
    if hours >= 72:
        return f"{hours / 24:,.0f} days"
    shown = f"{hours} h" * bool(hours) + " " * bool(hours and rest)
    return shown + f"{rest} min" * bool(rest or not hours)
