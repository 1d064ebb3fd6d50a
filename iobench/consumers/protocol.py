"""What a consumer does: batches to work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from iobench.clock import Clock
from iobench.loaders.protocol import Batch, Framework

Model = Literal["resnet50", "resnet18", "lenet"]
Device = Annotated[
    Literal["auto", "cpu", "gpu"],
    BeforeValidator(lambda asked: "gpu" if asked == "cuda" else asked),
]
"""``cuda`` is another word for ``gpu``."""


class ConsumerSettings(BaseModel):
    """A training step: of which model, where, how precise.

    ``device``: ``auto`` takes a GPU where there is one. ``precision``: ``auto`` is mixed where
    the device has it in hardware. ``images_per_s`` and ``preset`` are for ``paced`` only: an
    emulated device.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Model = "resnet50"
    batch_size: Annotated[int, Field(ge=1)] = 64
    device: Device = "auto"
    precision: Literal["auto", "float32", "mixed"] = "auto"
    classes: Annotated[int, Field(ge=2)] = 1000
    image_size: Annotated[int, Field(ge=28, le=1024)] = 224
    preset: str | None = None
    images_per_s: Annotated[float, Field(gt=0)] | None = None
    seed: int = 0


class Consumer(Protocol):
    """A training loop's body. The class is what an entry point of ``iobench.consumers`` names.

    Attributes:
        framework: whose batches it takes; ``none`` takes any.
        emulated: whether no real work is done.
        device: what it runs on, for people ("NVIDIA H200", "CPU, 2 threads").
        precision: ``float32``, ``float16`` or ``bfloat16`` of the arithmetic that is done.
        notes: what a reader of its figures must know.
    """

    framework: Framework
    emulated: bool
    device: str
    precision: str
    notes: Sequence[str]

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        """Raises Unavailable where framework or device is missing."""

    def synthetic(self) -> Batch:
        """A batch of random images that lies in the device's memory already."""

    def warm_up(self) -> None:
        """Build, compile and tune: steps on synthetic data, until a step costs what it costs."""

    def step(self, batch: Batch) -> None:
        """Copy to the device where it is not there yet; forward, backward, optimiser step.

        Returns when the work is handed over, which on a GPU is before it is done.
        """

    def finish(self) -> None:
        """Wait until the device has done all steps."""

    def compute_s(self) -> Sequence[float]:
        """Seconds that the device computed in each step since ``warm_up``; after ``finish``."""
