"""The consumer that is none."""

from __future__ import annotations

from iobench.clock import VirtualClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings


def test_it_takes_no_time_and_looks_at_nothing() -> None:
    """Steps cost nothing and compute nothing."""
    clock = VirtualClock()
    consumer = NullConsumer(ConsumerSettings(batch_size=7), clock)
    batch = consumer.synthetic()
    assert (batch.images, batch.labels, batch.samples) == (None, None, 7)
    consumer.step(batch)
    consumer.step(batch)
    assert clock.now_s() == 0
    assert list(consumer.compute_s()) == [0.0, 0.0]


def test_it_is_no_emulated_device() -> None:
    """It stands for nothing, and says so."""
    consumer = NullConsumer(ConsumerSettings(), VirtualClock())
    assert (consumer.emulated, consumer.device, consumer.framework) == (False, "none", "none")
