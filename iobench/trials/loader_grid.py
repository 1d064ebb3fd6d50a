"""PURE. Loaders without training: the grid in a config, its points, and a trial's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from iobench.data.settings import check_name, split_name
from iobench.loaders import LOADERS, LoaderSettings
from iobench.loaders.access import (
    DIRECT,
    SETTINGS,
    Access,
    Connections,
    ShuffleBuffer,
    can_read,
    data_of,
    readers_of,
)
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.settings import (
    BatchSize,
    ItemSeconds,
    Prefetch,
    Workers,
)
from iobench.machine.page_cache import WHEN_NEEDED, DropCaches
from iobench.results.statistics import median
from iobench.results.trial import Params, Trial, TrialSpec
from iobench.settings import AlsoNull, OneOrMore, grid, null_as_name

LoaderName = Annotated[
    str, BeforeValidator(null_as_name), AfterValidator(LOADERS.check), AlsoNull()
]


class LoaderGrid(BaseModel):
    """A grid of loader settings, of which every combination is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    loader: OneOrMore[LoaderName]
    """`torch-map`, `torch-iterable`, `torch-folder`, `tf-data`, `mxnet-record`, `webdataset`,
    `dali`, `dali-gpu` (decodes on the GPU), `raw` (no decoding), `mock` (`item_s` per item), `null`
    (empty batches), or the name of another package's loader."""

    data: OneOrMore[Annotated[str, AfterValidator(check_name)]] = ("shards@disk",)
    """Data by name: `shards`, `shards-16MB`, `shards-320px`, `files`, `photos`, `originals`,
    `originals-16MB` or `pixels` (docs/loaders.md), then `@disk` or `@s3`."""

    access: OneOrMore[Access] = ("direct",)
    """How a store is read (docs/access-modes.md); `direct` is the loader's own way."""

    connections: OneOrMore[Connections] = (8,)
    """For `file`: parallel downloads."""

    shuffle_buffer: OneOrMore[ShuffleBuffer] = (1024,)
    """For `pipe`: samples in the shuffle buffer, of each torch worker."""

    cache: OneOrMore[Literal["warm", "cold"]] = ("warm",)
    """Page cache before each epoch."""

    workers: OneOrMore[Workers] = (2,)
    """Worker processes (torch) or threads; 0: the training process loads."""

    prefetch: OneOrMore[Prefetch] = (2,)
    """Batches prepared in advance; for torch, by each worker."""

    processes: OneOrMore[Annotated[int, Field(ge=1, le=256)]] = (1,)
    """For torch's loaders: processes that load at the same time. Each has its own `workers` and its
    share of the samples. Their rates are added."""

    batch_size: OneOrMore[BatchSize] = (64,)
    """Samples per batch."""

    decode: OneOrMore[bool] = (True,)
    """Decode images. If false, batches have encoded images."""

    augment: OneOrMore[bool] = (True,)
    """Random resized crop and flip. If false, the centre is cropped."""

    colour_jitter: OneOrMore[bool] = (False,)
    """Also change brightness, contrast and saturation by up to 40 %."""

    pca_noise: OneOrMore[bool] = (False,)
    """Also add lighting noise along ImageNet's principal components."""

    normalise: OneOrMore[bool] = (True,)
    """Normalise to mean 0 and deviation 1. If false, images are uint8. (default: the value of the
    training loops with this loader; both values if such a loop normalises on the host but could
    normalise on the device; `true` if no training loop has this loader)"""

    pin_memory: OneOrMore[bool] = (False,)
    """Batches in page-locked memory (torch, CUDA)."""

    image_size: OneOrMore[Annotated[int, Field(ge=16, le=1024)]] = (224,)
    """Side of the model's square input, in pixels."""

    item_s: OneOrMore[ItemSeconds] = (0.0,)
    """Seconds per item of `mock`."""

    epochs: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Number of whole epochs in a trial, instead of `seconds`. At least three are read."""

    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    """Minimum duration of a trial. It ends when its rate is known (docs/loaders.md)."""

    @model_validator(mode="after")
    def _check_accesses(self) -> LoaderGrid:
        """Refuse an access that no loader or no data of the grid can use.

        Also refuse several processes with an access that is for one process.
        """
        for access in self.access:
            if not any(can_read(name, access) for name in self.loader):
                raise ValueError(
                    f"access {access} is for loader {readers_of(access)}, not for "
                    f"{', '.join(self.loader)}"
                )
            if not any(data_of(access, name) for name in self.data):
                raise ValueError(f"access {access} reads a store: give data that end in @s3")
        if max(self.processes) > 1:
            for access in self.access:
                if access not in (DIRECT, "mount"):
                    raise ValueError(
                        f"access {access} is for one process: several processes read the store "
                        "directly, or a mount"
                    )
        return self


class LoopTrial(LoaderSettings):
    """Parameters that trials of loaders and of training loops share. Other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    loader: str
    data: str
    access: Access = "direct"
    connections: int = 8
    epochs: int | None = None
    drop_caches: DropCaches = WHEN_NEEDED


class LoaderTrial(LoopTrial):
    """Parameters of a trial of kind ``loader``. It lasts ``seconds``, or some whole ``epochs``."""

    cache: Literal["warm", "cold"]
    processes: int = 1
    seconds: float | None = None


_KEYS_IN_EVERY_ID = ("batch_size", "workers", "prefetch")
"""Keys that the id of a trial has even if they have their default values."""
_COLOUR_KEYS = ("colour_jitter", "pca_noise")
"""Keys that have an effect only if images are augmented."""
_DECODING_KEYS = ("augment", *_COLOUR_KEYS, "normalise", "image_size")
"""Keys that have an effect only if images are decoded."""
_ACCESS_KEYS = ("connections", "shuffle_buffer")
"""Keys that have an effect only with one access each (``SETTINGS``)."""
# The keys of a trial's id have this order, as in the results of earlier versions.
_LOADER_KEYS = (
    "batch_size",
    "workers",
    "prefetch",
    "decode",
    "augment",
    "colour_jitter",
    "pca_noise",
    "normalise",
    "pin_memory",
    "image_size",
    "item_s",
)


def loader_points(settings: LoaderGrid) -> Iterator[Params]:
    """PURE. Yield the points of the grid, each once. A point is the parameters of a trial.

    - Data on a store have no cold points, since the cache of a store cannot be controlled.
    - If points differ only in settings that their loader or access does not use, only one of them
      is measured.
    - A loader is not combined with an access that it does not support.
    """
    duration: Params = {"seconds": settings.seconds}
    if settings.epochs:
        duration = {"epochs": settings.epochs}
    seen_points = set()
    for combination in grid(_axes(settings)):
        access, loader = combination["access"], combination["loader"]
        data = data_of(access, combination["data"])
        if data is None or not can_read(loader, access):
            continue
        point = _point(combination, data)
        items = tuple(point.items())
        if items not in seen_points:
            seen_points.add(items)
            yield {**point, **duration}


def _point(combination: Params, data: str) -> Params:
    """The point of a combination of values, with only the keys that have an effect.

    Args:
        combination: a value for each key of the grid.
        data: the name of the data that a loader reads with the access of the combination.
    """
    access, processes = combination["access"], combination["processes"]
    cache = combination["cache"]
    reads_data = capabilities_of(combination["loader"]).reads_data
    _, _, is_on_store = split_name(data)
    if not reads_data:
        data, cache = "", "warm"
    elif is_on_store:
        cache = "warm"
    unused_keys = {*_keys_without_effect(combination), *_unused_access_keys(access)}
    # One process is not named, since trials of earlier versions had no such parameter.
    if processes == 1 or not reads_data:
        unused_keys.add("processes")
    point = {**combination, "data": data, "cache": cache}
    return {key: value for key, value in point.items() if key not in unused_keys}


def _axes(settings: LoaderGrid) -> dict[str, Sequence[object]]:
    """The values of each key of the grid. The order of the keys is the order in a trial's id."""
    axes: dict[str, Sequence[object]] = {
        "loader": settings.loader,
        "data": settings.data,
        "access": settings.access,
        "connections": settings.connections,
        "shuffle_buffer": settings.shuffle_buffer,
        "cache": settings.cache,
        "processes": settings.processes,
    }
    for name in _LOADER_KEYS:
        values = getattr(settings, name)
        # A key that has only its default value is left out of the ids of trials.
        if name in _KEYS_IN_EVERY_ID or values != LoaderGrid.model_fields[name].default:
            axes[name] = values
    return axes


def _unused_access_keys(access: str) -> list[str]:
    """The keys that an access does not use, and the key ``access`` if it has its default."""
    used_key = SETTINGS.get(access)
    unused_keys = [key for key in _ACCESS_KEYS if key != used_key]
    if access == DIRECT:
        unused_keys.append("access")
    return unused_keys


def _keys_without_effect(combination: Params) -> tuple[str, ...]:
    """The keys of a combination that have no effect with its loader and its other values."""
    if not capabilities_of(combination["loader"]).makes_pixels:
        return ("decode", *_DECODING_KEYS)
    if not combination.get("decode", True):
        return _DECODING_KEYS
    return () if combination.get("augment", True) else _COLOUR_KEYS


def too_many_workers(spec: TrialSpec, trials: Iterable[Trial], min_gain: float) -> str:
    """The reason why a trial of a loader is skipped; empty if it is measured.

    A trial is skipped if fewer workers were enough. Only trials with fewer workers are compared.
    From one of their numbers of workers to the next, the rate rose by less than ``min_gain``.

    - The gain of an increase is the median over the rounds in which both numbers of workers have a
      rate. Only rates of the same round are compared, since a machine may be slower in a later
      round.
    - The decision is made again in every round. One noisy trial therefore skips a point in one
      round only.
    - The increase from 0 workers to 1 does not count, because it moves the work to another process.

    Args:
        spec: the trial that may be skipped.
        trials: the trials so far. Trials of other loaders, or with other settings, are ignored.
        min_gain: the smallest gain that makes more workers worth a trial, as a share.
    """
    workers = spec.params.get("workers")
    if spec.kind != "loader" or not isinstance(workers, int):
        return ""
    rates = _rates_with_fewer_workers(spec, workers, trials)
    for fewer, more in pairwise(sorted(rates)):
        common_rounds = rates[fewer].keys() & rates[more].keys()
        gains = [rates[more][number] / rates[fewer][number] - 1 for number in common_rounds]
        if gains and median(gains) < min_gain:
            return (
                f"{more} workers brought {median(gains):+.1%} over {fewer}: more are not tried "
                "(more_workers_gain)"
            )
    return ""


def _rates_with_fewer_workers(
    spec: TrialSpec, workers: int, trials: Iterable[Trial]
) -> dict[int, dict[int, float]]:
    """Samples/s of the same loader with fewer workers, by number of workers and then by round."""
    other_params = {**spec.params, "workers": None}
    rates: dict[int, dict[int, float]] = {}
    for trial in trials:
        trial_workers = trial.params.get("workers")
        is_same = trial.kind == spec.kind and {**trial.params, "workers": None} == other_params
        if not is_same or trial.status != "done" or not isinstance(trial_workers, int):
            continue
        rate = trial.metrics.get("samples_per_s")  # It is missing if only a range is known.
        if rate and 0 < trial_workers < workers:
            rates.setdefault(trial_workers, {})[trial.repeat] = float(rate)
    return rates
