"""The accelerators that ``iobench`` knows by name: their rates, sources and prices.

This file is the only place that lists accelerators. To add one, add an entry to ``ACCELERATORS``,
then run ``python docs/generate.py``. Configs (``training.N.preset``), ``iobench scale --device``,
the report and docs/accelerators.md take it from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from iobench.consumers.protocol import Model


class WorkKind(Enum):
    """The kind of work whose rate is given."""

    TUNED_STEP = "a tuned training step"
    STEP_IN_A_JOB = "a training step within a job of 64 GPUs"
    MLPERF_STORAGE = "the emulation of MLPerf Storage"


@dataclass(frozen=True, slots=True)
class StorageWorkload:
    """A workload file of MLPerf Storage, which emulates training by a pause for each batch.

    Attributes:
        file: path in the repository mlcommons/storage.
        version: the version of the benchmark that has this file.
        batch_size: samples of a batch.
        computation_s: the pause for a batch (``computation_time``).
        pass_mark: the lowest accelerator utilisation of a run that passes (``au``), as a share.
    """

    file: str
    version: str
    batch_size: int
    computation_s: float
    pass_mark: float


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast an accelerator trains one model if it never waits for data.

    Attributes:
        name: the name of the rate in ``preset`` of a config and in ``--device``.
        model: the model that is trained.
        samples_per_s: samples per second of one accelerator.
        work_kind: the kind of work.
        source: who measured or published the rate, and how.
        workload: the workload file that the rate is taken from; None for rates of real training.
    """

    name: str
    model: Model
    samples_per_s: float
    work_kind: WorkKind
    source: str
    workload: StorageWorkload | None = None


@dataclass(frozen=True, slots=True)
class Rental:
    """The price on demand of an instance of Amazon EC2 that has accelerators.

    Attributes:
        instance: the type of the instance.
        accelerators: how many accelerators it has.
        usd_per_h: its price for an hour, in US dollars.
        region: the region of the price.
        as_of: the date of the price.
        source: where the price is published.
    """

    instance: str
    accelerators: int
    usd_per_h: float
    region: str
    as_of: str
    source: str

    @property
    def usd_per_accelerator_h(self) -> float:
        """The price of the instance for an hour, divided by its accelerators."""
        return self.usd_per_h / self.accelerators

    @property
    def basis(self) -> str:
        """``p5.48xlarge with 8 for $55.04 an hour, us-east-1, on demand, as of 2026-01-19``."""
        return (
            f"{self.instance} with {self.accelerators} for ${self.usd_per_h:,.2f} an hour, "
            f"{self.region}, on demand, as of {self.as_of}"
        )


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A type of accelerator, with its rates and its price; the price is None if it is unknown."""

    name: str
    rates: tuple[Rate, ...]
    rental: Rental | None = None


def _storage_rate(name: str, model: Model, workload: StorageWorkload) -> Rate:
    """Return the rate of a workload file: samples of a batch, divided by the pause for a batch."""
    source = (
        f"MLPerf Storage {workload.version}, {workload.file}: a pause of "
        f"{workload.computation_s:g} s for each batch of {workload.batch_size}"
    )
    samples_per_s = workload.batch_size / workload.computation_s
    return Rate(name, model, samples_per_s, WorkKind.MLPERF_STORAGE, source, workload)


def _rental(instance: str, accelerators: int, usd_per_h: float) -> Rental:
    return Rental(
        instance,
        accelerators,
        usd_per_h,
        region="us-east-1",
        as_of="2026-01-19",
        source=(
            "https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/pricing/"
            "zz_generated.pricing_aws.go"
        ),
    )


_WORKLOADS = "configs/dlio/workload"
_NVIDIA = "NVIDIA DeepLearningExamples, ResNet50 v1.5 for PyTorch, container 21.03"
_AWS = (
    "AWS Machine Learning Blog, Scalable multi-node deep learning training using GPUs in the AWS "
    "Cloud, 2018"
)

ACCELERATORS = (
    Accelerator(
        "V100",
        (
            Rate(
                "V100",
                "resnet50",
                1_200,
                WorkKind.TUNED_STEP,
                f"one GPU of a DGX-1, 16 GB, mixed precision; {_NVIDIA}",
            ),
            Rate(
                "V100-mxnet-64",
                "resnet50",
                687,
                WorkKind.STEP_IN_A_JOB,
                f"MXNet, one of 64 GPUs of a job; {_AWS}",
            ),
            Rate(
                "V100-tensorflow-64",
                "resnet50",
                640,
                WorkKind.STEP_IN_A_JOB,
                f"TensorFlow and Horovod, one of 64 GPUs of a job; {_AWS}",
            ),
        ),
        _rental("p3.16xlarge", 8, 24.48),
    ),
    Accelerator(
        "A100",
        (
            Rate(
                "A100",
                "resnet50",
                2_470,
                WorkKind.TUNED_STEP,
                f"one GPU of a DGX A100, 80 GB, mixed precision; {_NVIDIA}",
            ),
            _storage_rate(
                "A100-mlperf",
                "resnet50",
                StorageWorkload(f"{_WORKLOADS}/resnet50_a100.yaml", "v2.0", 400, 0.435, 0.90),
            ),
        ),
        _rental("p4de.24xlarge", 8, 27.44705),
    ),
    Accelerator(
        "H100",
        (
            Rate(
                "H100",
                "resnet50",
                7_000,
                WorkKind.TUNED_STEP,
                "one of the 8 GPUs of a DGX H100, which train together, mixed precision; MLPerf "
                "Training v3.0, dgxh100_ngc23.04_mxnet: 56,000 images/s over 8",
            ),
            _storage_rate(
                "H100-mlperf",
                "resnet50",
                StorageWorkload(f"{_WORKLOADS}/resnet50_h100.yaml", "v2.0", 400, 0.224, 0.90),
            ),
        ),
        _rental("p5.48xlarge", 8, 55.04),
    ),
    Accelerator(
        "B200",
        (
            _storage_rate(
                "B200-mlperf",
                "retinanet",
                StorageWorkload(f"{_WORKLOADS}/retinanet_b200.yaml", "v3.0", 24, 0.04755, 0.85),
            ),
        ),
        _rental("p6-b200.48xlarge", 8, 113.9328),
    ),
    Accelerator(
        "MI355",
        (
            _storage_rate(
                "MI355-mlperf",
                "retinanet",
                StorageWorkload(f"{_WORKLOADS}/retinanet_mi355.yaml", "v3.0", 32, 0.0634, 0.85),
            ),
        ),
    ),
)
"""All accelerators; each has at least one rate."""

RATES: Mapping[str, Rate] = {
    rate.name: rate for accelerator in ACCELERATORS for rate in accelerator.rates
}
"""All rates by their names."""


def rental_of(name: str) -> Rental | None:
    """Return the price of the accelerator with the rate ``name``; None if it is unknown."""
    for accelerator in ACCELERATORS:
        if any(rate.name == name for rate in accelerator.rates):
            return accelerator.rental
    return None
