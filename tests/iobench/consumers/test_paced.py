"""A described device takes exactly its time, whatever the clock's sleep does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.consumers.accelerators import RATES
from iobench.consumers.null import NullConsumer
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import Batch

positive = st.floats(1e-3, 1e4, allow_nan=False)
waits = st.lists(st.floats(0, 5), min_size=1, max_size=30)


class OversleepingClock(VirtualClock):
    """Each sleep takes up to ``most_s`` longer than asked, as a real one does."""

    def __init__(self, most_s: float, seed: int = 0) -> None:
        super().__init__()
        self._most_s, self._random = most_s, random.Random(seed)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + self._random.uniform(0, self._most_s) if seconds > 0 else 0)


def paced(clock: VirtualClock, images_per_s: float = 100.0, batch_size: int = 10) -> PacedConsumer:
    """100 images/s in batches of 10, unless told: a step is 0.1 s."""
    settings = ConsumerSettings(images_per_s=images_per_s, batch_size=batch_size)
    return PacedConsumer(settings, clock)


def run(device: PacedConsumer, clock: VirtualClock, waits_s: list[float]) -> float:
    """Seconds of a loop that waits so long for each of its batches."""
    began_s = clock.now_s()
    for wait_s in waits_s:
        VirtualClock.sleep(clock, wait_s)
        device.step(device.synthetic())
    return clock.now_s() - began_s


@given(images_per_s=positive, batch_size=st.integers(1, 512), steps=st.integers(1, 30))
def test_a_fed_device_takes_samples_over_its_rate(
    images_per_s: float, batch_size: int, steps: int
) -> None:
    """N steps take N * batch / rate, and so says ``compute_s``."""
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
    """Sleeps that are too long by less than a step make the whole longer by one of them only."""
    clock = OversleepingClock(most_s, seed)
    seconds = run(paced(clock), clock, waits_s)
    ideal_s = sum(waits_s) + 0.1 * len(waits_s)
    assert ideal_s - 1e-9 <= seconds <= ideal_s + most_s + 1e-9


def test_a_host_that_was_away_for_long_starves_the_device() -> None:
    """Of an absence of ten steps, no more than one is made good."""
    clock = OversleepingClock(0.0)
    device = paced(clock)
    device.step(device.synthetic())
    clock._most_s = 2.0
    device.step(device.synthetic())
    clock._most_s = 0.0
    away_s = clock.now_s() - 0.2
    assert away_s > 0.2
    assert run(device, clock, [0.0] * 10) == pytest.approx(0.9)


def test_a_smaller_last_batch_takes_less() -> None:
    """A step's time goes by the batch's own samples; warm-up takes none, and forgets."""
    clock = VirtualClock()
    device = paced(clock)
    device.step(Batch(None, None, 3))
    assert clock.now_s() == pytest.approx(0.03)
    device.warm_up()
    assert clock.now_s() == pytest.approx(0.03)
    assert list(device.compute_s()) == []


def test_null_takes_no_time_and_looks_at_nothing() -> None:
    """Steps cost nothing and compute nothing; it is no emulated device."""
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
def test_a_preset_is_told_with_its_source(name: str) -> None:
    """Device, rate, what the rate means and where it is from stand beside every figure."""
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
