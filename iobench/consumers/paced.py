"""``paced``: an emulated device, described by its images per second or by a preset."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from iobench.clock import Clock, Pauses
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import Batch, Framework


@dataclass(frozen=True, slots=True)
class Preset:
    """One GPU that trains ResNet-50 at 224 pixels in mixed precision and never waits for data.

    ``source``: who measured the rate, and how.
    """

    images_per_s: float
    source: str


_NVIDIA = "NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, container 21.03"
_AWS = (
    "AWS Machine Learning Blog, Scalable multi-node deep learning training using GPUs in the AWS "
    "Cloud, 2018"
)
_MLPERF = "MLPerf Training v3.0, dgxh100_ngc23.04_mxnet: 56,000 images/s over 8"

PRESETS = {
    "V100": Preset(1_200, f"one GPU of a DGX-1, 16 GB; {_NVIDIA}"),
    "V100-mxnet-64": Preset(687, f"MXNet, one of 64 GPUs of a job; {_AWS}"),
    "V100-tensorflow-64": Preset(640, f"TensorFlow and Horovod, one of 64 GPUs of a job; {_AWS}"),
    "A100": Preset(2_470, f"one GPU of a DGX A100, 80 GB; {_NVIDIA}"),
    "H100": Preset(7_000, f"one of the 8 GPUs of a DGX H100, which train together; {_MLPERF}"),
}


class PacedConsumer:
    """Waits as long as the device would compute; see ``Consumer``.

    A step begins when the step before it has ended and its batch is there, and lasts samples /
    ``images_per_s``. Time in which the device waited for data is lost. If ``Clock.sleep`` sleeps
    too long, the next step is shorter by that time, by at most its own length.
    """

    framework: Framework = "none"
    emulated = True
    precision = "emulated"

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        name = settings.preset or "device"
        described = Preset(settings.images_per_s or 0.0, "the rate of the config")
        preset = PRESETS.get(name, described)
        self.images_per_s = preset.images_per_s
        self.device = f"emulated {name} ({preset.images_per_s:,g} images/s)"
        self.notes: Sequence[str] = (f"emulated, without computing: {preset.source}",)
        self._settings = settings
        self._pauses = Pauses(clock)
        self._compute_s = array("d")

    def synthetic(self) -> Batch:
        """Samples without content."""
        return Batch(None, None, self._settings.batch_size)

    def warm_up(self) -> None:
        """Forget earlier steps."""
        self._pauses.clear()
        self._compute_s = array("d")

    def step(self, batch: Batch) -> None:
        """Return when the emulated device is done."""
        compute_s = batch.samples / self.images_per_s
        self._pauses.take(compute_s)
        self._compute_s.append(compute_s)

    def finish(self) -> None:
        """Nothing to wait for: each step has ended when it returns."""

    def compute_s(self) -> Sequence[float]:
        """Samples / ``images_per_s`` of each step."""
        return self._compute_s
