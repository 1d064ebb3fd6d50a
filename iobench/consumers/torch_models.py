"""ResNet-18, ResNet-50 and LeNet in torch, without torchvision.

The residual networks are those of He et al., "Deep residual learning for image recognition"
(CVPR 2016), in the form called v1.5, whose bottleneck has its stride in the 3x3 convolution;
with 1,000 classes they have 11,689,512 and 25,557,032 parameters. The last batch norm of each
block begins at zero, so that a block begins as the identity.

LeNet is LeNet-5 (LeCun et al., 1998) with three input channels, ReLU, max pooling, and an
adaptive average pooling to 5 x 5 before its dense layers, so that it takes any image from 28
pixels on and has the same number of parameters for all of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from iobench.consumers.protocol import Model

# torch is optional, and typed only where it is installed.
_Module: Any = nn.Module
_STAGES = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
_WIDTHS = (64, 128, 256, 512)


def build(model: Model, classes: int) -> Any:
    """The network: images (N, 3, H, W) float32 to logits (N, ``classes``), freshly drawn."""
    if model == "lenet":
        return _lenet(classes)
    return _resnet(_STAGES[model], _Bottleneck if model == "resnet50" else _Basic, classes)


def _lenet(classes: int) -> Any:
    return nn.Sequential(
        *(nn.Conv2d(3, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(5), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)),
    )


def _resnet(depths: tuple[int, ...], block: Any, classes: int) -> Any:
    layers: list[Any] = [*_conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, padding=1))
    channels = 64
    for stage, (depth, width) in enumerate(zip(depths, _WIDTHS, strict=True)):
        for place in range(depth):
            layers.append(block(channels, width, 2 if stage and not place else 1))
            channels = width * block.expansion
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net.append(nn.Linear(channels, classes))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


class _Residual(_Module):  # type: ignore[misc]
    """``relu(body(x) + shortcut(x))``; the shortcut is a projection where shapes differ."""

    expansion = 1

    def __init__(self, body: list[Any], channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        nn.init.zeros_(body[-1].weight)
        same = stride == 1 and channels == out
        self.shortcut: Any = (
            nn.Identity() if same else nn.Sequential(*_conv_norm(channels, out, 1, stride))
        )

    def forward(self, x: Any) -> Any:
        """(N, channels, H, W) to (N, out, H / stride, W / stride)."""
        return torch.relu_(self.body(x) + self.shortcut(x))


class _Basic(_Residual):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        first = [*_conv_norm(channels, width, 3, stride), nn.ReLU(inplace=True)]
        super().__init__([*first, *_conv_norm(width, width, 3, 1)], channels, width, stride)


class _Bottleneck(_Residual):
    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        out = width * self.expansion
        reduce = [*_conv_norm(channels, width, 1, 1), nn.ReLU(inplace=True)]
        middle = [*_conv_norm(width, width, 3, stride), nn.ReLU(inplace=True)]
        body = [*reduce, *middle, *_conv_norm(width, out, 1, 1)]
        super().__init__(body, channels, out, stride)


def _conv_norm(channels: int, out: int, kernel: int, stride: int) -> tuple[Any, Any]:
    padding = kernel // 2
    conv = nn.Conv2d(channels, out, kernel, stride=stride, padding=padding, bias=False)
    return conv, nn.BatchNorm2d(out)
