"""Devices that ``paced`` emulates, each by its images per second and where that is from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """One GPU training ResNet-50 at 224 pixels in mixed precision, fed without a stall.

    ``source`` says how the rate came about, as far as that is known.
    """

    name: str
    images_per_s: float
    source: str


_KNOWN = (
    Preset(
        "V100",
        1_200,
        "about 1,200: what tuned single-GPU training reaches; a published figure, not measured "
        "by iobench",
    ),
    Preset(
        "V100-mxnet-64",
        687,
        "one GPU's share within a 64-GPU MXNet job; a published figure, not measured by iobench",
    ),
    Preset(
        "V100-tensorflow-64",
        640,
        "one GPU's share within a 64-GPU TensorFlow and Horovod job; a published figure, not "
        "measured by iobench",
    ),
    Preset("A100", 2_470, "about 2,470; a published figure, not measured by iobench"),
    Preset("H100", 7_000, "about 7,000; a published figure, not measured by iobench"),
)
PRESETS = {preset.name: preset for preset in _KNOWN}
