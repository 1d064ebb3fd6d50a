"""MXNet's training loop; the contract suite has the tests that all consumers share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dataprep.reading.mxnet_compat import import_mxnet
from iobench.clock import SystemClock
from iobench.consumers import ConsumerSettings, Model
from iobench.consumers.mxnet_train import MXNetConsumer, network
from iobench.errors import Unavailable

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def consumer(**options: Any) -> MXNetConsumer:
    """Return a consumer that trains a small LeNet on the CPU."""
    small = {"model": "lenet", "batch_size": 4, "image_size": 32, "classes": 3, "device": "cpu"}
    return MXNetConsumer(ConsumerSettings(**{**small, **options}), SystemClock())


def test_a_scaled_loss_trains_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale that float16 needs is divided out before the weights change."""
    losses = []
    for scale in (1, 128):
        trainer = consumer()
        monkeypatch.setattr(trainer, "_scale", scale)
        batch = trainer.synthetic()
        for _ in range(5):
            trainer.step(batch)
        losses.append(float(trainer.last_loss.asscalar()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_a_cpu_has_no_mixed_precision() -> None:
    """Mixed precision is refused on a CPU, since MXNet's float16 is for GPUs."""
    with pytest.raises(Unavailable, match="needs a GPU"):
        consumer(precision="mixed")


def test_on_a_gpu_compute_time_is_what_warm_up_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step counts as the average of the warm-up steps, since the device computes it later."""
    trainer = consumer()
    monkeypatch.setattr(trainer, "_on_gpu", True)
    trainer.warm_up()
    for _ in range(4):
        trainer.step(trainer.synthetic())
    trainer.finish()
    assert list(trainer.compute_s()) == [trainer._nominal_s] * 4
    assert trainer._nominal_s > 0


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("resnet50", 25_557_032), ("resnet18", 11_689_512), ("lenet", 146_156)],
)
def test_a_network_has_torchs_number_of_parameters(model: Model, parameters: int) -> None:
    """Networks for 1,000 classes have as many trained parameters as torch's."""
    weights = network(import_mxnet().gluon, model, 1000).collect_params().values()
    trained = [weight for weight in weights if weight.grad_req != "null"]
    assert sum(int(np.prod(weight.shape)) for weight in trained) == parameters


@pytest.mark.parametrize("model", ["resnet50", "resnet18", "lenet"])
@pytest.mark.parametrize("size", [28, 33])
def test_any_image_size_from_28_on_is_taken(model: Model, size: int) -> None:
    """The network returns one logit for each class."""
    net = network(import_mxnet().gluon, model, 7)
    net.initialize()
    assert net(import_mxnet().nd.zeros((2, 3, size, size))).shape == (2, 7)
