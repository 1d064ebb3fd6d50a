"""PURE. How many accelerators a host feeds, and how many hosts N accelerators need.

All hosts are assumed to be identical to the host that measured. If several hosts measured at the
same time, the rate of the storage is the rate that all hosts got together
(``iobench.analysis.host_scaling``). Otherwise each host is assumed to get the rate that this host
got. ``iobench.analysis.epoch_cost`` has the cost of an epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dataprep.counted import counted
from iobench.analysis.bandwidth_limits import network_limit, target_limit
from iobench.analysis.capacity import Capacities, StorageRead
from iobench.analysis.epoch_cost import money
from iobench.analysis.host_scaling import HostCurve, host_curves
from iobench.analysis.hosts import host_points, on_all_hosts
from iobench.analysis.loader_setting import setting_of
from iobench.analysis.loops import Loop, Source
from iobench.analysis.recommendation_choice import Advice
from iobench.analysis.repeats import data_name
from iobench.consumers.accelerators import RATES, Rate, WorkKind, rental_of
from iobench.results.result import Result
from iobench.results.wording import model_words, params_words

_NOT_MEASURED = {
    "CPUs": "not measured (dataprep init, then iobench run configs/bench/loaders.yaml)",
    "disk": "not measured (dataprep init, then iobench run configs/bench/disk.yaml)",
    "store": "not measured (dataprep init, then iobench run configs/bench/s3.yaml)",
    "network": "unknown: give limits.network_gbit_per_s",
}
_DEVICE_BOUND = 0.95
"""If a loop reaches this share of its device's rate, its input might feed more devices."""
_SUPPLY_NAMES = {"CPUs": "this host's CPUs", "disk": "this disk, cold", "store": "this store"}


@dataclass(frozen=True, slots=True)
class Supply:
    """The rate that one part of a host can supply.

    Attributes:
        part: ``CPUs``, ``disk``, ``store`` or ``network``.
        samples_per_s: its rate; None if it is unknown.
        basis: where the rate comes from, or why it is unknown.
        object_bytes: the size of the objects that were read; 0 if they are unknown.
    """

    part: str
    samples_per_s: float | None
    basis: str
    object_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class FeedsRow:
    """How many accelerators one supply feeds.

    Attributes:
        of: the supply, such as ``this disk, cold``.
        samples_per_s: its rate.
        at_least: whether it may feed more accelerators, because the device was the limit.
        feeds: numbers of accelerators by the names of their rates. A measured row has only the
            accelerator that was emulated.
        how: ``measured`` if this number of accelerators ran side by side; ``computed`` if
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
        """Return the row as ``result.json`` stores it."""
        return {**asdict(self), "feeds": dict(self.feeds)}


@dataclass(frozen=True, slots=True)
class Feeds:
    """How many accelerators each supply feeds.

    Attributes:
        model: the model that the accelerators train.
        rates: samples/s of each accelerator by the name of its rate.
        rows: one for each supply; measured rows come first.
        limit: the slowest part of the host.
    """

    model: str
    rates: Mapping[str, float]
    rows: tuple[FeedsRow, ...]
    limit: str

    @property
    def names(self) -> tuple[str, ...]:
        """The accelerators for which any row has a number."""
        names = list(self.rates)
        for row in self.rows:
            names.extend(row.feeds)
        return tuple(dict.fromkeys(names))

    def as_dict(self) -> dict[str, Any]:
        """Return the table as ``result.json`` stores it."""
        rows = [row.as_dict() for row in self.rows]
        return {"model": self.model, "rates": dict(self.rates), "limit": self.limit, "rows": rows}


@dataclass(frozen=True, slots=True)
class Scale:
    """The hosts that a number of devices need.

    Attributes:
        devices: the number of devices.
        device: the name of the device.
        images_per_s: the rate of all devices together.
        gb_per_s: the same in GB (10^9 bytes) of stored data.
        devices_per_host: devices in each host.
        supplies: the rates of the parts of a host.
        hosts: for each measured part, and for ``devices``, the number of hosts that it needs.
        limit: the part that needs the most hosts.
        gets_per_s: requests to the store for objects of the measured size; None if unknown.
        rate: the kind and the source of the published rate; empty if none was used.
        rate_note: why the published rate does not fit this run; empty if it fits.
        usd_per_h: the price of all devices for an hour; None if unknown.
        price: where the price comes from.
        unknown: the measurement that is missing for an answer; empty if there is an answer.
        curves: the parts that were measured on several hosts at the same time.
        short: the parts of ``curves`` that are too slow with any number of hosts.
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
        """The number of hosts that is enough for all parts."""
        return max(self.hosts.values(), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the sizing as ``result.json`` stores it."""
        curves = [curve.as_dict() for curve in self.curves]
        hosts_needed = None if self.short else self.all_hosts
        return {**asdict(self), "curves": curves, "hosts_needed": hosts_needed}


def host_supplies(result: Result, capacities: Capacities, loop: Loop | None) -> list[Supply]:
    """Return the rates of the CPUs, disk, store and network of this host.

    Args:
        result: the run.
        capacities: the measured rates.
        loop: the loop whose samples are supplied; None if only loaders were measured.
    """
    cpus, sample_bytes = _cpu_supply(capacities, loop)
    if sample_bytes is None:
        return [cpus]
    return [
        cpus,
        _disk_supply(result, capacities, sample_bytes),
        _storage_supply(capacities, "store", capacities.store, sample_bytes),
        _network_supply(result, sample_bytes),
    ]


def feeds(
    supplies: Sequence[Supply],
    loop: Loop | None,
    advice: Advice,
    device_rate: float | None = None,
    measured: Sequence[FeedsRow] = (),
) -> Feeds | None:
    """Compute how many accelerators the loop and each part of the host feed.

    The loop has a row for its current rate, and a row for its rate after the first change.
    Published rates are used only for the model with which they were measured. For another model,
    the measured rate of this run's device is used.

    Args:
        supplies: the rates of the parts of the host.
        loop: the loop; None if only loaders were measured.
        advice: the changes that are recommended.
        device_rate: samples/s of a device that the user gave.
        measured: numbers of accelerators that ran side by side; they come first.

    Returns:
        The table; None if it would be empty.
    """
    rates, model = _accelerator_rates(loop, device_rate)
    if not rates:
        return Feeds(model, rates, tuple(measured), "") if measured else None

    def computed(of: str, samples_per_s: float, basis: str, *, at_least: bool = False) -> FeedsRow:
        counts = {name: samples_per_s / rate for name, rate in rates.items()}
        return FeedsRow(of, samples_per_s, at_least, counts, "computed", basis)

    rows = list(measured)
    loop_rate = loop.rate() if loop is not None and loop.farthest else None
    if loop is not None and loop_rate is not None:
        device = loop.device_rate
        is_device_bound = device is not None and loop_rate.median > _DEVICE_BOUND * device.median
        rows.append(
            computed(
                "this loop, now", loop_rate.median, "the loop's rate", at_least=is_device_bound
            )
        )
    predicted = [change for change in advice.changes if change.rate is not None]
    if predicted and predicted[0].setting != "processors":
        first = predicted[0]
        is_device_bound = first.limit == "device"
        samples_per_s = first.rate or 0.0
        rows.append(
            computed("with change 1", samples_per_s, "a predicted rate", at_least=is_device_bound)
        )
    rate_of_part = {
        supply.part: supply.samples_per_s for supply in supplies if supply.samples_per_s
    }
    for part, samples_per_s in rate_of_part.items():
        if part in _SUPPLY_NAMES:
            rows.append(computed(_SUPPLY_NAMES[part], samples_per_s, "its rate alone"))
    if not rows:
        return None
    parts_used = _parts_used(loop)
    used = {part: rate for part, rate in rate_of_part.items() if part in parts_used}
    limit = min(used, key=lambda part: used[part]) if len(used) > 1 else ""
    return Feeds(model, rates, tuple(rows), limit)


def scale(
    result: Result, capacities: Capacities, loop: Loop | None, settings: Mapping[str, Any]
) -> Scale:
    """Compute the hosts that a number of devices need.

    Args:
        result: the run.
        capacities: the measured rates.
        loop: the loop; None if only loaders were measured.
        settings: the keys of ``ScaleSettings``, and ``device``, the name of a published rate.
    """
    points = host_points(result.trials)
    result = on_all_hosts(result)
    devices = int(settings["devices"])
    device_rate, device = _device_rate(loop, settings, devices)
    supplies = host_supplies(result, capacities, loop)
    measured = {supply.part: supply for supply in supplies if supply.samples_per_s}
    if device_rate is None:
        why = (
            "the rate of a device was not measured: give --device or --device-rate, or measure a "
            "training loop"
        )
        return Scale(devices, device, unknown=why)
    if "CPUs" not in measured:
        why = "the rate of a loader was not measured: measure one under loaders"
        return Scale(devices, device, unknown=why)
    images_per_s = device_rate * devices
    sample_bytes = _cpu_supply(capacities, loop)[1] or 0.0
    curves: dict[str, HostCurve] = {}
    if sample_bytes:
        curves = {curve.part: curve for curve in host_curves(points, sample_bytes)}
    used = [measured[part] for part in _parts_used(loop) if part in measured]
    hosts: dict[str, int] = {}
    short = []
    for supply in used:
        count = _hosts_for(images_per_s, supply, curves.get(supply.part))
        if count is None:
            short.append(supply.part)
        else:
            hosts[supply.part] = count
    gpus = len(result.environment.get("gpus") or ())
    devices_per_host = int(settings.get("devices_per_host") or gpus or 1)
    hosts["devices"] = math.ceil(devices / devices_per_host)
    gets_per_s = None
    if "store" in measured and measured["store"].object_bytes:
        gets_per_s = images_per_s * sample_bytes / measured["store"].object_bytes
    rate = RATES.get(str(settings.get("device")))
    rental = rental_of(rate.name) if rate is not None else None
    return Scale(
        devices=devices,
        device=device,
        images_per_s=images_per_s,
        gb_per_s=images_per_s * sample_bytes / 1e9,
        devices_per_host=devices_per_host,
        supplies=tuple(supplies),
        hosts=hosts,
        limit=short[0] if short else max(hosts, key=lambda part: hosts[part]),
        gets_per_s=gets_per_s,
        rate=f"{rate.work_kind.value}; {rate.source}" if rate is not None else "",
        rate_note=_rate_note(rate, loop) if rate is not None else "",
        usd_per_h=rental.usd_per_accelerator_h * devices if rental is not None else None,
        price=rental.basis if rental is not None else "",
        curves=tuple(curves[supply.part] for supply in used if supply.part in curves),
        short=tuple(short),
    )


def scale_lines(sizing: Scale) -> Iterator[str]:
    """Yield the sizing as lines for a terminal and for the report."""
    devices = f"{sizing.devices:,} device{'' if sizing.devices == 1 else 's'}"
    if sizing.unknown:
        yield f"{devices}: unknown: {sizing.unknown}"
        return
    verb = "consumes" if sizing.devices == 1 else "consume"
    hosts = f"Hosts like this one: {sizing.all_hosts:,}."
    if sizing.short:
        hosts = f"No number of hosts is enough: the {sizing.short[0]} does not get faster."
    yield (
        f"{devices}, {sizing.device}: {verb} {sizing.images_per_s:,.0f} img/s "
        f"({sizing.gb_per_s:,.2g} GB/s). {hosts}"
    )
    if sizing.rate:
        device_rate = sizing.images_per_s / sizing.devices
        yield f"  {'rate':<8}  {device_rate:,.0f} img/s each: {sizing.rate}"
    if sizing.rate_note:
        yield f"  {'note':<8}  {sizing.rate_note}"
    for supply in sizing.supplies:
        yield _supply_line(supply, sizing.limit)
    for curve in sizing.curves:
        yield _curve_line(curve, sizing)
    if sizing.limit == "devices":
        yield f"  {'devices':<8}  {sizing.devices_per_host} per host: the limit"
    if sizing.gets_per_s:
        yield f"  requests  {sizing.gets_per_s:,.0f} GET/s, for objects of the measured size"
    if sizing.usd_per_h is not None:
        usd = money(sizing.usd_per_h, "USD")
        yield f"  {'price':<8}  {usd} an hour for all devices: {sizing.price}"


def feeds_line(table: Feeds) -> str:
    """Return ``This host feeds, for ResNet-50:  1.3 V100   0.6 A100   0.2 H100  (computed)``."""
    measured = [row for row in table.rows if row.how == "measured"]
    of_host = sorted((row for row in table.rows if "host" in row.of), key=lambda row: row.of)
    row = [*measured, *of_host, *table.rows][0]
    more = " or more" if row.at_least and row.how == "measured" else ""
    counts = "   ".join(f"{count:.2g}{more} {name}" for name, count in row.feeds.items())
    subject = "This host feeds" if row.how == "measured" or of_host else "This loop feeds"
    return f"{subject}, for {table.model}:  {counts}  ({row.how})"


def _supply_line(supply: Supply, limit: str) -> str:
    """Return the rate of a part of a host, and whether it is the limit."""
    if supply.samples_per_s is None:
        return f"  {supply.part:<8}  {supply.basis}"
    is_limit = ": the limit" if supply.part == limit else ""
    return (
        f"  {supply.part:<8}  {supply.samples_per_s:,.0f} img/s per host{is_limit} ({supply.basis})"
    )


def _curve_line(curve: HostCurve, sizing: Scale) -> str:
    """Return the measured rates of several hosts together, and the hosts that are needed."""
    rates = sorted(curve.samples_per_s.items())
    rates_text = ", ".join(f"{rate:,.0f} on {counted(hosts, 'host')}" for hosts, rate in rates)
    needed = sizing.hosts.get(curve.part)
    answer = "no number of hosts gets the rate"
    if needed is not None:
        answer = f"{counted(needed, 'host')} needed"
    if needed is None or needed > curve.largest:
        answer += f", extrapolated beyond {counted(curve.largest, 'measured host')}"
    return f"  {curve.part:<8}  img/s of all hosts together: {rates_text}; {answer}"


def _hosts_for(images_per_s: float, supply: Supply, curve: HostCurve | None) -> int | None:
    """Return how many hosts a part needs for a rate; None if no number of hosts is enough."""
    if curve is not None:
        return curve.hosts_for(images_per_s)
    return math.ceil(images_per_s / (supply.samples_per_s or 1))


def _rate_note(rate: Rate, loop: Loop | None) -> str:
    """Return a note if the rate was published for another model; empty for the loop's model."""
    model = str(loop.params.get("model", rate.model)) if loop is not None else rate.model
    if model == rate.model:
        return ""
    rate_model = model_words(rate.model)
    return (
        f"the rate is of {rate_model}, but the run's loop trained {model_words(model)}: measure "
        f"the data of {rate_model} first"
    )


def _accelerator_rates(
    loop: Loop | None, device_rate: float | None
) -> tuple[dict[str, float], str]:
    """Return samples/s of accelerators by their names, and the model or rate in words."""
    if device_rate:
        return {"devices of this rate": device_rate}, f"{device_rate:,.0f} img/s"
    params = loop.params if loop is not None else {}
    model, image_size = str(params.get("model", "resnet50")), params.get("image_size", 224)
    preset = RATES.get(str(params.get("preset")))
    if preset is not None and preset.work_kind is WorkKind.MLPERF_STORAGE:
        return _published_rates(model, WorkKind.MLPERF_STORAGE), model_words(model)
    if model == "resnet50" and image_size == 224:
        return _published_rates(model, WorkKind.TUNED_STEP), model_words(model)
    if loop is None or loop.device_rate is None:
        return {}, model_words(model)
    name = str(loop.facts.get("device") or "this device")
    rate = loop.device_rate.median / loop.devices
    return {name: rate}, model_words(str(params.get("model")))


def _published_rates(model: str, work_kind: WorkKind) -> dict[str, float]:
    """Return the rates of all accelerators for a model, all for one kind of work."""
    return {
        rate.name: rate.samples_per_s
        for rate in RATES.values()
        if rate.model == model and rate.work_kind is work_kind
    }


def _parts_used(loop: Loop | None) -> tuple[str, ...]:
    """Return the parts of a host that the loop's samples pass through."""
    if loop is not None and loop.farthest == "store":
        return ("CPUs", "store", "network")
    return ("CPUs", "disk")


def _cpu_supply(capacities: Capacities, loop: Loop | None) -> tuple[Supply, float | None]:
    """Return the rate of the CPUs, and the stored bytes of a sample.

    It is the rate of the fastest loader that reads from memory and does the loop's work. Without
    such a loader, the rate of the loop itself is a lower bound.
    """
    work = setting_of(loop.params, "warm").work if loop is not None else None
    loader = capacities.fastest_loader(work)
    if loader is not None:
        basis = params_words("loader", loader.params).removeprefix("loader ")
        supply = Supply("CPUs", loader.samples_per_s, basis)
        return supply, capacities.sample_bytes.get(loader.setting.data)
    if loop is not None and loop.farthest:
        rate = loop.rate("warm") or loop.rate()
        if rate is not None:
            supply = Supply("CPUs", rate.median, f"the rate of {loop.group}: a lower bound")
            return supply, capacities.sample_bytes.get(data_name(loop.params))
    return Supply("CPUs", None, _NOT_MEASURED["CPUs"]), None


def _storage_supply(
    capacities: Capacities,
    part: Literal["disk", "store"],
    probed: StorageRead | None,
    sample_bytes: float,
) -> Supply:
    """Return the rate of a disk or store: by the loader ``raw`` or a probe, whichever is faster."""
    source: Source = "cold" if part == "disk" else "store"
    supply = Supply(part, None, _NOT_MEASURED[part])
    raw = capacities.fastest_raw_rate(source)
    if raw is not None:
        setting, samples_per_s = raw
        basis = f"loader raw over {setting.data}, {setting.all_workers} workers"
        supply = Supply(part, samples_per_s, basis)
    if probed is not None:
        samples_per_s = probed.mb_per_s * 1e6 / sample_bytes
        if samples_per_s > (supply.samples_per_s or 0):
            supply = Supply(part, samples_per_s, probed.description, probed.object_bytes)
    return supply


def _disk_supply(result: Result, capacities: Capacities, sample_bytes: float) -> Supply:
    """Return the rate of the disk, at most the limit of its link."""
    probed = capacities.disk
    supply = _storage_supply(capacities, "disk", probed, sample_bytes)
    is_probed = probed is not None and supply.basis == probed.description
    if probed is None or not is_probed or not supply.samples_per_s:
        return supply
    limit = target_limit(probed.target, result)
    if limit is None:
        return supply
    samples_per_s = limit.mb_per_s * 1e6 / sample_bytes
    if samples_per_s < supply.samples_per_s:
        return Supply("disk", samples_per_s, f"{limit.part}: {limit.mb_per_s:,.0f} MB/s")
    return supply


def _network_supply(result: Result, sample_bytes: float) -> Supply:
    limit = network_limit(result)
    if limit is None:
        return Supply("network", None, _NOT_MEASURED["network"])
    basis = f"{limit.part}: {limit.mb_per_s:,.0f} MB/s ({limit.source})"
    return Supply("network", limit.mb_per_s * 1e6 / sample_bytes, basis)


def _device_rate(
    loop: Loop | None, settings: Mapping[str, Any], devices: int
) -> tuple[float | None, str]:
    """Return images/s of one device and its name; None if the rate is unknown."""
    if name := settings.get("device"):
        rate = RATES.get(str(name))
        if rate is None:
            return None, name
        return rate.samples_per_s, f"{name}, {model_words(rate.model)}"
    if images_per_s := settings.get("images_per_s"):
        return float(images_per_s) / devices, "as given"
    if images_per_s_per_device := settings.get("images_per_s_per_device"):
        return float(images_per_s_per_device), "as given"
    if loop is None or loop.device_rate is None:
        return None, "unknown"
    name = str(loop.facts.get("device") or loop.group)
    return loop.device_rate.median / loop.devices, name
