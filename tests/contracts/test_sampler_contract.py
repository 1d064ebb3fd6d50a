"""Every sampler reads numbers with units. Rates begin with its second reading."""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
from collections.abc import Iterator

import pytest

from iobench.errors import Unavailable
from iobench.machine.samplers import SAMPLERS, Sampler
from iobench.machine.sampling import DEFAULT_SAMPLERS
from tests.iobench.machine.fake_nvml import FakeNvml

UNITS = r".*(_share|_cores|_bytes|_bytes_per_s|_mhz|_w)|processes"


@pytest.fixture(params=SAMPLERS.names())
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sampler]:
    """A sampler of each kind for this process. GPUs are simulated."""
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    try:
        sampler_under_test = SAMPLERS.load(request.param)(os.getpid())
    except Unavailable as error:
        pytest.skip(str(error))
    yield sampler_under_test
    sampler_under_test.close()


def test_readings_are_finite_numbers_with_units(sampler: Sampler) -> None:
    """The first reading has no rates; later readings have every name of the first one."""
    names: list[set[str]] = []
    for now_s in (0.0, 1.0, 3600.0):
        values = sampler.read(now_s)
        names.append({*values})
        assert all(re.fullmatch(UNITS, name) for name in values)
        assert all(math.isfinite(value) and value >= 0 for value in values.values())
    assert not [name for name in names[0] if name.endswith("_per_s")]
    assert names[0] <= names[-1]
    assert all(note.strip() for note in sampler.notes)


def test_it_may_be_closed_unread() -> None:
    """A sampler can be closed before its first reading, because a trial may fail before it."""
    for name in SAMPLERS.names():
        with contextlib.suppress(Unavailable):
            SAMPLERS.load(name)(os.getpid()).close()


def test_those_that_are_usual_are_ours() -> None:
    """Every sampler that is read by default is registered."""
    assert set(DEFAULT_SAMPLERS) <= set(SAMPLERS.names())
