"""Loaders of TensorFlow and MXNet, as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataprep.adapters.mxnet_compat import import_mxnet
from iobench.watching.session import Session
from iobench.watching.tally import Tally
from tests.iobench.watching.test_session import Heard

# What these two warn of is theirs.
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def watched(loader: Any) -> tuple[Any, Session, Heard]:
    """Within this process."""
    heard = Heard()
    session = Session(Path("mine"), heard)
    return session.watch(loader, None, None, None), session, heard


def tallied(session: Session, heard: Heard) -> Tally:
    """What the companion would have."""
    session.finish(0.0)
    made = Tally()
    made.add(heard.records)
    return made


def test_tf_data() -> None:
    """Its length and its attributes; each pass is an epoch; the last batch is smaller."""
    tf = pytest.importorskip("tensorflow")
    data = tf.data.Dataset.from_tensor_slices({"x": np.arange(10), "y": np.arange(10)}).batch(4)
    loader, session, heard = watched(data)
    assert len(loader) == 3
    assert loader.element_spec == data.element_spec
    for _ in range(2):
        assert [batch["x"].numpy().tolist() for batch in loader][-1] == [8, 9]
    found = tallied(session, heard)
    assert (found.steps, found.epochs, found.samples) == (5, 2, 16)


def test_mxnets_iterators() -> None:
    """``reset`` and ``next``; a batch that is padded holds fewer samples."""
    mx = import_mxnet()
    loader, session, heard = watched(
        mx.io.NDArrayIter(np.zeros((10, 2)), np.zeros(10), batch_size=4)
    )
    assert loader.batch_size == 4
    for _ in range(2):
        assert [batch.pad for batch in loader] == [0, 0, 2]
        loader.reset()
    found = tallied(session, heard)
    assert (found.steps, found.epochs, found.samples) == (5, 2, 16)
