"""PURE. What each part of a loop can supply, and what that predicts of other settings.

With workers, device and loader run side by side and the slower decides. Without workers the process
that trains also loads, so that seconds add. A loader's rate at another number of workers comes from
the curve of the numbers that were measured (``iobench.analysis.worker_scaling``). Predictions are checked
against loops that were measured (``iobench.analysis.advice``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from iobench.analysis.loops import Loop
from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    epochs_of,
    is_number,
    median_of,
    over_epochs,
    rate_of,
    usable_cpus,
)
from iobench.analysis.store_limits import (
    StorePoint,
    connections_of,
    points_of,
    rate_at,
    read_bytes_of,
)
from iobench.analysis.worker_scaling import at_workers
from iobench.loaders.own import BY_SAMPLE, UNDECODED
from iobench.result import Result
from iobench.stats import Estimate, median
from iobench.trial import Params, Trial

Source = Literal["warm", "cold", "store"]

_LIMITED = 0.9
"""A loop that gets less of its device's rate shows what its loader supplies."""
_WORK: Mapping[str, Any] = {
    "decode": True,
    "augment": True,
    "normalise": True,
    "image_size": 224,
    "colour_jitter": False,
    "pca_noise": False,
    "item_s": 0.0,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration of a loader.

    ``form`` is the data by name without its place, ``work`` what is done to each image; each of
    ``devices`` has ``workers``.
    """

    loader: str
    form: str
    source: Source
    work: tuple[tuple[str, Any], ...]
    workers: int
    batch_size: int
    prefetch: int
    pin_memory: bool = False
    devices: int = 1

    def changed(self, **changes: Any) -> Setting:
        """A copy with some fields changed."""
        return replace(self, **changes)

    @property
    def kind(self) -> str:
        """``shards`` for ``shards-16MB``, which has the same images; ``shards-320px`` as it is."""
        return self.form if self.form.endswith("px") else self.packing

    @property
    def packing(self) -> str:
        """``shards`` for ``shards-16MB`` and for ``shards-320px``."""
        return self.form.partition("-")[0]

    @property
    def side(self) -> int | None:
        """320 for ``shards-320px``."""
        size = self.form.partition("-")[2]
        return int(size.removesuffix("px")) if size.endswith("px") else None

    @property
    def all_workers(self) -> int:
        """Workers of all devices together."""
        return self.workers * self.devices

    @property
    def image_size(self) -> int:
        """Side of the model's input, in pixels."""
        return int(dict(self.work).get("image_size", 224))

    def as_dict(self) -> dict[str, Any]:
        """As ``result.json`` stores it."""
        return {
            "loader": self.loader,
            "data": self.form,
            "input": self.source,
            **{key: getattr(self, key) for key in ("workers", "batch_size", "prefetch")},
            **{key: getattr(self, key) for key in ("pin_memory", "devices")},
        }


def setting_of(params: Params, source: Source, devices: int = 1) -> Setting:
    """The setting of a trial of a loader or of a loop."""
    work = {name: params.get(name, usual) for name, usual in _WORK.items()}
    if not work["augment"]:
        work |= {"colour_jitter": False, "pca_noise": False}
    return Setting(
        loader=str(params.get("loader", "")),
        form=str(params.get("data", "")).partition("@")[0],
        source=source,
        work=tuple(work.items()),
        workers=int(params.get("workers", 0)),
        batch_size=int(params.get("batch_size", 64)),
        prefetch=int(params.get("prefetch", 2)),
        pin_memory=bool(params.get("pin_memory", False)),
        devices=devices,
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is predicted of a setting; ``rate`` is None where a part was not measured.

    ``limit``: ``device``, ``decode``, ``disk`` or ``store``. ``missing`` names parts that were not
    measured. ``basis``: what the deciding rate was taken from.
    """

    rate: Estimate | None
    limit: str = ""
    basis: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capacities:
    """Everything that was measured of one loop's parts.

    Attributes:
        takes: what the loop takes without reading: the least of device, copy and collate.
        alone: loaders that decode, alone, by setting.
        loops: loops of the same device and model, by setting.
        reading: samples/s of reading without decoding by setting (loader ``raw``).
        laid: the same of whole shards or files without a loader, by form, from a cold disk.
        disk_bytes_per_s: the fastest disk.
        store_points: the probe's reads from the store that holds the data.
        sample_bytes: stored bytes of a sample by form.
        object_bytes: mean bytes of a shard or file by form.
        processors: CPUs that may be used.
        memory_bytes: memory of the machine, or of its control group.
    """

    takes: Estimate | None
    alone: Mapping[Setting, Repeats]
    loops: Mapping[Setting, Repeats]
    reading: Mapping[Setting, Estimate]
    laid: Mapping[str, Estimate] = field(default_factory=dict)
    disk_bytes_per_s: float | None = None
    store_points: Sequence[StorePoint] = ()
    sample_bytes: Mapping[str, float] = field(default_factory=dict)
    object_bytes: Mapping[str, float] = field(default_factory=dict)
    processors: float | None = None
    memory_bytes: float | None = None

    def predict(self, setting: Setting, *, from_loops: bool = True) -> Prediction:
        """The rate of a loop with this setting, or of a loader alone where no loop was measured.

        ``from_loops`` false leaves out what loops themselves show of their loader: what a loop is
        then predicted to get was not taken from it.
        """
        found = self.supply(setting, from_loops=from_loops)
        takes = self.takes
        if found.rate is None or takes is None:
            return found
        if setting.workers == 0:
            return replace(found, rate=_in_turn(takes, found.rate))
        if takes.median <= found.rate.median:
            return Prediction(_least(takes, found.rate), "device", "data on the device")
        return replace(found, rate=_least(takes, found.rate))

    def supply(self, setting: Setting, *, from_loops: bool = True) -> Prediction:
        """The rate of the loader alone with this setting."""
        decoding = self._decoding(setting, from_loops=from_loops)
        if setting.source == "warm":
            return decoding
        limit = "disk" if setting.source == "cold" else "store"
        own = self._own(setting, setting.source, from_loops=from_loops)
        if own is not None:
            rate, basis = own
            if decoding.rate is None or rate.median < 0.9 * decoding.rate.median:
                return Prediction(rate, limit, basis)
            return Prediction(_least(rate, decoding.rate), "decode", decoding.basis)
        reading = self.storage_rate(setting)
        missing = [*decoding.missing, *([limit] if reading is None else [])]
        if missing or reading is None or decoding.rate is None:
            return Prediction(None, missing=tuple(missing))
        if reading.median < decoding.rate.median:
            return Prediction(_least(reading, decoding.rate), limit, f"reading {setting.form}")
        return replace(decoding, rate=_least(reading, decoding.rate))

    def _decoding(self, setting: Setting, *, from_loops: bool) -> Prediction:
        """The rate from memory with the same loader and work, for any packing of the images."""
        own = self._own(setting, "warm", from_loops=from_loops)
        if own is None:
            return Prediction(None, missing=("decode",))
        return Prediction(own[0], "decode", own[1])

    def _own(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> tuple[Estimate, str] | None:
        """The rate of this loader from one place, by the most similar setting that was measured."""
        nearest, points = self._nearest(setting, source, from_loops=from_loops)
        if nearest is None:
            return None
        side_by_side = None if source == "store" else self.processors
        rate = at_workers(points, setting.all_workers, side_by_side)
        if rate is None:
            return None
        seen = ", ".join(str(count) for count in sorted(points))
        return rate, f"{setting.loader} over {nearest.form or 'no data'}, workers {seen}"

    def curve(self, setting: Setting) -> Mapping[int, Estimate]:
        """Rates by number of workers of this loader, from the place that the setting names."""
        source: Source = "store" if setting.source == "store" else "warm"
        return self._nearest(setting, source, from_loops=True)[1]

    def memory_of(self, setting: Setting) -> float | None:
        """Bytes of memory that the loader takes with these workers, in proportion beyond the
        measured counts; None if it was not measured."""
        measured: dict[int, float] = {}
        for table in (self.loops, self.alone):
            for other, repeats in table.items():
                taken = median_of(repeats, "memory_bytes")
                same = (other.loader, other.kind, other.work)
                if taken and same == (setting.loader, setting.kind, setting.work):
                    measured[other.all_workers] = max(taken, measured.get(other.all_workers, 0.0))
        if not measured:
            return None
        least, most = min(measured), max(measured)
        each = measured[most] / max(most, 1)
        if most > least:
            each = max(0.0, (measured[most] - measured[least]) / (most - least))
        return measured[most] + each * max(0, setting.all_workers - most)

    def _nearest(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> tuple[Setting | None, Mapping[int, Estimate]]:
        """The most similar measured setting, and its rates by number of workers."""
        groups = _alike(self.alone, setting, source, math.inf)
        if not groups and from_loops:
            most = _LIMITED * self.takes.median if self.takes else math.inf
            groups = _alike(self.loops, setting, source, most)
            for points in groups.values():
                if 0 in points and self.takes is not None:
                    points[0] = _without(points[0], self.takes)
        if not groups:
            return None, {}
        nearest = min(groups, key=lambda found: _distance(found, setting, groups[found]))
        return nearest, groups[nearest]

    def storage_rate(self, setting: Setting) -> Estimate | None:
        """Reading without decoding, by loader ``raw``, else by a probe; None for single samples."""
        if setting.loader in BY_SAMPLE:
            return None
        alike = {
            found.changed(workers=0): found.form
            for found in self.reading
            if (found.kind, found.source) == (setting.kind, setting.source)
        }
        if alike:
            nearest = min(alike, key=lambda found: alike[found] != setting.form)
            points = {
                found.all_workers: rate
                for found, rate in self.reading.items()
                if found.changed(workers=0) == nearest
            }
            return at_workers(points, setting.all_workers, None)
        each = self.sample_bytes.get(setting.form)
        if setting.source == "cold" and setting.form in self.laid:
            return self.laid[setting.form]
        if setting.source == "cold" and self.disk_bytes_per_s and each:
            return _exactly(self.disk_bytes_per_s / each)
        if setting.source == "store" and each:
            return self._probed(setting, each)
        return None

    def _probed(self, setting: Setting, sample_bytes: float) -> Estimate | None:
        """Reading from the store as its probe measured it, with the connections of the loader."""
        params = {
            "loader": setting.loader,
            "workers": setting.workers,
            "batch_size": setting.batch_size,
        }
        each = connections_of(params)
        if each is None:
            return None
        read_bytes = read_bytes_of(params, sample_bytes, self.object_bytes.get(setting.form))
        rate = rate_at(self.store_points, each * setting.devices, read_bytes)
        if rate is None:
            return None
        factor = 1e6 / sample_bytes
        low, high = rate.low * factor, rate.high * factor
        return Estimate(rate.median * factor, low, high, rate.coverage, rate.repeats)


def capacities(result: Result, loop: Loop | None, every: Sequence[Loop]) -> Capacities:
    """What a run measured of ``loop``'s parts, or of loaders alone where it is None.

    Where the loop's rate covers whole epochs, rates of loaders are those over as many epochs, so
    that both contain the same share of the start of the workers.
    """
    trials, memory = result.trials, result.environment.get("memory_bytes")
    epochs = epochs_of(loop.trials) if loop is not None else None
    alone = trials if epochs is None else [over_epochs(trial, epochs) for trial in trials]
    return Capacities(
        takes=_takes(loop) if loop is not None else None,
        alone=dict(_alone(alone)),
        loops=dict(_loops(loop, every)) if loop is not None else {},
        reading=dict(_read(alone)),
        laid=_laid(trials),
        disk_bytes_per_s=_fastest_disk(trials),
        store_points=points_of(result, trials),
        sample_bytes=_sample_bytes(trials),
        object_bytes=_object_bytes(trials),
        processors=usable_cpus(result.environment),
        memory_bytes=memory if is_number(memory) else None,
    )


def source_of(params: Params, label: str) -> Source | None:
    """Where a loader's samples came from; None where cold was asked for and not shown."""
    if str(params.get("data", "")).endswith("@s3"):
        return "store"
    if params.get("cache", "warm") == "cold":
        return "cold" if label == "cold" else None
    return "warm"


def is_direct(params: Params) -> bool:
    """Whether data are reached as the loader reads by itself; access modes are not predicted."""
    return str(params.get("access", "direct")) == "direct"


def _takes(loop: Loop) -> Estimate | None:
    rates = [rate for rung in ("synthetic", "copy", "collate") if (rate := loop.rate(rung))]
    if loop.device_rate is None:
        return None
    return min(rates, key=lambda rate: rate.median)


def _alone(trials: Sequence[Trial]) -> Iterable[tuple[Setting, Repeats]]:
    for params, repeats in by_settings(trials, "loader"):
        source = source_of(params, cold_label(repeats))
        decodes = params.get("loader") not in UNDECODED - {"mock"} and params.get("decode", True)
        is_one = decodes and is_direct(params) and params.get("processes", 1) == 1
        if is_one and source is not None and rate_of(repeats) is not None:
            yield setting_of(params, source), repeats


def _loops(loop: Loop, every: Sequence[Loop]) -> Iterable[tuple[Setting, Repeats]]:
    """Loops of the same device and model; the rung ``decode`` is reading from memory."""
    for other in every:
        if _consumer(other) != _consumer(loop):
            continue
        for source, repeats in other.inputs.items():
            params = repeats[0].params
            is_read = source in ("warm", "cold", "store") and is_direct(params)
            is_cold = source != "cold" or cold_label(repeats) in ("cold", "")
            if is_read and is_cold and rate_of(repeats) is not None:
                yield setting_of(params, source, other.devices), repeats  # type: ignore[arg-type]


def _consumer(loop: Loop) -> tuple[Any, ...]:
    keys = ("consumer", "model", "precision", "preset", "images_per_s")
    return (loop.facts.get("device"), *(loop.params.get(key) for key in keys))


def _read(trials: Sequence[Trial]) -> Iterable[tuple[Setting, Estimate]]:
    for params, repeats in by_settings(trials, "loader"):
        source, rate = source_of(params, cold_label(repeats)), rate_of(repeats)
        if params.get("loader") == "raw" and source in ("cold", "store") and rate is not None:
            yield setting_of(params, source), rate


def _laid(trials: Sequence[Trial]) -> dict[str, Estimate]:
    best: dict[str, Estimate] = {}
    for params, repeats in by_settings(trials, "layout"):
        form, rate = str(params.get("data", "")).partition("@")[0], rate_of(repeats)
        if rate is None or cold_label(repeats) != "cold" or params.get("access") == "records":
            continue
        if form not in best or rate.median > best[form].median:
            best[form] = rate
    return best


def _fastest_disk(trials: Sequence[Trial]) -> float | None:
    best = 0.0
    for params, repeats in by_settings(trials, "disk"):
        rate = arrival_rate(repeats)
        is_proved = cold_label(repeats) in ("cold", "direct")
        if params.get("operation") == "read" and is_proved and rate is not None:
            best = max(best, rate.median * 1e6)
    return best or None


def _sample_bytes(trials: Sequence[Trial]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for trial in trials:
        rate, moved = trial.metrics.get("samples_per_s"), trial.metrics.get("mb_per_s")
        form = str(trial.params.get("data", "")).partition("@")[0]
        if trial.status == "done" and rate and moved and form:
            found.setdefault(form, []).append(float(moved) * 1e6 / float(rate))
    return {form: median(each) for form, each in found.items()}


def _object_bytes(trials: Sequence[Trial]) -> dict[str, float]:
    sizes: dict[str, list[float]] = {}
    for trial in trials:
        size = trial.metrics.get("mean_object_bytes")
        form = str(trial.params.get("data", "")).partition("@")[0]
        if trial.status == "done" and is_number(size) and size > 0 and form:
            sizes.setdefault(form, []).append(float(size))
    return {form: median(each) for form, each in sizes.items()}


def _alike(
    measured: Mapping[Setting, Repeats], setting: Setting, source: Source, most: float
) -> dict[Setting, dict[int, Estimate]]:
    """Rates below ``most`` by number of workers, of each setting that differs in little else."""
    groups: dict[Setting, dict[int, Estimate]] = {}
    for found, repeats in measured.items():
        same = (found.loader, found.kind, found.work, found.source)
        rate = rate_of(repeats)
        wanted = (setting.loader, setting.kind, setting.work, source)
        if same == wanted and rate is not None and rate.median < most:
            points = groups.setdefault(found.changed(workers=0, devices=1), {})
            points[found.all_workers] = rate
    return groups


def _distance(found: Setting, wanted: Setting, points: Mapping[int, Estimate]) -> tuple[float, ...]:
    return (
        found.form != wanted.form,
        wanted.all_workers not in points and len(points) < 2,
        abs(math.log(max(found.batch_size, 1) / max(wanted.batch_size, 1))),
        abs(found.prefetch - wanted.prefetch),
        found.pin_memory != wanted.pin_memory,
    )


def _exactly(rate: float) -> Estimate:
    return Estimate(rate, rate, rate, 0.0, 1)


def _least(one: Estimate, other: Estimate) -> Estimate:
    """The rate of two stages that run at the same time: the lower one."""
    return Estimate(
        min(one.median, other.median),
        min(one.low, other.low),
        min(one.high, other.high),
        min(one.coverage, other.coverage),
        min(one.repeats, other.repeats),
    )


def _in_turn(one: Estimate, other: Estimate) -> Estimate:
    """The rate of two stages that run one after the other: their seconds add up."""
    return Estimate(
        1 / (1 / one.median + 1 / other.median),
        1 / (1 / one.low + 1 / other.low),
        1 / (1 / one.high + 1 / other.high),
        min(one.coverage, other.coverage),
        min(one.repeats, other.repeats),
    )


def _without(whole: Estimate, part: Estimate) -> Estimate:
    """The rate of a loop without the seconds of its device."""
    device_s = 1 / part.median
    ends = [1 / max(1 / rate - device_s, 1e-9) for rate in (whole.median, whole.low, whole.high)]
    return Estimate(ends[0], ends[1], ends[2], whole.coverage, whole.repeats)
