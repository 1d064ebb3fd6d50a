"""Kind ``train``: a whole training loop, fed from the device, the page cache, disk or store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dataprep.counted import counted
from iobench.consumers import CONSUMERS, Consumer, ConsumerSettings, Model
from iobench.consumers.presets import PRESETS
from iobench.data.settings import check_name
from iobench.errors import TrialFailed
from iobench.loaders import Batch, CountsBatches, Loader
from iobench.loaders.own import SYNTHETIC
from iobench.loops.caching import prepared
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.loading import (
    LoaderName,
    built,
    check_frameworks,
    loader_settings,
    loop_metrics,
)
from iobench.loops.threads import limit_threads
from iobench.several import Several, bare_null
from iobench.stats import quantiles
from iobench.stored import Stored, stored
from iobench.trial import Cold, Context, Outcome, TrialSpec
from iobench.words import model_words

Input = Literal["synthetic", "warm", "cold", "store"]
_LOADER_KEYS = (
    *("workers", "prefetch", "augment", "colour_jitter", "pca_noise", "normalise"),
    *("pin_memory", "image_size"),
)
_CONSUMER_KEYS = ("model", "batch_size", "device", "precision", "image_size")


ConsumerName = Annotated[str, BeforeValidator(bare_null), AfterValidator(CONSUMERS.check)]


def _form(name: str) -> str:
    check_name(f"{name}@disk")
    return name


class Training(BaseModel):
    """One training loop under each of ``inputs``, over the same number of samples.

    ``synthetic`` data lies on the device; ``warm`` comes from the page cache, ``cold`` from the
    disk, ``store`` from the object store. ``data`` is ``shards``, ``shards-16MB``, ``files`` or
    ``photos``. At most one epoch is run. ``preset`` or ``images_per_s`` belong to the consumer
    ``paced``, an emulated device; ``item_s`` to the loader ``mock``. ``threads`` is how many the
    framework computes with; unless told, a CPU leaves one processor to each of the workers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: str = ""
    consumer: ConsumerName = "torch"
    model: Model = "resnet50"
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    device: Literal["auto", "cpu", "gpu"] = "auto"
    precision: Literal["auto", "float32", "mixed"] = "auto"
    preset: Annotated[str, Field()] | None = None
    images_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    loader: LoaderName = "torch-iterable"
    data: Annotated[str, AfterValidator(_form)] = "shards"
    inputs: Several[Input] = ("synthetic", "warm", "cold")
    workers: Annotated[int, Field(ge=0, le=1024)] = 2
    prefetch: Annotated[int, Field(ge=1, le=1024)] = 2
    augment: bool = True
    colour_jitter: bool = False
    pca_noise: bool = False
    normalise: bool = True
    pin_memory: bool = False
    image_size: Annotated[int, Field(ge=32, le=1024)] = 224
    item_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    steps: Annotated[int, Field(ge=4, le=1_000_000_000)] = 100
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None

    @model_validator(mode="after")
    def _paced_is_described(self) -> Training:
        described = self.preset is not None or self.images_per_s is not None
        if described and self.consumer != "paced":
            raise ValueError(
                f"preset and images_per_s describe the device of consumer paced, not of "
                f"{self.consumer}"
            )
        if self.consumer == "paced" and (self.preset is None) == (self.images_per_s is None):
            raise ValueError(
                "consumer paced needs either preset (one of "
                f"{', '.join(sorted(PRESETS))}) or images_per_s"
            )
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"no preset {self.preset!r}: known are {', '.join(sorted(PRESETS))}")
        if self.preset is not None and self.model != "resnet50":
            raise ValueError(f"preset {self.preset!r} is a figure for resnet50, not {self.model}")
        return self

    @property
    def over(self) -> str:
        """The data whose number of samples limits every input: where it lies anyhow."""
        if self.loader in SYNTHETIC:
            return ""
        remote = "store" in self.inputs and not {"warm", "cold"} & set(self.inputs)
        return f"{self.data}@{'s3' if remote else 'disk'}"

    @property
    def label(self) -> str:
        """``group``, or what tells it from others."""
        emulated = f"an emulated {self.preset or 'device'}"
        device = emulated if self.consumer == "paced" else self.consumer
        return self.group or f"{model_words(self.model)} on {device}, {self.loader}"


def plan(settings: Training) -> Iterator[dict[str, Any]]:
    """PURE. One point an input, the device-resident one first."""
    for source in settings.inputs:
        real = source != "synthetic" and settings.loader not in SYNTHETIC
        point: dict[str, Any] = {
            "group": settings.label,
            "input": source,
            "consumer": settings.consumer,
            "loader": settings.loader,
            "data": f"{settings.data}@{'s3' if source == 'store' else 'disk'}" if real else "",
            # Every input is run over the same number of samples, which the data may limit.
            "over": settings.over,
            "steps": settings.steps,
        }
        point |= {key: getattr(settings, key) for key in (*_CONSUMER_KEYS, *_LOADER_KEYS)}
        for key in ("preset", "images_per_s", "threads"):
            if getattr(settings, key) is not None:
                point[key] = getattr(settings, key)
        if settings.item_s:
            point["item_s"] = settings.item_s
        yield point


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One training loop with one input."""
    params = spec.params
    on_cpu = params["device"] == "cpu"
    limit_threads(params.get("threads"), params["workers"], on_cpu=on_cpu)
    over = context.places[params["over"]] if params["over"] else None
    place = context.places[params["data"]] if params["data"] else None
    loader = built(params["loader"], place or over, loader_settings(params), context)
    data = stored(over, loader.reads) if over is not None and loader.reads else None
    steps, leave_out = _steps(params, data, loader)
    consumer = _consumer(params, data, context)
    consumer.warm_up()
    if params["input"] == "synthetic":
        times = _drive(lambda: repeat(consumer.synthetic()), consumer, context, steps, leave_out)
        return _outcome(times, consumer, notes=())
    check_frameworks(loader, consumer.framework)
    cache = prepared(params["input"], place, data) if place is not None and data else None
    try:
        times = _drive(
            lambda: _whole(loader, params["batch_size"]), consumer, context, steps, leave_out
        )
    finally:
        loader.close()
    return _outcome(
        times,
        consumer,
        notes=loader.notes,
        data=data,
        cold=cache.judged(params["loader"], times.taken) if cache else None,
    )


def _whole(loader: Loader, batch_size: int) -> Iterator[Batch]:
    """One epoch without its short batches, for each size of which a GPU would tune anew."""
    return (batch for batch in loader.epoch(0) if batch.samples == batch_size)


def _steps(params: Mapping[str, Any], data: Stored | None, loader: Loader) -> tuple[int, int]:
    """How many steps are run, and how many of them do not count: the same for every input."""
    batch_size = params["batch_size"]
    steps = params["steps"]
    if data is not None:
        whole = data.samples // batch_size
        steps = min(steps, loader.whole_batches() if isinstance(loader, CountsBatches) else whole)
    leave_out = steps_to_leave_out(params["workers"], params["prefetch"], steps)
    if steps <= leave_out:
        shared = f" among {params['workers']} workers" if params["workers"] > 1 else ""
        raise TrialFailed(
            f"{data.samples if data else 0:,} images{shared} are "
            f"{counted(steps, 'whole batch')} of {batch_size}: give more images, a smaller "
            "batch_size or fewer workers"
        )
    return steps, leave_out


def _drive(
    epoch: Callable[[], Iterator[Batch]],
    consumer: Consumer,
    context: Context,
    steps: int,
    leave_out: int,
) -> LoopTimes:
    return drive(
        epoch,
        consumer,
        context.clock,
        leave_out=leave_out,
        max_steps=steps,
        progress=lambda samples: context.progress(samples, "samples"),
    )


def _consumer(params: Mapping[str, Any], data: Stored | None, context: Context) -> Consumer:
    keys = (*_CONSUMER_KEYS, "preset", "images_per_s")
    told = {key: params[key] for key in keys if key in params}
    classes = max(data.classes if data else 2, 1000)
    return CONSUMERS.load(params["consumer"])(
        ConsumerSettings(classes=classes, **told), context.clock
    )


def _outcome(
    times: LoopTimes,
    consumer: Consumer,
    *,
    notes: Sequence[str],
    data: Stored | None = None,
    cold: Cold | None = None,
) -> Outcome:
    metrics = loop_metrics(times, data)
    metrics |= {f"step_s_{name}": value for name, value in quantiles(times.step_s).items()}
    metrics |= {
        "steps": len(times.step_s),
        "wait_share": sum(times.wait_s) / times.seconds,
        "au_mlperf": times.au_mlperf,
        "emulated": consumer.emulated,
        "device": consumer.device,
        "precision": consumer.precision,
        "notes": [*consumer.notes, *notes],
    }
    series = {
        "step_end_s": tuple(accumulate(times.step_s)),
        "wait_s": times.wait_s,
        "compute_s": times.compute_s,
    }
    return Outcome(metrics=metrics, cold=cold, series=series)
