"""Which devices a loop takes, and with how many threads it computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iobench.consumers import requirements
from iobench.errors import Unavailable
from iobench.loops import devices as devices_module
from iobench.loops.devices import Devices, devices_of, limit_threads, rank_environment


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A torch that finds ``gpus`` GPUs."""
    found = SimpleNamespace(gpus=0, distributed=True, nccl=True)
    fake = SimpleNamespace(
        __version__="9.9",
        version=SimpleNamespace(cuda="12.8"),
        cuda=SimpleNamespace(device_count=lambda: found.gpus),
        distributed=SimpleNamespace(
            is_available=lambda: found.distributed, is_nccl_available=lambda: found.nccl
        ),
    )
    monkeypatch.setattr(requirements, "framework", lambda name: fake)
    return found


def asked(devices: Any, device: str = "auto") -> Devices | None:
    """Those of a trial."""
    return devices_of(devices, device)


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
    assert devices_of(1, "gpu") is None


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


NAMES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def eight(process: int) -> set[int]:
    """Eight processors."""
    return set(range(8))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without a word on threads, on eight processors without a GPU."""
    made: dict[str, str] = {}
    # A stand-in for the module: what others put into the environment is not looked at.
    monkeypatch.setattr(
        devices_module, "os", SimpleNamespace(environ=made, sched_getaffinity=eight)
    )
    monkeypatch.setattr(devices_module, "gpus", list)
    return made


@pytest.mark.parametrize(("workers", "left"), [(0, 8), (3, 5), (8, 1), (20, 1)])
def test_a_processor_for_each_worker(environment: dict[str, str], workers: int, left: int) -> None:
    """What workers do not use is for computing, and at least one."""
    limit_threads(None, workers, on_cpu=False)
    assert environment == dict.fromkeys(NAMES, str(left))


def test_as_told(environment: dict[str, str]) -> None:
    """A number that was asked for is taken, also over the environment's."""
    environment["OMP_NUM_THREADS"] = "7"
    limit_threads(3, 2, on_cpu=False)
    assert environment == dict.fromkeys(NAMES, "3")


def test_the_environment_stands(environment: dict[str, str]) -> None:
    """What the user set is kept."""
    environment["OMP_NUM_THREADS"] = "7"
    limit_threads(None, 2, on_cpu=False)
    assert environment == {"OMP_NUM_THREADS": "7"}


@pytest.mark.parametrize("on_cpu", [False, True])
def test_a_gpu_computes(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, on_cpu: bool
) -> None:
    """Beside a GPU processors are the loader's, unless the loop was sent to them."""
    monkeypatch.setattr(devices_module, "gpus", lambda: [{"name": "a GPU"}])
    limit_threads(None, 2, on_cpu=on_cpu)
    assert bool(environment) == on_cpu


@pytest.mark.parametrize(("ranks", "workers", "each"), [(2, 1, 3), (2, 0, 4), (4, 3, 1), (3, 1, 1)])
def test_ranks_share_the_processors(
    environment: dict[str, str], ranks: int, workers: int, each: int
) -> None:
    """Each has its part, less a processor for each of its workers; this process is left alone."""
    found = rank_environment({"PATH": "/bin"}, None, workers, ranks, on_cpu=True)
    assert found == {"PATH": "/bin", **dict.fromkeys(NAMES, str(each))}
    assert environment == {}


def test_ranks_have_as_many_threads_as_they_are_told(environment: dict[str, str]) -> None:
    """By the config, which counts those of a rank, or by the environment."""
    told = rank_environment({"OMP_NUM_THREADS": "7"}, 3, 1, 2, on_cpu=True)
    assert told == dict.fromkeys(NAMES, "3")
    kept = rank_environment({"OMP_NUM_THREADS": "7"}, None, 1, 2, on_cpu=True)
    assert kept == {"OMP_NUM_THREADS": "7"}
