"""What only TensorFlow's loop does; the rest is in the contract."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.clock import SystemClock
from iobench.consumers import ConsumerSettings, requirements
from iobench.consumers.tf_train import TensorFlowConsumer

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def consumer(**options: Any) -> TensorFlowConsumer:
    """A small LeNet on the CPU."""
    small = {"model": "lenet", "batch_size": 4, "image_size": 32, "classes": 3, "device": "cpu"}
    return TensorFlowConsumer(ConsumerSettings(**{**small, **options}), SystemClock())


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_mixed_precision_learns(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """float16, whose loss is scaled, and bfloat16 both train float32 weights."""
    monkeypatch.setattr(requirements, "cpu_precision", lambda asked: precision)
    one = consumer(precision="mixed")
    batch = one.synthetic()
    losses = []
    for _ in range(60):
        one.step(batch)
        losses.append(float(one.last_loss))
    assert one.precision == precision
    assert hasattr(one._optimiser, "inner_optimizer") is (precision == "float16")
    assert {weight.dtype for weight in one._net.trainable_variables} == {"float32"}
    assert min(losses) < 0.8 * losses[0]


def test_pixels_and_partial_batches_are_traced_once() -> None:
    """A last, smaller batch is not worth another trace in the middle of a measurement."""
    one = consumer()
    one.warm_up()
    batch = one.synthetic()
    one.step(batch._replace(images=batch.images[:2], labels=batch.labels[:2], samples=2))
    assert one._train.experimental_get_tracing_count() == 1


def test_on_a_gpu_compute_time_is_what_warm_up_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are handed over, so that each counts as the average of warm-up steps."""
    one = consumer()
    monkeypatch.setattr(one, "_on_gpu", True)
    one.warm_up()
    for _ in range(4):
        one.step(one.synthetic())
    one.finish()
    assert list(one.compute_s()) == [one._nominal_s] * 4
    assert one._nominal_s > 0
