"""Watched loaders of TensorFlow and MXNet."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from dataprep.reading.mxnet_compat import import_mxnet
from iobench.machine.sampling import Samples
from iobench.watching.batches import bytes_in
from iobench.watching.figures import outcome
from iobench.watching.proxy import TimedEpoch, wrap_loader
from iobench.watching.replay import Replay, ReplaySettings
from tests.iobench.watching.logged import MemoryLog, table

# The warnings of these two frameworks do not concern this package.
pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def watched(loader: Any) -> tuple[Any, MemoryLog]:
    """Watch a loader in this process; return the watched loader and its log."""
    log, epochs = MemoryLog(), count()
    return wrap_loader(loader, lambda make: TimedEpoch(make, 0, next(epochs), log)), log


def steps(log: MemoryLog) -> tuple[int, int, int]:
    """Return the steps, epochs and samples in the report of a log."""
    metrics = outcome(table(*log.records()), 0, Samples({}, 0.0, ()), step_cost_s=0.0).metrics
    return metrics["steps"], metrics["epochs"], metrics["samples"]


def test_tf_data() -> None:
    """The length is the loader's, each pass is an epoch, and the last batch is smaller."""
    tf = pytest.importorskip("tensorflow")
    numbers = np.arange(10)
    data = tf.data.Dataset.from_tensor_slices({"x": numbers, "y": numbers}).batch(4)
    loader, log = watched(data)
    assert len(loader) == 3
    assert loader.element_spec == data.element_spec
    for _ in range(2):
        assert [batch["x"].numpy().tolist() for batch in loader][-1] == [8, 9]
    assert steps(log) == (5, 2, 16)


def test_mxnets_iterators() -> None:
    """``reset`` and ``next`` work, and a padded batch holds fewer samples."""
    mx = import_mxnet()
    loader, log = watched(mx.io.NDArrayIter(np.zeros((10, 2)), np.zeros(10), batch_size=4))
    assert loader.batch_size == 4
    for _ in range(2):
        assert [batch.pad for batch in loader] == [0, 0, 2]
        loader.reset()
    assert steps(log) == (5, 2, 16)


def replayed(loader: Any) -> tuple[list[Any], list[str]]:
    """Return the batches of a loader whose sixth and seventh are repeated, and the notes."""
    lines: list[str] = []
    log = MemoryLog()
    settings = ReplaySettings(batches=2, steps=40, warm_up=5)
    replay = Replay(settings, 0, log, announce=lines.append)
    watched = wrap_loader(loader, lambda make: TimedEpoch(make, 0, 0, log, replay=replay), replay)
    return list(watched), lines


EXPECTED = [*range(7), *[5, 6] * 20, *range(7, 10)]


def test_tf_data_is_repeated() -> None:
    """Its tensors have a size and are handed out unchanged."""
    tf = pytest.importorskip("tensorflow")
    data = tf.data.Dataset.from_tensor_slices({"x": np.arange(40, dtype=np.int64)}).batch(4)
    batches, message = replayed(data)
    assert [int(batch["x"][0]) // 4 for batch in batches] == EXPECTED
    assert bytes_in(batches[0]) == 32
    assert "train on the same 2 batches" in message[0]


def test_mxnets_batches_are_repeated() -> None:
    """Batches of the iterator's own class are repeated."""
    mx = import_mxnet()
    loader = mx.io.NDArrayIter(np.arange(40.0).reshape(40, 1), np.zeros(40), batch_size=4)
    batches, message = replayed(loader)
    assert [int(batch.data[0].asnumpy()[0, 0]) // 4 for batch in batches] == EXPECTED
    assert "train on the same 2 batches" in message[0]
