"""``torch``: a training loop in PyTorch, on the GPU where there is one, else on the CPU."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from iobench.clock import Clock
from iobench.consumers import batches, processor, requirements
from iobench.consumers.protocol import ConsumerSettings
from iobench.consumers.queue import NOTE, Queue
from iobench.consumers.torch_group import TorchGroup
from iobench.consumers.warming import per_step_s, until_steady
from iobench.loaders.protocol import Batch, Framework


class TorchConsumer:
    """SGD with momentum on cross entropy, eager; see ``Consumer``.

    With a ``group`` it is one rank of several, each on a device of its own, and gradients are
    averaged in each step.

    uint8 images are normalised on the device. On a GPU, ``compute_s`` lies between two events
    recorded on its stream after the batch was copied; on a CPU it is wall time.
    """

    framework: Framework = "torch"
    emulated = False

    def __init__(
        self, settings: ConsumerSettings, clock: Clock, group: TorchGroup | None = None
    ) -> None:
        torch = self._torch = requirements.framework("torch")
        self._settings, self._clock, self._group = settings, clock, group
        there = bool(torch.cuda.is_available())
        self._on_gpu = requirements.takes_gpu(settings.device, there, f"torch {torch.__version__}")
        self._device = torch.device("cuda" if self._on_gpu else "cpu")
        if self._on_gpu and group is not None:
            self._device = torch.device("cuda", group.rank)
        self.precision = self._chosen(settings.precision)
        self.device = self._describe()
        self.notes: Sequence[str] = tuple(self._notes())
        # Faster on both: on two Zen 4 cores 1.4 times for the residual networks, 1.2 to 2.6 for
        # LeNet.
        self._layout = self._torch.channels_last
        self.last_loss: Any = None
        self._taken: list[tuple[Any, Any]] = []
        self._queue = Queue(lambda end: end.synchronize())
        self._seconds: list[float] = []
        self._build()

    def synthetic(self) -> Batch:
        """Normal noise (N, 3, S, S) float32 and int64 labels, drawn on the device."""
        torch, settings = self._torch, self._settings
        drawn = torch.Generator(device=self._device).manual_seed(settings.seed)
        shape = (settings.batch_size, 3, settings.image_size, settings.image_size)
        images = torch.randn(shape, generator=drawn, device=self._device)
        labels = torch.randint(
            settings.classes, shape[:1], generator=drawn, device=self._device, dtype=torch.int64
        )
        return Batch(images.contiguous(memory_format=self._layout), labels, shape[0])

    def warm_up(self) -> None:
        """Two steps or more on the synthetic batch; a GPU tunes its convolutions meanwhile."""
        step, at_most = partial(self.step, self.synthetic()), 10 if self._on_gpu else 3
        if self._group is None:
            until_steady(step, self.finish, self._clock, at_most=at_most)
        else:
            # As many on every rank: each step waits for all of them.
            per_step_s(step, self.finish, self._clock, steps=at_most)
        self._taken.clear()
        self._seconds.clear()

    def step(self, batch: Batch) -> None:
        """Copy, normalise, forward, backward, optimiser step; at most two queue on a GPU."""
        self._check(batch)
        images = batch.images.to(self._device, non_blocking=True)
        labels = batch.labels.to(self._device, self._torch.int64, non_blocking=True)
        began = self._mark()
        self._train(images, labels)
        ended = self._mark()
        self._taken.append((began, ended))
        if self._on_gpu:
            self._queue.add(ended)

    def finish(self) -> None:
        """Wait for the stream, and read its events."""
        if self._on_gpu:
            self._torch.cuda.synchronize(self._device)
            self._seconds += [a.elapsed_time(b) / 1000 for a, b in self._taken]
        else:
            self._seconds += [b - a for a, b in self._taken]
        self._taken.clear()
        self._queue.clear()

    def compute_s(self) -> Sequence[float]:
        """One entry a step: normalisation, forward, backward and optimiser step."""
        return self._seconds

    def fingerprint(self) -> int:
        """CRC-32 of all parameters: ranks that trained together have the same."""
        found = 0
        for parameter in self._net.parameters():
            found = zlib.crc32(parameter.detach().cpu().contiguous().numpy().tobytes(), found)
        return found

    def _build(self) -> None:
        torch = self._torch
        torch.manual_seed(self._settings.seed)
        torch.backends.cudnn.benchmark = True
        models = importlib.import_module("iobench.consumers.torch_models")
        net = models.build(self._settings.model, self._settings.classes).train()
        self._net = net.to(device=self._device, memory_format=self._layout)
        if self._group is not None:
            self._net = self._group.shared(self._net)
        self._loss = torch.nn.CrossEntropyLoss()
        self._optimiser = torch.optim.SGD(
            *(self._net.parameters(), 0.01),
            momentum=0.9,
            weight_decay=1e-4,
            # Without it GradScaler waits for the GPU at every step.
            fused=True if self._on_gpu else None,
        )
        needs_scale = self.precision == "float16"
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=needs_scale)
        self._mean = torch.tensor(batches.MEAN, device=self._device).mul(255).view(1, 3, 1, 1)
        self._std = torch.tensor(batches.STD, device=self._device).mul(255).view(1, 3, 1, 1)

    def _train(self, images: Any, labels: Any) -> None:
        if images.dtype == self._torch.uint8:
            images = images.float().sub_(self._mean).div_(self._std)
        images = images.contiguous(memory_format=self._layout)
        self._optimiser.zero_grad(set_to_none=True)
        with self._autocast():
            loss = self._loss(self._net(images), labels)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimiser)
        self._scaler.update()
        self.last_loss = loss.detach()

    def _autocast(self) -> AbstractContextManager[Any]:
        mixed = self.precision != "float32"
        dtype = getattr(self._torch, self.precision) if mixed else self._torch.bfloat16
        context: AbstractContextManager[Any] = self._torch.autocast(
            self._device.type, dtype=dtype, enabled=mixed
        )
        return context

    def _mark(self) -> Any:
        """Now: on a GPU an event in its stream, else the clock's seconds."""
        if not self._on_gpu:
            return self._clock.now_s()
        event = self._torch.cuda.Event(enable_timing=True, blocking=True)
        event.record()
        return event

    def _check(self, batch: Batch) -> None:
        batches.check_arrays(batch.images, batch.labels, self._torch.Tensor, "torch tensors")
        dtype = str(batch.images.dtype).removeprefix("torch.")
        size = self._settings.image_size
        batches.check_images(batch.images.shape, dtype, size, channels_last=False)
        # Reading labels back from a GPU would make every step wait for it.
        if batch.labels.device.type == "cpu" and len(batch.labels):
            lowest, highest = self._torch.aminmax(batch.labels)
            batches.check_labels(int(lowest), int(highest), self._settings.classes)

    def _chosen(self, asked: str) -> str:
        if not self._on_gpu:
            return requirements.cpu_precision(asked)
        capability = self._torch.cuda.get_device_capability(self._device)
        return requirements.gpu_precision(asked, capability, bfloat16=True)

    def _describe(self) -> str:
        if self._on_gpu:
            return str(self._torch.cuda.get_device_name(self._device))
        return processor.describe(self._torch.get_num_threads())

    def _notes(self) -> list[str]:
        notes = [f"torch {self._torch.__version__}, eager"]
        if self._group is not None:
            notes.append(
                f"{self._group.world_size} ranks, a process each; gradients averaged in each step "
                f"(DistributedDataParallel, {self._group.backend})"
            )
        if not self._on_gpu:
            return [*notes, "compute shares its cores with the loader's workers"]
        notes.append("compute is the time between CUDA events around a step, after the copy")
        notes.append(NOTE)
        tf32 = [
            f"{what} {'on' if module.allow_tf32 else 'off'}"
            for what, module in (
                ("convolutions", self._torch.backends.cudnn),
                ("matrix products", self._torch.backends.cuda.matmul),
            )
        ]
        return [*notes, f"TF32: {', '.join(tf32)}"]
