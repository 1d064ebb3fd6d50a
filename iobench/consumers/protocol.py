"""The Protocol of consumers, which turn batches into work; and their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from iobench.clock import Clock
from iobench.loaders.protocol import Batch, Framework

Model = Literal["resnet50", "resnet18", "lenet", "retinanet"]
"""``retinanet`` is only emulated: ``torch``, ``tensorflow`` and ``mxnet`` train the others."""

Device = Annotated[
    Literal["auto", "cpu", "gpu"],
    BeforeValidator(lambda asked: "gpu" if asked == "cuda" else asked),
]
"""``cuda`` means ``gpu``."""


class ConsumerSettings(BaseModel):
    """The model of a training step, its device and precision.

    ``device``: ``auto`` takes a GPU if there is one. ``precision``: ``auto`` is mixed if the device
    has hardware for it. ``normalise``: whether loaders normalise; else the device does.
    ``images_per_s`` and ``preset`` describe the emulated device of ``paced``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Model = "resnet50"
    batch_size: Annotated[int, Field(ge=1)] = 64
    device: Device = "auto"
    precision: Literal["auto", "float32", "mixed"] = "auto"
    classes: Annotated[int, Field(ge=2)] = 1000
    image_size: Annotated[int, Field(ge=28, le=1024)] = 224
    normalise: bool = True
    preset: str | None = None
    images_per_s: Annotated[float, Field(gt=0)] | None = None
    seed: int = 0


class Consumer(Protocol):
    """The body of a training loop. Entry points of ``iobench.consumers`` name classes.

    Attributes:
        framework: the framework of the batches that it takes; ``none`` takes all.
        emulated: whether it only waits, without computing.
        device: a description of the device ("NVIDIA H200", "AMD EPYC, 2 threads").
        precision: ``float32``, ``float16`` or ``bfloat16``, in which it computes.
        notes: facts that readers of its figures must know.
    """

    framework: Framework
    emulated: bool
    device: str
    precision: str
    notes: Sequence[str]

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        """Raises Unavailable if the framework or the device is missing."""

    def synthetic(self) -> Batch:
        """A batch of random images in the memory of the device."""

    def warm_up(self) -> None:
        """Build, compile and tune by steps on synthetic data, so that later steps are steady."""

    def step(self, batch: Batch) -> None:
        """Copy the batch to the device if necessary; forward, backward, optimiser step.

        On a GPU this may return before the work is done.
        """

    def finish(self) -> None:
        """Wait until the device has done all steps."""

    def compute_s(self) -> Sequence[float]:
        """Computing time of each step since ``warm_up``; called after ``finish``."""
