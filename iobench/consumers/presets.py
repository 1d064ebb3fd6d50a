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


_NVIDIA = "NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, container 21.03"
_AWS = (
    "AWS Machine Learning Blog, Scalable multi-node deep learning training using GPUs in the AWS "
    "Cloud, 2018"
)
_MLPERF = "MLPerf Training v3.0, dgxh100_ngc23.04_mxnet: 56,000 images/s over 8"

_KNOWN = (
    Preset("V100", 1_200, f"one GPU of a DGX-1, 16 GB; {_NVIDIA}"),
    Preset("V100-mxnet-64", 687, f"MXNet, one of 64 GPUs of a job; {_AWS}"),
    Preset("V100-tensorflow-64", 640, f"TensorFlow and Horovod, one of 64 GPUs of a job; {_AWS}"),
    Preset("A100", 2_470, f"one GPU of a DGX A100, 80 GB; {_NVIDIA}"),
    Preset("H100", 7_000, f"one of the 8 GPUs of a DGX H100, which train together; {_MLPERF}"),
)
PRESETS = {preset.name: preset for preset in _KNOWN}
