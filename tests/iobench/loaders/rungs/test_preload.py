"""Which samples are read beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.errors import TrialFailed
from iobench.loaders import LoaderSettings

pytest.importorskip("torch")
from iobench.loaders.protocol import Readable
from iobench.loaders.rungs.preload import first_numbers, preloaded


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
    """A data set of the iterable style."""

    def __init__(self, count: int) -> None:
        self.records = Images(count)
        self._count = count

    def sequence(self, epoch: int) -> Any:
        """All of them."""
        return np.arange(self._count)


def readable(count: int, sampler: Any = None) -> Readable:
    """That, of the map style where it has a sampler."""
    return Readable(Data(count), sampler, lambda epoch: None)


def held(count: int, samples: int, limit: int) -> Any:
    """Encoded samples, in descending order."""
    order = list(range(count))[::-1]
    return preloaded(
        readable(count, order),
        "decode",
        LoaderSettings(),
        samples=samples,
        limit_bytes=limit,
        decoded=False,
    )


@given(st.integers(1, 40), st.data())
def test_the_first_samples_are_held_as_far_as_they_fit(count: int, data: Any) -> None:
    """In one buffer no larger than told; those are given for all others, too."""
    samples = data.draw(st.integers(1, count))
    limit = data.draw(st.integers(count, 900))
    found = held(count, samples, limit)
    first = list(range(count))[::-1][:samples]
    kept = first[: len(found)]
    assert len(found.data) == sum(number + 1 for number in kept) <= limit
    assert found.wanted == samples
    if len(found) < samples:
        assert len(found.data) + first[len(found)] + 1 > limit
    given = {number: bytes(found.sample(number)) for number in range(count)}
    assert all(given[number] == bytes([number]) * (number + 1) for number in kept)
    assert set(given.values()) <= {given[number] for number in kept}


def test_memory_for_none_is_refused() -> None:
    """Rather than a loop over nothing."""
    with pytest.raises(TrialFailed, match="holds not one sample"):
        held(9, 9, 3)


def test_the_first_samples_are_those_of_the_epoch() -> None:
    """In its order."""
    assert list(first_numbers(readable(7))) == [0, 1, 2, 3, 4, 5, 6]
