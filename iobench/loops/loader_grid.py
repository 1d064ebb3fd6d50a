"""PURE. What is asked of loaders alone: a grid, and its points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from iobench.data.settings import check_name, split_name
from iobench.loaders import LOADERS, LoaderSettings
from iobench.loaders.own import SYNTHETIC, UNDECODED
from iobench.loaders.protocol import BatchSize, ItemSeconds, Prefetch, Workers
from iobench.several import AlsoNull, Several, bare_null, grid

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
    """What is read: `shards`, `shards-16MB` (made of `data.source`), `files` (the resized images as
    files), `photos` (the source as it is), `originals`, `originals-16MB` (shards of the source as
    it is) or `pixels` (the shards once more, their images decoded: for `torch-map`,
    `torch-iterable` and `raw`); then `@disk` or `@s3`."""

    cache: Several[Literal["warm", "cold"]] = ("warm",)
    """How reads meet the page cache; a cold trial has one epoch. A store's own cache is unseen."""

    workers: Several[Workers] = (2,)
    """Processes (torch) or threads (the others); 0 for none beside the training process."""

    prefetch: Several[Prefetch] = (2,)
    """Batches ahead; for torch, of each worker."""

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

    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0
    """That a trial lasts at most; a warm one repeats the epoch until then."""


_ALWAYS = ("batch_size", "workers", "prefetch")
_COLOURS = ("colour_jitter", "pca_noise")
_PIXELS = ("augment", *_COLOURS, "normalise", "image_size")
_AXES = tuple(name for name in LoaderSettings.model_fields if name in LoaderGrid.model_fields)


def plan(settings: LoaderGrid) -> Iterator[dict[str, Any]]:
    """PURE. The grid's points, each once.

    A store's cache is not ours, so that it has no cold twin; what a loader does not do with
    pixels has no say in what is a point of its own.
    """

    axes: dict[str, Any] = {"loader": settings.loader, "data": settings.data}
    axes["cache"] = settings.cache
    # An axis that stands at its default everywhere is not worth a word in every trial's name.
    axes |= {name: getattr(settings, name) for name in _AXES if _is_told(settings, name)}
    seen = set()
    for point in grid(axes):
        if point["loader"] in SYNTHETIC:
            point["data"], point["cache"] = "", "warm"
        elif split_name(point["data"])[2]:
            point["cache"] = "warm"
        for moot in _moot(point):
            point.pop(moot, None)
        if (key := tuple(point.items())) not in seen:
            seen.add(key)
            yield {**point, "seconds": settings.seconds}


def _moot(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Params that change nothing in this point."""
    if point["loader"] in UNDECODED:
        return ("decode", *_PIXELS)
    if not point.get("decode", True):
        return _PIXELS
    return () if point.get("augment", True) else _COLOURS


def _is_told(settings: LoaderGrid, name: str) -> bool:
    default = LoaderGrid.model_fields[name].default
    return name in _ALWAYS or getattr(settings, name) != default
