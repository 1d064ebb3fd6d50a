"""Sampling during a measurement: settings, samplers, and the table of readings."""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from dataprep.errors import ConfigError
from iobench.clock import VirtualClock
from iobench.machine import sampling
from iobench.machine.samplers import SAMPLERS
from iobench.machine.sampling import Recorder, SamplingSettings, sampling_beside
from iobench.results.result import Columns
from tests.iobench.machine.odd_samplers import Broken, Counting, Failing, Missing


def recorded(times: int, **samplers: Counting) -> Recorder:
    """Return a recorder after this number of readings, one a second."""
    clock = VirtualClock()
    recorder = Recorder(samplers, clock)
    for _ in range(times):
        recorder.sample()
        clock.sleep(1)
    return recorder


def test_a_sampler_that_fails_leaves_and_is_named() -> None:
    """Its readings are kept, the other samplers go on, and all samplers are closed."""

    class Stuck(Counting):
        def close(self) -> None:
            raise OSError("stuck")

    broken, last = Failing(), Counting()
    samples = recorded(4, bad=broken, stuck=Stuck(), good=last).end(0.05)
    assert samples.columns["time_s"] == [0, 1, 2, 3]
    assert samples.columns["bad.count"] == [1, 2, None, None]
    assert samples.columns["good.count"] == [1, 2, 3, 4]
    assert samples.notes == ("bad ended: OSError: the wire is cut",)
    assert samples.core_share == 0.05
    assert broken.closed
    assert last.closed


def test_nothing_to_read_is_no_row() -> None:
    """A table without readings has no times either."""
    assert recorded(3).end(0).columns == {}


def test_long_runs_have_fewer_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table stays bounded, and its readings are spread over the whole run."""
    monkeypatch.setattr(sampling, "MAX_ROWS", 4)
    times = recorded(1000, a=Counting()).end(0).columns["time_s"]
    assert 2 <= len(times) < 4
    gaps = {(later or 0) - (before or 0) for before, later in pairwise(times)}
    assert len(gaps) == 1


def test_samplers_that_are_not_available_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that cannot be made becomes a note and stops nothing."""
    kinds: dict[str, Any] = {"count": Counting, "missing": Missing, "broken": Broken}

    class Registered:
        def load(self, name: str) -> Any:
            if name not in kinds:
                raise ConfigError(f"no sampler {name!r}")
            return kinds[name]

    monkeypatch.setattr(sampling, "SAMPLERS", Registered())
    recorder = Recorder.of(["missing", "count", "broken", "unknown"], 1, VirtualClock())
    recorder.sample()
    samples = recorder.end(0)
    assert list(samples.columns) == ["time_s", "count.count"]
    assert samples.notes == (
        "no such thing: buy one",
        "no series broken: KeyError: 'x'",
        "no sampler 'unknown'",
        "a count",
    )


class TestBeside:
    """Sampling in a thread beside a block of code."""

    def test_it_reads_at_its_begin_and_at_its_end(self) -> None:
        """A short block has two readings, and the thread ends with the block."""
        before = set(threading.enumerate())
        settings = SamplingSettings(samplers=("page-cache",))
        with pytest.raises(KeyboardInterrupt), sampling_beside(settings, os.getpid()) as recorder:
            raise KeyboardInterrupt
        assert not set(threading.enumerate()) - before
        assert recorder is not None
        columns: Columns = recorder.samples.columns
        assert len(columns["page-cache.cached_bytes"]) == 2
        assert list(columns["time_s"]) == sorted(columns["time_s"])  # type: ignore[type-var]
        assert recorder.samples.core_share >= 0

    @pytest.mark.parametrize("settings", [None, SamplingSettings(samplers=())])
    def test_nothing_to_read_starts_nothing(self, settings: SamplingSettings | None) -> None:
        """No thread is started without samplers."""
        before = set(threading.enumerate())
        with sampling_beside(settings, 1) as recorder:
            assert recorder is None
            assert not set(threading.enumerate()) - before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"per_s": 0.5}, "per_s"),
        ({"per_s": 10.1}, "per_s"),
        ({"samplers": ("gpus",)}, "no sampler 'gpus': use one of cpu, disk, gpu"),
    ],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, Any], message: str) -> None:
    """1 to 10 readings a second are allowed; for an unknown sampler, known ones are listed."""
    with pytest.raises(ValidationError, match=message):
        SamplingSettings(**settings)


def test_one_may_stand_for_a_list_and_none_is_off() -> None:
    """A single name is a list of one; the default is all samplers of this package."""
    assert SamplingSettings.model_validate({"samplers": "cpu"}).samplers == ("cpu",)
    assert SamplingSettings.model_validate({"samplers": []}).samplers == ()
    assert set(SamplingSettings().samplers) <= set(SAMPLERS.names())
