"""``torch``: a training loop in PyTorch, on a GPU or on the CPU."""

from __future__ import annotations

import datetime
import importlib
import zlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from numpy.typing import NDArray

from dataprep.reading.normalisation import normalise
from iobench.clock import Clock
from iobench.consumers import requirements
from iobench.consumers.protocol import ConsumerSettings, Model
from iobench.consumers.training import (
    QUEUED,
    Convolution,
    TrainingConsumer,
    residual_blocks,
    shortcut,
)
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import Batch, Framework

_TIMEOUT = datetime.timedelta(days=7)
"""Time limit of a wait for other ranks. It is so long that it never ends a rank. The time limit of
the trial, or the failure of another rank, ends a rank earlier."""


class TorchGroup:
    """Membership in a group of processes that train one network.

    Creating it waits for all ranks. On GPUs it uses NCCL, with one process for each GPU, which
    becomes the current device of the process. On CPUs it uses gloo.

    Args:
        rank: the number of this process.
        world_size: the number of processes.
        rendezvous_file: the path of a file by which the ranks find each other, instead of a network
            port.
        on_gpu: whether each process trains on a GPU.
    """

    def __init__(self, rank: int, world_size: int, rendezvous_file: str, *, on_gpu: bool) -> None:
        self.rank, self.world_size = rank, world_size
        self.backend = "nccl" if on_gpu else "gloo"
        torch = need_framework("torch")
        self._distributed: Any = importlib.import_module("torch.distributed")
        self.devices = [rank] if on_gpu else None
        if on_gpu:
            torch.cuda.set_device(rank)
        store = self._distributed.FileStore(rendezvous_file, world_size)
        store.set_timeout(_TIMEOUT)
        self._distributed.init_process_group(
            self.backend, store=store, rank=rank, world_size=world_size, timeout=_TIMEOUT
        )

    def wait(self) -> None:
        """Wait until all ranks have called this."""
        self._distributed.barrier(device_ids=self.devices)

    def leave(self) -> None:
        """Leave the group when all ranks are done."""
        self.wait()
        self._distributed.destroy_process_group()


class TorchConsumer(TrainingConsumer):
    """Training in torch, in eager mode.

    With a ``group`` it is one of several ranks, each on its own device, and gradients are averaged
    in each step. On a GPU ``compute_s`` is the time between two events in its stream. The first
    event is recorded after the batch was copied.
    """

    framework: Framework = "torch"
    arrays = "torch tensors"

    def __init__(
        self, settings: ConsumerSettings, clock: Clock, group: TorchGroup | None = None
    ) -> None:
        torch = self._torch = need_framework("torch")
        build = f"torch {torch.__version__}"
        has_gpu = bool(torch.cuda.is_available())
        on_gpu = requirements.takes_gpu(settings.device, has_gpu, build)
        super().__init__(settings, clock, on_gpu=on_gpu)
        self._array = torch.Tensor
        notes = [f"{build}, eager"]
        if group is not None:
            notes.append(
                f"{group.world_size} ranks, a process each; gradients averaged in each step "
                f"(DistributedDataParallel, {group.backend})"
            )
        if on_gpu:
            notes += self._use_gpu(group.rank if group is not None else 0)
        else:
            notes += self._use_cpu()
        self.notes = notes
        # Channels last is faster on GPUs and CPUs: on two Zen 4 cores 1.4 times as fast for the
        # residual networks, and 1.2 to 2.6 times for LeNet.
        self._layout = torch.channels_last
        torch.manual_seed(settings.seed)
        torch.backends.cudnn.benchmark = True
        net = network(torch, settings.model, settings.classes).train()
        self._net = net.to(device=self._device, memory_format=self._layout)
        if group is not None:
            self._net = torch.nn.parallel.DistributedDataParallel(
                self._net, device_ids=group.devices
            )
        self._loss = torch.nn.CrossEntropyLoss()
        self._optimiser = torch.optim.SGD(
            self._net.parameters(),
            0.01,
            momentum=0.9,
            weight_decay=1e-4,
            # With another optimiser GradScaler would wait for the GPU in every step.
            fused=True if on_gpu else None,
        )
        needs_scale = self.precision == "float16"
        self._scaler = torch.amp.GradScaler(self._device.type, enabled=needs_scale)
        # Convolutions take images of this type.
        self._dtype = getattr(torch, self.precision)

    def _use_gpu(self, number: int) -> list[str]:
        """Choose the GPU with this number and its precision. Return notes about them."""
        torch = self._torch
        self._device = torch.device("cuda", number)
        capability = torch.cuda.get_device_capability(self._device)
        self.precision = requirements.gpu_precision(
            self._settings.precision, capability, prefers_bfloat16=True
        )
        self.device = str(torch.cuda.get_device_name(self._device))
        convolutions = "on" if torch.backends.cudnn.allow_tf32 else "off"
        products = "on" if torch.backends.cuda.matmul.allow_tf32 else "off"
        return [
            "compute is the time between CUDA events around a step, after the copy",
            QUEUED,
            f"TF32: convolutions {convolutions}, matrix products {products}",
        ]

    def _use_cpu(self) -> list[str]:
        """Choose the CPU and its precision. Return notes about them."""
        self._device = self._torch.device("cpu")
        self.precision = requirements.cpu_precision(self._settings.precision)
        self.device = requirements.describe_cpu(self._torch.get_num_threads())
        return ["compute shares its cores with the loader's workers"]

    def fingerprint(self) -> int:
        """Return the CRC-32 of all parameters, which is equal for ranks that trained together."""
        checksum = 0
        for parameter in self._net.parameters():
            values = parameter.detach().cpu().contiguous().numpy()
            checksum = zlib.crc32(values.tobytes(), checksum)
        return checksum

    def _on_device(self, values: NDArray[Any]) -> Any:
        array = self._torch.from_numpy(values).to(self._device)
        return array.contiguous(memory_format=self._layout) if array.ndim == 4 else array

    def _to_device(self, batch: Batch) -> tuple[Any, Any]:
        images = batch.images.to(self._device, non_blocking=True)
        return images, batch.labels.to(self._device, self._torch.int64, non_blocking=True)

    def _train(self, images: Any, labels: Any) -> Any:
        if images.dtype == self._torch.uint8:
            images = normalise(images, dtype=self._dtype, channels_last=True)
        else:
            images = images.contiguous(memory_format=self._layout)
        self._optimiser.zero_grad(set_to_none=True)
        mixed: AbstractContextManager[Any] = nullcontext()
        if self.precision != "float32":
            mixed = self._torch.autocast(self._device.type, dtype=self._dtype)
        with mixed:
            loss = self._loss(self._net(images), labels)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimiser)
        self._scaler.update()
        return loss.detach()

    def _mark(self) -> Any:
        """Return a mark of the present moment: on a GPU an event in its stream, else seconds."""
        if not self._on_gpu:
            return self._clock.now_s()
        event = self._torch.cuda.Event(enable_timing=True, blocking=True)
        event.record()
        return event

    def _elapsed_s(self, began: Any, ended: Any) -> float:
        if self._on_gpu:
            return float(began.elapsed_time(ended) / 1000)
        return float(ended - began)

    def _wait(self) -> None:
        if self._on_gpu:
            self._torch.cuda.synchronize(self._device)

    def _wait_for(self, loss: Any, mark: Any) -> None:
        mark.synchronize()

    def _inspect(self, batch: Batch) -> tuple[str, Any]:
        on_cpu = batch.labels.device.type == "cpu"
        return str(batch.images.dtype).removeprefix("torch."), batch.labels if on_cpu else None


def network(torch: Any, model: Model, classes: int) -> Any:
    """Return the network, newly initialised.

    It maps images (N, 3, H, W) float32 to logits (N, ``classes``). LeNet is LeNet-5 (LeCun et al.,
    1998) with three input channels, ReLU, max pooling, and an adaptive average pooling to 5 x 5
    before its dense layers. It therefore takes images of any size from 28 pixels on, and has the
    same number of parameters for each size.
    """
    nn = torch.nn
    if model == "lenet":
        return nn.Sequential(
            nn.Conv2d(3, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(5),
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, classes),
        )

    def conv_norm(channels: int, filters: int, kernel: int, stride: int) -> list[Any]:
        conv = nn.Conv2d(channels, filters, kernel, stride, padding=kernel // 2, bias=False)
        nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
        return [conv, nn.BatchNorm2d(filters)]

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        """``relu(body(x) + shortcut(x))``."""

        def __init__(self, block: list[Convolution]) -> None:
            super().__init__()
            layers: list[Any] = []
            for convolution in block:
                layers += [*conv_norm(*convolution), nn.ReLU(inplace=True)]
            self.body = nn.Sequential(*layers[:-1])
            nn.init.zeros_(self.body[-1].weight)
            projection = shortcut(block)
            self.shortcut = nn.Identity()
            if projection:
                self.shortcut = nn.Sequential(*conv_norm(*projection))

        def forward(self, x: Any) -> Any:
            return torch.relu_(self.body(x) + self.shortcut(x))

    blocks = list(residual_blocks(model))
    last_filters = blocks[-1][-1].filters
    return nn.Sequential(
        *conv_norm(3, 64, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
        *map(Residual, blocks),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(last_filters, classes),
    )
