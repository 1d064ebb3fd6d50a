"""Sampling beside something else."""

from __future__ import annotations

import os
import threading

import pytest

from iobench.clock import SystemClock
from iobench.samplers.background import Background, beside
from iobench.samplers.recorder import Recorder
from iobench.samplers.settings import SamplingSettings
from tests.iobench.samplers.odd_samplers import Counting


def test_it_reads_at_its_begin_and_at_its_end() -> None:
    """However short what it stood beside: two readings are one rate."""
    read = threading.Event()

    class Telling(Counting):
        def read(self, now_s: float):  # type: ignore[no-untyped-def]
            read.set()
            return super().read(now_s)

    background = Background(Recorder({"a": Telling()}, SystemClock()), per_s=1)
    background.begin()
    assert read.wait(30)
    background.end()
    times = background.samples.columns["time_s"]
    assert background.samples.columns["a.count"] == [1, 2]
    assert times == sorted(times)  # type: ignore[type-var]
    assert background.samples.core_share >= 0


def test_its_thread_is_gone_afterwards() -> None:
    """Also where what it stood beside has failed."""
    settings = SamplingSettings(samplers=("page-cache",))
    before = set(threading.enumerate())
    stood: list[Background] = []

    def stopped() -> None:
        with beside(settings, os.getpid()) as background:
            assert background is not None
            stood.append(background)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not set(threading.enumerate()) - before
    assert stood[0].samples.columns["page-cache.cached_bytes"]


def test_nothing_to_read_starts_nothing() -> None:
    """``samplers: []``."""
    before = set(threading.enumerate())
    with beside(SamplingSettings(samplers=()), 1) as background:
        assert background is None
        assert not set(threading.enumerate()) - before
    with beside(None, 1) as background:
        assert background is None
