"""PURE. The cost of training: hours and money for an epoch at the rate of the training loop.

Prices are in ``Cost.currency``. Names that end in ``_usd`` have this unit too: the currency is USD
unless the file of prices has another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dataprep.config.prices import Price
from dataprep.message_text import counted
from iobench.analysis.loops import FARTHEST, Loop, Source
from iobench.analysis.repeats import is_number, median_of, rate_of
from iobench.loaders.capabilities import capabilities_of
from iobench.results.numbers import rough_duration
from iobench.results.result import Result

_HOURS_PER_MONTH = 365 * 24 / 12  # Prices of storage are for an average month.
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class EpochCost:
    """The cost of one epoch whose samples come from one location.

    Attributes:
        place: the location: ``warm``, ``cold`` or ``store``.
        hours: the duration of the epoch.
        waiting_hours: the part of ``hours`` that is lost to the input; None if the loss is unknown,
            and for all locations but the farthest one.
        machine_usd: the price of the machine for the epoch; None if it is unknown.
        requests_usd: the price of the requests to the store; None if it is unknown, or if the
            location is not the store.
        storage_usd: the price of storing the data during the epoch, in the store or on the disk;
            None if it is unknown.
    """

    place: str
    hours: float
    waiting_hours: float | None
    machine_usd: float | None
    requests_usd: float | None
    storage_usd: float | None

    @property
    def usd(self) -> float | None:
        """The sum of the known prices; None if the price of the machine is unknown."""
        if self.machine_usd is None:
            return None
        return self.machine_usd + (self.requests_usd or 0.0) + (self.storage_usd or 0.0)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of training.

    Attributes:
        group: the loop whose rate is used.
        samples: samples in an epoch.
        epochs: number of epochs.
        currency: the currency of all prices.
        rows: the cost of an epoch for each location that the loop read from with a known rate, the
            farthest location first.
        missing: prices that are unknown, in words.
        unknown: what is missing for an answer; empty if there is an answer.
    """

    group: str
    samples: float
    epochs: int
    currency: str
    rows: tuple[EpochCost, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the cost as ``result.json`` stores it."""
        rows = [{**asdict(row), "usd": row.usd} for row in self.rows]
        return {**asdict(self), "rows": rows}


def epoch_cost(result: Result, loop: Loop | None, settings: Mapping[str, Any]) -> Cost:
    """Compute the cost of training at the rate of a loop, with the prices that the run read.

    Args:
        result: the run.
        loop: the loop; None if the run has none.
        settings: the keys of ``CostSettings``. Keys may be absent, and values may be None.
    """
    epochs = int(settings.get("epochs") or 1)
    prices: Mapping[str, Any] = {}
    if isinstance(result.references.get("prices"), Mapping):
        prices = result.references["prices"]
    currency = str(prices.get("currency") or "USD")
    sources = [] if loop is None else [source for source in FARTHEST if source in loop.inputs]
    if loop is None or not sources:
        return Cost("", 0.0, epochs, currency, unknown="no training loop read stored data")
    samples = settings.get("samples") or _samples_in_data(loop, sources)
    if not samples:
        return Cost(loop.group, 0.0, epochs, currency, unknown="give cost.samples")
    stores = result.environment.get("stores") or {}
    store_kind = (stores.get("data") or {}).get("kind")
    unit_prices = _unit_prices(settings, prices, store_kind)
    missing = []
    if unit_prices.machine_usd_per_h is None:
        about = prices.get("instance_about")
        missing.append(f"the price of the machine for an hour ({about}): give --usd-per-h")
    if "store" in sources and unit_prices.store is None and store_kind != "own-server":
        missing.append("requests and storage: only prices of Amazon S3 are known")
    rows = []
    for source in sources:
        row = _cost_from(loop, source, float(samples), unit_prices)
        if row is not None:
            rows.append(row)
    return Cost(loop.group, float(samples), epochs, currency, tuple(rows), tuple(missing))


def cost_lines(cost: Cost) -> Iterator[str]:
    """Yield the cost as lines for a terminal and for the report."""
    if cost.unknown:
        yield f"cost: unknown: {cost.unknown}"
        return
    yield f"{counted(cost.epochs, 'epoch')} of {cost.samples:,.0f} samples, {cost.group}:"
    for row in cost.rows:
        line = f"  {row.place:<6}  {rough_duration(row.hours * 3600)} an epoch"
        if row.waiting_hours is not None:
            line += f", {rough_duration(row.waiting_hours * 3600)} of it loss"
        if row.usd is not None:
            all_epochs = money(row.usd * cost.epochs, cost.currency)
            line += f"; {money(row.usd, cost.currency)} an epoch, {all_epochs} in all"
        yield line
    for price in cost.missing:
        yield f"  unknown: {price}"


def money(amount: float, currency: str) -> str:
    """Return ``$1.20`` or ``1.20 EUR``; amounts below a cent have two significant digits."""
    text = f"{amount:,.2f}" if amount >= 0.01 or amount == 0 else f"{amount:.2g}"
    return f"${text}" if currency == "USD" else f"{text} {currency}"


@dataclass(frozen=True, slots=True)
class _UnitPrices:
    """The prices that are known; None for a price that is unknown.

    Attributes:
        machine_usd_per_h: the price of the machine for an hour.
        store: the prices of the store that holds the data.
        disk_usd_per_gib_month: the price of a GiB on the disk for a month.
    """

    machine_usd_per_h: float | None
    store: Price | None
    disk_usd_per_gib_month: float | None


def _unit_prices(
    settings: Mapping[str, Any], prices: Mapping[str, Any], store_kind: str | None
) -> _UnitPrices:
    """Return the known prices.

    The price of the machine comes from ``settings``, or else from ``prices``. The price of the disk
    comes from ``settings``. The prices of a store are known only for Amazon S3.

    Args:
        settings: the keys of ``CostSettings``.
        prices: the prices that the run read.
        store_kind: the kind of the store that holds the data; None if it is unknown, or if there is
            no store.
    """
    machine_price = settings.get("instance_usd_per_h")
    if machine_price is None:
        machine_price = prices.get("instance_usd_per_h")
    disk_price = settings.get("disk_usd_per_gb_month")
    store_price: Price | None = None
    if store_kind == "aws-s3" and isinstance(prices.get("s3"), Mapping):
        store_price = Price.model_validate(prices["s3"])
    return _UnitPrices(
        machine_usd_per_h=float(machine_price) if machine_price is not None else None,
        store=store_price,
        disk_usd_per_gib_month=float(disk_price) if is_number(disk_price) else None,
    )


def _samples_in_data(loop: Loop, sources: list[Source]) -> float | None:
    """Return the number of samples in the data that the loop reads; None if it is unknown.

    It is computed from the bytes of all shards or files, and the mean stored bytes of a sample.

    Args:
        loop: the loop.
        sources: the inputs from which the number may be computed. The first one whose trials have
            all figures is used.
    """
    for source in sources:
        trials = loop.inputs[source]
        samples_per_s = median_of(trials, "samples_per_s")
        mb_per_s = median_of(trials, "mb_per_s")
        objects = median_of(trials, "objects")
        object_bytes = median_of(trials, "mean_object_bytes")
        if samples_per_s and mb_per_s and objects and object_bytes:
            sample_bytes = mb_per_s * 1e6 / samples_per_s
            samples = float(round(objects * object_bytes / sample_bytes))
            if samples:
                return samples
    return None


def _cost_from(loop: Loop, source: Source, samples: float, prices: _UnitPrices) -> EpochCost | None:
    """Return the cost of an epoch from one location; None if the loop has no rates there.

    Args:
        loop: the loop.
        source: the location, which is an input of the loop.
        samples: the number of samples in an epoch.
        prices: the known prices.
    """
    trials = loop.inputs[source]
    rate, mb_per_s = rate_of(trials), median_of(trials, "mb_per_s")
    if rate is None or not mb_per_s:
        return None
    hours = samples / rate.median / 3600
    data_bytes = samples * mb_per_s * 1e6 / rate.median
    requests_usd = storage_usd = waiting_hours = machine_usd = None
    if source == "store" and prices.store is not None:
        gets = _gets(loop, source, samples, data_bytes)
        if gets is not None:
            requests_usd = prices.store.requests_cost(0, round(gets), 0)
        storage_usd = prices.store.month_cost(round(data_bytes)) * hours / _HOURS_PER_MONTH
    if source != "store" and prices.disk_usd_per_gib_month is not None:
        month_usd = data_bytes / _GIB * prices.disk_usd_per_gib_month
        storage_usd = month_usd * hours / _HOURS_PER_MONTH
    if source == loop.farthest and loop.loss is not None:
        waiting_hours = max(0.0, loop.loss.median) * hours
    if prices.machine_usd_per_h is not None:
        machine_usd = hours * prices.machine_usd_per_h
    return EpochCost(source, hours, waiting_hours, machine_usd, requests_usd, storage_usd)


def _gets(loop: Loop, source: Source, samples: float, data_bytes: float) -> float | None:
    """Return the requests of an epoch.

    A loader of single samples sends one for each sample. For all other loaders, one for each object
    is assumed. None if the size of the objects is unknown.
    """
    if capabilities_of(str(loop.params.get("loader"))).reads_single_samples:
        return samples
    object_bytes = median_of(loop.inputs[source], "mean_object_bytes")
    return data_bytes / object_bytes if object_bytes else None
