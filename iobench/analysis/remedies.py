"""PURE. The remedies of each cause, and the recommendations without a predicted gain.

A remedy is a setting that can reduce a cause of the loss. Remedies of the primary cause are
recommended first, even if their gains were not predicted. The texts of the recommendations are in
``iobench.analysis.recommendations``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from iobench.analysis import recommendations
from iobench.analysis.candidates import AUGMENTATIONS, NOT_RESIZED, stored_side_px
from iobench.analysis.capacity import Capacities
from iobench.analysis.data_storage import address_of_data
from iobench.analysis.loader_setting import Setting, setting_of
from iobench.analysis.loops import Loop
from iobench.analysis.recommendations import Recommendation, config_value, shard_command
from iobench.analysis.repeats import data_name, median_of
from iobench.analysis.situation import Situation
from iobench.analysis.store_limits import OWN_CLIENT
from iobench.analysis.worker_scaling import FEWEST_COUNTS
from iobench.loaders.settings import ImageSettings, LoaderSettings
from iobench.results.result import Finding, Result

_PREPARING = (
    "workers",
    "measure_workers",
    "normalise",
    "colour_jitter",
    "pca_noise",
    "resize",
    "processors",
)
"""Settings that change the work of preparing samples, or the CPUs for it."""
_READING = ("sharding", "loader", "resize", "shard_size", "workers", "measure_workers")
"""Settings that change how samples are read."""
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "slow-decode": (
        "workers",
        "measure_workers",
        "normalise",
        "resize",
        "sharding",
        "processors",
    ),
    "slow-preparation": _PREPARING,
    "slow-augmentation": _PREPARING,
    "slow-collate": ("normalise", "workers", "measure_workers"),
    "unpinned-copy": ("pin_memory", "normalise"),
    "slow-copy": ("normalise", "prefetch"),
    "slow-read-path": _READING,
    "slow-disk": (*_READING, "faster_disk"),
    "tiny-files": ("sharding",),
    "store-throttles": ("loader", "shard_size", "stage", "fewer_requests"),
    "slow-store-latency": (
        "loader",
        "sharding",
        "shard_size",
        "workers",
        "measure_workers",
        "prefetch",
        "stage",
    ),
    "slow-store-bandwidth": ("resize", "stage", "nearer_store"),
    "slow-store": ("loader", "stage", "resize", "workers", "probe_store"),
    "other-programs": ("other_programs",),
    "uneven-ranks": ("even_ranks",),
    "epoch-starts": ("more_images", "longer_epochs", "smaller_windows"),
    "input-bound": ("measure_parts",),
}
"""The settings of the recommendations that can remedy a cause, by the code of its finding. Their
order has no meaning."""

_NO_GAIN_FROM_WORKERS = "(more_workers_gain)"
"""This text is in the reason of a trial that was skipped because more workers gained nothing."""
_LOADER_DEFAULTS = {
    "batch_size": LoaderSettings().batch_size,
    **ImageSettings().model_dump(),
}
"""Parameters of a loader that its entry under ``loaders`` may leave out, with their defaults."""
_SLOW_PREPARING = ("slow-decode", "slow-preparation", "slow-augmentation")
"""Codes of findings about preparing samples."""
_SMALL_SIDE_PX = 256
"""The short side in pixels of the images that are recommended instead of larger ones. It is the
usual one for models whose input has a side of 224 pixels."""


def unpredicted_remedies(
    loop: Loop,
    finding: Finding,
    result: Result,
    capacities: Capacities,
    situation: Situation | None,
) -> Iterator[Recommendation]:
    """Yield the changes to this loop that help against a finding, without a predicted gain.

    A setting may be yielded several times; ``in_order`` keeps the first.

    Args:
        loop: the loop.
        finding: a cause of the loop's loss, or another finding about the loop.
        result: the run.
        capacities: the rates of the parts of the loop.
        situation: the current setting; None if its rate with stored data is unknown or is no
            evidence.
    """
    code = finding.code
    data = result.config.get("data") or {}
    yield from _changes_to_the_job(loop, code)
    if code == "tiny-files":
        yield recommendations.pack_into_shards(shard_command(data))
    yield from _changes_to_the_loader(loop, code)
    if code.startswith(("slow-store", "store-")):
        yield from _changes_to_store_reads(loop, code, data)
    if code in (*_SLOW_PREPARING, "slow-collate", "slow-store-latency"):
        yield from _more_workers(loop, result, capacities, situation)
    if code in (*_SLOW_PREPARING, "slow-disk", "slow-store-bandwidth"):
        yield from _smaller_images(loop, data)
    if code == "slow-disk":
        yield recommendations.use_faster_disk()
    all_cpus_work = loop.workers >= int(capacities.processors or 1)
    if code in _SLOW_PREPARING and all_cpus_work:
        yield recommendations.use_unknown_number_of_more_cpus()
    if code == "too-many-workers" and capacities.processors:
        yield fewer_workers(loop, capacities.processors)


def fewer_workers(loop: Loop, cpus: float) -> Recommendation:
    """Return the recommendation to use one worker for each CPU of the machine.

    Args:
        loop: the loop.
        cpus: the CPUs that the run could use; the workers of all devices share them.
    """
    workers = max(1, int(cpus) // loop.devices)
    key = f"training.{loop.index}"
    return recommendations.use_fewer_workers(key, workers, loop.params.get("workers"))


def in_order(
    primary: Finding,
    with_gain: Sequence[Recommendation],
    without_gain: Sequence[Recommendation],
) -> tuple[Recommendation, ...]:
    """Return all recommendations in the order in which they are shown.

    Remedies of the primary cause come first. Both the remedies and the other recommendations are
    ordered in the same way: those with a gain, those without one, and last the recommendation of
    more CPUs. Each setting is recommended only once, with a gain if possible.

    Args:
        primary: the finding of the primary cause.
        with_gain: recommendations with a measured or predicted gain, in their order.
        without_gain: recommendations without a gain, in their order.
    """
    by_setting: dict[str, Recommendation] = {}
    for change in (*with_gain, *without_gain):
        by_setting.setdefault(change.setting, change)
    remedies = REMEDIES.get(primary.code, ())

    def position(change: Recommendation) -> tuple[bool, bool]:
        return change.setting not in remedies, change.setting == "processors"

    return tuple(sorted(by_setting.values(), key=position))


def measure_workers(loop: Loop, result: Result, capacities: Capacities) -> Recommendation:
    """Return the recommendation to measure the loop's loader with several numbers of workers.

    It changes the entry of the config that measures this loader, or adds an entry.
    """
    counts = _counts_to_measure(capacities.processors, int(loop.params.get("workers") or 0))
    counts_text = ",".join(str(count) for count in counts)
    index = _config_entry_of(loop, result)
    if index is not None:
        return recommendations.measure_worker_counts(
            counts, f"loaders.{index}.workers=[{counts_text}]"
        )
    keys = [f"loader: {loop.params.get('loader')}", f"data: {loop.params.get('data')}"]
    for name, default in _LOADER_DEFAULTS.items():
        value = loop.params.get(name, default)
        if value != default:
            keys.append(f"{name}: {config_value(value)}")
    entry = f"loaders=[{{{', '.join(keys)}, workers: [{counts_text}]}}]"
    return recommendations.measure_worker_counts(counts, entry)


def _changes_to_the_job(loop: Loop, code: str) -> Iterator[Recommendation]:
    """Yield changes to how the loop is run: programs beside it, ranks, inputs and epochs."""
    if code == "other-programs":
        yield recommendations.stop_other_programs()
    if code == "uneven-ranks":
        yield recommendations.even_out_ranks()
    if code == "input-bound":
        yield recommendations.measure_parts(f"training.{loop.index}")
    if code == "epoch-starts":
        yield from _shorter_starts(loop)


def _shorter_starts(loop: Loop) -> Iterator[Recommendation]:
    """Yield ways to start epochs less often, and to do less before the first batch.

    A job has its first start only once. If only that start is long, it matters only in a short
    measurement, so a longer measurement is recommended.
    """
    first_s = median_of(loop.start_trials, "time_to_first_batch_s")
    later_s = median_of(loop.start_trials, "epoch_start_s")
    if first_s is not None and later_s is not None and later_s < first_s / 2:
        yield recommendations.measure_with_more_images()
    yield recommendations.lengthen_epochs()
    if not loop.reads_files:
        yield recommendations.read_less_ahead()


def _changes_to_the_loader(loop: Loop, code: str) -> Iterator[Recommendation]:
    """Yield changes to pinned memory, to normalising, to augmentations and to the loader."""
    key, loader = f"training.{loop.index}", str(loop.params.get("loader", ""))
    if code == "unpinned-copy" and loader.startswith("torch"):
        yield recommendations.pin_memory(key, loader)
    if code in ("unpinned-copy", "slow-copy", "slow-collate") and loop.hands_over_float32:
        yield recommendations.normalise_on_device(key)
    if code == "slow-augmentation":
        for name in AUGMENTATIONS:
            if loop.params.get(name):
                yield recommendations.leave_out_augmentation(key, name)
    if code in ("slow-read-path", "slow-disk") and loader == "torch-map":
        yield recommendations.read_in_sequence(key, loader)


def _changes_to_store_reads(
    loop: Loop, code: str, data: Mapping[str, Any]
) -> Iterator[Recommendation]:
    """Yield ways to read faster from a store, to read less from it, or to read elsewhere."""
    loader = str(loop.params.get("loader", ""))
    if loader == "torch-map":
        yield recommendations.read_in_sequence(f"training.{loop.index}", loader)
    if not loop.reads_files:
        yield recommendations.copy_to_local_disk(data)
    elif code != "store-throttles":
        yield recommendations.pack_into_shards(shard_command(data))
    if code == "slow-store-bandwidth":
        yield recommendations.move_store_nearer()
    if code == "store-throttles":
        yield recommendations.send_fewer_requests()
    if code == "slow-store":
        uri, endpoint_url = address_of_data(data, data_name(loop.params))
        yield recommendations.probe_store(uri, endpoint_url, OWN_CLIENT)


def _more_workers(
    loop: Loop, result: Result, capacities: Capacities, situation: Situation | None
) -> Iterator[Recommendation]:
    """Yield more workers if they were measured, and the command that measures further numbers.

    Nothing is yielded if every CPU has a worker, unless the workers read from a store.

    Args:
        loop: the loop.
        result: the run.
        capacities: the rates of the parts of the loop.
        situation: the current setting; None if it is unknown. If predictions may be used, more
            workers are recommended with a gain instead of here.
    """
    workers = int(loop.params.get("workers") or 0)
    loader = str(loop.params.get("loader", ""))
    setting = setting_of(loop.params, loop.farthest or "warm", loop.devices)
    is_remote = loop.farthest == "store"
    # Workers that read from a store wait more than they compute, so CPUs do not limit them.
    cpus = int(capacities.processors or 1) // loop.devices
    if not is_remote and workers >= max(1, cpus):
        return
    counts = capacities.worker_counts(setting)
    larger = [count for count in counts if count > workers]
    if not is_remote:
        larger = [count for count in larger if count <= cpus]
    if larger and situation is not None and not situation.is_predictable:
        yield recommendations.use_workers(f"training.{loop.index}", loader, max(larger), workers)
    has_few_counts = len(counts) < FEWEST_COUNTS and max(counts, default=0) < max(2, cpus)
    if has_few_counts and not _gains_nothing_from_workers(result, setting):
        yield measure_workers(loop, result, capacities)


def _gains_nothing_from_workers(result: Result, setting: Setting) -> bool:
    """Return whether the run skipped more workers of a loader, because they would gain nothing.

    Args:
        result: the run.
        setting: the setting of the loader. Its workers, devices and prefetch are not compared.
    """
    without_workers = replace(setting, workers=0, devices=1, prefetch=0)
    for trial in result.trials:
        is_skipped = trial.status == "skipped" and _NO_GAIN_FROM_WORKERS in trial.reason
        if trial.kind == "loader" and is_skipped:
            skipped = setting_of(trial.params, setting.source)
            if replace(skipped, workers=0, devices=1, prefetch=0) == without_workers:
                return True
    return False


def _counts_to_measure(cpus: float | None, workers_now: int) -> tuple[int, ...]:
    """Return the numbers of workers to measure: 1, 2, 4 and so on up to the number of CPUs.

    There are at least ``FEWEST_COUNTS`` numbers, which an extrapolation needs. The current number
    of workers is added unless it is 0.
    """
    counts = [1]
    while len(counts) < FEWEST_COUNTS or counts[-1] * 2 <= (cpus or 0):
        counts.append(counts[-1] * 2)
    if workers_now:
        counts.append(workers_now)
    return tuple(sorted(set(counts)))


def _config_entry_of(loop: Loop, result: Result) -> int | None:
    """Return the index under ``loaders`` in the config that measures the loop's loader.

    None if no entry measures it with the same data, the same batch size and the same work.
    """
    defaults = {"loader": None, "data": "shards@disk", **_LOADER_DEFAULTS}
    loop_values = {"loader": loop.params.get("loader"), "data": loop.params.get("data")}
    for name, default in _LOADER_DEFAULTS.items():
        loop_values[name] = loop.params.get(name, default)
    for index, entry in enumerate(result.config.get("loaders") or ()):
        different = []
        for name, default in defaults.items():
            if loop_values[name] not in _as_list(entry.get(name, default)):
                different.append(name)
        if not different:
            return index
    return None


def _as_list(value: Any) -> Sequence[Any]:
    """Return the values of a key of the config, which has one value or a list of values."""
    return value if isinstance(value, (list, tuple)) else (value,)


def _smaller_images(loop: Loop, data: Mapping[str, Any]) -> Iterator[Recommendation]:
    """Yield smaller images, if the stored ones are larger than the model's input needs.

    Images of the user's own shards are left as they are, because their originals are unknown.
    """
    setting = setting_of(loop.params, loop.farthest or "warm", loop.devices)
    side_px = stored_side_px(setting, data)
    is_large = setting.packing in NOT_RESIZED or (side_px or 0) > _SMALL_SIDE_PX
    model_fits = setting.image_size <= _SMALL_SIDE_PX
    if is_large and model_fits and not data.get("shards"):
        command = shard_command(data, side_px=_SMALL_SIDE_PX)
        yield recommendations.store_smaller_images(_SMALL_SIDE_PX, command)
