"""PURE. Remedies for each cause: the settings that can help, and changes without a predicted gain.

The remedy of the primary cause is recommended first, also if its gain cannot be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from iobench.analysis.advice import (
    NORMALISE_ON_DEVICE,
    Recommendation,
    Situation,
    counts_of,
    hands_over_float32,
)
from iobench.analysis.capacity import Capacities, Setting, setting_of
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import median_of
from iobench.analysis.store_limits import OWN_CLIENT, address_of_data
from iobench.analysis.worker_scaling import FEWEST_COUNTS
from iobench.result import Finding, Result

_PREPARING = (
    *("workers", "measure_workers", "normalise", "colour_jitter", "pca_noise", "resize"),
    "processors",
)
_READING = ("sharding", "loader", "resize", "shard_size", "workers", "measure_workers")
REMEDIES: Mapping[str, tuple[str, ...]] = {
    "slow-decode": (
        *("workers", "measure_workers", "normalise", "resize", "sharding", "processors"),
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
        *("loader", "sharding", "shard_size", "workers", "measure_workers", "prefetch", "stage"),
    ),
    "slow-store-bandwidth": ("resize", "stage", "nearer_store"),
    "slow-store": ("loader", "stage", "resize", "workers", "probe_store"),
    "other-programs": ("other_programs",),
    "uneven-ranks": ("even_ranks",),
    "epoch-starts": ("more_images", "longer_epochs", "smaller_windows"),
    "input-bound": ("measure_parts",),
}
"""Settings that can remedy a cause."""

_SKIPPED_AS_FLAT = "(more_workers_gain)"
_WORK = {
    "batch_size": 64,
    "augment": True,
    "colour_jitter": False,
    "pca_noise": False,
    "normalise": True,
    "image_size": 224,
}
_PREPARES = ("slow-decode", "slow-preparation", "slow-augmentation")


def without_gain(
    loop: Loop, finding: Finding, result: Result, known: Capacities, now: Situation | None
) -> Iterator[Recommendation]:
    """Changes for a cause that are possible for this loader, whose gain is not predicted."""
    code = finding.code
    data: Mapping[str, Any] = result.config.get("data") or {}
    yield from _of_the_run(loop, code)
    if code == "tiny-files":
        command = shard_command(data, "")
        yield Recommendation("sharding", "Pack the images into shards", command=command)
    yield from _of_keys(loop, code)
    if code.startswith(("slow-store", "store-")):
        yield from _of_store(loop, code, data)
    if code in (*_PREPARES, "slow-collate", "slow-store-latency"):
        yield from _workers(loop, result, known, now)
    if code in (*_PREPARES, "slow-disk", "slow-store-bandwidth"):
        yield from _smaller_images(loop, data)
    if code == "slow-disk":
        yield Recommendation("faster_disk", "Read from a faster disk, or more disks side by side")
    if code in _PREPARES and _all_processors_work(loop, known):
        yield Recommendation(
            "processors",
            "Use a machine with more CPUs",
            why=f"a prediction needs {FEWEST_COUNTS} measured numbers of workers up to the CPUs",
        )


def _of_the_run(loop: Loop, code: str) -> Iterator[Recommendation]:
    """How the loop is run: beside what, on which ranks, with which inputs and epochs."""
    if code == "other-programs":
        action = "Stop the other programs on this machine, and measure again"
        yield Recommendation("other_programs", action)
    if code == "uneven-ranks":
        action = "Give the slowest rank the CPUs, disk and network of the others"
        yield Recommendation("even_ranks", f"{action}; then try prefetch: 4")
    if code == "input-bound":
        yield _measure_parts(f"training.{loop.index}")
    if code == "epoch-starts":
        yield from _shorter_starts(loop)


def measure_workers(loop: Loop, result: Result, known: Capacities) -> Recommendation:
    """The command that measures the loader of a loop with several numbers of workers."""
    counts = _counts_to_measure(known.processors, int(loop.params.get("workers") or 0))
    shown = ",".join(str(count) for count in counts)
    index = _entry_of(loop, result)
    if index is None:
        keys = [f"loader: {loop.params.get('loader')}", f"data: {loop.params.get('data')}"]
        for name, usual in _WORK.items():
            if (value := loop.params.get(name, usual)) != usual:
                keys.append(f"{name}: {_yaml(value)}")
        entry = f"loaders=[{{{', '.join(keys)}, workers: [{shown}]}}]"
    else:
        entry = f"loaders.{index}.workers=[{shown}]"
    named = f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
    return Recommendation(
        "measure_workers",
        f"Measure the loader with {named} workers",
        command=f"iobench run CONFIG --set {quote(entry)} --set more_workers_gain=null",
        value=list(counts),
        why=f"a prediction needs {FEWEST_COUNTS} measured numbers of workers",
    )


def shard_command(data: Mapping[str, Any], options: str) -> str:
    """The command that makes shards of the run's images."""
    return f"dataprep shard --source {data.get('source') or 'SOURCE'} --output OUTPUT{options}"


def _workers(
    loop: Loop, result: Result, known: Capacities, now: Situation | None
) -> Iterator[Recommendation]:
    """More workers if they were measured, else the command that measures them."""
    workers = int(loop.params.get("workers") or 0)
    setting = _setting(loop)
    room = int(known.processors or 1) // loop.devices
    if loop.farthest != "store" and workers >= max(1, room):
        return
    counts = counts_of(known, setting)
    larger = [count for count in counts if count > workers]
    if loop.farthest != "store":
        larger = [count for count in larger if count <= room]
    if larger and now is not None and not now.is_usable:
        number = max(larger)
        is_torch = str(loop.params.get("loader")).startswith("torch")
        yield Recommendation(
            "workers",
            f"Use {number} loader workers instead of {workers}",
            config={f"training.{loop.index}.workers": number},
            code=f"DataLoader(num_workers={number})" if is_torch else "",
            value=number,
            now=workers,
        )
    is_short = len(counts) < FEWEST_COUNTS and max(counts, default=0) < max(2, room)
    if is_short and not _is_flat(result, setting):
        yield measure_workers(loop, result, known)


def _setting(loop: Loop) -> Setting:
    source: Any = loop.farthest or "warm"
    return setting_of(loop.params, source, loop.devices)


def _is_flat(result: Result, setting: Setting) -> bool:
    """Whether the run left out more workers because fewer already gave the whole rate."""
    return any(
        trial.status == "skipped"
        and _SKIPPED_AS_FLAT in trial.reason
        and setting_of(trial.params, setting.source).changed(workers=0, devices=1, prefetch=0)
        == setting.changed(workers=0, devices=1, prefetch=0)
        for trial in result.trials
        if trial.kind == "loader"
    )


def _counts_to_measure(processors: float | None, now: int) -> tuple[int, ...]:
    """1, 2, 4 and so on up to the CPUs, at least three numbers."""
    counts = [1]
    while len(counts) < FEWEST_COUNTS or counts[-1] * 2 <= (processors or 0):
        counts.append(counts[-1] * 2)
    return tuple(sorted({*counts, *([now] if now else [])}))


def _entry_of(loop: Loop, result: Result) -> int | None:
    """The entry of ``loaders`` in the config that measures this loop's loader."""
    wanted = {"loader": loop.params.get("loader"), "data": loop.params.get("data")}
    wanted |= {name: loop.params.get(name, usual) for name, usual in _WORK.items()}
    usual = {"data": "shards@disk", **_WORK}
    for index, entry in enumerate(result.config.get("loaders") or ()):
        sides = {name: entry.get(name, usual.get(name)) for name in wanted}
        if all(
            wanted[name] in (values if isinstance(values, (list, tuple)) else (values,))
            for name, values in sides.items()
        ):
            return index
    return None


def _all_processors_work(loop: Loop, known: Capacities) -> bool:
    return loop.workers >= int(known.processors or 1)


def _smaller_images(loop: Loop, data: Mapping[str, Any]) -> Iterator[Recommendation]:
    form = str(loop.params.get("data", "")).partition("@")[0].partition("-")[0]
    is_large = form in ("photos", "originals") or int(data.get("size") or 0) > 256
    fits = int(loop.params.get("image_size") or 224) <= 256 and not data.get("shards")
    if is_large and fits:
        command = shard_command(data, " --size 256")
        yield Recommendation("resize", "Store images at 256 pixels", command=command)


def _of_keys(loop: Loop, code: str) -> Iterator[Recommendation]:
    """Keys of the loop: pinned memory, where images are normalised, augmentations."""
    key, params = f"training.{loop.index}", loop.params
    if code == "unpinned-copy" and str(params.get("loader", "")).startswith("torch"):
        yield Recommendation(
            "pin_memory",
            "Copy batches from pinned memory",
            config={f"{key}.pin_memory": True},
            code="DataLoader(pin_memory=True)",
        )
    if code in ("unpinned-copy", "slow-copy", "slow-collate") and hands_over_float32(loop):
        yield Recommendation(
            "normalise",
            NORMALISE_ON_DEVICE,
            config={f"{key}.normalise_on": "device"},
            code="dataprep.normalise(images)",
            value="device",
            now="host",
        )
    for name in ("colour_jitter", "pca_noise") if code == "slow-augmentation" else ():
        if params.get(name):
            words = name.replace("_", " ")
            yield Recommendation(name, f"Leave out {words}", config={f"{key}.{name}": False})
    if code in ("slow-read-path", "slow-disk") and params.get("loader") == "torch-map":
        yield _in_sequence(key)


def _of_store(loop: Loop, code: str, data: Mapping[str, Any]) -> Iterator[Recommendation]:
    """Reading less often or fewer bytes from a store, or not at all while training."""
    if loop.params.get("loader") == "torch-map":
        yield _in_sequence(f"training.{loop.index}")
    if not loop.reads_files:
        yield Recommendation(
            "stage",
            "Copy the shards to a local disk before training",
            command=f"dataprep stage {data.get('shards') or 'OUTPUT'} DEST",
        )
    elif code != "store-throttles":
        command = shard_command(data, "")
        yield Recommendation("sharding", "Pack the images into shards", command=command)
    if code == "slow-store-bandwidth":
        action = "Keep a copy of the data nearer to the machine, or use a faster link to the store"
        yield Recommendation("nearer_store", action)
    if code == "store-throttles":
        action = "Use fewer workers, and larger reads, so that the store gets fewer requests"
        yield Recommendation("fewer_requests", action)
    if code == "slow-store":
        yield _probe_store(data)


def _probe_store(data: Mapping[str, Any]) -> Recommendation:
    """The command that measures whether the store's latency or bandwidth is the limit."""
    uri, endpoint_url = address_of_data(data)
    target = f"label: data, uri: {uri.rstrip('/')}"
    if endpoint_url:
        target += f", store: {{endpoint_url: {endpoint_url}}}"
    keys = (
        f"object_store={{targets: [{{{target}}}], clients: [{OWN_CLIENT}], operations: [get], "
        "object_bytes: [1MB, 8MB], connections: [1, 4, 16, 64]}"
    )
    return Recommendation(
        "probe_store",
        "Measure whether latency or bandwidth limits the store",
        command=f"iobench run CONFIG --set {quote(keys)}",
        why="the probe varies object_store.object_bytes and object_store.connections",
    )


def _shorter_starts(loop: Loop) -> Iterator[Recommendation]:
    """Starting less often, and with less to do before the first batch.

    A job has its first start only once, so that a long one matters in a short measurement alone.
    """
    first_s, later_s = (
        median_of(loop.start_trials, name) for name in ("time_to_first_batch_s", "epoch_start_s")
    )
    if first_s is not None and later_s is not None and later_s < first_s / 2:
        yield Recommendation(
            "more_images",
            "Measure with more images, so that the first start is a smaller part of the time",
            why="a job has its first start only once",
        )
    yield Recommendation(
        "longer_epochs",
        "Make epochs longer: more images, or several passes over the data in one epoch",
    )
    if not loop.reads_files:
        yield Recommendation(
            "smaller_windows",
            "Read less ahead before the first batch: smaller windows and shuffle buffers",
        )


def _measure_parts(key: str) -> Recommendation:
    return Recommendation(
        "measure_parts",
        "Measure which part of the input is slow",
        config={f"{key}.inputs": "[synthetic, warm, cold]"},
    )


def _in_sequence(key: str) -> Recommendation:
    return Recommendation(
        "loader",
        "Read shards in sequence instead of single records",
        config={f"{key}.loader": "torch-iterable"},
        value="torch-iterable",
    )


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def ordered(
    primary: Finding, changes: Sequence[Recommendation], more: Sequence[Recommendation]
) -> tuple[Recommendation, ...]:
    """All changes: remedies of the primary cause first, predicted ones before the others.

    ``changes`` have a predicted or measured gain; ``more`` have none.
    """
    remedies = REMEDIES.get(primary.code, ())
    listed: dict[str, Recommendation] = {}
    for change in (*changes, *more):
        listed.setdefault(change.setting, change)
    everything = list(listed.values())
    first = [change for change in everything if change.setting in remedies]
    others = [change for change in everything if change.setting not in remedies]
    # Hardware comes after everything that needs none.
    return (*_hardware_last(first), *_hardware_last(others))


def _hardware_last(changes: Sequence[Recommendation]) -> Iterator[Recommendation]:
    yield from (change for change in changes if change.setting != "processors")
    yield from (change for change in changes if change.setting == "processors")
