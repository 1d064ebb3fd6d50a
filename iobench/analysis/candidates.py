"""PURE. The changes that are possible for a loader: settings and forms of the data.

The changes are other numbers of workers, values of a setting that the run measured, fewer
augmentations, normalising on the device, another loader, a local copy, other shards and smaller
images.
``iobench.analysis.recommendation_choice`` predicts their gains and chooses among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dataprep.formats import DEFAULT_FORMAT
from iobench.analysis import recommendations
from iobench.analysis.capacity import Capacities
from iobench.analysis.loader_setting import Setting
from iobench.analysis.loops import Source
from iobench.analysis.recommendations import Recommendation, shard_command
from iobench.analysis.situation import Situation
from iobench.analysis.worker_scaling import FEWEST_COUNTS, REACH
from iobench.loaders.capabilities import capabilities_of

AUGMENTATIONS = ("colour_jitter", "pca_noise")
"""Augmentations that can be left out. Leaving one out changes the images that the model sees."""
NOT_RESIZED = ("photos", "originals")
"""Names of data whose images have the same sizes as in the source."""

_MEMORY_SHARE = 0.8
"""Share of the machine's memory that workers may take. The rest is for the training process."""
_SHARDS = ("shards", "originals")
"""Names of data that are stored in shards."""

_NO_EFFORT, _SOME_EFFORT, _NEW_SHARDS = 0, 1, 2
"""How much work a change is: a key of the config, a change of the training or a local copy, or new
shards."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible change to the current setting.

    Attributes:
        after: the setting after the change.
        recommendation: how to make the change, without a gain.
        effort: how much work the change is, from ``_NO_EFFORT`` to ``_NEW_SHARDS``.
    """

    after: Setting
    recommendation: Recommendation
    effort: int

    @property
    def setting(self) -> str:
        """The setting that changes, such as ``workers``."""
        return self.recommendation.setting


def candidates(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield all possible changes to the setting ``now``.

    Of several values of the same setting, preferred values come first.

    Args:
        situation: the situation of the run.
        now: the current setting.
    """
    yield from _numbers_of_workers(situation, now)
    yield from _without_augmentations(situation, now)
    yield from _measured_values(situation, now)
    yield from _normalised_on_device(situation, now)
    yield from _sequential_loader(situation, now)
    yield from _local_copy(situation, now)
    yield from _other_data(situation, now)


def settings_of(situation: Situation) -> list[str]:
    """Return the names of the settings that can be changed for the situation's loader.

    They are names like those of ``Recommendation.setting``.
    """
    now, loop = situation.setting, situation.loop
    names = ["workers", "prefetch"]
    if now.packing in ("photos", "files"):
        names.append("sharding")
    if now.packing in NOT_RESIZED or now.packing == "shards":
        names.append("resize")
    if now.packing in _SHARDS and now.loader != "torch-map":
        names.append("shard_size")
    if now.source == "store":
        names.append("stage")
    if now.loader == "torch-map":
        names.append("loader")
    if loop is not None and loop.on_gpu:
        names.append("pin_memory")
    if loop is not None and loop.hands_over_float32:
        names.append("normalise")
    return names


def stored_side_px(setting: Setting, data: Mapping[str, Any]) -> int | None:
    """Return the short side of the stored images in pixels.

    None if they have the sizes of the source, or if the sizes of given shards are unknown.

    Args:
        setting: the setting that reads the images.
        data: the section ``data`` of the run's config.
    """
    if setting.packing in NOT_RESIZED or data.get("shards"):
        return None
    return setting.side_px or data.get("size")


def _numbers_of_workers(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the measured numbers of workers, and the maximum that can be predicted.

    A maximum is predicted only if enough numbers were measured for an extrapolation.
    """
    capacities = situation.capacities
    counts = capacities.worker_counts(now)
    numbers = set(counts)
    if len(counts) >= FEWEST_COUNTS:
        numbers.add(_max_workers(capacities, now, counts[-1]))
    for workers in sorted(numbers - {0, now.workers}):
        after = replace(now, workers=workers)
        is_measured = situation.loop is None or after in capacities.loops
        if workers < now.workers and not is_measured:
            continue  # Fewer workers are no gain, unless a loop was measured with them.
        change = recommendations.use_workers(situation.config_key, now.loader, workers, now.workers)
        yield Candidate(after, change, _NO_EFFORT)


def _max_workers(capacities: Capacities, now: Setting, measured: int) -> int:
    """Return the maximum number of workers to propose.

    The memory and the reach of an extrapolation limit it. The CPUs limit it too, unless the workers
    read from a store, because they then wait more than they compute. It may be less than the
    largest measured number if there are fewer CPUs.

    Args:
        capacities: the measured rates.
        now: the current setting.
        measured: the largest measured number of workers of one device.
    """
    workers = REACH * measured
    if now.source != "store" and capacities.processors:
        workers = min(workers, max(1, int(capacities.processors) // now.devices))
    limit_bytes = math.inf
    if capacities.memory_bytes:
        limit_bytes = _MEMORY_SHARE * capacities.memory_bytes
    while workers > measured:
        memory_bytes = capacities.memory_of(replace(now, workers=workers)) or 0.0
        if memory_bytes <= limit_bytes:
            break
        workers -= 1
    return workers


def _without_augmentations(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the settings without each of the augmentations that can be left out."""
    work = dict(now.work)
    for name in AUGMENTATIONS:
        if work.get(name):
            after = replace(now, work=tuple({**work, name: False}.items()))
            change = recommendations.leave_out_augmentation(situation.config_key, name)
            yield Candidate(after, change, _SOME_EFFORT)


def _measured_values(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield values of prefetch and of pinned memory that the run measured with any loader.

    A value may be yielded several times.
    """
    capacities, key = situation.capacities, situation.config_key
    on_gpu = situation.loop is not None and situation.loop.on_gpu
    measured = [*capacities.loaders]
    if situation.loop is not None:
        measured = [*capacities.loops, *measured]
    for setting in measured:
        if setting.prefetch != now.prefetch:
            after = replace(now, prefetch=setting.prefetch)
            change = recommendations.prefetch_batches(
                key, now.loader, setting.prefetch, now.prefetch
            )
            yield Candidate(after, change, _NO_EFFORT)
        if on_gpu and setting.pin_memory and not now.pin_memory:
            change = recommendations.pin_memory(key, now.loader)
            yield Candidate(replace(now, pin_memory=True), change, _NO_EFFORT)


def _normalised_on_device(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the change from float32 to uint8 images, which the device normalises.

    If the model is computed on the CPUs, normalising takes CPU time there, too. The rate of a
    loader alone does not show this. In this case the change needs a measured loop that has it.
    """
    loop, work = situation.loop, dict(now.work)
    if loop is None or not loop.hands_over_float32 or not work["normalise"]:
        return
    after = replace(now, work=tuple({**work, "normalise": False}.items()))
    if loop.on_processors and after not in situation.capacities.loops:
        return
    change = recommendations.normalise_on_device(situation.config_key)
    yield Candidate(after, change, _SOME_EFFORT)


def _sequential_loader(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the loader that reads shards in sequence, if the current one reads single records."""
    if now.loader == "torch-map":
        change = recommendations.read_in_sequence(situation.config_key, now.loader)
        yield Candidate(replace(now, loader="torch-iterable"), change, _NO_EFFORT)


def _local_copy(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the copy of shards from a store to a local disk.

    Its rate is that of a cold disk if this rate is known, and otherwise that of a warm page cache.
    """
    if now.source != "store" or now.packing not in _SHARDS:
        return
    capacities = situation.capacities
    sources: tuple[Source, ...] = ("cold", "warm")
    for source in sources:
        after = replace(now, source=source)
        if after in capacities.loops or capacities.predict(after).rate is not None:
            config = {"data.shards": "DEST"}
            if situation.loop is not None:
                config[f"{situation.config_key}.inputs"] = f"[synthetic, {source}]"
            else:
                config[f"{situation.config_key}.data"] = f"{after.data}@disk"
                config[f"{situation.config_key}.cache"] = source
            data = situation.result.config.get("data") or {}
            change = recommendations.copy_to_local_disk(data, config)
            yield Candidate(after, change, _SOME_EFFORT)
            return


def _other_data(situation: Situation, now: Setting) -> Iterator[Candidate]:
    """Yield the other forms of the same images that were measured.

    They are packed into shards, resized, or in shards of another size.
    """
    data = situation.result.config.get("data") or {}
    settings: list[Setting] = []
    for measured in (*situation.capacities.loaders, *situation.capacities.loops):
        if measured.work != now.work or measured.data == now.data:
            continue
        if measured.loader == now.loader or _replaces_folder_loader(measured, now):
            after = replace(now, loader=measured.loader, data=measured.data)
            if after not in settings:
                settings.append(after)
    # The largest images come first, so that smaller ones are chosen only if they gain more. Images
    # of unknown size come last.
    settings.sort(key=lambda after: -(stored_side_px(after, data) or 0))
    for after in settings:
        candidate = _with_data(situation, now, after, data)
        if candidate is not None:
            yield candidate


def _replaces_folder_loader(measured: Setting, now: Setting) -> bool:
    """Return whether a measured loader may replace the current loader of files.

    It may if it is of the same framework, which is the first part of the loader's name.
    """
    framework = now.loader.partition("-")[0]
    return now.loader.endswith("-folder") and measured.loader.partition("-")[0] == framework


def _with_data(
    situation: Situation, now: Setting, after: Setting, data: Mapping[str, Any]
) -> Candidate | None:
    """Return the change to another form of the data.

    None if dataprep cannot make this form, or if it is no different form for the loader.

    Args:
        situation: the situation of the run.
        now: the current setting.
        after: the setting with the other form of the data.
        data: the section ``data`` of the run's config.
    """
    if after.packing not in _SHARDS:
        return None  # dataprep writes only shards.
    key = situation.config_key
    # Loops have their location among their inputs. Loaders have it in the name of their data.
    location = ""
    if situation.loop is None:
        location = "@s3" if after.source == "store" else "@disk"
    config = {f"{key}.loader": after.loader, f"{key}.data": f"{after.data}{location}"}
    record_format = capabilities_of(after.loader).record_format or DEFAULT_FORMAT
    side_px, side_px_now = stored_side_px(after, data), stored_side_px(now, data)
    if side_px is not None and side_px != side_px_now:
        if data.get("shards") or side_px < now.image_size:
            # The originals of given shards are unknown. Images that are smaller than the model's
            # input would be enlarged.
            return None
        command = shard_command(data, record_format=record_format, side_px=side_px)
        change = recommendations.store_smaller_images(
            side_px,
            command,
            side_px_now=side_px_now,
            also_pack=now.packing not in _SHARDS,
            config=config,
        )
        return Candidate(after, change, _NEW_SHARDS)
    if now.packing in ("photos", "files"):
        command = shard_command(data, record_format=record_format, side_px=side_px)
        change = recommendations.pack_into_shards(command, config)
        return Candidate(after, change, _NEW_SHARDS)
    if after.data.endswith("MB") and after.loader != "torch-map":
        size = after.data.partition("-")[2]
        size_now = now.data.partition("-")[2]
        if not size_now:
            size_now = f"{int(data.get('shard_size') or 0) / 1e6:.0f}MB"
        command = shard_command(data, record_format=record_format, shard_size=size)
        change = recommendations.write_shards_of(size, size_now, command, config)
        return Candidate(after, change, _NEW_SHARDS)
    return None
