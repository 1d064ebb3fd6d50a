"""Delays where they are to be found, and nothing else changed."""

from __future__ import annotations

import threading

import cv2
import numpy as np
import pytest

from dataprep.adapters.augment import Augmentation, sample_rng
from iobench.clock import VirtualClock
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.faults.slowed import SlowedCopy, ThreadPauses, slowed
from iobench.loaders import Batch, LoaderSettings
from iobench.loaders.protocol import augmentation_of
from iobench.pixels import OfPixels, packed

PIXELS = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
JPEG = cv2.imencode(".jpg", PIXELS)[1].tobytes()


@pytest.fixture
def clock() -> VirtualClock:
    """One that moves only where something sleeps."""
    return VirtualClock()


@pytest.mark.parametrize("augment", [True, False])
def test_an_encoded_image_waits_for_its_codec_and_its_augmentation(
    clock: VirtualClock, augment: bool
) -> None:
    """Both, whether it is augmented or only cropped; the array is the same."""
    plain = augmentation_of(LoaderSettings(image_size=32, augment=augment, colour_jitter=True))
    slow = slowed(plain, clock, decode_s=3.0, augment_s=0.5)
    made = slow(JPEG, sample_rng(0, 0, 1))
    assert clock.now_s() == 3.5
    assert np.array_equal(made, plain(JPEG, sample_rng(0, 0, 1)))
    assert (slow.shape, slow.dtype) == (plain.shape, plain.dtype)


def test_a_decoded_image_has_no_codec_to_wait_for(clock: VirtualClock) -> None:
    """Its augmentation is as slow as ever."""
    plain = augmentation_of(LoaderSettings(image_size=32), decoded=True)
    assert isinstance(plain, OfPixels)
    slow = slowed(plain, clock, decode_s=3.0, augment_s=0.5)
    made = slow(packed(PIXELS), sample_rng(0, 0, 1))
    assert clock.now_s() == 0.5
    assert np.array_equal(made, plain(packed(PIXELS), sample_rng(0, 0, 1)))


def test_without_delays_nothing_waits(clock: VirtualClock) -> None:
    """Zero is no time at all."""
    slowed(Augmentation(size=32), clock)(JPEG, sample_rng(0, 0, 1))
    assert clock.now_s() == 0


def test_a_batch_of_the_host_waits_for_its_copy(clock: VirtualClock) -> None:
    """One that lies on the device does not; the device computes as long as ever."""
    settings = ConsumerSettings(images_per_s=100, batch_size=10)
    device = SlowedCopy(PacedConsumer(settings, clock), clock, 2.0)
    device.warm_up()
    device.step(device.synthetic())
    assert clock.now_s() == pytest.approx(0.1)
    device.step(Batch(None, None, 10))
    assert clock.now_s() == pytest.approx(2.2)
    device.finish()
    assert list(device.compute_s()) == pytest.approx([0.1, 0.1])


def test_a_slowed_consumer_says_what_it_is(clock: VirtualClock) -> None:
    """What the consumer itself says, also beside the Protocol."""
    plain = PacedConsumer(ConsumerSettings(images_per_s=100, batch_size=10), clock)
    slow = SlowedCopy(plain, clock, 1.0)
    for name in ("framework", "emulated", "device", "precision", "notes", "images_per_s"):
        assert getattr(slow, name) == getattr(plain, name)
    with pytest.raises(AttributeError):
        _ = slow.nothing_of_the_kind


class Late(VirtualClock):
    """Every sleep is a quarter of a second too long."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + 0.25 if seconds > 0 else 0)


def test_threads_make_good_what_they_overslept_themselves() -> None:
    """What one thread overslept shortens no pause of another."""
    clock = Late()
    pauses = ThreadPauses(clock)
    pauses.take(1.0)
    other = threading.Thread(target=pauses.take, args=(1.0,))
    other.start()
    other.join()
    assert clock.now_s() == 2.5
    pauses.take(1.0)
    assert clock.now_s() == 3.5
