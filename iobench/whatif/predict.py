"""PURE. The rate of a configuration, as the least of the capacities of its parts.

With workers the parts run side by side, and the slowest decides: the upper bound. Without any,
decoding and reading are done by the process that trains, one after the other, and their seconds
add. ``if_serial`` is that sum for loops with workers too: no loop should be below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataprep.counted import counted
from iobench.stats import Estimate
from iobench.whatif.capacities import TAKES, Capacities, Fetching, Rates
from iobench.whatif.setting import Setting

_OUR_CLIENT = "boto3"  # what this package's loaders read stores with


@dataclass(frozen=True, slots=True)
class Part:
    """One capacity: ``name`` is ``device``, ``copy``, ``collate``, ``decode``, ``disk``, ``store``.

    ``basis`` says what it was taken from. ``between``: of reading with another number of workers
    than was measured, which a disk or a link may bound, so that it lies anywhere in its interval.
    """

    name: str
    rate: Estimate
    basis: str
    between: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of a setting; ``rate`` is None where it cannot say anything.

    ``limited_by`` names the part that decides. ``missing`` are parts that were not measured: with
    any of them ``rate`` is a bound from above and no prediction.
    """

    setting: Setting
    rate: Estimate | None
    limited_by: str
    parts: tuple[Part, ...]
    if_serial: float | None
    missing: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every part of the setting was measured."""
        return self.rate is not None and not self.missing


def predict(known: Capacities, setting: Setting) -> Prediction:
    """The least of the capacities that bear on ``setting``; without workers, their sum."""
    parts: list[Part] = []
    missing: list[str] = []
    if setting.loop:
        parts += _takes(known, setting)
        if not any(part.name == "device" for part in parts):
            missing.append("device")
    if (decoding := _decoding(known, setting)) is not None:
        parts.append(decoding)
    else:
        missing.append("decode")
    if setting.source != "warm":
        reading = _disk(known, setting) if setting.source == "cold" else _store(known, setting)
        if reading is not None:
            parts.append(reading)
        else:
            missing.append("disk" if setting.source == "cold" else "store")
    if decoding is None:  # the rest would be a bound on nothing that is asked
        return Prediction(setting, None, "", tuple(parts), None, tuple(missing))
    rate, limited_by = combined(parts, in_turn=setting.workers == 0)
    missing += _untold(parts, rate, setting)
    whole = combined(parts, in_turn=True)[0].median
    return Prediction(setting, rate, limited_by, tuple(parts), whole, tuple(missing))


def _untold(parts: Sequence[Part], rate: Estimate, setting: Setting) -> Iterator[str]:
    """Parts that would decide, or not, within what is known of them."""
    for part in parts:
        if part.between and part.rate.low < rate.median:
            yield f"{part.name} with {counted(setting.all_workers, 'worker')}"


def combined(parts: Sequence[Part], *, in_turn: bool) -> tuple[Estimate, str]:
    """The rate of parts that run side by side, or ``in_turn``, and which of them decides.

    Rungs of a loop contain those before them: of ``device``, ``copy`` and ``collate`` the slowest
    counts, once.

    Raises:
        ValueError: no parts.
    """
    if not parts:
        raise ValueError("no parts")
    slowest = min(parts, key=lambda part: part.rate.median)
    if not in_turn:
        return slowest.rate, slowest.name
    takers = [part for part in parts if part.name in ("device", "copy")]
    others = [part for part in parts if part.name not in ("device", "copy", "collate")]
    rates = [min(takers, key=lambda part: part.rate.median).rate] if takers else []
    rates += [part.rate for part in others]
    rates = rates or [slowest.rate]
    repeats = min(rate.repeats for rate in rates)
    coverage = min(rate.coverage for rate in rates)
    median, low, high = (
        1 / sum(1 / getattr(rate, end) for rate in rates) for end in ("median", "low", "high")
    )
    return Estimate(median, low, high, coverage, repeats), slowest.name


def _takes(known: Capacities, setting: Setting) -> list[Part]:
    taken = known.loops.get(setting.loop)
    if taken is None:
        return []
    names = {"synthetic": "device"}
    return [
        Part(names.get(rung, rung), taken.rungs[rung], f"input {rung} of {setting.loop}")
        for rung in TAKES
        if rung in taken.rungs
    ]


def _decoding(known: Capacities, setting: Setting) -> Part | None:
    """Of the same loader doing the same work, on the same images packed in any way."""
    alike = [
        rates
        for rates in known.decoded
        if rates.setting.loader == setting.loader
        and rates.setting.kind == setting.kind
        and rates.setting.work == setting.work
    ]
    if not alike:
        return None
    nearest = min(alike, key=lambda rates: _distance(rates.setting, setting))
    return _of_workers("decode", nearest, setting.all_workers)


def _distance(found: Setting, wanted: Setting) -> tuple[bool, float, float, bool]:
    """How far a measured setting is from the wanted one."""
    return (
        found.form != wanted.form,
        _ratio(found.batch_size, wanted.batch_size),
        _ratio(found.prefetch, wanted.prefetch),
        found.pin_memory != wanted.pin_memory,
    )


def _apart(known: Capacities, rates: Rates, setting: Setting) -> tuple[bool, bool, float]:
    """Whether another number of workers read, other shards; and how much larger or smaller."""
    form, other, sizes = rates.setting.form, setting.form, known.object_bytes
    told = form in sizes and other in sizes
    untold = setting.all_workers not in rates.points and len(rates.points) < 3
    return untold, form != other, _ratio(sizes[form], sizes[other]) if told else math.inf


def _ratio(one: float, other: float) -> float:
    return max(one, other) / max(min(one, other), 1e-9)


def _of_workers(name: str, rates: Rates, workers: int) -> Part | None:
    """As measured with so many workers, else by the law; None where it says nothing of none."""
    setting = rates.setting
    of = f"{setting.loader} over {setting.form or 'no data'}, batch {setting.batch_size}"
    if workers in rates.points:
        return Part(name, rates.points[workers], f"{of}, {_workers(workers)}, measured")
    if rates.law is None:
        return None
    seen = [count for count in rates.points if count > 0]
    rate, away = rates.law.rate(max(workers, 1)), rates.law.error
    if away is None and workers:
        low, high = sorted((rate, _nearest(rates, workers)))
        basis = f"{of}, measured with {_workers(*seen)} alone"
        if name == "decode":  # it has a processor for each worker
            return Part(name, Estimate(rate, low, high, 0.0, 1), basis)
        return Part(name, Estimate(high, low, high, 0.0, 1), basis, between=low < high)
    away = away or 0.0
    found = Estimate(rate, rate * max(1 - away, 0), rate * (1 + away), 0.0, 1)
    return Part(name, found, f"{of}, {rates.law.form} law of {_workers(*seen)}")


def _nearest(rates: Rates, workers: int) -> float:
    """Measured with the nearest number of workers."""
    seen = [count for count in rates.points if count > 0]
    return rates.points[min(seen, key=lambda count: abs(count - workers))].median


def _workers(*counts: int) -> str:
    return f"{', '.join(map(str, counts))} worker{'' if counts == (1,) else 's'}"


def _disk(known: Capacities, setting: Setting) -> Part | None:
    """Read by loader ``raw``, else by no loader at all, else as blocks of a file.

    Of the same images in shards of another size where these were not read: the nearest.
    """
    alike = [rates for rates in known.read if rates.setting.kind == setting.kind]
    if alike:
        nearest = min(alike, key=lambda rates: _apart(known, rates, setting))
        return _of_workers("disk", nearest, setting.all_workers)
    if (laid := known.laid.get(setting.form)) is not None:
        return Part("disk", laid, f"{setting.form} read without a loader, the best of all depths")
    each = known.sample_bytes.get(setting.form)
    if known.disk_bytes_per_s is None or not each:
        return None
    rate = known.disk_bytes_per_s / each
    return Part("disk", Estimate(rate, rate, rate, 0.0, 1), "the disk's best MB/s of all blocks")


def _store(known: Capacities, setting: Setting) -> Part | None:
    """Read by loader ``raw``, else by the law of a client: a connection for each worker."""
    for rates in known.streamed:
        if rates.setting.form == setting.form:
            return _of_workers("store", rates, setting.all_workers)
    return fetched(known, setting)


def fetched(known: Capacities, setting: Setting) -> Part | None:
    """By the law of objects of the size of its shards, a connection for each worker."""
    size, each = known.object_bytes.get(setting.form), known.sample_bytes.get(setting.form)
    if not known.fetching or not size or not each:
        return None
    client: Fetching = min(known.fetching, key=lambda found: found.client != _OUR_CLIENT)
    rate = client.law.bytes_per_s(size, max(setting.all_workers, 1)) / each
    away = client.law.error
    found = Estimate(rate, rate * max(1 - away, 0), rate * (1 + away), 0.0, 1)
    return Part("store", found, f"{client.client}, objects of {size / 1e6:.1f} MB")
