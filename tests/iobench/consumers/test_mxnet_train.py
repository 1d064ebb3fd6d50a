"""What only MXNet's loop does; the rest is in the contract."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.clock import SystemClock
from iobench.consumers import ConsumerSettings
from iobench.consumers.mxnet_train import MXNetConsumer
from iobench.errors import Unavailable

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def consumer(**options: Any) -> MXNetConsumer:
    """A small LeNet on the CPU."""
    small = {"model": "lenet", "batch_size": 4, "image_size": 32, "classes": 3, "device": "cpu"}
    return MXNetConsumer(ConsumerSettings(**{**small, **options}), SystemClock())


def test_a_scaled_loss_trains_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What float16 needs is taken out again before the weights change."""
    losses = []
    for scale in (1, 128):
        one = consumer()
        monkeypatch.setattr(one, "_scale", scale)
        batch = one.synthetic()
        for _ in range(5):
            one.step(batch)
        losses.append(float(one.last_loss.asscalar()))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_a_cpu_has_no_mixed_precision() -> None:
    """MXNet's float16 is made for GPUs."""
    with pytest.raises(Unavailable, match="needs a GPU"):
        consumer(precision="mixed")


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
