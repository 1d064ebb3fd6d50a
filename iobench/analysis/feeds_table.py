"""PURE. How many accelerators a host feeds: by its loop, its CPUs, its disk and its store.

A measured number ran side by side (``iobench.analysis.fed_accelerators``). A computed number is the
rate of a part / the rate of one accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from iobench.analysis.loops import Loop
from iobench.analysis.recommendation_choice import Advice
from iobench.analysis.supplies import Supply, parts_used
from iobench.consumers.accelerators import RATES, WorkKind
from iobench.results.numbers import rough_number
from iobench.results.wording import model_words

_DEVICE_BOUND = 0.95
"""If a loop reaches this share of its device's rate, its input might feed more devices."""
_SUPPLY_NAMES = {"CPUs": "this host's CPUs", "disk": "this disk, cold", "store": "this store"}
"""The names of the supplies that have a row. The network has none."""


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
        limit: the slowest of the parts that the loop uses; empty if fewer than two rates are known.
    """

    model: str
    rates: Mapping[str, float]
    rows: tuple[FeedsRow, ...]
    limit: str

    @property
    def names(self) -> tuple[str, ...]:
        """All accelerators: those of ``rates``, then those that only measured rows have."""
        names = list(self.rates)
        for row in self.rows:
            names.extend(row.feeds)
        return tuple(dict.fromkeys(names))

    def as_dict(self) -> dict[str, Any]:
        """Return the table as ``result.json`` stores it."""
        rows = [row.as_dict() for row in self.rows]
        return {"model": self.model, "rates": dict(self.rates), "limit": self.limit, "rows": rows}


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
    rows = list(measured)
    if loop is not None:
        rows += _rows_of_loop(loop, rates)
    rows += _rows_after_first_change(advice, rates)
    rate_of_part: dict[str, float] = {}
    for supply in supplies:
        if supply.samples_per_s:
            rate_of_part[supply.part] = supply.samples_per_s
    for part, samples_per_s in rate_of_part.items():
        if part in _SUPPLY_NAMES:
            name = _SUPPLY_NAMES[part]
            rows.append(_computed_row(name, samples_per_s, "its rate alone", rates))
    if not rows:
        return None
    parts = parts_used(loop)
    used = {part: rate for part, rate in rate_of_part.items() if part in parts}
    limit = min(used, key=lambda part: used[part]) if len(used) > 1 else ""
    return Feeds(model, rates, tuple(rows), limit)


def feeds_line(table: Feeds) -> str:
    """Return ``This host feeds, for ResNet-50:  1.3 V100   0.6 A100   0.2 H100  (computed)``."""
    measured = [row for row in table.rows if row.how == "measured"]
    of_host = [row for row in table.rows if "host" in row.of]
    row = [*measured, *of_host, *table.rows][0]
    more = " or more" if row.at_least and row.how == "measured" else ""
    counts = [f"{rough_number(count)}{more} {name}" for name, count in row.feeds.items()]
    subject = "This host feeds" if row.how == "measured" or of_host else "This loop feeds"
    return f"{subject}, for {table.model}:  {'   '.join(counts)}  ({row.how})"


def _rows_of_loop(loop: Loop, rates: Mapping[str, float]) -> Iterator[FeedsRow]:
    """Yield the row of the loop's current rate; nothing if it has no rate with stored data."""
    rate = loop.rate() if loop.farthest else None
    if rate is None:
        return
    device = loop.device_rate
    is_device_bound = device is not None and rate.median > _DEVICE_BOUND * device.median
    yield _computed_row(
        "this loop, now", rate.median, "the loop's rate", rates, at_least=is_device_bound
    )


def _rows_after_first_change(advice: Advice, rates: Mapping[str, float]) -> Iterator[FeedsRow]:
    """Yield the row of the rate after the first change with a predicted rate.

    The row names the change by its number in the list of recommended changes. A machine with more
    CPUs is not this host, so that there is no row for this change.
    """
    for number, change in enumerate(advice.changes, 1):
        if change.rate is None:
            continue
        if change.setting != "processors":
            is_device_bound = change.limit == "device"
            yield _computed_row(
                f"with change {number}",
                change.rate,
                "a predicted rate",
                rates,
                at_least=is_device_bound,
            )
        return


def _computed_row(
    of: str, samples_per_s: float, basis: str, rates: Mapping[str, float], *, at_least: bool = False
) -> FeedsRow:
    """Return a row whose numbers of accelerators are a rate / the rate of each accelerator."""
    counts = {name: samples_per_s / rate for name, rate in rates.items()}
    return FeedsRow(of, samples_per_s, at_least, counts, "computed", basis)


def _accelerator_rates(
    loop: Loop | None, device_rate: float | None
) -> tuple[dict[str, float], str]:
    """Return samples/s of accelerators by their names, and the model or rate in words.

    The rates are empty if none was published for the loop's work and none was measured.
    """
    if device_rate:
        return {"devices of this rate": device_rate}, f"{device_rate:,.0f} img/s"
    params = loop.params if loop is not None else {}
    model = str(params.get("model", "resnet50"))
    image_size = params.get("image_size", 224)
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
