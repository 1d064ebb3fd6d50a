"""GPUs through a library that is made up: no GPU is needed, and none is shown to work."""

from __future__ import annotations

import sys

import pytest

from iobench.errors import Unavailable
from iobench.samplers.gpu import GpuSampler
from tests.iobench.samplers.fake_nvml import FakeNvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """In place of the real bindings."""
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def test_every_device_tells_what_it_can(nvml: FakeNvml) -> None:
    """In shares, bytes, MHz and W; what one does not support is left out, and is no zero."""
    assert GpuSampler(1).read(0.0) == {
        "0_utilisation_share": 0.6,
        "0_memory_bytes": 8 << 30,
        "0_sm_clock_mhz": 1500,
        "0_power_w": 250,
        "1_memory_bytes": 1 << 30,
    }


@pytest.mark.parametrize(
    ("told", "devices"),
    [
        ("1", {"1"}),
        ("GPU-aaaa", {"0"}),
        ("1,0", {"0", "1"}),
        ("", {"0", "1"}),
        ("MIG-x", {"0", "1"}),
    ],
)
def test_only_visible_devices_are_read(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, told: str, devices: set[str]
) -> None:
    """By number or by the beginning of a name; parts of a GPU are not told apart."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    assert {name.split("_")[0] for name in GpuSampler(1).read(0.0)} == devices


def test_utilisation_is_said_to_be_no_figure(nvml: FakeNvml) -> None:
    """What NVML means by it stands beside the series."""
    assert "any kernel ran" in GpuSampler(1).notes[0]


def test_the_library_is_let_go_of(nvml: FakeNvml) -> None:
    """Once for each time that it was begun."""
    GpuSampler(1).close()
    assert (nvml.begun, nvml.ended) == (1, 1)


def test_no_device_is_unavailable(nvml: FakeNvml) -> None:
    """A driver without a GPU behind it; the library is let go of."""
    nvml.told = []
    with pytest.raises(Unavailable, match="there is none"):
        GpuSampler(1)
    assert nvml.ended == 1


def test_a_driver_that_does_not_answer_is_unavailable(nvml: FakeNvml) -> None:
    """With its own words."""
    nvml.answers = False
    with pytest.raises(Unavailable, match="Driver Not Loaded"):
        GpuSampler(1)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the command that brings it."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Unavailable, match=r"pip install 'dataprep-iobench\[gpu\]'"):
        GpuSampler(1)
