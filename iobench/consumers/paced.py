"""``paced``: an emulated device, described by its images per second or by a preset."""

from __future__ import annotations

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
        preset = PRESETS.get(settings.preset or "") or Preset(
            "device", settings.images_per_s or 0.0, "the rate of the config"
        )
        self.images_per_s = preset.images_per_s
        self.device = f"emulated {preset.name} ({preset.images_per_s:,g} images/s)"
        self.notes: Sequence[str] = (f"emulated, without computing: {preset.source}",)
        self._settings = settings
        self._pauses = Pauses(clock)
        self._compute_s: list[float] = []

    def synthetic(self) -> Batch:
        """Samples without content."""
        return Batch(None, None, self._settings.batch_size)

    def warm_up(self) -> None:
        """Forget earlier steps."""
        self._pauses.clear()
        self._compute_s.clear()

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
