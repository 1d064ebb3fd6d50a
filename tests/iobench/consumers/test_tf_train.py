"""TensorFlow's training loop; the contract suite has the tests that all consumers share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iobench.clock import SystemClock
from iobench.consumers import ConsumerSettings, Model, requirements, torch_train
from iobench.consumers.tf_train import TensorFlowConsumer, network

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def consumer(**options: Any) -> TensorFlowConsumer:
    """Return a consumer that trains a small LeNet on the CPU."""
    small = {"model": "lenet", "batch_size": 4, "image_size": 32, "classes": 3, "device": "cpu"}
    return TensorFlowConsumer(ConsumerSettings(**{**small, **options}), SystemClock())


def keras() -> Any:
    """Import TensorFlow, and return its Keras."""
    import tensorflow as tf

    return tf.keras


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_mixed_precision_learns(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """float16, whose loss is scaled, and bfloat16 both train float32 weights."""
    monkeypatch.setattr(requirements, "cpu_precision", lambda requested: precision)
    trainer = consumer(precision="mixed")
    batch = trainer.synthetic()
    losses = []
    for _ in range(60):
        trainer.step(batch)
        losses.append(float(trainer.last_loss))
    assert trainer.precision == precision
    assert hasattr(trainer._optimiser, "inner_optimizer") is (precision == "float16")
    assert {weight.dtype for weight in trainer._net.trainable_variables} == {"float32"}
    assert min(losses) < 0.8 * losses[0]


def test_pixels_and_partial_batches_are_traced_once() -> None:
    """A smaller last batch causes no second trace in the middle of a measurement."""
    trainer = consumer()
    trainer.warm_up()
    batch = trainer.synthetic()
    trainer.step(batch._replace(images=batch.images[:2], labels=batch.labels[:2], samples=2))
    assert trainer._traced_step.experimental_get_tracing_count() == 1


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
    net = network(keras(), model, 1000, 64, "float32")
    assert sum(int(np.prod(weight.shape)) for weight in net.trainable_variables) == parameters


def test_feature_maps_are_as_large_as_torchs() -> None:
    """Padding is on both sides, and strides are where v1.5 has them."""
    import torch

    sizes: list[int] = []
    net = torch_train.network(torch, "resnet50", 10).eval()
    for module in net.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(lambda _, __, output: sizes.append(output.shape[-1]))
    with torch.no_grad():
        net(torch.zeros(1, 3, 97, 97))
    layers = network(keras(), "resnet50", 10, 97, "float32").layers
    ours = [layer.output.shape[1] for layer in layers if "Conv2D" in type(layer).__name__]
    assert sorted(ours) == sorted(sizes)


def test_a_mixed_network_ends_in_float32() -> None:
    """The layers compute in bfloat16 and the logits in float32."""
    net = network(keras(), "lenet", 10, 32, "mixed_bfloat16")
    assert {layer.compute_dtype for layer in net.layers[1:-1]} >= {"bfloat16"}
    assert net.layers[-1].compute_dtype == "float32"
