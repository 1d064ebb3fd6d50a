"""PURE. The config of a training loop, its points (one per input), and a trial's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dataprep.counted import counted
from iobench.access import DIRECT, SETTINGS, Connections, ShuffleBuffer, can_read, readers_of
from iobench.consumers import CONSUMERS, ConsumerSettings, Device, Model
from iobench.consumers.accelerators import RATES
from iobench.data.settings import check_name
from iobench.ladder import HELD_RUNGS, HOST_RUNGS
from iobench.loaders.capabilities import capabilities_of, loaders_with
from iobench.loaders.settings import BatchSize, ItemSeconds, Prefetch, Workers
from iobench.loops.loader_grid import LoaderName, LoopTrial
from iobench.several import AlsoNull, Several, bare_null
from iobench.words import model_words

Input = Literal["synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store"]
Evict = Literal["every-epoch", "first-epoch"]
_LOADER_KEYS = (
    *("workers", "prefetch", "augment", "colour_jitter", "pca_noise", "normalise"),
    *("pin_memory", "image_size"),
)
_TRAINING = ("torch", "tensorflow", "mxnet")
"""Consumers of this package that train."""

_CONSUMER_KEYS = ("model", "batch_size", "device", "precision", "image_size")


ConsumerName = Annotated[
    str, BeforeValidator(bare_null), AfterValidator(CONSUMERS.check), AlsoNull()
]


def _form(name: str) -> str:
    check_name(f"{name}@disk")
    return name


_Count: TypeAlias = Annotated[int, Field(ge=1, le=1024)]


def _can_be_uint8(consumer: str, loader: str) -> bool:
    """Whether the loader's images can be uint8, and the consumer's device can normalise them."""
    # Images of tf-data have their channels last, which no consumer of torch normalises.
    gives_uint8 = loader != "tf-data" and capabilities_of(loader).gives_uint8
    return consumer in ("torch", "paced") and gives_uint8


def _loaders_from_memory() -> Sequence[str]:
    """Loaders that can take samples from memory."""
    return loaders_with(lambda capabilities: capabilities.holds_samples)


class Training(BaseModel):
    """One training loop under each of ``inputs``, over the same number of samples."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    group: str = ""
    """Name in the report. (default: model, device and loader)"""

    consumer: ConsumerName = "torch"
    """`torch`, `tensorflow`, `mxnet` train. `paced` emulates a device. `null` does nothing. Or
    another package's."""

    model: Model = "resnet50"
    """The network to train. `retinanet` is only emulated, by `paced`. (default: `resnet50`, or the
    model of `preset`)"""

    batch_size: BatchSize = 64
    """Samples per step."""

    device: Device = "auto"
    """`auto`: a GPU if the framework finds one, else the CPU."""

    devices: _Count | Literal["all"] | Annotated[tuple[_Count, ...], Field(min_length=1)] = 1
    """For `torch`: GPUs, or processes on a CPU, that train one network, each with its own `workers`
    and `batch_size` (docs/several-devices.md). `all`: every visible GPU."""

    precision: Literal["auto", "float32", "mixed"] = "auto"
    """`auto`: mixed on a GPU, float32 on a CPU. `mixed` on a CPU: bfloat16 if it has that."""

    preset: str | None = None
    """For `paced`: the name of an accelerator's rate, such as `H100` (tuned training) or
    `H100-mlperf` (MLPerf Storage's emulation). docs/accelerators.md lists them."""

    images_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """For `paced`: images/s of the device."""

    loader: LoaderName = "torch-iterable"
    """As in `loaders`."""

    data: Annotated[str, AfterValidator(_form)] = "shards"
    """As in `loaders`, without `@disk` or `@s3`."""

    inputs: Several[Input] = ("synthetic", "warm", "cold")
    """Where samples are; each input is a trial over equally many samples. docs/ladder.md explains
    them."""

    access: Literal["direct", "file", "pipe", "lazy"] = "direct"
    """For input `store`, as in `loaders`."""

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

    normalise_on: Literal["device", "host"] | None = None
    """`device`: the loader hands over uint8, a quarter of the bytes, and the device normalises.
    `host`: the loader hands over normalised float32. (default: `device` for consumers `torch` and
    `paced` with `torch-iterable`, `torch-map`, `torch-folder`, `dali` or `dali-gpu`, else
    `host`)"""

    pin_memory: bool = False
    """As in `loaders`."""

    image_size: Annotated[int, Field(ge=32, le=1024)] = 224
    """As in `loaders`."""

    item_s: ItemSeconds = 0.0
    """As in `loaders`."""

    accelerators: (
        Annotated[int, Field(ge=1, le=64)]
        | Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Field(min_length=1)]
        | None
    ) = None
    """For `paced`: numbers of emulated accelerators on this host. Each has its own loader; all end
    each step together (docs/several-devices.md)."""

    steps: Annotated[int, Field(ge=4, le=1_000_000_000)] = 100
    """Least number of steps that count. A trial takes more if its rate is not known before
    (docs/loaders.md)."""

    epochs: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Above 1: whole epochs per trial, at least three."""

    evict: Evict = "every-epoch"
    """Before which epochs of `cold` and `warm` the page cache is prepared and workers start
    (docs/cold.md)."""

    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads of a process that computes on a CPU. (default: one CPU is left to each worker)"""

    @model_validator(mode="before")
    @classmethod
    def _model_of_preset(cls, values: Any) -> Any:
        """Take the model of the preset if the config names no model."""
        if not isinstance(values, Mapping) or "model" in values:
            return values
        rate = RATES.get(str(values.get("preset")))
        return values if rate is None else {**values, "model": rate.model}

    @model_validator(mode="before")
    @classmethod
    def _where_images_are_normalised(cls, values: Any) -> Any:
        """Take the default for consumer and loader, or the key of earlier versions."""
        if not isinstance(values, Mapping):
            return values
        given = dict(values)
        if "normalise" in given:
            by_loader = given.pop("normalise")
            if "normalise_on" in given or not isinstance(by_loader, bool):
                raise ValueError(
                    "normalise is the earlier form of normalise_on: give normalise_on alone, "
                    "device or host"
                )
            given["normalise_on"] = "host" if by_loader else "device"
        if given.get("normalise_on") is None:
            consumer = given.get("consumer", "torch")
            loader = given.get("loader", "torch-iterable")
            given["normalise_on"] = "device" if _can_be_uint8(consumer, loader) else "host"
        return given

    @model_validator(mode="after")
    def _is_possible(self) -> Training:
        described = self.preset is not None or self.images_per_s is not None
        is_paced = self.consumer == "paced"
        known = ", ".join(RATES)
        rate = RATES.get(self.preset or "")
        preset_model = self.model if rate is None else rate.model
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
                self.preset is not None and rate is None,
                f"no preset {self.preset!r}: known are {known}",
            ),
            (
                self.model != preset_model,
                f"preset {self.preset!r} is a figure for {preset_model}, not {self.model}",
            ),
            (
                self.model == "retinanet" and self.consumer in _TRAINING,
                f"model retinanet is only emulated: use consumer paced, not {self.consumer}",
            ),
            (
                self.devices != 1 and self.consumer != "torch",
                f"consumer {self.consumer} trains on one device: several (devices: "
                f"{self.devices}) are for consumer torch",
            ),
            (
                self.devices == "all" and self.device == "cpu",
                "devices: all means GPUs: on a processor give a number, such as devices: 2",
            ),
            (
                self.accelerators is not None and not is_paced,
                "accelerators are emulated: they are for consumer paced, not for "
                f"{self.consumer}; give devices for real ones",
            ),
            (
                self.accelerators is not None and bool(asked),
                f"inputs {said} are for a loop on one device, not for several (accelerators: "
                f"{self.accelerators})",
            ),
            (
                self.normalise_on == "device" and capabilities_of(self.loader).gives_only_float32,
                f"loader {self.loader} cannot hand over uint8: use normalise_on: host",
            ),
            (
                self.evict != "every-epoch" and self.epochs == 1,
                f"evict {self.evict} is for several epochs: give epochs: 2 or more",
            ),
            (
                self.access != DIRECT and "store" not in self.inputs,
                f"access {self.access} is for input store: add store to inputs",
            ),
            (
                not can_read(self.loader, self.access),
                f"access {self.access} is for loader {readers_of(self.access)}, not for "
                f"{self.loader}",
            ),
            (
                bool(asked) and not capabilities_of(self.loader).holds_samples,
                f"inputs {said} are for torch's loaders ({', '.join(_loaders_from_memory())}): "
                f"loader {self.loader} has the inputs synthetic, warm, cold and store",
            ),
            (
                bool(asked) and self.consumer in ("tensorflow", "mxnet"),
                f"inputs {said} give torch batches, which consumer {self.consumer} does not take",
            ),
            (
                bool(asked) and self.devices != 1,
                f"inputs {said} are for a loop on one device, not for several (devices: "
                f"{self.devices})",
            ),
            (
                "decode" in asked and self.data == "pixels",
                "input decode is for encoded images: data pixels are decoded already",
            ),
        )
        for is_wrong, problem in problems:
            if is_wrong:
                raise ValueError(problem)
        return self

    @property
    def normalise(self) -> bool:
        """Whether the loader normalises, as its settings and the parameters of trials have it."""
        return self.normalise_on == "host"

    @property
    def can_normalise_on_device(self) -> bool:
        """Whether images could be normalised on the device without other changes."""
        return _can_be_uint8(self.consumer, self.loader)

    @property
    def over(self) -> str:
        """The data whose number of samples limits every input."""
        if not capabilities_of(self.loader).reads_data:
            return ""
        remote = "store" in self.inputs and not {"warm", "cold"} & set(self.inputs)
        return f"{self.data}@{'s3' if remote else 'disk'}"

    @property
    def label(self) -> str:
        """``group``, or a name that tells the loop from others."""
        emulated = f"an emulated {self.preset or 'device'}"
        device = emulated if self.consumer == "paced" else self.consumer
        several = "" if self.devices == 1 else f", {self.devices} devices"
        if isinstance(self.accelerators, int):
            several = f", {counted(self.accelerators, 'accelerator')}"
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
    accelerators: int | None = None
    evict: Evict = "every-epoch"
    threads: int | None = None


def plan(settings: Training) -> Iterator[dict[str, Any]]:
    """PURE. The points of a loop, or of one loop for each number of devices."""
    for key, noun in (("devices", "device"), ("accelerators", "accelerator")):
        counts = getattr(settings, key)
        if isinstance(counts, tuple):
            for count in dict.fromkeys(counts):
                group = f"{settings.group}, {counted(count, noun)}" if settings.group else ""
                yield from _points(settings.model_copy(update={key: count, "group": group}))
            return
    yield from _points(settings)


def _points(settings: Training) -> Iterator[dict[str, Any]]:
    """One point per input."""
    for source in settings.inputs:
        reads_data = capabilities_of(settings.loader).reads_data
        real = source not in ("synthetic", "copy") and reads_data
        stored = f"{settings.data}@{'s3' if source == 'store' else 'disk'}"
        point: dict[str, Any] = {
            "group": settings.label,
            "input": source,
            "consumer": settings.consumer,
            "loader": settings.loader,
            "data": (settings.over if source in HELD_RUNGS else stored) if real else "",
            # Every input takes the same number of samples, which the data may limit.
            "over": settings.over,
            "steps": settings.steps,
        }
        point |= {key: getattr(settings, key) for key in (*_CONSUMER_KEYS, *_LOADER_KEYS)}
        for key in ("preset", "images_per_s", "threads", "accelerators"):
            if getattr(settings, key) is not None:
                point[key] = getattr(settings, key)
        # One device is not named: trials of earlier versions had no such parameter.
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
