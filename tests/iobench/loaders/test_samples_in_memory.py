"""Loops over samples that are held in memory in place of stored ones."""

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
    """``count`` samples; sample n has the byte n, n + 1 times."""

    def __init__(self, count: int) -> None:
        self.labels = np.zeros(count, np.int64)

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        return f"sample {index}"

    def image(self, index: int) -> bytes:
        """Return the encoded image of a sample."""
        return bytes([index]) * (index + 1)


class Data:
    """A data set whose samples are in descending order."""

    def __init__(self, count: int) -> None:
        self.records = Images(count)
        self._count = count

    def set_epoch(self, epoch: int) -> None:
        """Do nothing, since every epoch is the same."""

    def samples_of_worker(self, epoch: int) -> Any:
        """Return the numbers of all samples."""
        return np.arange(self._count)[::-1]


def preloaded_images(count: int, samples: int, limit: int) -> Any:
    """Load the first encoded samples of ``count`` into at most ``limit`` bytes."""
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
    """One buffer within the limit holds them, and they replace all other samples."""
    samples = data.draw(st.integers(1, count))
    limit = data.draw(st.integers(count, 900))
    held_images = preloaded_images(count, samples, limit)
    requested = list(range(count))[::-1][:samples]
    held_count = len(held_images.offsets) - 1
    in_memory = requested[:held_count]
    assert len(held_images.data) == sum(number + 1 for number in in_memory) <= limit
    assert held_images.requested == samples
    if held_count < samples:
        assert len(held_images.data) + requested[held_count] + 1 > limit
    image_by_number = {number: bytes(held_images.sample(number)) for number in range(count)}
    assert all(image_by_number[number] == bytes([number]) * (number + 1) for number in in_memory)
    assert set(image_by_number.values()) <= {image_by_number[number] for number in in_memory}


def test_memory_for_none_is_refused() -> None:
    """A limit that is too small for one sample is an error."""
    with pytest.raises(TrialFailed, match="no sample fits into 3 bytes"):
        preloaded_images(9, 9, 3)


class StoredSamples:
    """Four stored samples."""

    def __init__(self, counter: ReadCounter | None = None) -> None:
        self.labels = np.array([3, 1, 4, 1])
        self.counter = counter

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        return f"sample {index}"

    def samples_of_rank(self, order: Order, epoch: int) -> Integers:
        """Return the samples in descending order."""
        return np.arange(4)[::-1]


def held(rung: MemoryRung = "decode", expected: int = 2) -> SamplesInMemory:
    """Return samples 1 and 2 of four in memory, which replace the others."""
    data = np.frombuffer(bytearray(b"onethree"), np.uint8)
    slots = np.array([0, 0, 1, 1])
    return SamplesInMemory(StoredSamples(), rung, 8, data, np.array([0, 3, 8]), slots, expected)


def test_each_sample_is_one_of_those_held() -> None:
    """A sample in memory is a view of it; labels, names and order are those of storage."""
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
    """They count as samples without a byte from storage."""
    counter = ReadCounter()
    images = replace(held(), records=StoredSamples(counter))
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
    """The note has the rung, the number of samples in memory and their size."""
    assert held(rung, expected).note == message


def test_one_batch_is_as_a_loader_gives_it() -> None:
    """The batch is a contiguous (N, 3, S, S) tensor in host memory.

    The same seed gives the same batch. It has uint8 pixels if the device normalises.
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
