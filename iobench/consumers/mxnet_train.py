"""``mxnet``: a training loop in MXNet 1.9.1's Gluon, hybridised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from iobench.clock import Clock
from iobench.consumers import requirements
from iobench.consumers.protocol import ConsumerSettings, Model
from iobench.consumers.training import (
    NOMINAL,
    QUEUED,
    Convolution,
    TrainingConsumer,
    residual_blocks,
    shortcut,
)
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import Batch, Framework


class MXNetConsumer(TrainingConsumer):
    """Training in MXNet, whose engine computes in the background."""

    framework: Framework = "mxnet"
    arrays = "MXNet arrays"

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        mx = self._mx = need_framework("mxnet")
        build = f"MXNet {mx.__version__}"
        on_gpu = requirements.takes_gpu(settings.device, mx.context.num_gpus() > 0, build)
        super().__init__(settings, clock, on_gpu=on_gpu)
        self._array = mx.nd.NDArray
        self._context = mx.gpu() if on_gpu else mx.cpu()
        if on_gpu:
            self.precision = "float32" if settings.precision == "float32" else "float16"
            self.device = "GPU (MXNet does not report its name)"
            notes = [NOMINAL, QUEUED]
        else:
            self.precision = requirements.cpu_precision(settings.precision, mixes_on_cpu=False)
            self.device = requirements.describe_cpu(requirements.threads("OMP_NUM_THREADS"))
            notes = ["compute shares its cores with the loader's threads"]
        self.notes = [f"{build} (retired), Gluon, hybridised", *notes]
        # The loss is scaled, so that small float16 gradients do not become zero.
        self._scale = 128 if self.precision == "float16" else 1
        mx.random.seed(settings.seed)
        self._net = network(mx.gluon, settings.model, settings.classes)
        self._net.initialize(mx.init.Xavier(magnitude=2), ctx=self._context)
        self._net.cast(self.precision)
        self._net.hybridize(static_alloc=True)
        self._loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        self._loss.hybridize()
        options = {
            "learning_rate": 0.01,
            "momentum": 0.9,
            "wd": 1e-4,
            "multi_precision": self.precision == "float16",
        }
        self._trainer = mx.gluon.Trainer(self._net.collect_params(), "sgd", options)
        self._mean = self._per_channel(IMAGENET_MEAN)
        self._std = self._per_channel(IMAGENET_STD)

    def _per_channel(self, values: Any) -> Any:
        """Return values for pixels from 0 to 255, one for each channel of images (N, 3, H, W)."""
        return self._mx.nd.array(values, ctx=self._context).reshape((1, 3, 1, 1)) * 255

    def _on_device(self, values: NDArray[Any]) -> Any:
        dtype = "uint8" if values.dtype == np.uint8 else "float32"
        array = self._mx.nd.array(values, ctx=self._context, dtype=dtype)
        array.wait_to_read()
        return array

    def _to_device(self, batch: Batch) -> tuple[Any, Any]:
        images = batch.images.as_in_context(self._context)
        return images, batch.labels.as_in_context(self._context)

    def _train(self, images: Any, labels: Any) -> Any:
        if images.dtype.__name__ == "uint8":
            images = (images.astype("float32") - self._mean) / self._std
        images = images.astype(self.precision, copy=False)
        with self._mx.autograd.record():
            losses = self._loss(self._net(images).astype("float32"), labels) * self._scale
        losses.backward()
        self._trainer.step(images.shape[0] * self._scale)
        return losses.mean() / self._scale

    def _wait(self) -> None:
        self._mx.nd.waitall()

    def _wait_for(self, loss: Any, mark: Any) -> None:
        loss.wait_to_read()

    def _inspect(self, batch: Batch) -> tuple[str, Any]:
        on_gpu = batch.labels.context.device_type.startswith("gpu")
        return batch.images.dtype.__name__, None if on_gpu else batch.labels.asnumpy()


def network(gluon: Any, model: Model, classes: int) -> Any:
    """Return the network of the consumer ``torch`` in Gluon, not initialised.

    It maps images (N, 3, H, W) to logits (N, ``classes``). Gluon's model zoo is not used: its
    ResNet-50 has the stride, and biases, in the first 1x1 convolution of a block (v1).
    """
    nn = gluon.nn

    def chain(*blocks: Any) -> Any:
        sequence = nn.HybridSequential()
        sequence.add(*blocks)
        return sequence

    def conv_norm(
        channels: int, filters: int, kernel: int, stride: int, gamma: str = "ones"
    ) -> Any:
        conv = nn.Conv2D(filters, kernel, stride, kernel // 2, use_bias=False, in_channels=channels)
        return conv, nn.BatchNorm(in_channels=filters, gamma_initializer=gamma)

    class Residual(gluon.HybridBlock):  # type: ignore[misc]
        """``relu(body(x) + shortcut(x))``."""

        def __init__(self, block: list[Convolution]) -> None:
            super().__init__()
            self.body = chain()
            for convolution in block[:-1]:
                self.body.add(*conv_norm(*convolution), nn.Activation("relu"))
            self.body.add(*conv_norm(*block[-1], gamma="zeros"))
            projection = shortcut(block)
            self.shortcut = chain(*conv_norm(*projection)) if projection else None

        def hybrid_forward(self, function: Any, x: Any) -> Any:
            projected = x if self.shortcut is None else self.shortcut(x)
            return function.relu(self.body(x) + projected)

    if model == "lenet":
        return chain(
            nn.Conv2D(6, 5, padding=2, in_channels=3),
            nn.Activation("relu"),
            nn.MaxPool2D(2),
            nn.Conv2D(16, 5, in_channels=6),
            nn.Activation("relu"),
            nn.HybridLambda(lambda function, x: function.contrib.AdaptiveAvgPooling2D(x, 5)),
            nn.Dense(120, activation="relu", in_units=400),
            nn.Dense(84, activation="relu", in_units=120),
            nn.Dense(classes, in_units=84),
        )
    blocks = list(residual_blocks(model))
    last_filters = blocks[-1][-1].filters
    return chain(
        *conv_norm(3, 64, 7, 2),
        nn.Activation("relu"),
        nn.MaxPool2D(3, 2, 1),
        *map(Residual, blocks),
        nn.GlobalAvgPool2D(),
        nn.Dense(classes, in_units=last_filters),
    )
