"""PURE. Collect the measured rates of the parts of a training loop from the trials of a run.

The functions yield or return what the attributes of ``Capacities`` hold. Only completed trials are
used. Rates are those of the repeats of one setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iobench.analysis.capacity import Capacities, StorageRead
from iobench.analysis.data_storage import supplies_data
from iobench.analysis.loader_setting import Setting, setting_of
from iobench.analysis.loops import FARTHEST, Loop, Source
from iobench.analysis.repeats import (
    Repeats,
    arrival_rate,
    by_settings,
    cold_label,
    data_name,
    epochs_of,
    is_direct,
    is_number,
    is_on_store,
    median_of,
    rate_of,
    stored_sample_bytes,
    usable_cpus,
    with_rate_over_epochs,
)
from iobench.analysis.store_limits import store_points
from iobench.loaders.capabilities import capabilities_of
from iobench.results.result import Result
from iobench.results.statistics import Estimate, median
from iobench.results.trial import Params, Trial
from iobench.results.wording import params_words


def capacities(result: Result, loop: Loop | None, loops: Sequence[Loop]) -> Capacities:
    """Collect the rates that a run measured for the parts of a loop.

    If the loop's rate covers whole epochs, the rates of loaders are computed for as many epochs, so
    that both contain the same share of the workers' start.

    Args:
        result: the run.
        loop: the loop; None for a run in which only loaders were measured. The rates of other loops
            are then not collected either.
        loops: all loops of the run, also ``loop``.
    """
    trials = result.trials
    epochs = epochs_of(loop.trials) if loop is not None else None
    comparable = trials
    if epochs is not None:
        comparable = [with_rate_over_epochs(trial, epochs) for trial in trials]
    memory_bytes = result.environment.get("memory_bytes")
    return Capacities(
        consumption=_consumption(loop) if loop is not None else None,
        loaders=dict(_loaders(comparable)),
        loops=dict(_loops(loop, loops)) if loop is not None else {},
        raw_rates=dict(_raw_rates(comparable)),
        layout_rates=_layout_rates(trials),
        disks=_fastest_disk_reads(result),
        store=_fastest_store_get(result),
        store_points=store_points(result, trials),
        sample_bytes=_sample_bytes(trials),
        object_bytes=_object_bytes(trials),
        processors=usable_cpus(result.environment),
        memory_bytes=memory_bytes if is_number(memory_bytes) else None,
    )


def _consumption(loop: Loop) -> Estimate | None:
    """Return the rate without reading and preparing: the minimum over device, copy and collate.

    None if the rate of the device was not measured.
    """
    if loop.device_rate is None:
        return None
    rates = [loop.device_rate]
    for rung in ("copy", "collate"):
        rate = loop.rate(rung)
        if rate is not None:
            rates.append(rate)
    return min(rates, key=lambda rate: rate.median)


def _loaders(trials: Sequence[Trial]) -> Iterator[tuple[Setting, Repeats]]:
    """Yield the settings and trials of loaders that decode.

    Settings with several processes, or with another access mode than ``direct``, are left out,
    because no predictions are made for them. So are cold trials that were not proved to be cold.
    """
    for params, repeats in by_settings(trials, "loader"):
        loader = str(params.get("loader", ""))
        # The loader ``mock`` emulates decoding.
        makes_pixels = loader == "mock" or capabilities_of(loader).makes_pixels
        is_decoding = makes_pixels and params.get("decode", True)
        has_one_process = params.get("processes", 1) == 1
        if not is_decoding or not is_direct(params) or not has_one_process:
            continue
        source = _source_of(params, cold_label(repeats))
        if source is not None and rate_of(repeats) is not None:
            yield setting_of(params, source), repeats


def _loops(loop: Loop, loops: Sequence[Loop]) -> Iterator[tuple[Setting, Repeats]]:
    """Yield the settings and trials of all loops with the device and the model of ``loop``.

    They are ordered by loop, and those of one loop by input, the nearest location first. ``loop``
    itself is one of them.
    """
    for other in loops:
        if _consumer(other) != _consumer(loop):
            continue
        for source in reversed(FARTHEST):
            repeats = other.inputs.get(source, ())
            if not repeats or not is_direct(repeats[0].params) or rate_of(repeats) is None:
                continue
            # A cold trial is used if it was proved cold, or if its page cache was not judged.
            if source != "cold" or cold_label(repeats) in ("cold", ""):
                yield setting_of(repeats[0].params, source, other.devices), repeats


def _source_of(params: Params, label: str) -> Source | None:
    """Return the source of a loader's samples: the store, a cold disk or the warm page cache.

    None if the trial requested a cold page cache and ``label`` does not prove it.
    """
    if is_on_store(params):
        return "store"
    if params.get("cache", "warm") == "cold":
        return "cold" if label == "cold" else None
    return "warm"


def _consumer(loop: Loop) -> tuple[Any, ...]:
    """Return everything that decides how fast a loop's devices consume samples, for comparison.

    It is the same for any number of devices.
    """
    keys = ("consumer", "model", "precision", "preset", "images_per_s")
    values = [loop.params.get(key) for key in keys]
    return (loop.facts.get("device"), *values)


def _raw_rates(trials: Sequence[Trial]) -> Iterator[tuple[Setting, Estimate]]:
    """Yield the settings and rates of the loader ``raw``, if it read from a disk or a store."""
    for params, repeats in by_settings(trials, "loader"):
        rate = rate_of(repeats)
        if params.get("loader") != "raw" or rate is None:
            continue
        source = _source_of(params, cold_label(repeats))
        if source in ("cold", "store"):
            yield setting_of(params, source), rate


def _layout_rates(trials: Sequence[Trial]) -> dict[str, Estimate]:
    """Return the highest samples/s of reading whole shards or files from a cold disk, by data.

    They are those of the layout probe. Reads of single records are left out.
    """
    fastest: dict[str, Estimate] = {}
    for params, repeats in by_settings(trials, "layout"):
        data, rate = data_name(params), rate_of(repeats)
        if rate is None or cold_label(repeats) != "cold" or params.get("access") == "records":
            continue
        if data not in fastest or rate.median > fastest[data].median:
            fastest[data] = rate
    return fastest


def _fastest_disk_reads(result: Result) -> dict[str, StorageRead]:
    """Return the fastest read of the disk probe that was proved to come from the disk, by data.

    Reads of other disks than the disk of the data are left out (``supplies_data``).
    """
    names = {data_name(trial.params) for trial in result.trials} - {""}
    fastest: dict[str, StorageRead] = {}
    for params, repeats in by_settings(result.trials, "disk"):
        rate = arrival_rate(repeats)
        is_proved = cold_label(repeats) in ("cold", "direct")
        if params.get("operation") != "read" or not is_proved or rate is None or rate.median <= 0:
            continue
        read = StorageRead(rate.median, str(params["target"]), params_words("disk", params))
        for name in names:
            is_faster = name not in fastest or read.mb_per_s > fastest[name].mb_per_s
            if is_faster and supplies_data(result, "disk", params, name):
                fastest[name] = read
    return fastest


def _fastest_store_get(result: Result) -> StorageRead | None:
    """Return the fastest GET of a whole object by the object-store probe; None if there is none.

    GETs from other stores than the store of the data are left out (``supplies_data``).
    """
    fastest: StorageRead | None = None
    for params, repeats in by_settings(result.trials, "object"):
        mb_per_s = median_of(repeats, "mb_per_s") or 0.0
        is_get = str(params.get("operation", "")).startswith("get")
        if not is_get or mb_per_s <= 0 or not supplies_data(result, "object", params):
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
    """Return the median over trials of the mean stored bytes of a sample, by name of the data."""
    sizes: dict[str, list[float]] = {}
    for trial in trials:
        data = data_name(trial.params)
        sample_bytes = stored_sample_bytes(trial)
        if trial.status == "done" and data and sample_bytes is not None:
            sizes.setdefault(data, []).append(sample_bytes)
    return {data: median(values) for data, values in sizes.items()}


def _object_bytes(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the median over trials of the mean bytes of a shard or file, by name of the data."""
    sizes: dict[str, list[float]] = {}
    for trial in trials:
        object_bytes = trial.metrics.get("mean_object_bytes")
        data = data_name(trial.params)
        if trial.status == "done" and is_number(object_bytes) and object_bytes > 0 and data:
            sizes.setdefault(data, []).append(float(object_bytes))
    return {data: median(values) for data, values in sizes.items()}
