"""PURE. What is asked of a training loop, and its points: one an input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from iobench.consumers import CONSUMERS, Model
from iobench.consumers.presets import PRESETS
from iobench.data.settings import check_name
from iobench.loaders.own import SYNTHETIC
from iobench.loops.loader_grid import LoaderName
from iobench.several import Several, bare_null
from iobench.words import model_words

Input = Literal["synthetic", "warm", "cold", "store"]
_LOADER_KEYS = (
    *("workers", "prefetch", "augment", "colour_jitter", "pca_noise", "normalise"),
    *("pin_memory", "image_size"),
)
CONSUMER_KEYS = ("model", "batch_size", "device", "precision", "image_size")


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
        point |= {key: getattr(settings, key) for key in (*CONSUMER_KEYS, *_LOADER_KEYS)}
        for key in ("preset", "images_per_s", "threads"):
            if getattr(settings, key) is not None:
                point[key] = getattr(settings, key)
        if settings.item_s:
            point["item_s"] = settings.item_s
        yield point
