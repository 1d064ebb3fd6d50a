"""The Protocol of consumers, which take the batches of a loader, and their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from iobench.clock import Clock
from iobench.loaders.protocol import Batch, Framework

Model = Literal["resnet50", "resnet18", "lenet", "retinanet"]
"""The models of training loops.

``torch``, ``tensorflow`` and ``mxnet`` train all of them except ``retinanet``, which can only be
emulated.
"""


def _gpu_for_cuda(device: object) -> object:
    return "gpu" if device == "cuda" else device


Device = Annotated[Literal["auto", "cpu", "gpu"], BeforeValidator(_gpu_for_cuda)]
"""A device that trains; a config may also say ``cuda``, which means ``gpu``."""


class ConsumerSettings(BaseModel):
    """The model of a training step, its device and precision.

    Attributes:
        model: the network.
        batch_size: samples in a batch.
        device: ``auto`` takes a GPU if there is one.
        precision: ``auto`` is mixed on a GPU with hardware for it (with MXNet, on any GPU), and
            float32 on a CPU.
        classes: the number of classes of the network.
        image_size: the side of the images in batches, in pixels.
        normalise: whether loaders normalise images; otherwise the device does.
        preset: the name of a rate of an accelerator, for the emulated device of ``paced``.
        images_per_s: the rate of the emulated device of ``paced``.
        seed: seed of the weights and of synthetic batches.
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
    """The body of a training loop. Entry points of the group ``iobench.consumers`` name classes.

    Attributes:
        framework: the framework of the batches that it takes; with ``none`` it takes any batch.
        emulated: whether it only waits instead of computing.
        device: a description of the device ("NVIDIA H200", "AMD EPYC, 2 threads").
        precision: ``float32``, ``float16`` or ``bfloat16``, in which it computes.
        notes: facts that are needed to understand its figures.
    """

    framework: Framework
    emulated: bool
    device: str
    precision: str
    notes: Sequence[str]

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        """Prepare the model.

        Raises:
            Unavailable: the framework or the device is missing.
        """

    def synthetic(self) -> Batch:
        """Return a batch of random images in the memory of the device."""

    def warm_up(self) -> None:
        """Build, compile and tune in steps on synthetic data, so that later steps are steady."""

    def step(self, batch: Batch) -> None:
        """Train on a batch: copy it to the device if necessary, forward, backward, optimiser step.

        On a GPU this may return before the work is done.
        """

    def finish(self) -> None:
        """Wait until the device has done all steps."""

    def compute_s(self) -> Sequence[float]:
        """Return the computing time of each step since ``warm_up``; called after ``finish``."""
