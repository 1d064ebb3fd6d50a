"""Kind ``loader``: what a loader supplies to a consumer that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.data.settings import check_name, split_name
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import LOADERS, Batch, Loader, LoaderSettings
from iobench.loaders.own import SYNTHETIC, UNDECODED
from iobench.loops.caching import prepared
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.several import Several, bare_null, grid
from iobench.stats import quantiles
from iobench.stored import Stored, check_form, stored
from iobench.trial import Context, Outcome, Place, TrialSpec

DataName = Annotated[str, AfterValidator(check_name)]

LoaderName = Annotated[str, BeforeValidator(bare_null), AfterValidator(LOADERS.check)]


class LoaderGrid(BaseModel):
    """Every combination of what is given; each key takes one value or a list.

    ``seconds`` ends a trial; a warm one repeats the epoch until then, a cold one has one epoch.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    loader: Several[LoaderName]
    data: Several[DataName] = ("shards@disk",)
    cache: Several[Literal["warm", "cold"]] = ("warm",)
    workers: Several[Annotated[int, Field(ge=0, le=1024)]] = (2,)
    prefetch: Several[Annotated[int, Field(ge=1, le=1024)]] = (2,)
    batch_size: Several[Annotated[int, Field(ge=1, le=1_000_000)]] = (64,)
    decode: Several[bool] = (True,)
    augment: Several[bool] = (True,)
    colour_jitter: Several[bool] = (False,)
    pca_noise: Several[bool] = (False,)
    normalise: Several[bool] = (True,)
    pin_memory: Several[bool] = (False,)
    image_size: Several[Annotated[int, Field(ge=16, le=1024)]] = (224,)
    item_s: Several[Annotated[float, Field(ge=0, le=3600)]] = (0.0,)
    seconds: Annotated[float, Field(gt=0, le=86_400)] = 10.0


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


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One point of the grid."""
    params = spec.params
    settings = loader_settings(params)
    place = context.places[params["data"]] if params["data"] else None
    loader = built(params["loader"], place, settings, context)
    data = stored(place, loader.reads) if place is not None and loader.reads else None
    cache = prepared(params["cache"], place, data) if place is not None and data else None
    try:
        times = _driven(loader, settings, params, context)
    finally:
        loader.close()
    return Outcome(
        metrics={**loop_metrics(times, data), "notes": list(loader.notes)},
        cold=cache.judged(params["loader"], times.taken) if cache else None,
    )


def built(name: str, place: Place | None, settings: LoaderSettings, context: Context) -> Loader:
    """The loader of that name, for data that it reads.

    Raises:
        Unavailable: the data have another form, or what it needs is not there.
    """
    kind = LOADERS.load(name)
    reads = getattr(kind, "reads", None)  # some only know once they have a place
    if place is not None and reads is not None:
        check_form(place, reads)
    return kind(place, settings, context.clock)


def _driven(
    loader: Loader, settings: LoaderSettings, params: Mapping[str, Any], context: Context
) -> LoopTimes:
    consumer = NullConsumer(ConsumerSettings(), context.clock)
    consumer.warm_up()
    return drive(
        lambda: loader.epoch(0) if params["cache"] == "cold" else endless(loader),
        consumer,
        context.clock,
        leave_out=steps_to_leave_out(settings.workers, settings.prefetch, None),
        max_seconds=params["seconds"],
        progress=lambda samples: context.progress(samples, "samples"),
    )


def endless(loader: Loader) -> Iterator[Batch]:
    """One epoch after the other.

    Raises:
        TrialFailed: an epoch has no batch.
    """
    for number in count():
        empty = True
        for batch in loader.epoch(number):
            empty = False
            yield batch
        if empty:
            raise TrialFailed("the loader gave no batch")


def loader_settings(params: Mapping[str, Any]) -> LoaderSettings:
    """Those of a trial's params that are the loader's."""
    known = LoaderSettings.model_fields
    return LoaderSettings(**{name: value for name, value in params.items() if name in known})


def loop_metrics(times: LoopTimes, data: Stored | None) -> dict[str, Any]:
    """What loops of both kinds tell. MB/s are of stored bytes."""
    metrics: dict[str, Any] = {
        "samples_per_s": times.samples_per_s,
        "samples": times.samples,
        "seconds": times.seconds,
        "batches": len(times.wait_s),
        "left_out": times.left_out,
        "time_to_first_batch_s": times.time_to_first_batch_s,
    }
    if data is not None:
        metrics["mb_per_s"] = times.samples_per_s * data.sample_bytes / 1e6
        if data.object_bytes is not None:
            metrics["mean_object_bytes"] = data.object_bytes
    metrics |= {f"batch_wait_s_{name}": value for name, value in quantiles(times.wait_s).items()}
    return metrics


def check_frameworks(loader: Loader, consumer_framework: str) -> None:
    """Refuse a loader whose batches the consumer cannot take.

    Raises:
        Unavailable: their frameworks differ.
    """
    if consumer_framework not in ("none", loader.framework) and loader.framework != "none":
        raise Unavailable(
            f"a {consumer_framework} training loop does not take {loader.framework} batches"
        )


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
