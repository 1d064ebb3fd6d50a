"""PURE. The rate of each part of a training loop, and the rates predicted for other settings.

All rates are those of all devices together. With loader workers, the device and the loader run at
the same time, and the slower of them limits the loop. Without workers, the process that trains also
loads, so that the seconds of both add up.

The rate of a loader with another number of workers comes from the curve through the measured rates
(``iobench.analysis.worker_scaling``). ``iobench.analysis.measured_capacities`` collects the
rates from the trials of a run. ``iobench.analysis.situation`` compares the predictions with loops
that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iobench.analysis.loader_setting import Setting, Work
from iobench.analysis.loops import Source
from iobench.analysis.repeats import Repeats, median_of, rate_of, scaled
from iobench.analysis.store_limits import StorePoint, connections_of, rate_at, read_bytes_of
from iobench.analysis.worker_scaling import rate_at_workers
from iobench.loaders.capabilities import capabilities_of
from iobench.results.statistics import Estimate, estimate
from iobench.results.trial import Params

_LIMITED_BY_LOADER = 0.9
"""A loop whose rate is below this share of its device's rate is limited by its loader.

Closer to the rate of the device, the loader could be faster than the loop shows.
"""
_LIMITED_BY_STORAGE = 0.9
"""A loader is limited by storage if its rate from there is below this share of its rate from
memory."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted rate of a setting.

    Attributes:
        rate: samples/s; None if the rate of a part is unknown.
        limit: the slowest part: ``device``, ``decode``, ``disk`` or ``store``; empty without a
            rate.
        basis: in words, the measurement that gave the rate of that part; empty without a rate.
        missing: the parts whose rates are unknown. They were not measured, or not with settings
            that are similar enough.
    """

    rate: Estimate | None
    limit: str = ""
    basis: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageRead:
    """The fastest read of the disk probe or of the object-store probe.

    Attributes:
        mb_per_s: its rate in MB/s.
        target: the label of the disk or store.
        description: the probe's settings in words.
        object_bytes: the bytes of each object; 0 for a disk.
    """

    mb_per_s: float
    target: str
    description: str
    object_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class LoaderRate:
    """The rate of a loader in samples/s, with its setting and the parameters of its trials."""

    samples_per_s: float
    setting: Setting
    params: Params


@dataclass(frozen=True, slots=True)
class Capacities:
    """The measured rates of all parts of a loop.

    Attributes:
        consumption: the samples/s of the loop without reading and preparing samples: the minimum
            over its rungs device, copy and collate. None if the rate of the device was not
            measured. Below it is called the rate of the device.
        loaders: the trials of loaders that decode, measured without training, by setting.
        loops: the trials of loops with the same device and model, by setting.
        raw_rates: samples/s of reading without decoding (loader ``raw``), by setting.
        layout_rates: samples/s of reading whole shards or files from a cold disk without a loader,
            by name of the data.
        disks: by name of the data, the fastest read of the disk probe that was proved to come from
            the disk that holds the data.
        store: the fastest GET of a whole object by the probe from the store that holds the data;
            None without one.
        store_points: the probe's reads from the store that holds the data.
        sample_bytes: stored bytes of a sample, by name of the data.
        object_bytes: mean bytes of a shard or file, by name of the data.
        processors: CPUs that the run could use; None if unknown.
        memory_bytes: memory of the machine, or of its control group; None if unknown.
    """

    consumption: Estimate | None
    loaders: Mapping[Setting, Repeats]
    loops: Mapping[Setting, Repeats]
    raw_rates: Mapping[Setting, Estimate]
    layout_rates: Mapping[str, Estimate] = field(default_factory=dict)
    disks: Mapping[str, StorageRead] = field(default_factory=dict)
    store: StorageRead | None = None
    store_points: Sequence[StorePoint] = ()
    sample_bytes: Mapping[str, float] = field(default_factory=dict)
    object_bytes: Mapping[str, float] = field(default_factory=dict)
    processors: float | None = None
    memory_bytes: float | None = None

    def predict(self, setting: Setting, *, from_loops: bool = True) -> Prediction:
        """Predict the rate of a loop with this setting.

        If the rate of the device was not measured, the prediction is the rate of the loader alone.

        Args:
            setting: the setting.
            from_loops: whether the rate of a loader may be derived from loops. It is False in a
                test of the prediction for a measured loop, whose own rate must not be used.
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
        """Predict the rate of the loader without training.

        Reading and decoding run at the same time, so that the slower of them limits the loader. If
        the loader itself was measured with this source, its rate is used. Otherwise it is predicted
        from the rate of the storage and from the rate of decoding.

        Args:
            setting: the setting; its device is not used.
            from_loops: as in ``predict``.
        """
        decoding = self._decoding(setting, from_loops=from_loops)
        if setting.source == "warm":
            return decoding
        storage = "disk" if setting.source == "cold" else "store"
        measured = self._measured_loader(setting, setting.source, from_loops=from_loops)
        if measured is not None:
            rate, basis = measured
            if decoding.rate is None or rate.median < _LIMITED_BY_STORAGE * decoding.rate.median:
                return Prediction(rate, storage, basis)
            return replace(decoding, rate=_at_the_same_time(rate, decoding.rate))
        reading = self.storage_rate(setting)
        if reading is None:
            return Prediction(None, missing=(*decoding.missing, storage))
        if decoding.rate is None:
            return Prediction(None, missing=decoding.missing)
        both = _at_the_same_time(reading, decoding.rate)
        if reading.median < decoding.rate.median:
            return Prediction(both, storage, f"reading {setting.data}")
        return replace(decoding, rate=both)

    def storage_rate(self, setting: Setting) -> Estimate | None:
        """Return samples/s of reading without decoding: of the loader ``raw``, or else of a probe.

        None if neither measured it, or if the measured numbers of workers or connections do not
        support a prediction. None also for loaders that read single samples, because neither
        ``raw`` nor a probe reads in that way.

        Args:
            setting: the setting, which reads from a disk or a store.
        """
        if capabilities_of(setting.loader).reads_single_samples:
            return None
        similar = [
            raw
            for raw in self.raw_rates
            if raw.images == setting.images and raw.source == setting.source
        ]
        if similar:
            return self._raw_rate(similar, setting)
        sample_bytes = self.sample_bytes.get(setting.data)
        if setting.source == "cold" and setting.data in self.layout_rates:
            return self.layout_rates[setting.data]
        if setting.source == "cold" and setting.data in self.disks and sample_bytes:
            return estimate([self.disks[setting.data].mb_per_s * 1e6 / sample_bytes])
        if setting.source == "store" and sample_bytes:
            return self._probed_store_rate(setting, sample_bytes)
        return None

    def fastest_raw_rate(self, source: Source) -> tuple[Setting, float] | None:
        """Return the setting and the samples/s of the fastest reading by the loader ``raw``.

        None if ``raw`` was not measured with this source.
        """
        fastest: tuple[Setting, float] | None = None
        for setting, rate in self.raw_rates.items():
            if setting.source == source and (fastest is None or rate.median > fastest[1]):
                fastest = (setting, rate.median)
        return fastest

    def fastest_loader(self, work: Work | None) -> LoaderRate | None:
        """Return the fastest loader that decodes images from memory; None if none was measured.

        Args:
            work: the work that it must do to each image; None for any work.
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
        """Return the rates of the most similar loader by its number of workers.

        They are its rates from the store if the setting reads from a store, and otherwise its rates
        from memory. Empty if no loader is similar.
        """
        source: Source = "store" if setting.source == "store" else "warm"
        curve = self._most_similar_curve(setting, source, from_loops=True)
        return curve.rates if curve is not None else {}

    def worker_counts(self, setting: Setting) -> list[int]:
        """Return the measured numbers of workers of this loader, for each device of the setting.

        Numbers that cannot be divided evenly among the devices are left out. They are in ascending
        order and without 0.
        """
        counts = set()
        for measured in (*self.loaders, *self.loops):
            is_same = measured.loader == setting.loader and measured.images == setting.images
            if is_same and measured.all_workers % setting.devices == 0:
                counts.add(measured.all_workers // setting.devices)
        return sorted(counts - {0})

    def memory_of(self, setting: Setting) -> float | None:
        """Return the bytes of memory that the loader takes with the setting's workers.

        For more workers than were measured, each further worker is assumed to take as much as the
        measured memory grew for each worker. With a single measured number of workers, it is
        assumed to take an equal part of the measured memory. For fewer workers than the largest
        measured number, the memory of that number is returned as an upper bound. None if no memory
        was measured.
        """
        by_workers = self._memory_by_workers(setting)
        if not by_workers:
            return None
        fewest, most = min(by_workers), max(by_workers)
        if most > fewest:
            growth_bytes = by_workers[most] - by_workers[fewest]
            worker_bytes = max(0.0, growth_bytes / (most - fewest))
        else:
            worker_bytes = by_workers[most] / max(most, 1)
        return by_workers[most] + worker_bytes * max(0, setting.all_workers - most)

    def _memory_by_workers(self, setting: Setting) -> dict[int, float]:
        """Return the largest measured bytes of memory by the number of workers of all devices.

        Only settings with the same loader, images and work count. Both loaders alone and loops do.
        """
        loader_and_work = (setting.loader, setting.images, setting.work)
        largest: dict[int, float] = {}
        for table in (self.loops, self.loaders):
            for measured, repeats in table.items():
                memory_bytes = median_of(repeats, "memory_bytes")
                is_same = (measured.loader, measured.images, measured.work) == loader_and_work
                if memory_bytes and is_same:
                    workers = measured.all_workers
                    largest[workers] = max(memory_bytes, largest.get(workers, 0.0))
        return largest

    def _decoding(self, setting: Setting, *, from_loops: bool) -> Prediction:
        """Predict the rate of the loader if its samples came from memory.

        The most similar loader or loop with the same images and work gives this rate.
        """
        measured = self._measured_loader(setting, "warm", from_loops=from_loops)
        if measured is None:
            return Prediction(None, missing=("decode",))
        rate, basis = measured
        return Prediction(rate, "decode", basis)

    def _measured_loader(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> tuple[Estimate, str] | None:
        """Return the loader's rate from a source, and in words the measurement that it is from.

        It is the rate of the most similar measured setting, for the workers of ``setting``. None if
        no setting is similar, or if the rate for this number of workers cannot be predicted.
        """
        curve = self._most_similar_curve(setting, source, from_loops=from_loops)
        if curve is None:
            return None
        # A loader that reads from a store waits more than it computes: CPUs do not limit it.
        max_workers = None if source == "store" else self.processors
        rate = rate_at_workers(curve.rates, setting.all_workers, max_workers)
        if rate is None:
            return None
        counts = ", ".join(str(count) for count in sorted(curve.rates))
        return rate, f"{setting.loader} over {curve.setting.data or 'no data'}, workers {counts}"

    def _most_similar_curve(
        self, setting: Setting, source: Source, *, from_loops: bool
    ) -> _WorkerCurve | None:
        """Return the rates of the most similar measured setting; None if no setting is similar.

        Loops are used only if no similar loader was measured alone, and if ``from_loops`` is set.
        """
        curves = _similar_curves(self.loaders, setting, source, math.inf)
        if not curves and from_loops:
            curves = self._similar_curves_of_loops(setting, source)
        return min(curves, key=lambda curve: _distance(curve, setting), default=None)

    def _similar_curves_of_loops(self, setting: Setting, source: Source) -> list[_WorkerCurve]:
        """Return the rates of loaders, derived from the rates of loops that train with them.

        Only loops that are clearly slower than their device are used, because the loader limits
        these. Without workers, loading and training alternate, so that the seconds of the device
        are subtracted. If the rate of the device is unknown, the rates of all loops are used as
        they are.
        """
        if self.consumption is None:
            return _similar_curves(self.loops, setting, source, math.inf)
        limit = _LIMITED_BY_LOADER * self.consumption.median
        curves = _similar_curves(self.loops, setting, source, limit)
        for curve in curves:
            if 0 in curve.rates:
                curve.rates[0] = _without_device(curve.rates[0], self.consumption)
        return curves

    def _raw_rate(self, similar: Sequence[Setting], setting: Setting) -> Estimate | None:
        """Return the samples/s of the loader ``raw`` with as many workers as a setting has.

        They come from the first setting of ``raw`` over the same data, or else over the same
        images. None if its numbers of workers do not support a prediction.

        Args:
            similar: settings of the loader ``raw`` over the same images from the same source; at
                least one.
            setting: the setting to predict.
        """
        same_data = [raw for raw in similar if raw.data == setting.data]
        without_workers = replace((same_data or similar)[0], workers=0)
        rates = {
            raw.all_workers: rate
            for raw, rate in self.raw_rates.items()
            if replace(raw, workers=0) == without_workers
        }
        return rate_at_workers(rates, setting.all_workers, None)

    def _probed_store_rate(self, setting: Setting, sample_bytes: float) -> Estimate | None:
        """Return samples/s of the store's probe with the connections of the loader.

        None if the connections of the loader are unknown, or if the probe does not support a
        prediction for them.

        Args:
            setting: the setting of the loader.
            sample_bytes: mean stored bytes of a sample.
        """
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
        samples_per_mb = 1e6 / sample_bytes
        return scaled(rate, samples_per_mb)


@dataclass(frozen=True, slots=True)
class _WorkerCurve:
    """The measured rates of a loader by the number of workers.

    Attributes:
        setting: the measured setting, in which ``workers`` is 0 and ``devices`` is 1.
        rates: the rates in samples/s by the number of workers of all devices.
    """

    setting: Setting
    rates: dict[int, Estimate]


def _similar_curves(
    measured: Mapping[Setting, Repeats], setting: Setting, source: Source, below_rate: float
) -> list[_WorkerCurve]:
    """Return the curves of measured settings with the same loader, images, work and source.

    Args:
        measured: repeats by setting.
        setting: the setting to compare with; its source is not used.
        source: the source from which the measured settings read.
        below_rate: only rates below this number of samples/s are returned; infinite for all rates.
    """
    loader_and_source = (setting.loader, setting.images, setting.work, source)
    curves: dict[Setting, _WorkerCurve] = {}
    for other, repeats in measured.items():
        rate = rate_of(repeats)
        is_same = (other.loader, other.images, other.work, other.source) == loader_and_source
        if is_same and rate is not None and rate.median < below_rate:
            without_workers = replace(other, workers=0, devices=1)
            curve = curves.setdefault(without_workers, _WorkerCurve(without_workers, {}))
            curve.rates[other.all_workers] = rate
    return list(curves.values())


def _distance(curve: _WorkerCurve, setting: Setting) -> tuple[float, ...]:
    """Return how much the setting of a curve differs from a setting, as a sort key.

    The data matter most, then whether the curve has the number of workers, then the batch size,
    prefetch and pinned memory.
    """
    measured = curve.setting
    # A curve of one number of workers says little about another number.
    lacks_workers = setting.all_workers not in curve.rates and len(curve.rates) < 2
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
    return _combined(first, second, min)


def _one_after_the_other(first: Estimate, second: Estimate) -> Estimate:
    """Return the rate of two stages that run one after the other: their seconds add up."""

    def rate_of_both(first_rate: float, second_rate: float) -> float:
        return 1 / (1 / first_rate + 1 / second_rate)

    return _combined(first, second, rate_of_both)


def _combined(
    first: Estimate, second: Estimate, combine: Callable[[float, float], float]
) -> Estimate:
    """Return an estimate whose median, lower end and upper end are combined from two estimates.

    Args:
        first: one estimate.
        second: the other estimate.
        combine: computes a value from a value of each estimate.
    """
    return Estimate(
        combine(first.median, second.median),
        combine(first.low, second.low),
        combine(first.high, second.high),
        min(first.coverage, second.coverage),
        min(first.repeats, second.repeats),
    )


def _without_device(loop: Estimate, device: Estimate) -> Estimate:
    """Return the rate of loading alone, in a loop in which loading and training alternate.

    Args:
        loop: the samples/s of the loop.
        device: the samples/s of its device.
    """
    device_s = 1 / device.median

    def loading_rate(loop_rate: float) -> float:
        # The limit prevents a division by zero if the loop is as fast as its device.
        return 1 / max(1 / loop_rate - device_s, 1e-9)

    return Estimate(
        loading_rate(loop.median),
        loading_rate(loop.low),
        loading_rate(loop.high),
        loop.coverage,
        loop.repeats,
    )
