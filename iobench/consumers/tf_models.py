"""The networks of ``torch_models`` in Keras: same layers, same numbers of parameters.

Images are (N, H, W, 3). Keras' own ResNet-50 is not used: its bottleneck has the stride in the
first 1x1 convolution (v1), and its convolutions have biases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow import keras

from iobench.consumers.protocol import Model

_STAGES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
_WIDTHS = (64, 128, 256, 512)


def build(model: Model, classes: int, image_size: int, policy: str) -> Any:
    """The network: images (N, S, S, 3) float32 to logits (N, ``classes``) float32.

    ``policy``: ``float32``, or a Keras policy of mixed precision.
    """
    network = _Network(policy)
    images = keras.Input((image_size, image_size, 3))
    if model == "lenet":
        features = network.lenet(images)
    else:
        features = network.resnet(images, _STAGES[model], bottleneck=model == "resnet50")
    # Logits in float32 whatever the policy: cross entropy needs the range.
    return keras.Model(images, keras.layers.Dense(classes, dtype="float32")(features))


class _Network:
    """Layers under one policy, applied one after the other."""

    def __init__(self, policy: str) -> None:
        self._policy = policy

    def lenet(self, x: Any) -> Any:
        layers, policy = keras.layers, self._policy
        x = layers.Conv2D(6, 5, padding="same", activation="relu", dtype=policy)(x)
        x = layers.MaxPool2D(2, dtype=policy)(x)
        x = layers.Conv2D(16, 5, activation="relu", dtype=policy)(x)
        x = layers.Flatten(dtype=policy)(self._pool_to(x, 5))
        for width in (120, 84):
            x = layers.Dense(width, activation="relu", dtype=policy)(x)
        return x

    def resnet(self, x: Any, depths: tuple[int, ...], *, bottleneck: bool) -> Any:
        x = self._relu(self._conv_norm(x, 64, 7, 2))
        x = keras.layers.ZeroPadding2D(1, dtype=self._policy)(x)
        x = keras.layers.MaxPool2D(3, 2, dtype=self._policy)(x)
        for stage, (depth, width) in enumerate(zip(depths, _WIDTHS, strict=True)):
            for place in range(depth):
                x = self._block(x, width, 2 if stage and not place else 1, bottleneck)
        return keras.layers.GlobalAveragePooling2D(dtype=self._policy)(x)

    def _block(self, x: Any, width: int, stride: int, bottleneck: bool) -> Any:
        out = width * 4 if bottleneck else width
        if bottleneck:
            body = self._relu(self._conv_norm(x, width, 1, 1))
            body = self._relu(self._conv_norm(body, width, 3, stride))
            body = self._conv_norm(body, out, 1, 1, gamma="zeros")
        else:
            body = self._relu(self._conv_norm(x, width, 3, stride))
            body = self._conv_norm(body, width, 3, 1, gamma="zeros")
        if stride != 1 or x.shape[-1] != out:
            x = self._conv_norm(x, out, 1, stride)
        return self._relu(keras.layers.Add(dtype=self._policy)([body, x]))

    def _conv_norm(self, x: Any, out: int, kernel: int, stride: int, gamma: str = "ones") -> Any:
        layers, policy = keras.layers, self._policy
        if kernel > 1:
            # Padding "same" pads unevenly at stride 2.
            x = layers.ZeroPadding2D(kernel // 2, dtype=policy)(x)
        x = layers.Conv2D(
            *(out, kernel, stride),
            use_bias=False,
            kernel_initializer="he_normal",
            dtype=policy,
        )(x)
        norm = layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, gamma_initializer=gamma, dtype=policy
        )
        return norm(x)

    def _relu(self, x: Any) -> Any:
        return keras.layers.ReLU(dtype=self._policy)(x)

    def _pool_to(self, x: Any, cells: int) -> Any:
        """Adaptive average pooling (N, H, W, C) to (N, ``cells``, ``cells``, C)."""
        rows, columns = bins(x.shape[1], cells), bins(x.shape[2], cells)
        dtype = keras.DTypePolicy(self._policy).compute_dtype
        x = keras.ops.einsum("oh,nhwc->nowc", keras.ops.cast(rows, dtype), x)
        return keras.ops.einsum("ow,nhwc->nhoc", keras.ops.cast(columns, dtype), x)


def bins(size: int, cells: int) -> NDArray[np.float32]:
    """(``cells``, ``size``) weights that average ``size`` values into overlapping bins.

    Bin i runs from floor(i * size / cells) to ceil((i + 1) * size / cells), as in torch.
    """
    weights = np.zeros((cells, size), np.float32)
    for cell in range(cells):
        begin, end = cell * size // cells, -(-(cell + 1) * size // cells)
        weights[cell, begin:end] = 1 / (end - begin)
    return weights
