"""PURE. The rate of each part of a training loop, and the rates predicted for other settings.

With loader workers, the device and the loader run at the same time, and the slower of them limits
the loop. Without workers, the process that trains also loads, so that the seconds of both add up.

The rate of a loader with another number of workers comes from the curve through the measured
numbers (``iobench.analysis.worker_scaling``). ``iobench.analysis.situation`` compares the
predictions with loops that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from iobench.analysis.loops import FARTHEST, Loop, Source
from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    data_name,
    epochs_of,
    is_number,
    is_on_store,
    median_of,
    rate_of,
    usable_cpus,
    with_rate_over_epochs,
)
from iobench.analysis.store_limits import (
    StorePoint,
    connections_of,
    rate_at,
    read_bytes_of,
    store_points,
)
from iobench.analysis.worker_scaling import rate_at_workers
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.settings import ImageSettings
from iobench.results.result import Result
from iobench.results.statistics import Estimate, median
from iobench.results.trial import Params, Trial
from iobench.results.wording import params_words

_LIMITED_BY_LOADER = 0.9
"""A loop that runs below this share of its device's rate shows the rate of its loader."""
_CLEARLY_SLOWER = 0.9
"""A loader that reads from storage below this share of its rate from memory is limited by it."""
_WORK_DEFAULTS: Mapping[str, Any] = {"decode": True, **ImageSettings().model_dump(), "item_s": 0.0}
"""The parameters that describe the work of a loader for each image, with their defaults."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a loader.

    Attributes:
        loader: the name of the loader.
        data: the name of the data without its location, such as ``shards-16MB``.
        source: where the samples come from.
        work: the work for each image, as pairs of a parameter of ``_WORK_DEFAULTS`` and its value.
        workers: loader workers of each device.
        batch_size: samples in a batch.
        prefetch: batches that each worker prepares ahead.
        pin_memory: whether batches are copied to pinned memory.
        devices: number of devices.
    """

    loader: str
    data: str
    source: Source
    work: tuple[tuple[str, Any], ...]
    workers: int
    batch_size: int
    prefetch: int
    pin_memory: bool = False
    devices: int = 1

    def with_changes(self, **changes: Any) -> Setting:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    @property
    def images(self) -> str:
        """The name of the images, without the size of the shards.

        It is ``shards`` for ``shards-16MB``. It is ``shards-320px`` for ``shards-320px``, because
        these shards hold smaller images than ``shards``.
        """
        return self.data if self.data.endswith("px") else self.packing

    @property
    def packing(self) -> str:
        """How the images are stored: ``shards`` for ``shards-16MB`` and ``shards-320px``."""
        return self.data.partition("-")[0]

    @property
    def side_px(self) -> int | None:
        """The short side of the images if the name has it: 320 for ``shards-320px``."""
        size = self.data.partition("-")[2]
        return int(size.removesuffix("px")) if size.endswith("px") else None

    @property
    def all_workers(self) -> int:
        """Workers of all devices together."""
        return self.workers * self.devices

    @property
    def image_size(self) -> int:
        """The side of the model's square input in pixels."""
        return int(dict(self.work).get("image_size", 224))

    def as_dict(self) -> dict[str, Any]:
        """Return the setting as ``result.json`` stores it."""
        return {
            "loader": self.loader,
            "data": self.data,
            "input": self.source,
            "workers": self.workers,
            "batch_size": self.batch_size,
            "prefetch": self.prefetch,
            "pin_memory": self.pin_memory,
            "devices": self.devices,
        }


def setting_of(params: Params, source: Source, devices: int = 1) -> Setting:
    """Return the setting of a trial of a loader or of a loop."""
    work = {name: params.get(name, default) for name, default in _WORK_DEFAULTS.items()}
    if not work["augment"]:
        work |= {"colour_jitter": False, "pca_noise": False}
    return Setting(
        loader=str(params.get("loader", "")),
        data=data_name(params),
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
    """The predicted rate of a setting.

    Attributes:
        rate: samples/s; None if a part was not measured.
        limit: the slowest part: ``device``, ``decode``, ``disk`` or ``store``.
        basis: the measurement from which the rate of that part was taken.
        missing: the parts that were not measured.
    """

    rate: Estimate | None
    limit: str = ""
    basis: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageRead:
    """The fastest read of a probe.

    Attributes:
        mb_per_s: its rate.
        target: the label of the disk or store.
        description: the probe's settings in words.
        object_bytes: the size of an object; 0 for a disk.
    """

    mb_per_s: float
    target: str
    description: str
    object_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class LoaderRate:
    """The rate of a loader in samples/s, with its setting and its repeats."""

    samples_per_s: float
    setting: Setting
    params: Params


@dataclass(frozen=True, slots=True)
class Capacities:
    """The measured rates of all parts of a loop.

    Attributes:
        consumption: the rate without reading: the minimum over device, copy and collate.
        loaders: the trials of loaders that decode, measured without training, by setting.
        loops: the trials of loops with the same device and model, by setting.
        raw_rates: samples/s of reading without decoding (loader ``raw``), by setting.
        layout_rates: samples/s of reading whole shards or files from a cold disk without a loader,
            by name of the data.
        disk: the fastest read of the disk probe that was proved to come from the disk.
        store: the fastest GET of a whole object.
        store_points: the probe's reads from the store that holds the data.
        sample_bytes: stored bytes of a sample, by name of the data.
        object_bytes: mean bytes of a shard or file, by name of the data.
        processors: CPUs that may be used.
        memory_bytes: memory of the machine, or of its control group.
    """

    consumption: Estimate | None
    loaders: Mapping[Setting, Repeats]
    loops: Mapping[Setting, Repeats]
    raw_rates: Mapping[Setting, Estimate]
    layout_rates: Mapping[str, Estimate] = field(default_factory=dict)
    disk: StorageRead | None = None
    store: StorageRead | None = None
    store_points: Sequence[StorePoint] = ()
    sample_bytes: Mapping[str, float] = field(default_factory=dict)
    object_bytes: Mapping[str, float] = field(default_factory=dict)
    processors: float | None = None
    memory_bytes: float | None = None

    def predict(self, setting: Setting, *, from_loops: bool = True) -> Prediction:
        """Predict the rate of a loop with this setting, or of the loader if no loop was measured.

        Args:
            setting: the setting.
            from_loops: whether the rate of a loader may be derived from loops. Give False to test
                the prediction for a loop, because that loop must not be used for it.
        """
        loader = self.predict_loader(setting, from_loops=from_loops)
        if loader.rate is None or self.consumption is None:
            return loader
        if setting.workers == 0:
            return replace(loader, rate=_one_after_the_other(self.consumption, loader.rate))
        rate = _at_the_same_time(self.consumption, loader.rate)
        if self.consumption.median <= loader.rate.median:
            return Prediction(rate, "device", "data on the device")
        return replace(loader, rate=rate)

    def predict_loader(self, setting: Setting, *, from_loops: bool = True) -> Prediction:
        """Predict the rate of the loader without training."""
        decoding = self._decoding(setting, from_loops=from_loops)
        if setting.source == "warm":
            return decoding
        limit = "disk" if setting.source == "cold" else "store"
        measured = self._measured_loader(setting, setting.source, from_loops=from_loops)
        if measured is not None:
            rate, basis = measured
            if decoding.rate is None or rate.median < _CLEARLY_SLOWER * decoding.rate.median:
                return Prediction(rate, limit, basis)
            both = _at_the_same_time(rate, decoding.rate)
            return Prediction(both, "decode", decoding.basis)
        reading = self.storage_rate(setting)
        if reading is None or decoding.rate is None:
            missing = decoding.missing if reading is not None else (*decoding.missing, limit)
            return Prediction(None, missing=missing)
        both = _at_the_same_time(reading, decoding.rate)
        if reading.median < decoding.rate.median:
            return Prediction(both, limit, f"reading {setting.data}")
        return replace(decoding, rate=both)

    def storage_rate(self, setting: Setting) -> Estimate | None:
        """Return samples/s of reading without decoding: of the loader ``raw``, or else of a probe.

        None for loaders that read single samples: neither ``raw`` nor a probe reads in that way.
        """
        if capabilities_of(setting.loader).reads_single_samples:
            return None
        similar = [
            raw
            for raw in self.raw_rates
            if (raw.images, raw.source) == (setting.images, setting.source)
        ]
        if similar:
            return self._raw_rate(similar, setting)
        sample_bytes = self.sample_bytes.get(setting.data)
        if setting.source == "cold" and setting.data in self.layout_rates:
            return self.layout_rates[setting.data]
        if setting.source == "cold" and self.disk is not None and sample_bytes:
            rate_from_disk = self.disk.mb_per_s * 1e6 / sample_bytes
            return Estimate(rate_from_disk, rate_from_disk, rate_from_disk, 0.0, 1)
        if setting.source == "store" and sample_bytes:
            return self._probed_store_rate(setting, sample_bytes)
        return None

    def fastest_raw_rate(self, source: Source) -> tuple[Setting, float] | None:
        """Return the fastest reading without decoding by the loader ``raw``, with its setting."""
        rates = [
            (setting, rate.median)
            for setting, rate in self.raw_rates.items()
            if setting.source == source
        ]
        return max(rates, key=lambda setting_and_rate: setting_and_rate[1], default=None)

    def fastest_loader(self, work: tuple[tuple[str, Any], ...] | None) -> LoaderRate | None:
        """Return the fastest loader that decodes images from memory.

        Args:
            work: the work that it must do to each image; None for any.
        """
        fastest: LoaderRate | None = None
        for setting, repeats in self.loaders.items():
            rate = rate_of(repeats)
            is_decoding = setting.source == "warm" and capabilities_of(setting.loader).makes_pixels
            if rate is None or not is_decoding or work not in (None, setting.work):
                continue
            if fastest is None or rate.median > fastest.samples_per_s:
                fastest = LoaderRate(rate.median, setting, repeats[0].params)
        return fastest

    def rates_by_workers(self, setting: Setting) -> Mapping[int, Estimate]:
        """Return the rates of the loader by number of workers, from the setting's source."""
        source: Source = "store" if setting.source == "store" else "warm"
        return self._nearest(setting, source, from_loops=True)[1]

    def worker_counts(self, setting: Setting) -> list[int]:
        """Return the numbers of workers of a device with which this loader was measured."""
        counts = set()
        for measured in (*self.loaders, *self.loops):
            is_same = (measured.loader, measured.images) == (setting.loader, setting.images)
            if is_same and measured.all_workers % setting.devices == 0:
                counts.add(measured.all_workers // setting.devices)
        return sorted(counts - {0})

    def memory_of(self, setting: Setting) -> float | None:
        """Return the bytes of memory that the loader takes with the setting's workers.

        For more workers than were measured, the memory of each further worker is assumed to be the
        measured growth for each worker. None if no memory was measured.
        """
        loader_and_work = (setting.loader, setting.images, setting.work)
        by_workers: dict[int, float] = {}
        for table in (self.loops, self.loaders):
            for measured, repeats in table.items():
                memory_bytes = median_of(repeats, "memory_bytes")
                is_same = (measured.loader, measured.images, measured.work) == loader_and_work
                if memory_bytes and is_same:
                    largest_bytes = by_workers.get(measured.all_workers, 0.0)
                    by_workers[measured.all_workers] = max(memory_bytes, largest_bytes)
        if not by_workers:
            return None
        fewest, most = min(by_workers), max(by_workers)
        if most > fewest:
            growth_bytes = by_workers[most] - by_workers[fewest]
            worker_bytes = max(0.0, growth_bytes / (most - fewest))
        else:
            worker_bytes = by_workers[most] / max(most, 1)
        return by_workers[most] + worker_bytes * max(0, setting.all_workers - most)

    def _decoding(self, setting: Setting, *, from_loops: bool) -> Prediction:
        """Predict the rate from memory with the same loader and work, for any packing."""
        measured = self._measured_loader(setting, "warm", from_loops=from_loops)
        if measured is None:
            return Prediction(None, missing=("decode",))
        rate, basis = measured
        return Prediction(rate, "decode", basis)

    def _measured_loader(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> tuple[Estimate, str] | None:
        """Return the loader's rate from a source, and the measurement that it is based on in words.

        The rate is that of the most similar measured setting. None if there is none.
        """
        nearest, rates = self._nearest(setting, source, from_loops=from_loops)
        if nearest is None:
            return None
        # A loader that reads from a store waits more than it computes: CPUs do not limit it.
        max_workers = None if source == "store" else self.processors
        rate = rate_at_workers(rates, setting.all_workers, max_workers)
        if rate is None:
            return None
        counts = ", ".join(str(count) for count in sorted(rates))
        return rate, f"{setting.loader} over {nearest.data or 'no data'}, workers {counts}"

    def _nearest(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> tuple[Setting | None, Mapping[int, Estimate]]:
        """Return the most similar measured setting, and its rates by number of workers."""
        groups = _similar_settings(self.loaders, setting, source, math.inf)
        if not groups and from_loops:
            limit = _LIMITED_BY_LOADER * self.consumption.median if self.consumption else math.inf
            groups = _similar_settings(self.loops, setting, source, limit)
            for rates in groups.values():
                if 0 in rates and self.consumption is not None:
                    rates[0] = _without_device(rates[0], self.consumption)
        if not groups:
            return None, {}
        nearest = min(groups, key=lambda measured: _distance(measured, setting, groups[measured]))
        return nearest, groups[nearest]

    def _raw_rate(self, similar: Sequence[Setting], setting: Setting) -> Estimate | None:
        """Return the rate of the loader ``raw`` with as many workers.

        Args:
            similar: settings of the loader ``raw`` over the same images.
            setting: the setting to predict.
        """
        same_data = [raw for raw in similar if raw.data == setting.data]
        nearest = (same_data or similar)[0].with_changes(workers=0)
        rates = {
            raw.all_workers: rate
            for raw, rate in self.raw_rates.items()
            if raw.with_changes(workers=0) == nearest
        }
        return rate_at_workers(rates, setting.all_workers, None)

    def _probed_store_rate(self, setting: Setting, sample_bytes: float) -> Estimate | None:
        """Return samples/s of the store's probe with the connections of the loader."""
        params = {
            "loader": setting.loader,
            "workers": setting.workers,
            "batch_size": setting.batch_size,
        }
        connections = connections_of(params)
        if connections is None:
            return None
        read_bytes = read_bytes_of(params, sample_bytes, self.object_bytes.get(setting.data))
        rate = rate_at(self.store_points, connections * setting.devices, read_bytes)
        if rate is None:
            return None
        samples_in_mb = 1e6 / sample_bytes
        return Estimate(
            rate.median * samples_in_mb,
            rate.low * samples_in_mb,
            rate.high * samples_in_mb,
            rate.coverage,
            rate.repeats,
        )


def capacities(result: Result, loop: Loop | None, loops: Sequence[Loop]) -> Capacities:
    """Collect what a run measured of the parts of a loop.

    If the loop's rate covers whole epochs, the rates of loaders are computed for as many epochs, so
    that both contain the same share of the start of the workers.

    Args:
        result: the run.
        loop: the loop; None for a run in which only loaders were measured.
        loops: all loops of the run.
    """
    trials = result.trials
    memory_bytes = result.environment.get("memory_bytes")
    epochs = epochs_of(loop.trials) if loop is not None else None
    comparable = (
        trials if epochs is None else [with_rate_over_epochs(trial, epochs) for trial in trials]
    )
    return Capacities(
        consumption=_consumption(loop) if loop is not None else None,
        loaders=dict(_loaders(comparable)),
        loops=dict(_loops(loop, loops)) if loop is not None else {},
        raw_rates=dict(_raw_rates(comparable)),
        layout_rates=_layout_rates(trials),
        disk=_fastest_disk_read(trials),
        store=_fastest_store_get(trials),
        store_points=store_points(result, trials),
        sample_bytes=_sample_bytes(trials),
        object_bytes=_object_bytes(trials),
        processors=usable_cpus(result.environment),
        memory_bytes=memory_bytes if is_number(memory_bytes) else None,
    )


def source_of(params: Params, label: str) -> Source | None:
    """Return the source of a loader's samples: the store, a cold disk or the warm page cache.

    None if the trial requested a cold page cache and ``label`` does not prove it.
    """
    if is_on_store(params):
        return "store"
    if params.get("cache", "warm") == "cold":
        return "cold" if label == "cold" else None
    return "warm"


def is_direct(params: Params) -> bool:
    """Return whether the loader reads its data with the access mode ``direct``, the default.

    No predictions are made for the other access modes.
    """
    return str(params.get("access", "direct")) == "direct"


def _consumption(loop: Loop) -> Estimate | None:
    """Return the rate without reading: the minimum over device, copy and collate."""
    if loop.device_rate is None:
        return None
    rates = [loop.device_rate]
    for rung in ("copy", "collate"):
        rate = loop.rate(rung)
        if rate is not None:
            rates.append(rate)
    return min(rates, key=lambda rate: rate.median)


def _loaders(trials: Sequence[Trial]) -> Iterable[tuple[Setting, Repeats]]:
    """Yield the settings and trials of loaders that decode, without those of several processes."""
    for params, repeats in by_settings(trials, "loader"):
        source = source_of(params, cold_label(repeats))
        loader = str(params.get("loader", ""))
        makes_pixels = loader == "mock" or capabilities_of(loader).makes_pixels
        is_decoding = makes_pixels and params.get("decode", True)
        is_single = is_direct(params) and params.get("processes", 1) == 1
        if is_decoding and is_single and source is not None and rate_of(repeats) is not None:
            yield setting_of(params, source), repeats


def _loops(loop: Loop, loops: Sequence[Loop]) -> Iterable[tuple[Setting, Repeats]]:
    """Yield the loops of the same device and model, with their settings."""
    for other in loops:
        if _consumer(other) != _consumer(loop):
            continue
        for source in reversed(FARTHEST):
            repeats = other.inputs.get(source, ())
            if not repeats or not is_direct(repeats[0].params) or rate_of(repeats) is None:
                continue
            if source != "cold" or cold_label(repeats) in ("cold", ""):
                yield setting_of(repeats[0].params, source, other.devices), repeats


def _consumer(loop: Loop) -> tuple[Any, ...]:
    """Return everything that decides how fast a loop's device consumes samples."""
    keys = ("consumer", "model", "precision", "preset", "images_per_s")
    return (loop.facts.get("device"), *(loop.params.get(key) for key in keys))


def _raw_rates(trials: Sequence[Trial]) -> Iterable[tuple[Setting, Estimate]]:
    for params, repeats in by_settings(trials, "loader"):
        source, rate = source_of(params, cold_label(repeats)), rate_of(repeats)
        if params.get("loader") != "raw" or rate is None:
            continue
        if source is not None and source != "warm":
            yield setting_of(params, source), rate


def _layout_rates(trials: Sequence[Trial]) -> dict[str, Estimate]:
    """Return the highest rate of reading whole shards or files from a cold disk, by data."""
    fastest: dict[str, Estimate] = {}
    for params, repeats in by_settings(trials, "layout"):
        data, rate = data_name(params), rate_of(repeats)
        if rate is None or cold_label(repeats) != "cold" or params.get("access") == "records":
            continue
        if data not in fastest or rate.median > fastest[data].median:
            fastest[data] = rate
    return fastest


def _fastest_disk_read(trials: Sequence[Trial]) -> StorageRead | None:
    """Return the fastest read that was proved to come from the disk."""
    fastest: StorageRead | None = None
    for params, repeats in by_settings(trials, "disk"):
        rate = arrival_rate(repeats)
        is_proved = cold_label(repeats) in ("cold", "direct")
        if params.get("operation") != "read" or not is_proved or rate is None or rate.median <= 0:
            continue
        if fastest is None or rate.median > fastest.mb_per_s:
            description = params_words("disk", params)
            fastest = StorageRead(rate.median, str(params["target"]), description)
    return fastest


def _fastest_store_get(trials: Sequence[Trial]) -> StorageRead | None:
    fastest: StorageRead | None = None
    for params, repeats in by_settings(trials, "object"):
        mb_per_s = median_of(repeats, "mb_per_s") or 0.0
        is_get = str(params.get("operation", "")).startswith("get")
        if not is_get or mb_per_s <= 0:
            continue
        if fastest is None or mb_per_s > fastest.mb_per_s:
            fastest = StorageRead(
                mb_per_s,
                str(params["store"]),
                params_words("object", params),
                float(params["object_bytes"]),
            )
    return fastest


def _sample_bytes(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the median over trials of the stored bytes of a sample, by data."""
    sizes: dict[str, list[float]] = {}
    for trial in trials:
        samples_per_s = trial.metrics.get("samples_per_s")
        mb_per_s = trial.metrics.get("mb_per_s")
        data = data_name(trial.params)
        if trial.status == "done" and samples_per_s and mb_per_s and data:
            sizes.setdefault(data, []).append(float(mb_per_s) * 1e6 / float(samples_per_s))
    return {data: median(sample_bytes) for data, sample_bytes in sizes.items()}


def _object_bytes(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the median over trials of the mean bytes of a shard or file, by data."""
    sizes: dict[str, list[float]] = {}
    for trial in trials:
        object_bytes = trial.metrics.get("mean_object_bytes")
        data = data_name(trial.params)
        if trial.status == "done" and is_number(object_bytes) and object_bytes > 0 and data:
            sizes.setdefault(data, []).append(float(object_bytes))
    return {data: median(object_bytes) for data, object_bytes in sizes.items()}


def _similar_settings(
    measured: Mapping[Setting, Repeats], setting: Setting, source: Source, below_rate: float
) -> dict[Setting, dict[int, Estimate]]:
    """Return measured settings with the same loader, images, work and source.

    Args:
        measured: repeats by setting.
        setting: the setting to compare with; its source is not used.
        source: the source of the samples.
        below_rate: only rates below this number of samples/s are returned.

    Returns:
        Rates by number of workers, by setting without workers and devices.
    """
    loader_and_source = (setting.loader, setting.images, setting.work, source)
    groups: dict[Setting, dict[int, Estimate]] = {}
    for other, repeats in measured.items():
        rate = rate_of(repeats)
        is_same = (other.loader, other.images, other.work, other.source) == loader_and_source
        if is_same and rate is not None and rate.median < below_rate:
            rates = groups.setdefault(other.with_changes(workers=0, devices=1), {})
            rates[other.all_workers] = rate
    return groups


def _distance(
    measured: Setting, setting: Setting, rates: Mapping[int, Estimate]
) -> tuple[float, ...]:
    """Return how much a measured setting differs from a setting, as a sort key.

    The data matter most, then the number of workers, the batch size, prefetch and pinned memory.
    """
    lacks_workers = setting.all_workers not in rates and len(rates) < 2
    batch_ratio = max(measured.batch_size, 1) / max(setting.batch_size, 1)
    return (
        measured.data != setting.data,
        lacks_workers,
        abs(math.log(batch_ratio)),
        abs(measured.prefetch - setting.prefetch),
        measured.pin_memory != setting.pin_memory,
    )


def _at_the_same_time(first: Estimate, second: Estimate) -> Estimate:
    """Return the rate of two stages that run at the same time: the lower one."""
    return Estimate(
        min(first.median, second.median),
        min(first.low, second.low),
        min(first.high, second.high),
        min(first.coverage, second.coverage),
        min(first.repeats, second.repeats),
    )


def _one_after_the_other(first: Estimate, second: Estimate) -> Estimate:
    """Return the rate of two stages that run one after the other: their seconds add up."""
    return Estimate(
        1 / (1 / first.median + 1 / second.median),
        1 / (1 / first.low + 1 / second.low),
        1 / (1 / first.high + 1 / second.high),
        min(first.coverage, second.coverage),
        min(first.repeats, second.repeats),
    )


def _without_device(loop: Estimate, device: Estimate) -> Estimate:
    """Return the rate of loading in a loop without workers, without the seconds of its device."""
    device_s = 1 / device.median

    def loading_rate(loop_rate: float) -> float:
        return 1 / max(1 / loop_rate - device_s, 1e-9)

    return Estimate(
        loading_rate(loop.median),
        loading_rate(loop.low),
        loading_rate(loop.high),
        loop.coverage,
        loop.repeats,
    )
