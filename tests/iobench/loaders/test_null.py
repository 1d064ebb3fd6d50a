"""Tests of iobench.loaders.null."""

from __future__ import annotations

import pytest

from iobench.clock import VirtualClock
from iobench.loaders import LoaderSettings, null
from iobench.loaders.null import NullLoader


def test_batches_cost_nothing() -> None:
    """No time passes, and all whole batches are the same object."""
    clock = VirtualClock()
    batches = NullLoader(None, LoaderSettings(batch_size=32), clock).epoch(0)
    first, second = next(batches), next(batches)
    assert first is second
    assert (first.samples, len(first.labels), len(first.images)) == (32, 32, 32)
    assert clock.now_s() == 0


def test_an_epoch_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch is finite, and can be had again."""
    monkeypatch.setattr(null, "SAMPLES", 70)
    loader = NullLoader(None, LoaderSettings(batch_size=32), VirtualClock())
    for number in range(2):
        assert [batch.samples for batch in loader.epoch(number)] == [32, 32, 6]
    loader.close()
