"""Tests of dataprep.adapters.torch_memory."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dataprep.adapters.torch_memory import Lender, empty  # noqa: E402

pytestmark = pytest.mark.slow

SHAPE = 4, 3, 8, 8
FLOATS = np.dtype(np.float32)


def lent(lender: Lender, shape: tuple[int, ...] = SHAPE) -> Any:
    """A tensor in memory that was lent."""
    return torch.from_numpy(lender.lend(shape, FLOATS))


def test_memory_is_used_again() -> None:
    """Once a tensor is gone its memory is the next one's; while it lives it is its own."""
    lender = Lender(spare=2)
    first, second = lent(lender), lent(lender)
    places = {first.data_ptr(), second.data_ptr()}
    assert len(places) == 2
    del first
    third = lent(lender)
    assert {third.data_ptr(), second.data_ptr()} == places


@pytest.mark.parametrize(
    "hold",
    [
        lambda tensor: tensor[1:],
        lambda tensor: tensor.numpy(),
        lambda tensor: tensor.view(-1)[5],
        lambda tensor: tensor.numpy()[2].T,
        lambda tensor: memoryview(tensor.numpy()),
    ],
    ids=["slice", "array", "element", "transposed", "buffer"],
)
def test_any_view_holds_it(hold: Any) -> None:
    """Whoever holds a part of a batch finds it unchanged."""
    lender = Lender(spare=2)
    batch = lent(lender).fill_(1)
    place = batch.data_ptr()
    view = hold(batch)
    del batch
    gc.collect()
    other = lent(lender).fill_(2)
    assert other.data_ptr() != place
    del view
    gc.collect()
    assert lent(lender).data_ptr() == place


def test_a_smaller_batch_takes_the_same() -> None:
    """The last batch of an epoch lies in the memory of a whole one, which is not lost."""
    lender = Lender(spare=2)
    place = lent(lender).data_ptr()
    small = lent(lender, (1, 3, 8, 8))
    assert small.shape == (1, 3, 8, 8)
    assert small.data_ptr() == place
    del small
    assert lent(lender).data_ptr() == place


def test_a_larger_one_gets_its_own() -> None:
    """Memory that is too small is let go."""
    lender = Lender(spare=2)
    lent(lender, (1, 3, 8, 8))
    assert lent(lender).fill_(3).sum() == 3 * 4 * 3 * 8 * 8


def test_a_bounded_number_is_kept() -> None:
    """What was held at a time beyond that is given back to the system."""
    lender = Lender(spare=2)
    held = [lent(lender) for _ in range(7)]
    held.clear()
    assert len(lender._free) == 2


def test_new_tensors() -> None:
    """Outside of a worker they are torch's own."""
    made: Any = empty((2, 3), torch.uint8)
    assert (made.shape, made.dtype, made.is_shared()) == ((2, 3), torch.uint8, False)
