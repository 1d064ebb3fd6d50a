"""Which devices a loop on several takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iobench.consumers import requirements
from iobench.errors import Unavailable
from iobench.loops.devices import Devices, devices_of


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A torch that finds ``gpus`` GPUs."""
    found = SimpleNamespace(gpus=0, distributed=True, nccl=True)
    fake = SimpleNamespace(
        __version__="9.9",
        cuda=SimpleNamespace(device_count=lambda: found.gpus),
        distributed=SimpleNamespace(
            is_available=lambda: found.distributed, is_nccl_available=lambda: found.nccl
        ),
    )
    monkeypatch.setattr(requirements, "framework", lambda name: fake)
    return found


def asked(devices: Any, device: str = "auto") -> Devices | None:
    """Those of a trial."""
    return devices_of({"devices": devices, "device": device})


@pytest.mark.parametrize(
    ("gpus", "devices", "device", "found"),
    [
        (8, "all", "auto", Devices(8, True)),
        (8, "all", "gpu", Devices(8, True)),
        (8, 3, "auto", Devices(3, True)),
        (8, 3, "cpu", Devices(3, False)),
        (0, 3, "auto", Devices(3, False)),
        (1, "all", "gpu", None),
        (0, "all", "auto", None),
    ],
)
def test_gpus_where_there_are_some(
    machine: SimpleNamespace, gpus: int, devices: Any, device: str, found: Devices | None
) -> None:
    """Else processes on the processor; one of either is a loop as ever."""
    machine.gpus = gpus
    assert asked(devices, device) == found


def test_one_device_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No framework is imported for it, since its threads are set before."""
    monkeypatch.setattr(requirements, "framework", lambda name: pytest.fail("imported"))
    assert devices_of({"device": "gpu"}) is None
    assert devices_of({"device": "gpu", "devices": 1}) is None


@pytest.mark.parametrize(
    ("lacks", "devices", "device", "said"),
    [
        ({"gpus": 2}, 3, "auto", "3 GPUs are asked for (devices), and torch 9.9 finds 2"),
        ({}, "all", "gpu", "torch 9.9 finds no GPU"),
        ({"gpus": 2, "nccl": False}, 2, "gpu", "torch 9.9 was built without NCCL"),
        ({"distributed": False}, 2, "cpu", "torch 9.9 was built without torch.distributed"),
    ],
)
def test_what_is_missing_is_said(
    machine: SimpleNamespace, lacks: dict[str, Any], devices: Any, device: str, said: str
) -> None:
    """Before any process is started."""
    vars(machine).update(lacks)
    with pytest.raises(Unavailable) as caught:
        asked(devices, device)
    assert str(caught.value).startswith(said)


def test_they_are_named_together() -> None:
    """By kind and number."""
    assert (
        Devices(2, False).named(["AMD EPYC, 1 thread"] * 2) == "2 x CPU (AMD EPYC, 1 thread each)"
    )
    assert Devices(2, True).named(["NVIDIA H100"] * 2) == "2 x NVIDIA H100"
    assert Devices(3, True).named(["A", "B", "A"]) == "2 x A + 1 x B"
