"""The base of the training consumers: check batches, queue and time steps, describe networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iobench.clock import Clock
from iobench.consumers.protocol import ConsumerSettings, Model
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, Framework

STEPS_QUEUED = 2
"""Steps that may be unfinished on a GPU while the loop fetches the next batch. They are the work of
the GPU in this time."""

QUEUED = f"at most {STEPS_QUEUED} steps are queued while the next batch is fetched"
NOMINAL = "compute is nominal: the average of warm-up steps on data in the device's memory"

_DEPTHS: dict[Model, tuple[int, ...]] = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
"""The number of blocks in each stage of a residual network."""


class TrainingConsumer(ABC):
    """Training by SGD with momentum on cross entropy; see ``Consumer``.

    The device normalises uint8 images. On a CPU ``compute_s`` is the wall time of a step after the
    batch was copied. On a GPU a step returns before it is done, so ``compute_s`` is the mean time
    of the last steps of ``warm_up``. Frameworks that can time steps on the device override
    ``_mark`` and ``_elapsed_s``.

    A subclass sets ``precision``, ``device`` and ``notes``, and ``_array``, the framework's type of
    arrays.
    """

    framework: Framework
    arrays: ClassVar[str]
    """A description of the arrays in batches, for messages."""
    channels_last: ClassVar[bool] = False
    emulated = False
    precision: str
    device: str
    notes: Sequence[str]
    _array: type

    def __init__(self, settings: ConsumerSettings, clock: Clock, *, on_gpu: bool) -> None:
        self._settings, self._clock, self._on_gpu = settings, clock, on_gpu
        self._nominal_s = 0.0
        self._seconds: list[float] = []
        self._marks: list[tuple[Any, Any]] = []
        self._queue: deque[tuple[Any, Any]] = deque()
        self.last_loss: Any = None

    def synthetic(self) -> Batch:
        """Return noise as images, with random labels, in the memory of the device.

        Images are float32 of mean 0 and deviation 1, or uint8 if the device normalises them.
        """
        settings = self._settings
        generator = np.random.default_rng(settings.seed)
        shape = (settings.batch_size, *self._image_shape())
        images: NDArray[Any]
        if settings.normalise:
            images = generator.standard_normal(shape, np.float32)
        else:
            images = generator.integers(256, size=shape, dtype=np.uint8)
        labels = generator.integers(settings.classes, size=settings.batch_size)
        return Batch(self._on_device(images), self._on_device(labels), settings.batch_size)

    def warm_up(self) -> None:
        """Build and tune in steps on the synthetic batch, then time a few more steps.

        The number of steps is fixed, because each step of a rank waits for all ranks. A CPU, whose
        steps are slow, takes fewer.
        """
        batch = self.synthetic()
        for steps in (10, 10) if self._on_gpu else (2, 1):
            began_s = self._clock.now_s()
            for _ in range(steps):
                self.step(batch)
            self.finish()
            self._nominal_s = (self._clock.now_s() - began_s) / steps
        self._seconds.clear()

    def step(self, batch: Batch) -> None:
        """Train on a batch. On a GPU at most ``STEPS_QUEUED`` steps are unfinished after it."""
        self._check(batch)
        images, labels = self._to_device(batch)
        began = self._mark()
        self.last_loss = self._train(images, labels)
        if not self._on_gpu:
            self._wait()
        ended = self._mark()
        self._marks.append((began, ended))
        if self._on_gpu:
            self._queue.append((self.last_loss, ended))
            if len(self._queue) > STEPS_QUEUED:
                self._wait_for(*self._queue.popleft())

    def finish(self) -> None:
        """Wait until the device has done all steps."""
        self._wait()
        self._queue.clear()
        self._seconds += [self._elapsed_s(began, ended) for began, ended in self._marks]
        self._marks.clear()

    def compute_s(self) -> Sequence[float]:
        """Return the seconds of each step: normalisation, forward, backward and optimiser step."""
        return self._seconds

    @abstractmethod
    def _on_device(self, values: NDArray[Any]) -> Any:
        """Return an array of the framework in the memory of the device."""

    @abstractmethod
    def _to_device(self, batch: Batch) -> tuple[Any, Any]:
        """Return images and labels of the batch in the memory of the device."""

    @abstractmethod
    def _train(self, images: Any, labels: Any) -> Any:
        """Start a step and return its mean loss, which may not be computed yet."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait until the device is idle."""

    @abstractmethod
    def _wait_for(self, loss: Any, mark: Any) -> None:
        """Wait until a step is done, given its loss and the mark of its end (see ``_mark``)."""

    @abstractmethod
    def _inspect(self, batch: Batch) -> tuple[str, Any]:
        """Return the name of the images' dtype, and the labels as an array.

        Instead of labels on a GPU, None is returned, because reading them would make every step
        wait.
        """

    def _mark(self) -> Any:
        """Return a mark of the present moment, for ``_elapsed_s``."""
        return self._clock.now_s()

    def _elapsed_s(self, began: Any, ended: Any) -> float:
        """Return the seconds between two marks."""
        return self._nominal_s if self._on_gpu else float(ended - began)

    def _image_shape(self) -> tuple[int, int, int]:
        """Return the shape of one image, with channels first or last."""
        size = self._settings.image_size
        return (size, size, 3) if self.channels_last else (3, size, size)

    def _check(self, batch: Batch) -> None:
        """Check a batch, because the messages of frameworks are less clear.

        Raises:
            TrialFailed: it has no arrays of the framework, or images or labels do not fit.
        """
        for part, value in (("images", batch.images), ("labels", batch.labels)):
            if not isinstance(value, self._array):
                value_type = type(value)
                name = f"{value_type.__module__}.{value_type.__qualname__}"
                advice = "take a loader of the same framework"
                if part == "images" and value_type in (list, tuple, bytes):
                    advice = "its loader must decode"
                raise TrialFailed(
                    f"this consumer takes {self.arrays}, but {part} are "
                    f"{name.removeprefix('builtins.')}: {advice}"
                )
        dtype, labels = self._inspect(batch)
        shape, image_shape = tuple(batch.images.shape), self._image_shape()
        if shape[1:] != image_shape:
            raise TrialFailed(
                f"images have the shape {shape}, but this consumer takes (N, "
                f"{', '.join(map(str, image_shape))}): give loader and consumer the same image_size"
            )
        if dtype not in ("float32", "uint8"):
            raise TrialFailed(f"images are {dtype}: give float32 or uint8")
        if labels is not None and len(labels):
            classes = self._settings.classes
            for label in (int(labels.min()), int(labels.max())):
                if not 0 <= label < classes:
                    raise TrialFailed(
                        f"label {label} is outside 0 to {classes - 1}: the network has {classes} "
                        "classes"
                    )


class Convolution(NamedTuple):
    """A convolution of a residual network.

    Attributes:
        channels: the number of channels of its input.
        filters: the number of channels of its output.
        kernel: the side of its square kernel.
        stride: its stride, in both directions.
    """

    channels: int
    filters: int
    kernel: int
    stride: int


def residual_blocks(model: Model) -> Iterator[list[Convolution]]:
    """Yield the convolutions of each block of a residual network.

    The networks are those of He et al., "Deep residual learning for image recognition" (CVPR
    2016), in the form called v1.5, whose bottleneck has its stride in the 3x3 convolution. A
    network begins with a 7x7 convolution of 64 filters and stride 2 and a 3x3 max pooling of stride
    2, and ends with an average pooling and a dense layer. A batch norm follows each convolution.
    The last batch norm of a block is initialised to zero, so that a block begins as the identity. A
    block whose input and output have different shapes has a projection beside it, ``shortcut``.
    """
    channels = 64
    for stage, depth in enumerate(_DEPTHS[model]):
        width = 64 * 2**stage
        for position in range(depth):
            # The first block of each stage but the first halves the size of the image.
            stride = 2 if stage > 0 and position == 0 else 1
            if model == "resnet50":
                block = [
                    Convolution(channels, width, 1, 1),
                    Convolution(width, width, 3, stride),
                    Convolution(width, 4 * width, 1, 1),
                ]
            else:
                block = [Convolution(channels, width, 3, stride), Convolution(width, width, 3, 1)]
            yield block
            channels = block[-1].filters


def shortcut(block: Sequence[Convolution]) -> Convolution | None:
    """Return the projection beside a block; None if its input has the shape of its output."""
    channels, filters = block[0].channels, block[-1].filters
    stride = max(convolution.stride for convolution in block)
    if stride == 1 and channels == filters:
        return None
    return Convolution(channels, filters, 1, stride)
