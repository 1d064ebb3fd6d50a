"""PURE. How many accelerators a host feeds, what N of them need, and what an epoch costs.

All hosts are assumed to be like the one that measured. If several hosts measured at the same time,
the storage gives what it gave to all of them together (``iobench.analysis.host_curve``); otherwise
it is assumed to give each host what it gave this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dataprep.counted import counted
from dataprep.prices import Price
from iobench.analysis.capacity import Capacities, setting_of
from iobench.analysis.ceilings import network, of_target
from iobench.analysis.host_curve import HostCurve, curves
from iobench.analysis.hosts import host_points, on_all_hosts
from iobench.analysis.loops import FARTHEST, Loop
from iobench.analysis.points import (
    arrival_rate,
    by_point,
    cold_label,
    is_number,
    middle,
    rate_of,
)
from iobench.analysis.recommend import Advice
from iobench.consumers.accelerators import RATES, Meaning, Rate, rental_of
from iobench.loaders.own import BY_SAMPLE, UNDECODED
from iobench.numbers import rough_duration
from iobench.result import Result
from iobench.words import model_words, params_words

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
class FeedsRow:
    """How many accelerators one supply feeds.

    Attributes:
        of: the supply, such as ``this disk, cold``.
        samples_per_s: what it gives.
        at_least: more is possible, because the device was the limit.
        feeds: numbers of accelerators by the names of their rates; a measured row has only those
            that ran.
        how: ``measured`` if so many accelerators ran side by side; ``computed`` if
            ``samples_per_s`` was divided by the rate of an accelerator.
        basis: where ``samples_per_s`` comes from.
    """

    of: str
    samples_per_s: float
    at_least: bool
    feeds: Mapping[str, float]
    how: Literal["measured", "computed"]
    basis: str

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {**asdict(self), "feeds": dict(self.feeds)}


@dataclass(frozen=True, slots=True)
class Feeds:
    """How many accelerators each supply feeds.

    Attributes:
        model: the model that the accelerators train.
        rates: samples/s of each accelerator by the name of its rate.
        rows: one for each supply; measured rows come first.
        limit: the part of the host that gives least.
    """

    model: str
    rates: Mapping[str, float]
    rows: tuple[FeedsRow, ...]
    limit: str

    @property
    def names(self) -> tuple[str, ...]:
        """Accelerators that any row has a number for."""
        of_rows = [name for row in self.rows for name in row.feeds]
        return tuple(dict.fromkeys([*self.rates, *of_rows]))

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        rows = [row.as_dict() for row in self.rows]
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
    known: Sequence[Supply],
    loop: Loop | None,
    advice: Advice,
    device_rate: float | None = None,
    measured: Sequence[FeedsRow] = (),
) -> Feeds | None:
    """How many accelerators the loop feeds now and after the first change, and each supply.

    Published rates are used for the model that they are of. For another model, the device that was
    measured is the measure, or ``device_rate``. ``measured`` rows stand before the computed ones.
    """
    rates, model = _rates_of(loop, device_rate)
    if not rates and not measured:
        return None

    def computed(of: str, rate: float, basis: str, *, at_least: bool = False) -> FeedsRow:
        counts = {name: rate / value for name, value in rates.items()}
        return FeedsRow(of, rate, at_least, counts, "computed", basis)

    rows = list(measured)
    if not rates:
        return Feeds(model, rates, tuple(rows), "")
    if loop is not None and loop.farthest and (rate := loop.rate()) is not None:
        consumes = loop.consumes
        sated = consumes is not None and rate.median > 0.95 * consumes.median
        rows.append(computed("this loop, now", rate.median, "the loop's rate", at_least=sated))
    first = next((change for change in advice.changes if change.rate is not None), None)
    if first is not None and first.rate is not None and first.setting != "processors":
        is_limited = first.limit == "device"
        rows.append(computed("with change 1", first.rate, "a predicted rate", at_least=is_limited))
    names = {"CPUs": "this host's CPUs", "disk": "this disk, cold", "store": "this store"}
    told = {one.part: one.samples_per_s for one in known if one.samples_per_s}
    for part, supplied in told.items():
        if part in names:
            rows.append(computed(names[part], supplied, "its rate alone"))
    least = {part: rate for part, rate in told.items() if part in _needed(loop)}
    limit = min(least, key=lambda part: least[part]) if len(least) > 1 else ""
    return Feeds(model, rates, tuple(rows), limit) if rows else None


@dataclass(frozen=True, slots=True)
class Scale:
    """What ``devices`` need of hosts like this one; ``unknown`` says what is missing.

    ``hosts``: by each part that was measured, and of devices. ``limit`` needs the most. ``rate``
    says what a published rate means and where it comes from, and ``rate_note`` what does not fit
    this run. ``usd_per_h`` is the price of all devices, and ``price`` where it comes from.
    ``curves`` are those parts that were measured on several hosts at the same time; ``short`` are
    those of them that no number of hosts makes fast enough.
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
    rate: str = ""
    rate_note: str = ""
    usd_per_h: float | None = None
    price: str = ""
    unknown: str = ""
    curves: tuple[HostCurve, ...] = ()
    short: tuple[str, ...] = ()

    @property
    def all_hosts(self) -> int:
        """Hosts that are enough for all parts."""
        return max(self.hosts.values(), default=0)

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        curves = [curve.as_dict() for curve in self.curves]
        needed = None if self.short else self.all_hosts
        return {**asdict(self), "curves": curves, "hosts_needed": needed}


def scale(result: Result, known: Capacities, loop: Loop | None, asked: Mapping[str, Any]) -> Scale:
    """Hosts for so many devices. ``asked``: keys of ``ScaleSettings``, and ``device``, a name."""
    points = host_points(result.trials)
    result = on_all_hosts(result)
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
    sample_bytes = _cpus(known, loop)[1] or 0.0
    measured = curves(points, sample_bytes) if sample_bytes else []
    over_hosts = {curve.part: curve for curve in measured}
    hosts: dict[str, int] = {}
    short = []
    for part in needed:
        count: int | None = math.ceil(demand / (part.samples_per_s or 1))
        if part.part in over_hosts:
            count = over_hosts[part.part].hosts_for(demand)
        if count is None:
            short.append(part.part)
        else:
            hosts[part.part] = count
    hosts["devices"] = math.ceil(devices / per_host)
    store = told.get("store")
    gets = None
    if store is not None and store.object_bytes:
        gets = demand * sample_bytes / store.object_bytes
    rate = RATES.get(str(asked.get("device")))
    rental = rental_of(rate.name) if rate is not None else None
    return Scale(
        *(devices, named, demand, demand * sample_bytes / 1e9, per_host, tuple(parts), hosts),
        limit=short[0] if short else max(hosts, key=lambda part: hosts[part]),
        gets_per_s=gets,
        rate=f"{rate.meaning.value}; {rate.source}" if rate is not None else "",
        rate_note=_rate_note(rate, loop) if rate is not None else "",
        usd_per_h=rental.usd_per_accelerator_h * devices if rental is not None else None,
        price=rental.basis if rental is not None else "",
        curves=tuple(over_hosts[part.part] for part in needed if part.part in over_hosts),
        short=tuple(short),
    )


def _rate_note(rate: Rate, loop: Loop | None) -> str:
    """Whether the loop trained another model than the rate is of; its samples then differ too."""
    model = str(loop.params.get("model", rate.model)) if loop is not None else rate.model
    if model == rate.model:
        return ""
    return (
        f"the rate is of {model_words(rate.model)}, but the run's loop trained "
        f"{model_words(model)}: measure the data of {model_words(rate.model)} first"
    )


def scale_lines(found: Scale) -> Iterator[str]:
    """For a terminal and the page."""
    many = f"{found.devices:,} device{'s' * (found.devices != 1)}"
    if found.unknown:
        yield f"{many}: unknown: {found.unknown}"
        return
    verb = "consumes" if found.devices == 1 else "consume"
    enough = f"Hosts like this one: {found.all_hosts:,}."
    if found.short:
        enough = f"No number of hosts is enough: the {found.short[0]} does not give more."
    yield (
        f"{many}, {found.device}: {verb} {found.images_per_s:,.0f} img/s ({found.gb_per_s:,.2g} "
        f"GB/s). {enough}"
    )
    if found.rate:
        yield f"  {'rate':<8}  {found.images_per_s / found.devices:,.0f} img/s each: {found.rate}"
    if found.rate_note:
        yield f"  {'note':<8}  {found.rate_note}"
    for supply in found.supplies:
        yield _supply_line(supply, found.limit)
    for curve in found.curves:
        yield _curve_line(curve, found)
    if found.limit == "devices":
        yield f"  {'devices':<8}  {found.devices_per_host} per host: the limit"
    if found.gets_per_s:
        yield f"  requests  {found.gets_per_s:,.0f} GET/s, for objects of the measured size"
    if found.usd_per_h is not None:
        usd = money(found.usd_per_h, "USD")
        yield f"  {'price':<8}  {usd} an hour for all devices: {found.price}"


def _supply_line(supply: Supply, limit: str) -> str:
    """What a part gives a host, and whether it is the limit."""
    if supply.samples_per_s is None:
        return f"  {supply.part:<8}  {supply.basis}"
    is_limit = ": the limit" if supply.part == limit else ""
    return (
        f"  {supply.part:<8}  {supply.samples_per_s:,.0f} img/s per host{is_limit} ({supply.basis})"
    )


def _curve_line(curve: HostCurve, scale: Scale) -> str:
    """What a part gave to several hosts together, and beyond which number that is extrapolated."""
    rates = sorted(curve.samples_per_s.items())
    shown = ", ".join(f"{rate:,.0f} on {counted(hosts, 'host')}" for hosts, rate in rates)
    needed = scale.hosts.get(curve.part)
    said = "no number of hosts gets the rate"
    if needed is not None:
        said = f"{counted(needed, 'host')} needed"
    if needed is None or needed > curve.largest:
        said += f", extrapolated beyond {counted(curve.largest, 'measured host')}"
    return f"  {curve.part:<8}  img/s of all hosts together: {shown}; {said}"


def feeds_line(found: Feeds) -> str:
    """``This host feeds, for ResNet-50:  1.3 V100   0.6 A100   0.2 H100  (computed)``."""
    measured = [row for row in found.rows if row.how == "measured"]
    of_host = sorted((row for row in found.rows if "host" in row.of), key=lambda row: row.of)
    row = [*measured, *of_host, *found.rows][0]
    more = " or more" if row.at_least and row.how == "measured" else ""
    counts = "   ".join(f"{count:.2g}{more} {name}" for name, count in row.feeds.items())
    subject = "This host feeds" if row.how == "measured" or of_host else "This loop feeds"
    return f"{subject}, for {found.model}:  {counts}  ({row.how})"


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
        said = f"  {row.place:<6}  {rough_duration(row.hours * 3600)} an epoch"
        if row.waiting_hours is not None:
            said += f", {rough_duration(row.waiting_hours * 3600)} of it loss"
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
    model, pixels = str(params.get("model", "resnet50")), params.get("image_size", 224)
    preset = RATES.get(str(params.get("preset")))
    if preset is not None and preset.meaning is Meaning.MLPERF_STORAGE:
        return _published(model, Meaning.MLPERF_STORAGE), model_words(model)
    if model == "resnet50" and pixels == 224:
        return _published(model, Meaning.TUNED_STEP), model_words(model)
    if loop is None or loop.consumes is None:
        return {}, model_words(model)
    rate = loop.consumes.median / loop.devices
    name = str(loop.told.get("device") or "this device")
    return {name: rate}, model_words(str(params.get("model")))


def _published(model: str, meaning: Meaning) -> dict[str, float]:
    """Rates of all accelerators for a model, all of one meaning."""
    rates = [rate for rate in RATES.values() if rate.model == model and rate.meaning is meaning]
    return {rate.name: rate.samples_per_s for rate in rates}


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
        delivered = arrival_rate(repeats)
        rate = (delivered.median if delivered else 0.0) * 1e6 / sample_bytes
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
        rate = RATES.get(str(name))
        return (rate.samples_per_s, f"{name}, {model_words(rate.model)}") if rate else (None, name)
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
