"""PURE. What is asked of a training loop, its points (one an input), and a trial's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dataprep.counted import counted
from iobench.access import DIRECT, SETTINGS, Connections, ShuffleBuffer, suiting, suits
from iobench.consumers import CONSUMERS, ConsumerSettings, Device, Model
from iobench.consumers.paced import PRESETS
from iobench.data.settings import check_name
from iobench.ladder import HELD_RUNGS, HOST_RUNGS
from iobench.loaders.own import FROM_MEMORY, SYNTHETIC
from iobench.loaders.protocol import BatchSize, ItemSeconds, Prefetch, Workers
from iobench.loops.loader_grid import LoaderName, LoopTrial
from iobench.several import AlsoNull, Several, bare_null
from iobench.words import model_words

Input = Literal["synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store"]
Evict = Literal["every-epoch", "first-epoch"]
_LOADER_KEYS = (
    *("workers", "prefetch", "augment", "colour_jitter", "pca_noise", "normalise"),
    *("pin_memory", "image_size"),
)
_CONSUMER_KEYS = ("model", "batch_size", "device", "precision", "image_size")


ConsumerName = Annotated[
    str, BeforeValidator(bare_null), AfterValidator(CONSUMERS.check), AlsoNull()
]


def _form(name: str) -> str:
    check_name(f"{name}@disk")
    return name


_Count: TypeAlias = Annotated[int, Field(ge=1, le=1024)]


class Training(BaseModel):
    """One training loop under each of ``inputs``, over the same number of samples."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    group: str = ""
    """What the report calls the loop; unless told, model, device and loader."""

    consumer: ConsumerName = "torch"
    """`torch`, `tensorflow`, `mxnet`: real loops of forward, backward and optimiser step. `paced`:
    an emulated device. `null`: takes batches and does nothing. And those of other packages."""

    model: Model = "resnet50"
    """Which network is trained."""

    batch_size: BatchSize = 64
    """Samples in a step."""

    device: Device = "auto"
    """`auto` takes a GPU that the framework sees, else the processor."""

    devices: _Count | Literal["all"] | Annotated[tuple[_Count, ...], Field(min_length=1)] = 1
    """Of `torch`: GPUs that train one network together, or processes on a processor, each with
    `workers` of its own and a `batch_size` of its own; `all` is every GPU that is visible. Several
    numbers, such as `[1, 2, 4]`, are a loop each, and the report shows how the loop scales."""

    precision: Literal["auto", "float32", "mixed"] = "auto"
    """`auto` is mixed on a GPU and float32 on a processor; `mixed` is bfloat16 on processors that
    have it."""

    preset: str | None = None
    """Of `paced`: `V100`, `V100-mxnet-64`, `V100-tensorflow-64`, `A100`, `H100`, each training
    ResNet-50."""

    images_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Of `paced`: what the emulated device consumes."""

    loader: LoaderName = "torch-iterable"
    """As in `loaders`."""

    data: Annotated[str, AfterValidator(_form)] = "shards"
    """What is read, without `@disk` or `@s3`: the input says which."""

    inputs: Several[Input] = ("synthetic", "warm", "cold")
    """Where samples come from: `synthetic` lies on the device, `warm` in the page cache, `cold` on
    the disk, `store` on S3. Each input is a trial of its own over as many samples. Between them,
    for torch's loaders: `copy`, a batch in host memory; `collate`, finished images in memory;
    `augment`, decoded ones; `decode`, encoded ones."""

    access: Literal["direct", "file", "pipe", "lazy"] = "direct"
    """Of input `store`, as in `loaders`; `mount` is what `warm` and `cold` read."""

    connections: Connections = 8
    """As in `loaders`."""

    shuffle_buffer: ShuffleBuffer = 1024
    """As in `loaders`."""

    workers: Workers = 2
    """As in `loaders`."""

    prefetch: Prefetch = 2
    """As in `loaders`."""

    augment: bool = True
    """As in `loaders`."""

    colour_jitter: bool = False
    """As in `loaders`."""

    pca_noise: bool = False
    """As in `loaders`."""

    normalise: bool = True
    """As in `loaders`; without it images are normalised on the device."""

    pin_memory: bool = False
    """As in `loaders`."""

    image_size: Annotated[int, Field(ge=32, le=1024)] = 224
    """Side of the square that the model takes, in pixels."""

    item_s: ItemSeconds = 0.0
    """As in `loaders`."""

    steps: Annotated[int, Field(ge=4, le=1_000_000_000)] = 100
    """Of an epoch, at most all that it has; the first and those whose batches were ready beforehand
    do not count."""

    epochs: Annotated[int, Field(ge=1, le=1_000)] = 1
    """That a trial lasts, each of so many `steps`, on one device."""

    evict: Evict = "every-epoch"
    """Of several epochs of inputs `cold` and `warm`: every one begins cold (warm), its workers
    anew; or the first alone, and later ones find what the page cache has kept."""

    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """That the framework computes with on a processor, in each of several processes; unless told,
    one processor is left to each worker."""

    @model_validator(mode="after")
    def _is_possible(self) -> Training:
        described = self.preset is not None or self.images_per_s is not None
        is_paced = self.consumer == "paced"
        known = ", ".join(sorted(PRESETS))
        asked = [source for source in HOST_RUNGS if source in self.inputs]
        said = ", ".join(asked)
        problems = (
            (
                described and not is_paced,
                "preset and images_per_s describe the device of consumer paced, not of "
                f"{self.consumer}",
            ),
            (
                is_paced and (self.preset is None) == (self.images_per_s is None),
                f"consumer paced needs either preset (one of {known}) or images_per_s",
            ),
            (
                self.preset is not None and self.preset not in PRESETS,
                f"no preset {self.preset!r}: known are {known}",
            ),
            (
                self.preset is not None and self.model != "resnet50",
                f"preset {self.preset!r} is a figure for resnet50, not {self.model}",
            ),
            (
                self.devices != 1 and self.consumer != "torch",
                f"consumer {self.consumer} trains on one device: several (devices: "
                f"{self.devices}) are for consumer torch",
            ),
            (
                self.devices == "all" and self.device == "cpu",
                "devices: all are GPUs: on a processor say how many processes, such as devices: 2",
            ),
            (
                self.devices != 1 and self.epochs != 1,
                f"epochs: {self.epochs} are for loops on one device: several take one epoch a "
                "trial",
            ),
            (
                self.evict != "every-epoch" and self.epochs == 1,
                f"evict {self.evict} says what later epochs find: give epochs: 2 or more",
            ),
            (
                self.access != DIRECT and "store" not in self.inputs,
                f"access {self.access} is how input store is read: add it to inputs",
            ),
            (
                not suits(self.access, self.loader),
                f"access {self.access} is for loader {suiting(self.access)}, not for {self.loader}",
            ),
            (
                bool(asked) and self.loader not in FROM_MEMORY,
                f"inputs {said} are rungs of torch's loaders ({', '.join(sorted(FROM_MEMORY))}): "
                f"of loader {self.loader} three are what there is, synthetic, warm, and cold or "
                "store",
            ),
            (
                bool(asked) and self.consumer in ("tensorflow", "mxnet"),
                f"inputs {said} are torch's batches: consumer {self.consumer} takes none of them",
            ),
            (
                bool(asked) and self.devices != 1,
                f"inputs {said} are for a loop on one device, not for several (devices: "
                f"{self.devices})",
            ),
            (
                "decode" in asked and self.data == "pixels",
                "input decode is of images that are stored encoded, not of pixels",
            ),
        )
        for is_wrong, problem in problems:
            if is_wrong:
                raise ValueError(problem)
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
        several = "" if self.devices == 1 else f", {self.devices} devices"
        reached = "" if self.access == DIRECT else f", access {self.access}"
        reached += "" if self.epochs == 1 else f", {self.epochs} epochs, evict {self.evict}"
        said = f"{model_words(self.model)} on {device}{several}, {self.loader}{reached}"
        return self.group or said


class TrainingTrial(LoopTrial, ConsumerSettings):
    """Parameters of a trial of kind ``train``, which are settings of its loader and its consumer.

    ``over``: the data whose number of samples limits every input.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    input: Input
    over: str
    consumer: str
    steps: int
    devices: int | Literal["all"] = 1
    evict: Evict = "every-epoch"
    threads: int | None = None


def plan(settings: Training) -> Iterator[dict[str, Any]]:
    """PURE. The points of a loop, or of one loop for each number of devices."""
    if not isinstance(settings.devices, tuple):
        yield from _points(settings)
        return
    for count in dict.fromkeys(settings.devices):
        group = f"{settings.group}, {counted(count, 'device')}" if settings.group else ""
        yield from _points(settings.model_copy(update={"devices": count, "group": group}))


def _points(settings: Training) -> Iterator[dict[str, Any]]:
    """One point an input, the device-resident one first."""
    for source in settings.inputs:
        real = source not in ("synthetic", "copy") and settings.loader not in SYNTHETIC
        stored = f"{settings.data}@{'s3' if source == 'store' else 'disk'}"
        point: dict[str, Any] = {
            "group": settings.label,
            "input": source,
            "consumer": settings.consumer,
            "loader": settings.loader,
            "data": (settings.over if source in HELD_RUNGS else stored) if real else "",
            # Every input is run over the same number of samples, which the data may limit.
            "over": settings.over,
            "steps": settings.steps,
        }
        point |= {key: getattr(settings, key) for key in (*_CONSUMER_KEYS, *_LOADER_KEYS)}
        for key in ("preset", "images_per_s", "threads"):
            if getattr(settings, key) is not None:
                point[key] = getattr(settings, key)
        # One device is no word: trials of earlier versions had none.
        if settings.devices != 1:
            point["devices"] = settings.devices
        if settings.epochs != 1:
            point |= {"epochs": settings.epochs, "evict": settings.evict}
        if source == "store" and real and settings.access != DIRECT:
            point["access"] = settings.access
            if (used := SETTINGS.get(settings.access)) is not None:
                point[used] = getattr(settings, used)
        if settings.item_s:
            point["item_s"] = settings.item_s
        yield point
