"""Sampling beside something else: settings, samplers, the table of readings."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from pydantic import ValidationError

from dataprep.errors import ConfigError
from iobench.clock import VirtualClock
from iobench.machine import sampling
from iobench.machine.samplers import SAMPLERS
from iobench.machine.sampling import Columns, Recorder, SamplingSettings, beside
from tests.iobench.machine.odd_samplers import Broken, Counting, Failing, Missing


def recorded(times: int, **samplers: Counting) -> Recorder:
    """After so many readings, one a second."""
    clock = VirtualClock()
    made = Recorder(samplers, clock)
    for _ in range(times):
        made.sample()
        clock.sleep(1)
    return made


def test_a_row_is_one_moment() -> None:
    """Columns are called by sampler and value, the time is the clock's."""
    columns = recorded(3, a=Counting()).end(0, 1).columns
    assert columns == {"time_s": [0, 1, 2], "a.count": [1, 2, 3]}


def test_a_sampler_that_fails_leaves_and_is_named() -> None:
    """What it read is kept, the others go on."""
    broken = Failing()
    samples = recorded(4, bad=broken, good=Counting()).end(0.5, 10)
    assert samples.columns["bad.count"] == [1, 2, None, None]
    assert samples.columns["good.count"] == [1, 2, 3, 4]
    assert samples.notes == ("bad ended: OSError: the wire is cut",)
    assert samples.core_share == 0.05
    assert broken.closed


def test_nothing_to_read_is_no_row() -> None:
    """Times alone say nothing."""
    assert recorded(3).end(0, 1).columns == {}


def test_no_time_has_no_share() -> None:
    """A trial that ended at once."""
    assert recorded(0).end(0.1, 0.0).core_share == 0


def test_the_end_closes_samplers() -> None:
    """They may hold the driver of a device."""
    sampler = Counting()
    recorded(1, a=sampler).end(0, 1)
    assert sampler.closed


def test_long_runs_have_fewer_readings_of_longer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours are brought together at the time of their last; the table stays bounded."""
    monkeypatch.setattr(sampling, "MOST_ROWS", 4)
    columns = recorded(9, a=Counting()).end(0, 1).columns
    assert columns == {"time_s": [3, 7], "a.count": [2.5, 6.5]}
    assert len(recorded(1000, a=Counting()).end(0, 1).columns["time_s"]) < 4


def test_samplers_that_are_not_available_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a sampler does when it is made stops what is measured."""
    kinds: dict[str, Any] = {"count": Counting, "missing": Missing, "broken": Broken}

    class Registered:
        def load(self, name: str) -> Any:
            if name not in kinds:
                raise ConfigError(f"no sampler {name!r}")
            return kinds[name]

    monkeypatch.setattr(sampling, "SAMPLERS", Registered())
    made = Recorder.of(["missing", "count", "broken", "unknown"], 1, VirtualClock())
    made.sample()
    found = made.end(0, 1)
    assert list(found.columns) == ["time_s", "count.count"]
    assert found.notes == (
        "no such thing: buy one",
        "no series broken: KeyError: 'x'",
        "no sampler 'unknown'",
        "a count",
    )


def test_all_are_closed_whatever_one_does() -> None:
    """The others must not keep what they hold."""

    class Stuck(Counting):
        def close(self) -> None:
            raise OSError("stuck")

    last = Counting()
    recorded(1, a=Stuck(), b=last).end(0, 1)
    assert last.closed


class TestBeside:
    def test_it_reads_at_its_begin_and_at_its_end(self) -> None:
        """However short the block: two readings are one rate. The thread ends with the block."""
        before = set(threading.enumerate())
        settings = SamplingSettings(samplers=("page-cache",))
        with pytest.raises(KeyboardInterrupt), beside(settings, os.getpid()) as recorder:
            raise KeyboardInterrupt
        assert not set(threading.enumerate()) - before
        assert recorder is not None
        columns: Columns = recorder.samples.columns
        assert len(columns["page-cache.cached_bytes"]) == 2
        assert list(columns["time_s"]) == sorted(columns["time_s"])  # type: ignore[type-var]
        assert recorder.samples.core_share >= 0

    @pytest.mark.parametrize("settings", [None, SamplingSettings(samplers=())])
    def test_nothing_to_read_starts_nothing(self, settings: SamplingSettings | None) -> None:
        """``samplers: []``."""
        before = set(threading.enumerate())
        with beside(settings, 1) as recorder:
            assert recorder is None
            assert not set(threading.enumerate()) - before


@pytest.mark.parametrize("per_s", [0, 0.5, 10.1, -1])
def test_readings_are_1_to_10_a_second(per_s: float) -> None:
    """Rarer says nothing of a step, oftener costs what it measures."""
    with pytest.raises(ValidationError, match="per_s"):
        SamplingSettings(per_s=per_s)


def test_what_is_unknown_is_refused_with_what_is_known() -> None:
    """By name."""
    with pytest.raises(ValidationError, match="no sampler 'gpus': use one of cpu, disk, gpu"):
        SamplingSettings(samplers=("gpus",))


def test_one_may_stand_for_a_list_and_none_is_off() -> None:
    """As in other parts of a config."""
    assert SamplingSettings.model_validate({"samplers": "cpu"}).samplers == ("cpu",)
    assert SamplingSettings.model_validate({"samplers": []}).samplers == ()


def test_all_of_our_own_are_usual() -> None:
    """A sampler that is registered is read unless told otherwise."""
    assert set(SamplingSettings().samplers) <= set(SAMPLERS.names())
