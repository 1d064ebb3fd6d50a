"""PURE. Training loops: their settings in a config, their points, and a trial's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dataprep.message_text import counted
from iobench.consumers import CONSUMERS, ConsumerSettings, Device, Model
from iobench.consumers.accelerators import RATES
from iobench.data.settings import check_name
from iobench.loaders.access import (
    DIRECT,
    SETTINGS,
    Connections,
    ShuffleBuffer,
    can_read,
    readers_of,
)
from iobench.loaders.capabilities import capabilities_of, loaders_with
from iobench.loaders.settings import BatchSize, ItemSeconds, Prefetch, Workers
from iobench.results.trial import Params
from iobench.results.wording import model_words
from iobench.settings import AlsoNull, OneOrMore, null_as_name
from iobench.trials.ladder import HOST_RUNGS, PRELOADED_RUNGS
from iobench.trials.loader_grid import LoaderName, LoopTrial

Input = Literal["synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store"]
Evict = Literal["every-epoch", "first-epoch"]
# Settings of a training loop that every trial of the loop has as parameters.
_CONSUMER_KEYS = ("model", "batch_size", "device", "precision", "image_size")
_LOADER_KEYS = (
    "workers",
    "prefetch",
    "augment",
    "colour_jitter",
    "pca_noise",
    "normalise",
    "pin_memory",
    "image_size",
)
_TRAINING_CONSUMERS = ("torch", "tensorflow", "mxnet")
"""Consumers of this package that train."""

ConsumerName = Annotated[
    str, BeforeValidator(null_as_name), AfterValidator(CONSUMERS.check), AlsoNull()
]


def _check_data_form(name: str) -> str:
    """Check a name of data without ``@disk`` or ``@s3``, and return it.

    Raises:
        ValueError: no data can have this name.
    """
    check_name(f"{name}@disk")
    return name


_Count: TypeAlias = Annotated[int, Field(ge=1, le=1024)]


def _can_normalise_on_device(consumer: str, loader: str) -> bool:
    """Whether the loader can hand over uint8, and the consumer's device can normalise it."""
    # Images of tf-data have their channels last, which no consumer of torch normalises.
    gives_uint8 = loader != "tf-data" and capabilities_of(loader).gives_uint8
    return consumer in ("torch", "paced") and gives_uint8


class Training(BaseModel):
    """One training loop under each of ``inputs``, over the same number of samples."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    group: str = ""
    """Name in the report. (default: model, device and loader)"""

    consumer: ConsumerName = "torch"
    """`torch`, `tensorflow` and `mxnet` train. `paced` emulates a device. `null` does nothing. The
    name of another package's consumer is also possible."""

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
    """`auto`: mixed on a GPU, float32 on a CPU. `mixed` on a CPU: bfloat16 if the CPU has it."""

    preset: str | None = None
    """For `paced`: the name of an accelerator's rate, such as `H100` (tuned training) or
    `H100-mlperf` (MLPerf Storage's emulation). docs/accelerators.md lists them."""

    images_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """For `paced`: images/s of the device."""

    loader: LoaderName = "torch-iterable"
    """As in `loaders`."""

    data: Annotated[str, AfterValidator(_check_data_form)] = "shards"
    """As in `loaders`, without `@disk` or `@s3`."""

    inputs: OneOrMore[Input] = ("synthetic", "warm", "cold")
    """Where the samples come from. Each input is a trial; all trials have equally many samples.
    docs/ladder.md explains the inputs."""

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
    """For `paced`: numbers of emulated accelerators on this host. Each has its own loader, and all
    of them end each step together (docs/several-devices.md)."""

    steps: Annotated[int, Field(ge=4, le=1_000_000_000)] = 100
    """Minimum number of steps that count. A trial takes more steps until its rate is known
    (docs/loaders.md)."""

    epochs: Annotated[int, Field(ge=1, le=1_000)] = 1
    """With a value above 1, a trial reads this many whole epochs, but at least three."""

    evict: Evict = "every-epoch"
    """For `cold` and `warm`: the epochs before which the page cache is prepared and the workers
    start (docs/cold.md)."""

    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Threads of a process that computes on a CPU. (default: the number of CPUs minus `workers`)"""

    @model_validator(mode="before")
    @classmethod
    def _take_model_of_preset(cls, values: Any) -> Any:
        """Take the model of the preset if the config names no model."""
        if not isinstance(values, Mapping) or "model" in values:
            return values
        preset = RATES.get(str(values.get("preset")))
        return values if preset is None else {**values, "model": preset.model}

    @model_validator(mode="before")
    @classmethod
    def _choose_where_to_normalise(cls, values: Any) -> Any:
        """Set ``normalise_on``: from the key of earlier versions, or by the consumer and loader."""
        if not isinstance(values, Mapping):
            return values
        settings = dict(values)
        if "normalise" in settings:
            loader_normalises = settings.pop("normalise")
            if "normalise_on" in settings or not isinstance(loader_normalises, bool):
                raise ValueError(
                    "normalise is the earlier form of normalise_on: give normalise_on alone, "
                    "device or host"
                )
            settings["normalise_on"] = "host" if loader_normalises else "device"
        if settings.get("normalise_on") is None:
            consumer = settings.get("consumer", "torch")
            loader = settings.get("loader", "torch-iterable")
            on_device = _can_normalise_on_device(consumer, loader)
            settings["normalise_on"] = "device" if on_device else "host"
        return settings

    @model_validator(mode="after")
    def _check_combinations(self) -> Training:
        """Refuse settings that do not go together. The first problem is reported."""
        problems = [
            *self._consumer_problems(),
            *self._device_problems(),
            *self._loader_problems(),
            *self._memory_input_problems(),
        ]
        if problems:
            raise ValueError(problems[0])
        return self

    def _consumer_problems(self) -> Iterator[str]:
        """Yield the problems of the consumer, its model and its emulated rate."""
        is_paced = self.consumer == "paced"
        known_presets = ", ".join(RATES)
        preset = RATES.get(self.preset or "")
        has_rate = self.preset is not None or self.images_per_s is not None
        if has_rate and not is_paced:
            yield (
                "preset and images_per_s describe the device of consumer paced, not of "
                f"{self.consumer}"
            )
        if is_paced and (self.preset is None) == (self.images_per_s is None):
            yield f"consumer paced needs either preset (one of {known_presets}) or images_per_s"
        if self.preset is not None and preset is None:
            yield f"no preset {self.preset!r}: the presets are {known_presets}"
        if preset is not None and self.model != preset.model:
            yield f"preset {self.preset!r} is a figure for {preset.model}, not {self.model}"
        if self.model == "retinanet" and self.consumer in _TRAINING_CONSUMERS:
            yield f"model retinanet is only emulated: use consumer paced, not {self.consumer}"

    def _device_problems(self) -> Iterator[str]:
        """Yield the problems of several devices and of emulated accelerators."""
        if self.devices != 1 and self.consumer != "torch":
            yield (
                f"consumer {self.consumer} trains on one device: several devices (devices: "
                f"{self.devices}) are for consumer torch"
            )
        if self.devices == "all" and self.device == "cpu":
            yield "devices: all means GPUs: on a processor give a number, such as devices: 2"
        if self.accelerators is not None and self.consumer != "paced":
            yield (
                "accelerators are emulated: they are for consumer paced, not for "
                f"{self.consumer}; use devices for real accelerators"
            )

    def _loader_problems(self) -> Iterator[str]:
        """Yield the problems of the loader, its access to the data, and its epochs."""
        if self.normalise_on == "device" and capabilities_of(self.loader).gives_only_float32:
            yield f"loader {self.loader} cannot hand over uint8: use normalise_on: host"
        if self.evict != "every-epoch" and self.epochs == 1:
            yield f"evict {self.evict} is for several epochs: give epochs: 2 or more"
        if self.access != DIRECT and "store" not in self.inputs:
            yield f"access {self.access} is for input store: add store to inputs"
        if not can_read(self.loader, self.access):
            loaders = readers_of(self.access)
            yield f"access {self.access} is for loader {loaders}, not for {self.loader}"

    def _memory_input_problems(self) -> Iterator[str]:
        """Yield the problems of the inputs whose samples come from host memory."""
        memory_inputs = [source for source in HOST_RUNGS if source in self.inputs]
        if not memory_inputs:
            return
        names = ", ".join(memory_inputs)
        if self.accelerators is not None:
            yield (
                f"inputs {names} are for a loop on one device, not for several (accelerators: "
                f"{self.accelerators})"
            )
        if not capabilities_of(self.loader).holds_samples:
            loaders = loaders_with(lambda capabilities: capabilities.holds_samples)
            yield (
                f"inputs {names} are for torch's loaders ({', '.join(loaders)}): "
                f"loader {self.loader} has the inputs synthetic, warm, cold and store"
            )
        if self.consumer in ("tensorflow", "mxnet"):
            yield f"inputs {names} give torch batches, which consumer {self.consumer} does not take"
        if self.devices != 1:
            yield (
                f"inputs {names} are for a loop on one device, not for several (devices: "
                f"{self.devices})"
            )
        if "decode" in memory_inputs and self.data == "pixels":
            yield "input decode is for encoded images: data pixels are decoded already"

    @property
    def normalise(self) -> bool:
        """Whether the loader normalises. Loaders and trials have a parameter of this name."""
        return self.normalise_on == "host"

    @property
    def can_normalise_on_device(self) -> bool:
        """Whether the device could normalise with this consumer and this loader."""
        return _can_normalise_on_device(self.consumer, self.loader)

    @property
    def over(self) -> str:
        """The name of the data whose number of samples limits the trials of all inputs.

        Empty if the loader reads no data.
        """
        if not capabilities_of(self.loader).reads_data:
            return ""
        reads_disk = "warm" in self.inputs or "cold" in self.inputs
        is_on_store = "store" in self.inputs and not reads_disk
        return f"{self.data}@{'s3' if is_on_store else 'disk'}"

    @property
    def label(self) -> str:
        """The value of ``group``, or else a name that is made of the settings of the loop."""
        if self.group:
            return self.group
        device = self.consumer
        if self.consumer == "paced":
            device = f"an emulated {self.preset or 'device'}"
        parts = [f"{model_words(self.model)} on {device}"]
        if isinstance(self.accelerators, int):
            parts.append(counted(self.accelerators, "accelerator"))
        elif self.devices != 1:
            parts.append(f"{self.devices} devices")
        parts.append(self.loader)
        if self.access != DIRECT:
            parts.append(f"access {self.access}")
        if self.epochs != 1:
            parts.append(f"{self.epochs} epochs, evict {self.evict}")
        return ", ".join(parts)


class TrainingTrial(LoopTrial, ConsumerSettings):
    """Parameters of a trial of kind ``train``. They include settings of its loader and consumer.

    Attributes:
        input: where the samples come from.
        over: the name of the data whose number of samples limits the trials of all inputs.
        consumer: the name of the consumer.
        steps: the minimum number of steps that count.
        devices: the number of real devices, or ``all``.
        accelerators: the number of ranks with an emulated accelerator each; None if there are no
            emulated ranks.
        evict: before which epochs the page cache is prepared. A loop with ranks prepares it before
            every epoch.
        threads: the threads of a process that computes on a CPU; None for the default.
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


def training_points(settings: Training) -> Iterator[Params]:
    """PURE. Yield the points of a loop. A point is the parameters of a trial.

    If the settings have several numbers of devices or of accelerators, each number gives a loop of
    its own.
    """
    if isinstance(settings.devices, tuple):
        yield from _points_of_counts(settings, "devices", "device", settings.devices)
    elif isinstance(settings.accelerators, tuple):
        counts = settings.accelerators
        yield from _points_of_counts(settings, "accelerators", "accelerator", counts)
    else:
        yield from _points_of_loop(settings)


def _points_of_counts(
    settings: Training, key: str, noun: str, counts: Sequence[int]
) -> Iterator[Params]:
    """Yield the points of one loop for each number of devices or accelerators."""
    for count in dict.fromkeys(counts):
        group = f"{settings.group}, {counted(count, noun)}" if settings.group else ""
        loop = settings.model_copy(update={key: count, "group": group})
        yield from _points_of_loop(loop)


def _points_of_loop(settings: Training) -> Iterator[Params]:
    """Yield one point for each input."""
    for source in settings.inputs:
        loader_reads = capabilities_of(settings.loader).reads_data
        reads_data = source not in ("synthetic", "copy") and loader_reads
        data = ""
        if reads_data and source in PRELOADED_RUNGS:
            data = settings.over
        elif reads_data:
            data = f"{settings.data}@{'s3' if source == 'store' else 'disk'}"
        yield _point(settings, source, data)


def _point(settings: Training, source: Input, data: str) -> Params:
    """The point of one input. ``data`` is the name of the data to read; empty to read nothing."""
    point: dict[str, object] = {
        "group": settings.label,
        "input": source,
        "consumer": settings.consumer,
        "loader": settings.loader,
        "data": data,
        # Every input takes the same number of samples, which the data may limit.
        "over": settings.over,
        "steps": settings.steps,
    }
    for key in (*_CONSUMER_KEYS, *_LOADER_KEYS):
        point[key] = getattr(settings, key)
    for key in ("preset", "images_per_s", "threads", "accelerators"):
        value = getattr(settings, key)
        if value is not None:
            point[key] = value
    # One device is not named, since trials of earlier versions had no such parameter.
    if settings.devices != 1:
        point["devices"] = settings.devices
    if settings.epochs != 1:
        point["epochs"] = settings.epochs
        point["evict"] = settings.evict
    if source == "store" and data and settings.access != DIRECT:
        point["access"] = settings.access
        access_key = SETTINGS.get(settings.access)
        if access_key is not None:
            point[access_key] = getattr(settings, access_key)
    if settings.item_s:
        point["item_s"] = settings.item_s
    return point
