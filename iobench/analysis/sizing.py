"""PURE. How many accelerators a host feeds, what N of them need, and what an epoch costs.

Hosts are taken to be like the one that measured, each giving what it gave alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep.prices import Price
from iobench.analysis.capacity import Capacities, setting_of
from iobench.analysis.ceilings import network, of_target
from iobench.analysis.loops import FARTHEST, Loop
from iobench.analysis.points import by_point, cold_label, is_number, middle, rate_of
from iobench.analysis.recommend import Advice
from iobench.consumers.paced import PRESETS
from iobench.loaders.own import BY_SAMPLE, UNDECODED
from iobench.result import Result
from iobench.words import duration_words, model_words, params_words

ACCELERATORS = ("V100", "A100", "H100")
"""Whose rates with ResNet-50 are known."""

_HOURS_A_MONTH = 365 * 24 / 12
_GB = 2**30
_NOT_MEASURED = {
    "disk": "not measured (dataprep init, then iobench run configs/bench/disk.yaml)",
    "store": "not measured (dataprep init, then iobench run configs/bench/s3.yaml)",
    "network": "unknown: give limits.network_gbit_per_s",
}


@dataclass(frozen=True, slots=True)
class Supply:
    """Samples/s of one part of a host; None if unknown, with the reason in ``basis``."""

    part: str
    samples_per_s: float | None
    basis: str
    object_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Feeds:
    """How many accelerators each supply feeds.

    ``rates``: images/s of each accelerator by name. ``rows``: a name, its samples/s, and whether
    more is possible because the device was the limit. ``model``: what the rates are of.
    """

    model: str
    rates: Mapping[str, float]
    rows: tuple[tuple[str, float, bool], ...]
    limit: str

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        rows = [
            {
                "of": name,
                "samples_per_s": rate,
                "at_least": at_least,
                "feeds": {key: rate / value for key, value in self.rates.items()},
            }
            for name, rate, at_least in self.rows
        ]
        return {"model": self.model, "rates": dict(self.rates), "limit": self.limit, "rows": rows}


def supplies(result: Result, known: Capacities, loop: Loop | None) -> list[Supply]:
    """CPUs, disk, store and network of this host, for the samples of ``loop``."""
    cpus, sample_bytes = _cpus(known, loop)
    found = [cpus]
    if sample_bytes is None:
        return found
    disk, target = _disk(result, known, sample_bytes)
    ceiling = of_target(target, result) if target else None
    if ceiling is not None and disk.samples_per_s:
        bound = ceiling.mb_per_s * 1e6 / sample_bytes
        if bound < disk.samples_per_s:
            disk = Supply("disk", bound, f"{ceiling.what}: {ceiling.mb_per_s:,.0f} MB/s")
    found += [disk, _store(result, known, sample_bytes)]
    if (link := network(result)) is not None:
        said = f"{link.what}: {link.mb_per_s:,.0f} MB/s ({link.source})"
        found.append(Supply("network", link.mb_per_s * 1e6 / sample_bytes, said))
    else:
        found.append(Supply("network", None, _NOT_MEASURED["network"]))
    return found


def feeds(
    known: Sequence[Supply], loop: Loop | None, advice: Advice, device_rate: float | None = None
) -> Feeds | None:
    """How many accelerators the loop feeds now and after the first change, and each supply.

    Rates of accelerators are those of ResNet-50 and are used for it alone; of another model the
    device that was measured is the measure, or ``device_rate``.
    """
    rates, model = _rates_of(loop, device_rate)
    if not rates:
        return None
    rows = []
    if loop is not None and loop.farthest and (rate := loop.rate()) is not None:
        consumes = loop.consumes
        sated = consumes is not None and rate.median > 0.95 * consumes.median
        rows.append(("this loop, now", rate.median, sated))
    first = next((change for change in advice.changes if change.rate is not None), None)
    if first is not None and first.rate is not None and first.setting != "processors":
        rows.append(("with change 1", first.rate, first.limit == "device"))
    names = {"CPUs": "this host's CPUs", "disk": "this disk, cold", "store": "this store"}
    told = {one.part: one.samples_per_s for one in known if one.samples_per_s}
    rows += [(names[part], rate, False) for part, rate in told.items() if part in names]
    least = {part: rate for part, rate in told.items() if part in _needed(loop)}
    limit = min(least, key=lambda part: least[part]) if len(least) > 1 else ""
    return Feeds(model, rates, tuple(rows), limit) if rows else None


@dataclass(frozen=True, slots=True)
class Scale:
    """What ``devices`` need of hosts like this one; ``unknown`` says what is missing.

    ``hosts``: by each part that was measured, and of devices. ``limit`` needs the most.
    """

    devices: int
    device: str
    images_per_s: float = 0.0
    gb_per_s: float = 0.0
    devices_per_host: int = 1
    supplies: tuple[Supply, ...] = ()
    hosts: Mapping[str, int] = field(default_factory=dict)
    limit: str = ""
    gets_per_s: float | None = None
    unknown: str = ""

    @property
    def all_hosts(self) -> int:
        """Hosts that are enough for all parts."""
        return max(self.hosts.values(), default=0)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "hosts_needed": self.all_hosts}


def scale(result: Result, known: Capacities, loop: Loop | None, asked: Mapping[str, Any]) -> Scale:
    """Hosts for so many devices. ``asked``: keys of ``ScaleSettings``, and ``device``, a name."""
    devices = int(asked["devices"])
    each, named = _consumption(loop, asked, devices)
    parts = supplies(result, known, loop)
    told = {part.part: part for part in parts if part.samples_per_s}
    if each is None:
        why = "what a device consumes: give --device or --device-rate, or measure a training loop"
        return Scale(devices, named, unknown=why)
    if "CPUs" not in told:
        return Scale(devices, named, unknown="what a loader gives: measure one under loaders")
    per_host = int(asked.get("devices_per_host") or len(result.environment.get("gpus") or ()) or 1)
    demand = each * devices
    needed = [told[part] for part in _needed(loop) if part in told]
    hosts = {one.part: math.ceil(demand / (one.samples_per_s or 1)) for one in needed}
    hosts["devices"] = math.ceil(devices / per_host)
    sample_bytes = _cpus(known, loop)[1] or 0.0
    store = told.get("store")
    gets = None
    if store is not None and store.object_bytes:
        gets = demand * sample_bytes / store.object_bytes
    return Scale(
        *(devices, named, demand, demand * sample_bytes / 1e9, per_host, tuple(parts), hosts),
        limit=max(hosts, key=lambda part: hosts[part]),
        gets_per_s=gets,
    )


def scale_lines(found: Scale) -> Iterator[str]:
    """For a terminal and the page."""
    many = f"{found.devices:,} device{'s' * (found.devices != 1)}"
    if found.unknown:
        yield f"{many}: unknown: {found.unknown}"
        return
    verb = "consumes" if found.devices == 1 else "consume"
    yield (
        f"{many}, {found.device}: {verb} {found.images_per_s:,.0f} img/s ({found.gb_per_s:,.2g} "
        f"GB/s). Hosts like this one: {found.all_hosts:,}."
    )
    for one in found.supplies:
        if one.samples_per_s is None:
            yield f"  {one.part:<8}  {one.basis}"
        else:
            limit = ": the limit" if one.part == found.limit else ""
            yield f"  {one.part:<8}  {one.samples_per_s:,.0f} img/s per host{limit} ({one.basis})"
    if found.limit == "devices":
        yield f"  {'devices':<8}  {found.devices_per_host} per host: the limit"
    if found.gets_per_s:
        yield f"  requests  {found.gets_per_s:,.0f} GET/s, for objects of the measured size"


def feeds_line(found: Feeds) -> str:
    """``This host feeds, for ResNet-50: 1.3 V100   0.6 A100   0.2 H100``."""
    name, rate, _ = min((row for row in found.rows if "host" in row[0]), default=found.rows[0])
    said = "   ".join(f"{rate / value:.2g} {key}" for key, value in found.rates.items())
    subject = "This host feeds" if "host" in name else "This loop feeds"
    return f"{subject}, for {found.model}:  {said}"


@dataclass(frozen=True, slots=True)
class EpochCost:
    """An epoch from one place; parts whose price is not known are None."""

    place: str
    hours: float
    waiting_hours: float | None
    machine_usd: float | None
    requests_usd: float | None
    storage_usd: float | None

    @property
    def usd(self) -> float | None:
        """Sum of the known prices; None without the price of the machine."""
        if self.machine_usd is None:
            return None
        return self.machine_usd + (self.requests_usd or 0.0) + (self.storage_usd or 0.0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What training costs: a row for each place that the loop read from."""

    group: str
    samples: float
    epochs: int
    currency: str
    rows: tuple[EpochCost, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        rows = [{**asdict(row), "usd": row.usd} for row in self.rows]
        return {**asdict(self), "rows": rows}


def cost(result: Result, loop: Loop | None, asked: Mapping[str, Any]) -> Cost:
    """``asked``: the keys of ``CostSettings``; prices are those that the run read."""
    epochs = int(asked.get("epochs") or 1)
    told = result.references.get("prices")
    prices: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    currency = str(prices.get("currency") or "USD")
    sources = [] if loop is None else [one for one in FARTHEST if one in loop.inputs]
    if loop is None or not sources:
        return Cost("", 0.0, epochs, currency, unknown="no training loop read stored data")
    counts = [_samples(loop, source) for source in sources]
    samples = asked.get("samples") or next(filter(None, counts), None)
    if not samples:
        return Cost(loop.group, 0.0, epochs, currency, unknown="give cost.samples")
    hour = asked.get("instance_usd_per_h")
    hour = prices.get("instance_usd_per_h") if hour is None else hour
    stores = result.environment.get("stores") or {}
    kind = (stores.get("data") or {}).get("kind")
    stored = prices.get("s3") if kind == "aws-s3" else None
    store = Price.model_validate(stored) if isinstance(stored, Mapping) else None
    missing = []
    if hour is None:
        missing.append(f"an hour of the machine ({prices.get('instance_about')}): give --usd-per-h")
    if "store" in sources and store is None and kind != "own-server":
        missing.append("requests and storage: prices are of Amazon S3 alone")
    rows = [_epoch(loop, source, float(samples), hour, store, asked) for source in sources]
    made = tuple(row for row in rows if row is not None)
    return Cost(loop.group, float(samples), epochs, currency, made, tuple(missing))


def cost_lines(found: Cost) -> Iterator[str]:
    """For a terminal and the page."""
    if found.unknown:
        yield f"cost: unknown: {found.unknown}"
        return
    yield f"{found.epochs} epochs of {found.samples:,.0f} samples, {found.group}:"
    for row in found.rows:
        said = f"  {row.place:<6}  {duration_words(row.hours * 3600)} an epoch"
        if row.waiting_hours is not None:
            said += f", {duration_words(row.waiting_hours * 3600)} of it loss"
        if row.usd is not None:
            all_usd = money(row.usd * found.epochs, found.currency)
            said += f"; {money(row.usd, found.currency)} an epoch, {all_usd} in all"
        yield said
    yield from (f"  unknown: {line}" for line in found.missing)


def money(value: float, currency: str) -> str:
    """``$1.20`` or ``1.20 EUR``; two digits below a cent."""
    amount = f"{value:,.2f}" if value >= 0.01 or value == 0 else f"{value:.2g}"
    return f"${amount}" if currency == "USD" else f"{amount} {currency}"


def _rates_of(loop: Loop | None, device_rate: float | None) -> tuple[dict[str, float], str]:
    params = loop.params if loop is not None else {}
    if device_rate:
        return {"devices of this rate": device_rate}, f"{device_rate:,.0f} img/s"
    model, pixels = params.get("model", "resnet50"), params.get("image_size", 224)
    if model == "resnet50" and pixels == 224:
        return {name: PRESETS[name].images_per_s for name in ACCELERATORS}, "ResNet-50"
    if loop is None or loop.consumes is None:
        return {}, ""
    rate = loop.consumes.median / loop.devices
    name = str(loop.told.get("device") or "this device")
    return {name: rate}, model_words(str(params.get("model")))


def _needed(loop: Loop | None) -> tuple[str, ...]:
    """Parts of a host that the loop's samples pass through."""
    if loop is not None and loop.farthest == "store":
        return ("CPUs", "store", "network")
    return ("CPUs", "disk")


def _cpus(known: Capacities, loop: Loop | None) -> tuple[Supply, float | None]:
    """The fastest loader that reads from memory and does the loop's work; bytes of a sample."""
    work = setting_of(loop.params, "warm").work if loop is not None else None
    best = Supply(
        "CPUs", None, "not measured (dataprep init, then iobench run configs/bench/loaders.yaml)"
    )
    form = ""
    for setting, repeats in known.alone.items():
        rate = rate_of(repeats)
        decodes = setting.source == "warm" and setting.loader not in UNDECODED
        does_work = decodes and work in (None, setting.work)
        if does_work and rate is not None and rate.median > (best.samples_per_s or 0):
            words = params_words("loader", repeats[0].params).removeprefix("loader ")
            best, form = Supply("CPUs", rate.median, words), setting.form
    if best.samples_per_s is None and loop is not None and loop.farthest:
        rate = loop.rate("warm") or loop.rate()
        if rate is not None:
            best = Supply("CPUs", rate.median, f"what {loop.group} gets: a lower bound")
            form = str(loop.params.get("data", "")).partition("@")[0]
    return best, known.sample_bytes.get(form)


def _disk(result: Result, known: Capacities, sample_bytes: float) -> tuple[Supply, str]:
    """The fastest read that was shown to come from the device, and its target."""
    best, target = _raw(known, "cold", Supply("disk", None, _NOT_MEASURED["disk"])), ""
    for params, repeats in by_point(result.trials, "disk"):
        rate = (middle(repeats, "mb_per_s") or 0.0) * 1e6 / sample_bytes
        from_device = cold_label(repeats) in ("direct", "cold")
        if params.get("operation") == "read" and from_device and rate > (best.samples_per_s or 0):
            best = Supply("disk", rate, params_words("disk", params))
            target = str(params["target"])
    return best, target


def _store(result: Result, known: Capacities, sample_bytes: float) -> Supply:
    best = _raw(known, "store", Supply("store", None, _NOT_MEASURED["store"]))
    for params, repeats in by_point(result.trials, "object"):
        rate = (middle(repeats, "mb_per_s") or 0.0) * 1e6 / sample_bytes
        is_get = str(params.get("operation", "")).startswith("get")
        if is_get and rate > (best.samples_per_s or 0):
            words = params_words("object", params)
            best = Supply("store", rate, words, float(params["object_bytes"]))
    return best


def _raw(known: Capacities, source: str, best: Supply) -> Supply:
    """The fastest reading without decoding, by the loader ``raw``."""
    for setting, found in known.reading.items():
        if setting.source == source and found.median > (best.samples_per_s or 0):
            said = f"loader raw over {setting.form}, {setting.all_workers} workers"
            best = Supply(best.part, found.median, said)
    return best


def _consumption(
    loop: Loop | None, asked: Mapping[str, Any], devices: int
) -> tuple[float | None, str]:
    """Images/s of one device, and its name."""
    if name := asked.get("device"):
        preset = PRESETS.get(str(name))
        return (preset.images_per_s, f"{name}, ResNet-50") if preset else (None, str(name))
    if rate := asked.get("images_per_s"):
        return float(rate) / devices, "as given"
    if rate := asked.get("images_per_s_per_device"):
        return float(rate), "as given"
    if loop is None or loop.consumes is None:
        return None, "unknown"
    named = str(loop.told.get("device") or loop.group)
    return loop.consumes.median / loop.devices, named


def _samples(loop: Loop, source: str) -> float | None:
    """Number of samples in the data that the loop reads."""
    trials = loop.inputs[source]
    rate, stored = middle(trials, "samples_per_s"), middle(trials, "mb_per_s")
    objects, size = middle(trials, "objects"), middle(trials, "mean_object_bytes")
    if not (rate and stored and objects and size):
        return None
    return float(round(objects * size / (stored * 1e6 / rate)))


def _epoch(
    loop: Loop,
    source: str,
    samples: float,
    hour: float | None,
    store: Price | None,
    asked: Mapping[str, Any],
) -> EpochCost | None:
    trials = loop.inputs[source]
    rate, stored = rate_of(trials), middle(trials, "mb_per_s")
    if rate is None or not stored:
        return None
    hours = samples / rate.median / 3600
    each, size = stored * 1e6 / rate.median, middle(trials, "mean_object_bytes")
    requests = storage = None
    if source == "store" and store is not None:
        by_sample = loop.params.get("loader") in BY_SAMPLE
        gets = samples if by_sample else samples * each / size if size else None
        requests = None if gets is None else store.of_requests(0, round(gets), 0)
        storage = store.of_a_month(round(samples * each)) * hours / _HOURS_A_MONTH
    disk = asked.get("disk_usd_per_gb_month")
    if source != "store" and is_number(disk):
        storage = samples * each / _GB * float(disk or 0.0) * hours / _HOURS_A_MONTH
    loss = loop.loss if source == loop.farthest else None
    return EpochCost(
        source,
        hours,
        None if loss is None else max(0.0, loss.median) * hours,
        None if hour is None else hours * float(hour),
        requests,
        storage,
    )
