"""Samples in one buffer, instead of stored ones."""

from __future__ import annotations

import numpy as np
import pytest

from dataprep.assign import Integers, Order
from iobench.loaders.protocol import MemoryRung
from iobench.loaders.rungs.held import Held, HeldImages


class Stored:
    """Four samples in two shards."""

    def __init__(self) -> None:
        self.labels = np.array([3, 1, 4, 1])

    def name(self, index: int) -> str:
        """A number."""
        return f"sample {index}"

    def part(self, order: Order, epoch: int) -> Integers:
        """The last one first."""
        return np.arange(4)[::-1]


def held(rung: MemoryRung = "decode", wanted: int = 2) -> Held:
    """Samples 1 and 2 of four; the others are given in their place."""
    data = np.frombuffer(bytearray(b"onethree"), np.uint8)
    return Held(rung, 8, data, np.array([0, 3, 8]), np.array([0, 0, 1, 1]), wanted)


def test_each_sample_is_one_of_those_held() -> None:
    """Itself where it is held."""
    images = HeldImages(Stored(), held())
    given = [b"one", b"one", b"three", b"three"]
    assert [bytes(image) for image in images.fetch(range(len(images)))] == given
    assert [bytes(image) for _, image in images.stream(np.arange(4))] == given


def test_nothing_is_copied() -> None:
    """What is given is a view."""
    samples = held()
    view = samples.sample(1)
    samples.data[0] = ord("O")
    assert bytes(view) == b"One"


def test_all_else_is_as_it_is_stored() -> None:
    """Labels, names and the order."""
    images = HeldImages(Stored(), held())
    assert images.labels.tolist() == [3, 1, 4, 1]
    assert images.name(2) == "sample 2"
    assert images.part(Order(), 0).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("rung", "wanted", "said"),
    [
        ("decode", 2, "input decode: the loop's 2 samples lie in memory encoded (0.0 MB)"),
        (
            "augment",
            9,
            "input augment: 2 of the loop's 9 samples lie in memory decoded (0.0 MB), and are "
            "given again and again",
        ),
        (
            "collate",
            2,
            "input collate: the loop's 2 samples lie in memory decoded and augmented (0.0 MB)",
        ),
    ],
)
def test_the_note_says_how_many_and_how(rung: MemoryRung, wanted: int, said: str) -> None:
    """For who reads the loop's figures."""
    assert held(rung, wanted).note == said
