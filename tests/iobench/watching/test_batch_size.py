"""How many samples a batch holds."""

from __future__ import annotations

import types
from collections import UserDict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.watching.batch_size import samples_in

IMAGES, LABELS = np.zeros((7, 8, 8, 3)), np.zeros(7)
ONE = np.zeros((8, 9, 3))
Pair = namedtuple("Pair", "images labels")
MXNET = types.SimpleNamespace(data=[IMAGES], label=[LABELS], pad=2)


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (IMAGES, 7),
        ((IMAGES, LABELS), 7),
        ([IMAGES, LABELS], 7),
        (Pair(IMAGES, LABELS), 7),
        ({"image": IMAGES, "label": LABELS}, 7),
        (UserDict(image=IMAGES), 7),
        ((np.float32(1), LABELS), 7),
        (((IMAGES, IMAGES), LABELS), 7),
        ([{"data": IMAGES, "label": LABELS}], 7),
        (MXNET, 5),
        ([ONE, ONE[:4]], 8),
        ([(ONE, 1), (ONE, 2), (ONE, 3)], 3),
        ([{"image": ONE}, {"image": ONE}], 2),
        (((ONE, ONE, ONE), ({}, {}, {})), 3),
        ([b"jpeg", b"jpeg"], 2),
        ((["a", "b", "c"], [0, 1, 2]), 3),
        ([], 0),
        (3.5, None),
        ("text", None),
        (None, None),
        (np.float32(1), None),
        ({}, None),
        (object(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_in(batch: Any, samples: int | None) -> None:
    """As the frameworks make them; what cannot be told is not guessed."""
    assert samples_in(batch) == samples


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_anything_is_taken(batch: Any) -> None:
    """A batch of an unknown kind never stops somebody's training."""
    found = samples_in(batch)
    assert found is None or found >= 0


def test_a_batch_that_holds_itself_is_no_end() -> None:
    """It is unknown."""
    batch: dict[str, Any] = {}
    batch["self"] = batch
    assert samples_in(batch) is None


def test_a_batch_that_raises_is_unknown() -> None:
    """As torch's nested tensors do when they are asked for their shape."""

    class Nested:
        @property
        def shape(self) -> tuple[int, ...]:
            raise RuntimeError("no sizes")

    assert samples_in([Nested()]) is None


def test_a_shape_that_is_none_is_not_believed() -> None:
    """tf.data's static shapes may not know the batch."""
    assert samples_in(types.SimpleNamespace(shape=(None, 3))) is None
