"""Samples in host memory, instead of stored ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.reading.epoch_order import Integers, Order
from dataprep.reading.read_counter import ReadCounter, ReadTotals
from iobench.errors import TrialFailed
from iobench.loaders import LoaderSettings
from iobench.loaders.protocol import MemoryRung
from iobench.loaders.samples_in_memory import SamplesInMemory, host_batch, load_into_memory

torch = pytest.importorskip("torch")


class Images:
    """``count`` samples; sample n is its number as a byte, n + 1 times."""

    def __init__(self, count: int) -> None:
        self.labels = np.zeros(count, np.int64)

    def name(self, index: int) -> str:
        """A number."""
        return f"sample {index}"

    def image(self, index: int) -> bytes:
        """As many bytes as its number, and one."""
        return bytes([index]) * (index + 1)


class Data:
    """A data set in descending order."""

    def __init__(self, count: int) -> None:
        self.records = Images(count)
        self._count = count

    def set_epoch(self, epoch: int) -> None:
        """Every epoch is the same."""

    def samples_of_worker(self, epoch: int) -> Any:
        """All of them."""
        return np.arange(self._count)[::-1]


def preloaded_images(count: int, samples: int, limit: int) -> Any:
    """Encoded samples."""
    return load_into_memory(
        Data(count),
        "decode",
        LoaderSettings(),
        samples=samples,
        limit_bytes=limit,
        decoded=False,
    )


@given(st.integers(1, 40), st.data())
def test_the_first_samples_are_held_as_far_as_they_fit(count: int, data: Any) -> None:
    """One buffer within the limit holds them; they stand for all other samples."""
    samples = data.draw(st.integers(1, count))
    limit = data.draw(st.integers(count, 900))
    held_images = preloaded_images(count, samples, limit)
    first = list(range(count))[::-1][:samples]
    held = len(held_images.offsets) - 1
    kept = first[:held]
    assert len(held_images.data) == sum(number + 1 for number in kept) <= limit
    assert held_images.requested == samples
    if held < samples:
        assert len(held_images.data) + first[held] + 1 > limit
    image_by_number = {number: bytes(held_images.sample(number)) for number in range(count)}
    assert all(image_by_number[number] == bytes([number]) * (number + 1) for number in kept)
    assert set(image_by_number.values()) <= {image_by_number[number] for number in kept}


def test_memory_for_none_is_refused() -> None:
    """A loop over no samples is not run."""
    with pytest.raises(TrialFailed, match="no sample fits into 3 bytes"):
        preloaded_images(9, 9, 3)


class Stored:
    """Four samples in two shards."""

    def __init__(self, counter: ReadCounter | None = None) -> None:
        self.labels = np.array([3, 1, 4, 1])
        self.counter = counter

    def name(self, index: int) -> str:
        """A number."""
        return f"sample {index}"

    def samples_of_rank(self, order: Order, epoch: int) -> Integers:
        """The last one first."""
        return np.arange(4)[::-1]


def held(rung: MemoryRung = "decode", expected: int = 2) -> SamplesInMemory:
    """Samples 1 and 2 of four; the others are given in their place."""
    data = np.frombuffer(bytearray(b"onethree"), np.uint8)
    slots = np.array([0, 0, 1, 1])
    return SamplesInMemory(Stored(), rung, 8, data, np.array([0, 3, 8]), slots, expected)


def test_each_sample_is_one_of_those_held() -> None:
    """Itself where it is held, as a view; labels, names and the order are as they are stored."""
    images = held()
    expected = [b"one", b"one", b"three", b"three"]
    assert [bytes(image) for image in images.fetch(range(len(images)))] == expected
    assert [bytes(image) for _, image in images.stream(np.arange(4))] == expected
    images.data[0] = ord("O")
    assert bytes(images.sample(1)) == b"One"
    assert images.labels.tolist() == [3, 1, 4, 1]
    assert images.name(2) == "sample 2"
    assert images.samples_of_rank(Order(), 0).tolist() == [3, 2, 1, 0]


def test_samples_from_memory_are_counted() -> None:
    """They arrive without a byte from storage."""
    counter = ReadCounter()
    images = replace(held(), records=Stored(counter))
    images.fetch([0, 3])
    list(images.stream(np.arange(4)))
    assert counter.totals() == ReadTotals(6, 0)


@pytest.mark.parametrize(
    ("rung", "expected", "message"),
    [
        (
            "decode",
            2,
            "input decode: the loop takes 2 samples, 2 of which are in memory, encoded (8 B)",
        ),
        (
            "collate",
            9,
            "input collate: the loop takes 9 samples, 2 of which are in memory, decoded and "
            "augmented (8 B)",
        ),
    ],
)
def test_the_note_says_how_many_and_how(rung: MemoryRung, expected: int, message: str) -> None:
    """The note helps readers of the loop's figures."""
    assert held(rung, expected).note == message


def test_one_batch_is_as_a_loader_gives_it() -> None:
    """Contiguous (N, 3, S, S) in host memory, labels of the classes that there are.

    One seed is one batch; what the device normalises is bytes.
    """
    settings = LoaderSettings(batch_size=3, image_size=32)
    batch, again = host_batch(settings, 7), host_batch(settings, 7)
    assert (batch.images.shape, batch.images.dtype) == ((3, 3, 32, 32), torch.float32)
    assert batch.images.is_contiguous()
    assert abs(float(batch.images.mean())) < 0.1
    assert batch.labels.dtype == torch.int64
    assert batch.samples == len(batch.labels) == 3
    assert 0 <= int(batch.labels.min()) <= int(batch.labels.max()) < 7
    assert batch.images.device.type == "cpu"
    assert torch.equal(batch.images, again.images)
    assert torch.equal(batch.labels, again.labels)
    pixels = host_batch(settings.model_copy(update={"normalise": False}), 7).images
    assert pixels.dtype == torch.uint8
    assert int(pixels.max()) > 200
