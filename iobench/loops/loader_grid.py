"""PURE. The config of loaders measured alone: a grid, its points, and the parameters of a trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from iobench.access import (
    DIRECT,
    SETTINGS,
    Access,
    Connections,
    ShuffleBuffer,
    data_of,
    suiting,
    suits,
)
from iobench.data.settings import check_name, split_name
from iobench.loaders import LOADERS, LoaderSettings
from iobench.loaders.own import SYNTHETIC, UNDECODED
from iobench.loaders.protocol import BatchSize, ItemSeconds, Prefetch, Workers
from iobench.machine.page_cache import WHEN_NEEDED, DropCaches
from iobench.numbers import percent_change
from iobench.several import AlsoNull, Several, bare_null, grid
from iobench.stats import median
from iobench.trial import Trial, TrialSpec

LoaderName = Annotated[str, BeforeValidator(bare_null), AfterValidator(LOADERS.check), AlsoNull()]


class LoaderGrid(BaseModel):
    """Every combination of the values given; each key takes one value or a list."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    loader: Several[LoaderName]
    """`torch-map`, `torch-iterable`, `torch-folder`, `tf-data`, `mxnet-record`, `webdataset`,
    `dali`, `dali-gpu` (decodes on the GPU), `raw` (no decoding), `mock` (`item_s` per item), `null`
    (empty batches), or another package's."""

    data: Several[Annotated[str, AfterValidator(check_name)]] = ("shards@disk",)
    """Data by name: `shards`, `shards-16MB`, `shards-320px`, `files`, `photos`, `originals`,
    `originals-16MB` or `pixels` (docs/loaders.md), then `@disk` or `@s3`."""

    access: Several[Access] = ("direct",)
    """How a store is read (docs/access-modes.md); `direct` is the loader's own way."""

    connections: Several[Connections] = (8,)
    """For `file`: parallel downloads."""

    shuffle_buffer: Several[ShuffleBuffer] = (1024,)
    """For `pipe`: samples in the shuffle buffer, of each torch worker."""

    cache: Several[Literal["warm", "cold"]] = ("warm",)
    """Page cache before each epoch."""

    workers: Several[Workers] = (2,)
    """Worker processes (torch) or threads; 0: the training process loads."""

    prefetch: Several[Prefetch] = (2,)
    """Batches made ahead; for torch, by each worker."""

    processes: Several[Annotated[int, Field(ge=1, le=256)]] = (1,)
    """For torch's loaders: processes that load at the same time, each with its own `workers` and
    share of the samples; rates are summed."""

    batch_size: Several[BatchSize] = (64,)
    """Samples per batch."""

    decode: Several[bool] = (True,)
    """Decode images; else batches are encoded."""

    augment: Several[bool] = (True,)
    """Random resized crop and flip; else the centre."""

    colour_jitter: Several[bool] = (False,)
    """Also change brightness, contrast and saturation by up to 40 %."""

    pca_noise: Several[bool] = (False,)
    """Also add lighting noise along ImageNet's principal components."""

    normalise: Several[bool] = (True,)
    """Normalise to mean 0 and deviation 1; else uint8. (default: as the training loops with this
    loader; both values if such a loop normalises on the host and could do so on the device; `true`
    without such a loop)"""

    pin_memory: Several[bool] = (False,)
    """Batches in page-locked memory (torch, CUDA)."""

    image_size: Several[Annotated[int, Field(ge=16, le=1024)]] = (224,)
    """Side of the model's square input, in pixels."""

    item_s: Several[ItemSeconds] = (0.0,)
    """Seconds per item of `mock`."""

    epochs: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Whole epochs per trial, at least three, instead of `seconds`."""

    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    """Least length of a trial. It ends when its rate is known (docs/loaders.md)."""

    @model_validator(mode="after")
    def _each_access_has_a_use(self) -> LoaderGrid:
        for access in self.access:
            if not any(suits(access, name) for name in self.loader):
                raise ValueError(
                    f"access {access} is for loader {suiting(access)}, not for "
                    f"{', '.join(self.loader)}"
                )
            if not any(data_of(access, name) for name in self.data):
                raise ValueError(f"access {access} reads a store: give data that end in @s3")
        several = max(self.processes) > 1
        if several and (copied := [one for one in self.access if one not in (DIRECT, "mount")]):
            raise ValueError(
                f"access {copied[0]} is for one process: several read the store directly, or a "
                "mount"
            )
        return self


class LoopTrial(LoaderSettings):
    """Parameters that trials of loaders and of training loops share; others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    loader: str
    data: str
    access: Access = "direct"
    connections: int = 8
    epochs: int | None = None
    drop_caches: DropCaches = WHEN_NEEDED


class LoaderTrial(LoopTrial):
    """Parameters of a trial of kind ``loader``, which lasts ``seconds`` or whole ``epochs``."""

    cache: Literal["warm", "cold"]
    processes: int = 1
    seconds: float | None = None


_ALWAYS = ("batch_size", "workers", "prefetch")
_COLOURS = ("colour_jitter", "pca_noise")
_PIXELS = ("augment", *_COLOURS, "normalise", "image_size")
_OF_ACCESS = ("connections", "shuffle_buffer")
_AXES = tuple(
    name
    for name in LoaderSettings.model_fields
    if name in LoaderGrid.model_fields and name not in _OF_ACCESS
)


def plan(settings: LoaderGrid) -> Iterator[dict[str, Any]]:
    """PURE. The grid's points, each once.

    Data on a store have no cold points, since the cache of a store cannot be controlled. Points
    that differ only in settings that their loader or mode of access does not use are one point.
    Loaders are not combined with modes of access in which they cannot read.
    """

    axes: dict[str, Any] = {"loader": settings.loader, "data": settings.data}
    axes |= {name: getattr(settings, name) for name in ("access", *_OF_ACCESS)}
    axes |= {"cache": settings.cache, "processes": settings.processes}
    # An axis that has only its default value is left out of the names of trials.
    for name in _AXES:
        value = getattr(settings, name)
        if name in _ALWAYS or value != LoaderGrid.model_fields[name].default:
            axes[name] = value
    lasts = {"epochs": settings.epochs} if settings.epochs else {"seconds": settings.seconds}
    seen = set()
    for point in grid(axes):
        data = data_of(point["access"], point["data"])
        if data is None or not suits(point["access"], point["loader"]):
            continue
        point["data"] = data
        # One process is not named: trials of earlier versions had no such parameter.
        if point["processes"] == 1 or point["loader"] in SYNTHETIC:
            del point["processes"]
        if point["loader"] in SYNTHETIC:
            point["data"], point["cache"] = "", "warm"
        elif split_name(point["data"])[2]:
            point["cache"] = "warm"
        for moot in (*_moot(point), *_unused(point["access"])):
            point.pop(moot, None)
        if (key := tuple(point.items())) not in seen:
            seen.add(key)
            yield {**point, **lasts}


def _unused(access: str) -> tuple[str, ...]:
    """Keys that a mode of access does not use; and the mode itself if it is the default."""
    used = SETTINGS.get(access)
    return (*(["access"] if access == DIRECT else []), *(key for key in _OF_ACCESS if key != used))


def _moot(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Parameters that have no effect in this point."""
    if point["loader"] in UNDECODED:
        return ("decode", *_PIXELS)
    if not point.get("decode", True):
        return _PIXELS
    return () if point.get("augment", True) else _COLOURS


def saturated(spec: TrialSpec, trials: Iterable[Trial], gain: float) -> str:
    """The reason why a loader is not tried with so many workers; empty if it is tried.

    The reason is that an earlier step to more workers raised the rate by less than ``gain``. The
    gain is the median over the rounds so far in which both numbers of workers have a rate, since
    trials come in random order and a machine may be slower in a later round. Only trials count
    that differ from ``spec`` in having fewer workers. Every round decides again, so that one noisy
    trial skips a point in one round only. The step from no worker to one is left out: it moves the
    work to another process.
    """
    workers = spec.params.get("workers")
    if spec.kind != "loader" or not isinstance(workers, int):
        return ""
    alike = {**spec.params, "workers": None}
    rates: dict[int, dict[int, float]] = {}
    for trial in trials:
        fewer = trial.params.get("workers")
        same = trial.kind == spec.kind and {**trial.params, "workers": None} == alike
        if not same or trial.status != "done" or not isinstance(fewer, int):
            continue
        rate = trial.metrics.get("samples_per_s")  # absent where only a range is known
        if rate and 0 < fewer < workers:
            rates.setdefault(fewer, {})[trial.repeat] = float(rate)
    for few, more in pairwise(sorted(rates)):
        rounds = rates[few].keys() & rates[more].keys()
        gains = [rates[more][number] / rates[few][number] - 1 for number in rounds]
        if gains and median(gains) < gain:
            return (
                f"{more} workers brought {percent_change(median(gains))} over {few}: more are not "
                "tried (more_workers_gain)"
            )
    return ""
