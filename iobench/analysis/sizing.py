"""PURE. How many hosts are needed to supply a number of devices with samples.

A *device* is an accelerator that trains. The parts of a host, such as its CPUs and its disk, supply
samples to the devices (``iobench.analysis.supplies``). Each part needs as many hosts as together
supply the rate of all devices. All hosts are assumed to be identical to the host that measured.

If several hosts measured the storage at the same time, its rate for a number of hosts comes from
their sums (``iobench.analysis.host_scaling``). Otherwise each host is assumed to get the rate that
this host got. ``iobench.analysis.epoch_cost`` has the cost of an epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.capacity import Capacities
from iobench.analysis.data_storage import supplies_data
from iobench.analysis.epoch_cost import money
from iobench.analysis.host_scaling import HostCurve, host_curves
from iobench.analysis.hosts import host_points, without_fewer_hosts
from iobench.analysis.loops import Loop
from iobench.analysis.supplies import (
    Supply,
    host_supplies,
    parts_used,
    supplied_data,
    supplied_sample_bytes,
)
from iobench.consumers.accelerators import RATES, Rate, rental_of
from iobench.results.numbers import rough_number
from iobench.results.result import Result
from iobench.results.wording import model_words


@dataclass(frozen=True, slots=True)
class Scale:
    """The hosts that a number of devices need.

    Attributes:
        devices: the number of devices.
        device: the name of the device, or how its rate is known if it has no name.
        images_per_s: the rate of all devices together.
        gb_per_s: the same rate in GB (10^9 bytes) of stored data; 0 if the stored bytes of a sample
            are unknown.
        devices_per_host: devices in each host.
        supplies: the rates of all parts of a host. Parts with an unknown rate, and parts that the
            loop's samples do not pass through, are included.
        hosts: the number of hosts by part, and by ``devices`` the number of hosts that have room
            for all devices. Only parts with a known rate that the loop's samples pass through are
            included; parts in ``short`` are not.
        limit: the first part in ``short``; if there is none, the key of ``hosts`` with the largest
            number.
        gets_per_s: requests to the store per second for objects of the measured size; None if
            unknown.
        rate: the kind and the source of the published rate; empty if none was used.
        rate_note: why the published rate does not fit this run; empty if it fits.
        usd_per_h: the price of all devices for an hour in US dollars; None if unknown.
        price: where the price comes from; empty if it is unknown.
        unknown: the measurement that is missing for an answer; empty if there is an answer. If it
            is not empty, all other attributes after ``device`` have their defaults.
        curves: the rates of parts that several hosts measured at the same time.
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
        """The number of hosts that is enough for all parts but those in ``short``; 0 if unknown."""
        return max(self.hosts.values(), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the sizing as ``result.json`` stores it."""
        curves = [curve.as_dict() for curve in self.curves]
        hosts_needed = None if self.short or self.unknown else self.all_hosts
        return {**asdict(self), "curves": curves, "hosts_needed": hosts_needed}


def scale(
    result: Result, capacities: Capacities, loop: Loop | None, settings: Mapping[str, Any]
) -> Scale:
    """Compute the hosts that a number of devices need.

    Args:
        result: the run, with its trials on fewer hosts.
        capacities: the measured rates of the parts of a loop.
        loop: the loop whose samples are supplied; None if only loaders were measured.
        settings: the keys of ``ScaleSettings``. Their values may be None, but ``devices`` must have
            one. The key ``device``, which may be absent, has the name of a published rate.
    """
    points = host_points(result.trials)
    # The curves need the trials on fewer hosts. All other figures are those on all hosts.
    result = without_fewer_hosts(result)
    devices = int(settings["devices"])
    device_rate, device = _device_rate(loop, settings, devices)
    supplies = host_supplies(result, capacities, loop)
    supply_by_part = {supply.part: supply for supply in supplies if supply.samples_per_s}
    if device_rate is None:
        why = (
            "the rate of a device was not measured: give --device or --device-rate, or measure a "
            "training loop"
        )
        return Scale(devices, device, unknown=why)
    if "CPUs" not in supply_by_part:
        why = "the rate of a loader was not measured: measure one under loaders"
        return Scale(devices, device, unknown=why)
    images_per_s = device_rate * devices
    sample_bytes = supplied_sample_bytes(capacities, loop) or 0.0
    curves: dict[str, HostCurve] = {}
    if sample_bytes:
        data = supplied_data(capacities, loop)
        # Probes of other disks and stores than those of the data supply no samples.
        of_data = [
            point
            for point in points
            if point.kind not in ("disk", "object")
            or supplies_data(result, point.kind, point.params, data)
        ]
        curves = {curve.part: curve for curve in host_curves(of_data, sample_bytes)}
    used = [supply_by_part[part] for part in parts_used(loop) if part in supply_by_part]
    hosts_of_parts: dict[str, int | None] = {}
    for supply in used:
        hosts_of_parts[supply.part] = _hosts_for(images_per_s, supply, curves.get(supply.part))
    hosts = {part: count for part, count in hosts_of_parts.items() if count is not None}
    short = [part for part, count in hosts_of_parts.items() if count is None]
    gpus = len(result.environment.get("gpus") or ())
    devices_per_host = int(settings.get("devices_per_host") or gpus or 1)
    hosts["devices"] = math.ceil(devices / devices_per_host)
    bytes_per_s = images_per_s * sample_bytes
    gets_per_s = None
    if "store" in supply_by_part and supply_by_part["store"].object_bytes:
        gets_per_s = bytes_per_s / supply_by_part["store"].object_bytes
    sizing = Scale(
        devices=devices,
        device=device,
        images_per_s=images_per_s,
        gb_per_s=bytes_per_s / 1e9,
        devices_per_host=devices_per_host,
        supplies=tuple(supplies),
        hosts=hosts,
        limit=short[0] if short else max(hosts, key=lambda part: hosts[part]),
        gets_per_s=gets_per_s,
        curves=tuple(curves[supply.part] for supply in used if supply.part in curves),
        short=tuple(short),
    )
    rate = RATES.get(str(settings.get("device")))
    return _with_published_rate(sizing, rate, loop) if rate is not None else sizing


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
        f"({rough_number(sizing.gb_per_s)} GB/s). {hosts}"
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


def _supply_line(supply: Supply, limit: str) -> str:
    """Return a line with the rate of a part of a host, or with the reason why it is unknown.

    Args:
        supply: the rate of the part.
        limit: the part that is the limit.
    """
    if supply.samples_per_s is None:
        return f"  {supply.part:<8}  {supply.basis}"
    is_limit = ": the limit" if supply.part == limit else ""
    return (
        f"  {supply.part:<8}  {supply.samples_per_s:,.0f} img/s per host{is_limit} ({supply.basis})"
    )


def _curve_line(curve: HostCurve, sizing: Scale) -> str:
    """Return a line with the measured rates of several hosts together, and the needed hosts."""
    rates = []
    for hosts, rate in sorted(curve.samples_per_s.items()):
        rates.append(f"{rate:,.0f} on {counted(hosts, 'host')}")
    needed = sizing.hosts.get(curve.part)
    answer = "no number of hosts gets the rate"
    if needed is not None:
        answer = f"{counted(needed, 'host')} needed"
    if needed is None or needed > curve.largest:
        answer += f", extrapolated beyond {counted(curve.largest, 'measured host')}"
    return f"  {curve.part:<8}  img/s of all hosts together: {', '.join(rates)}; {answer}"


def _hosts_for(images_per_s: float, supply: Supply, curve: HostCurve | None) -> int | None:
    """Return how many hosts a part needs for a rate; None if no number of hosts is enough.

    Args:
        images_per_s: the rate of all devices together.
        supply: the rate of the part on one host, which is known. It is used without a curve.
        curve: the rates of the part on several hosts; None if they did not measure it together.
    """
    if curve is not None:
        return curve.hosts_for(images_per_s)
    return math.ceil(images_per_s / (supply.samples_per_s or 1))


def _with_published_rate(sizing: Scale, rate: Rate, loop: Loop | None) -> Scale:
    """Return the sizing with the source of the published rate, and with the price of its device.

    Args:
        sizing: the sizing for this rate.
        rate: the published rate.
        loop: the loop of the run; None if only loaders were measured.
    """
    source = f"{rate.work_kind.value}; {rate.source}"
    with_rate = replace(sizing, rate=source, rate_note=_rate_note(rate, loop))
    rental = rental_of(rate.name)
    if rental is None:
        return with_rate
    usd_per_h = rental.usd_per_accelerator_h * sizing.devices
    return replace(with_rate, usd_per_h=usd_per_h, price=rental.basis)


def _rate_note(rate: Rate, loop: Loop | None) -> str:
    """Return a note if the rate was published for another model than that of the loop.

    Empty for the same model, and for a run without a loop.
    """
    model = str(loop.params.get("model", rate.model)) if loop is not None else rate.model
    if model == rate.model:
        return ""
    rate_model = model_words(rate.model)
    return (
        f"the rate is of {rate_model}, but the run's loop trained {model_words(model)}: measure "
        f"the data of {rate_model} first"
    )


def _device_rate(
    loop: Loop | None, settings: Mapping[str, Any], devices: int
) -> tuple[float | None, str]:
    """Return images/s of one device and the name of the device; None for an unknown rate.

    The first of these gives the rate: a published rate, ``images_per_s``,
    ``images_per_s_per_device``, and the loop.

    Args:
        loop: the loop, whose device is used if ``settings`` give no rate; None if only loaders were
            measured.
        settings: the keys of ``ScaleSettings``, and ``device``, the name of a published rate.
        devices: the number of devices.
    """
    published_name = settings.get("device")
    if published_name:
        rate = RATES.get(str(published_name))
        if rate is None:
            return None, published_name
        return rate.samples_per_s, f"{published_name}, {model_words(rate.model)}"
    images_per_s = settings.get("images_per_s")
    if images_per_s:
        return float(images_per_s) / devices, "as given"
    images_per_s_per_device = settings.get("images_per_s_per_device")
    if images_per_s_per_device:
        return float(images_per_s_per_device), "as given"
    if loop is None or loop.device_rate is None:
        return None, "unknown"
    name = str(loop.facts.get("device") or loop.group)
    return loop.device_rate.median / loop.devices, name
