"""The paced consumer takes exactly the time of the described device, however long sleeps are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.consumers.accelerators import RATES
from iobench.consumers.null import NullConsumer
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import Batch
from tests.iobench.oversleeping_clock import OversleepingClock

positive = st.floats(1e-3, 1e4, allow_nan=False)
waits = st.lists(st.floats(0, 5), min_size=1, max_size=30)


def paced(clock: VirtualClock, images_per_s: float = 100.0, batch_size: int = 10) -> PacedConsumer:
    """Return a device that takes batches of ``batch_size``; the default step is 0.1 s."""
    settings = ConsumerSettings(images_per_s=images_per_s, batch_size=batch_size)
    return PacedConsumer(settings, clock)


def run(device: PacedConsumer, clock: VirtualClock, waits_s: list[float]) -> float:
    """Run a loop that waits ``waits_s`` before its batches; return its seconds."""
    began_s = clock.now_s()
    for wait_s in waits_s:
        VirtualClock.sleep(clock, wait_s)
        device.step(device.synthetic())
    return clock.now_s() - began_s


@given(images_per_s=positive, batch_size=st.integers(1, 512), steps=st.integers(1, 30))
def test_a_fed_device_takes_samples_over_its_rate(
    images_per_s: float, batch_size: int, steps: int
) -> None:
    """N steps take N * batch / rate, and ``compute_s`` has the same times."""
    clock = VirtualClock()
    device = paced(clock, images_per_s, batch_size)
    seconds = run(device, clock, [0.0] * steps)
    assert seconds == pytest.approx(steps * batch_size / images_per_s)
    assert list(device.compute_s()) == pytest.approx([batch_size / images_per_s] * steps)


@given(waits)
def test_time_waited_for_data_is_lost(waits_s: list[float]) -> None:
    """A device does not catch up: waiting and computing add up."""
    clock = VirtualClock()
    assert run(paced(clock), clock, waits_s) == pytest.approx(sum(waits_s) + 0.1 * len(waits_s))


@given(waits, st.floats(0, 0.1), st.integers(0, 99))
def test_oversleeping_does_not_add_up(waits_s: list[float], most_s: float, seed: int) -> None:
    """Sleeps that are each less than a step too long delay the end by one of them only."""
    clock = OversleepingClock(most_s, seed)
    seconds = run(paced(clock), clock, waits_s)
    ideal_s = sum(waits_s) + 0.1 * len(waits_s)
    assert ideal_s - 1e-9 <= seconds <= ideal_s + most_s + 1e-9


def test_a_host_that_was_away_for_long_starves_the_device() -> None:
    """Of an absence of ten steps, at most one step is caught up."""
    clock = OversleepingClock(0.0)
    device = paced(clock)
    device.step(device.synthetic())
    clock.most_s = 2.0
    device.step(device.synthetic())
    clock.most_s = 0.0
    away_s = clock.now_s() - 0.2
    assert away_s > 0.2
    assert run(device, clock, [0.0] * 10) == pytest.approx(0.9)


def test_a_smaller_last_batch_takes_less() -> None:
    """A step takes the time of its own samples; warm-up takes none and clears earlier steps."""
    clock = VirtualClock()
    device = paced(clock)
    device.step(Batch(None, None, 3))
    assert clock.now_s() == pytest.approx(0.03)
    device.warm_up()
    assert clock.now_s() == pytest.approx(0.03)
    assert list(device.compute_s()) == []


def test_null_takes_no_time_and_looks_at_nothing() -> None:
    """Steps take no time, and the consumer is not an emulated device."""
    clock = VirtualClock()
    consumer = NullConsumer(ConsumerSettings(batch_size=7), clock)
    batch = consumer.synthetic()
    assert (batch.images, batch.labels, batch.samples) == (None, None, 7)
    consumer.step(batch)
    consumer.step(batch)
    assert clock.now_s() == 0
    assert list(consumer.compute_s()) == [0.0, 0.0]
    assert (consumer.emulated, consumer.device, consumer.framework) == (False, "none", "none")


@pytest.mark.parametrize("name", RATES)
def test_a_preset_is_noted_with_its_source(name: str) -> None:
    """The notes have the device, the rate, the kind of work and the source."""
    device = PacedConsumer(ConsumerSettings(preset=name), VirtualClock())
    assert device.images_per_s == RATES[name].samples_per_s
    assert device.device.startswith(f"emulated {name} (")
    assert device.notes[0].startswith("emulated")
    assert RATES[name].work_kind.value in device.notes[0]
    assert RATES[name].source in device.notes[0]


def test_a_workload_of_mlperf_storage_pauses_as_its_file_says() -> None:
    """A batch of 400 takes an emulated H100 of MLPerf Storage 0.224 s."""
    clock = VirtualClock()
    device = PacedConsumer(ConsumerSettings(preset="H100-mlperf", batch_size=400), clock)
    device.step(device.synthetic())
    assert clock.now_s() == pytest.approx(0.224)
    assert device.device == "emulated H100-mlperf (1,786 images/s)"
