"""The networks of ``torch_models`` in Gluon: same layers, same numbers of parameters.

Gluon's model zoo is not used: its ResNet-50 has the stride in the first 1x1 convolution (v1),
and biases there.
"""

from __future__ import annotations

from typing import Any

from dataprep.adapters.mxnet_compat import import_mxnet
from iobench.consumers.protocol import Model

_gluon: Any = import_mxnet().gluon
_nn: Any = _gluon.nn
_Block: Any = _gluon.HybridBlock
_STAGES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
_WIDTHS = (64, 128, 256, 512)


def build(model: Model, classes: int) -> Any:
    """The network: images (N, 3, H, W) to logits (N, ``classes``); to be initialised yet."""
    return _lenet(classes) if model == "lenet" else _resnet(model, classes)


def _lenet(classes: int) -> Any:
    return _chain(
        *(_nn.Conv2D(6, 5, padding=2, in_channels=3), _nn.Activation("relu"), _nn.MaxPool2D(2)),
        *(_nn.Conv2D(16, 5, in_channels=6), _nn.Activation("relu"), _nn.HybridLambda(_pool_to_5)),
        *(_nn.Dense(120, activation="relu", in_units=400),),
        *(_nn.Dense(84, activation="relu", in_units=120), _nn.Dense(classes, in_units=84)),
    )


def _pool_to_5(function: Any, x: Any) -> Any:
    """Adaptive average pooling (N, C, H, W) to (N, C, 5, 5)."""
    return function.contrib.AdaptiveAvgPooling2D(x, output_size=5)


def _resnet(model: Model, classes: int) -> Any:
    net = _chain(*_conv_norm(3, 64, 7, 2), _nn.Activation("relu"), _nn.MaxPool2D(3, 2, 1))
    channels, widening = 64, 4 if model == "resnet50" else 1
    for stage, (depth, width) in enumerate(zip(_STAGES[model], _WIDTHS, strict=True)):
        for place in range(depth):
            out, stride = width * widening, 2 if stage and not place else 1
            body = _bottleneck if model == "resnet50" else _basic
            net.add(_Residual(body(channels, width, stride), channels, out, stride))
            channels = out
    net.add(_nn.GlobalAvgPool2D(), _nn.Dense(classes, in_units=channels))
    return net


class _Residual(_Block):  # type: ignore[misc]
    """``relu(body(x) + shortcut(x))``; the shortcut is a projection where shapes differ."""

    def __init__(self, body: Any, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = body
        same = stride == 1 and channels == out
        self.shortcut = None if same else _chain(*_conv_norm(channels, out, 1, stride))

    def hybrid_forward(self, function: Any, x: Any) -> Any:
        """(N, channels, H, W) to (N, out, H / stride, W / stride)."""
        beside = x if self.shortcut is None else self.shortcut(x)
        return function.relu(self.body(x) + beside)


def _basic(channels: int, width: int, stride: int) -> Any:
    first = [*_conv_norm(channels, width, 3, stride), _nn.Activation("relu")]
    return _chain(*first, *_conv_norm(width, width, 3, 1, gamma="zeros"))


def _bottleneck(channels: int, width: int, stride: int) -> Any:
    reduce = [*_conv_norm(channels, width, 1, 1), _nn.Activation("relu")]
    middle = [*_conv_norm(width, width, 3, stride), _nn.Activation("relu")]
    return _chain(*reduce, *middle, *_conv_norm(width, width * 4, 1, 1, gamma="zeros"))


def _conv_norm(
    channels: int, out: int, kernel: int, stride: int, gamma: str = "ones"
) -> tuple[Any, Any]:
    conv = _nn.Conv2D(*(out, kernel, stride, kernel // 2), use_bias=False, in_channels=channels)
    return conv, _nn.BatchNorm(in_channels=out, gamma_initializer=gamma)


def _chain(*blocks: Any) -> Any:
    chain = _nn.HybridSequential()
    chain.add(*blocks)
    return chain
