"""PURE. What is asked of loaders alone: a grid, its points, and the parameters of a trial."""

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
from iobench.several import AlsoNull, Several, bare_null, grid
from iobench.stats import median
from iobench.trial import Trial, TrialSpec

Processes = Annotated[int, Field(ge=1, le=256)]
DataName = Annotated[str, AfterValidator(check_name)]
LoaderName = Annotated[str, BeforeValidator(bare_null), AfterValidator(LOADERS.check), AlsoNull()]


class LoaderGrid(BaseModel):
    """Every combination of what is given; each key takes one value or a list."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    loader: Several[LoaderName]
    """`torch-map`, `torch-iterable`, `torch-folder`, `tf-data`, `mxnet-record`, `dali` and
    `dali-gpu` (decodes on the GPU), `raw` (reads and decodes nothing), `mock` (each item takes
    `item_s`), `null`, and those of other packages."""

    data: Several[DataName] = ("shards@disk",)
    """What is read: `shards`, `shards-16MB` (made of `data.source`), `shards-320px` (resized to
    another short side), `files` (the resized images as files), `photos` (the source as it is),
    `originals`, `originals-16MB` (shards of the source as it is) or `pixels` (the shards once more,
    their images decoded: for `torch-map`, `torch-iterable` and `raw`); then `@disk` or `@s3`."""

    access: Several[Access] = ("direct",)
    """How data are reached: `direct`, as the loader reads by itself; `file`, downloaded first;
    `pipe`, a stream of whole objects; `lazy`, a range request a sample; `mount`, as files at a
    path. See docs/access-modes.md."""

    connections: Several[Connections] = (8,)
    """Of `file`: objects that are downloaded at a time."""

    shuffle_buffer: Several[ShuffleBuffer] = (1024,)
    """Of `pipe`: samples that each worker (torch) or the loader (the others) holds, of which it
    draws the next."""

    cache: Several[Literal["warm", "cold"]] = ("warm",)
    """How reads meet the page cache; a cold trial has one epoch. A store's own cache is unseen."""

    workers: Several[Workers] = (2,)
    """Processes (torch) or threads (the others); 0 for none beside the training process."""

    prefetch: Several[Prefetch] = (2,)
    """Batches ahead; for torch, of each worker."""

    processes: Several[Processes] = (1,)
    """Loaders at once on this machine, as the ranks of a job have them: each in a process of its
    own with `workers` of its own and a share of the samples. For torch's loaders; the rate is that
    of all together."""

    batch_size: Several[BatchSize] = (64,)
    """Samples in a batch."""

    decode: Several[bool] = (True,)
    """Whether images are decoded; else batches hold encoded bytes."""

    augment: Several[bool] = (True,)
    """Random resized crop and flip; else a resize and a crop at the centre."""

    colour_jitter: Several[bool] = (False,)
    """Brightness, contrast, saturation by up to 40 %, where images are augmented."""

    pca_noise: Several[bool] = (False,)
    """Lighting noise along ImageNet's principal components, where images are augmented."""

    normalise: Several[bool] = (True,)
    """To mean 0 and deviation 1; else uint8."""

    pin_memory: Several[bool] = (False,)
    """Page-locked batches, for torch and a CUDA device."""

    image_size: Several[Annotated[int, Field(ge=16, le=1024)]] = (224,)
    """Side of the square that a model takes, in pixels."""

    item_s: Several[ItemSeconds] = (0.0,)
    """Seconds that `mock` takes for an item."""

    epochs: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Whole epochs that a trial lasts, whatever `seconds` says; a cold one begins cold."""

    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    """That a trial lasts; a warm one repeats the epoch, whose later starts do not count."""

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
    """Parameters that trials of loaders and of training loops share; other ones are ignored."""

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

    @property
    def epoch_limit(self) -> int | None:
        """How many epochs there are at most: one where a second would no longer be cold."""
        return self.epochs or (1 if self.cache == "cold" else None)


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

    A store's cache is not ours, so that it has no cold twin; what a loader does not do with
    pixels, or a mode of access has no use for, has no say in what is a point of its own. A loader
    that cannot read in a mode has no point in it.
    """

    axes: dict[str, Any] = {"loader": settings.loader, "data": settings.data}
    axes |= {name: getattr(settings, name) for name in ("access", *_OF_ACCESS)}
    axes |= {"cache": settings.cache, "processes": settings.processes}
    # An axis that stands at its default everywhere is not worth a word in every trial's name.
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
        # One process is no word: trials of earlier versions had none.
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
    """Keys that a mode of access has no use for; the usual one is not worth a word."""
    used = SETTINGS.get(access)
    return (*(["access"] if access == DIRECT else []), *(key for key in _OF_ACCESS if key != used))


def _moot(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Params that change nothing in this point."""
    if point["loader"] in UNDECODED:
        return ("decode", *_PIXELS)
    if not point.get("decode", True):
        return _PIXELS
    return () if point.get("augment", True) else _COLOURS


def saturated(spec: TrialSpec, trials: Iterable[Trial], gain: float) -> str:
    """Why a loader is not tried with so many workers; empty where it is to be tried.

    Among the trials so far that differ from ``spec`` in fewer workers alone, some raise of the
    workers brought less than ``gain`` of the rate, medians of the repeats that there are. Each
    round decides anew: what one noisy trial kept from the first is in the next. One worker in the
    place of none moves the work to another process, and says nothing about a second one.
    """
    workers = spec.params.get("workers")
    if spec.kind != "loader" or not isinstance(workers, int):
        return ""
    alike = {**spec.params, "workers": None}
    rates: dict[int, list[float]] = {}
    for trial in trials:
        fewer = trial.params.get("workers")
        same = trial.kind == spec.kind and {**trial.params, "workers": None} == alike
        if same and trial.status == "done" and isinstance(fewer, int) and 0 < fewer < workers:
            rates.setdefault(fewer, []).append(float(trial.metrics.get("samples_per_s", 0.0)))
    for few, more in pairwise(sorted(rates)):
        before = median(rates[few])
        brought = median(rates[more]) / before - 1 if before > 0 else gain
        if brought < gain:
            return (
                f"{more} workers brought {brought:+.1%} over {few}: more are not tried "
                "(more_workers_gain)"
            )
    return ""
