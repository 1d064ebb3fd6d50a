"""The base of training in each framework: check batches, queue and time steps, define networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from iobench.clock import Clock
from iobench.consumers.protocol import ConsumerSettings, Model
from iobench.errors import TrialFailed
from iobench.loaders.protocol import Batch, Framework

STEPS_QUEUED = 2
"""Steps that may be unfinished on a GPU while the loop fetches the next batch."""

QUEUED = f"at most {STEPS_QUEUED} steps are queued while the next batch is fetched"
NOMINAL = "compute is nominal: the average of warm-up steps on data in the device's memory"

_DEPTHS: dict[Model, tuple[int, ...]] = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


class TrainingConsumer(ABC):
    """SGD with momentum on cross entropy; see ``Consumer``.

    uint8 images are normalised on the device. On a CPU ``compute_s`` is the wall time of a step
    after the batch was copied. On a GPU, where a step returns before it is done, it is the mean of
    the steps of ``warm_up``; frameworks that time steps on the device override ``_mark`` and
    ``_elapsed_s``.

    A subclass sets ``precision``, ``device`` and ``notes``, and ``_array``, the framework's type of
    arrays.
    """

    framework: Framework
    arrays: ClassVar[str]
    """The arrays in batches, in words."""
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
        """Noise as images, and random labels, in the memory of the device.

        Images are float32 of mean 0 and deviation 1, or uint8 if the device normalises them.
        """
        settings = self._settings
        side = (settings.image_size, settings.image_size)
        shape = (*side, 3) if self.channels_last else (3, *side)
        drawn = np.random.default_rng(settings.seed)
        size = (settings.batch_size, *shape)
        images: NDArray[Any]
        if settings.normalise:
            images = drawn.standard_normal(size, np.float32)
        else:
            images = drawn.integers(256, size=size, dtype=np.uint8)
        labels = drawn.integers(settings.classes, size=settings.batch_size)
        return Batch(self._on_device(images), self._on_device(labels), settings.batch_size)

    def warm_up(self) -> None:
        """Build and tune by steps on the synthetic batch, then time a few more of them.

        The number of steps is fixed, since each step of a rank waits for all ranks.
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
        """Copy, normalise, forward, backward, optimiser step; at most two queue on a GPU."""
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
        """Seconds of each step: normalisation, forward, backward and optimiser step."""
        return self._seconds

    @abstractmethod
    def _on_device(self, values: NDArray[Any]) -> Any:
        """An array of the framework in the device's memory."""

    @abstractmethod
    def _to_device(self, batch: Batch) -> tuple[Any, Any]:
        """Images and labels of the batch on the device."""

    @abstractmethod
    def _train(self, images: Any, labels: Any) -> Any:
        """Start a step and return its mean loss, which may not be computed yet."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait until the device is idle."""

    @abstractmethod
    def _wait_for(self, loss: Any, mark: Any) -> None:
        """Wait until a step is done, given its loss and the mark of its end."""

    @abstractmethod
    def _inspect(self, batch: Batch) -> tuple[str, Any]:
        """The images' dtype, and the labels as an array; None if they are on a GPU.

        Reading them from there would make every step wait.
        """

    def _mark(self) -> Any:
        return self._clock.now_s()

    def _elapsed_s(self, began: Any, ended: Any) -> float:
        return self._nominal_s if self._on_gpu else float(ended - began)

    def _check(self, batch: Batch) -> None:
        """Check a batch, for clearer messages than those of the framework.

        Raises:
            TrialFailed: it has no arrays of the framework, or images or labels do not fit.
        """
        for part, value in (("images", batch.images), ("labels", batch.labels)):
            if not isinstance(value, self._array):
                kind = type(value)
                hint = "its loader must decode" if kind in (list, bytes) else "take its own loader"
                name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
                raise TrialFailed(
                    f"this consumer takes {self.arrays}, but {part} are {name}: {hint}"
                )
        dtype, labels = self._inspect(batch)
        shape, size = tuple(batch.images.shape), self._settings.image_size
        wanted = (size, size, 3) if self.channels_last else (3, size, size)
        if shape[1:] != wanted:
            raise TrialFailed(
                f"images have the shape {shape}, but this consumer takes "
                f"(N, {', '.join(map(str, wanted))}): give loader and consumer the same image_size"
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


def residual_blocks(model: Model) -> Iterator[list[tuple[int, int, int, int]]]:
    """The convolutions of each block of a residual network: channels, filters, kernel, stride.

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
        for place in range(depth):
            stride = 2 if stage and not place else 1
            if model == "resnet50":
                block = [
                    (channels, width, 1, 1),
                    (width, width, 3, stride),
                    (width, 4 * width, 1, 1),
                ]
            else:
                block = [(channels, width, 3, stride), (width, width, 3, 1)]
            yield block
            channels = block[-1][1]


def shortcut(block: Sequence[tuple[int, int, int, int]]) -> tuple[int, int, int, int] | None:
    """The projection beside a block; None if its input has the shape of its output."""
    channels, out = block[0][0], block[-1][1]
    stride = max(stride for *_, stride in block)
    return None if stride == 1 and channels == out else (channels, out, 1, stride)
