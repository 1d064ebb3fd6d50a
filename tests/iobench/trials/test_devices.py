"""The devices that a loop takes, and the threads with which it computes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.results.trial import Context, Location, TrialSpec
from iobench.trials import loader_opening
from iobench.trials import multi_device_training as devices_module
from iobench.trials.multi_device_training import Ranks, ranks_of, thread_limits
from iobench.trials.training_settings import Training, TrainingTrial, training_points
from tests.iobench.trials.fakes import Only, SlowLoader


def trial(**changes: Any) -> TrainingTrial:
    """Return the settings of a training loop; ``device`` is not checked against ``devices``."""
    device = changes.pop("device", "auto")
    (params,) = training_points(Training.model_validate({"inputs": "warm", **changes}))
    return TrainingTrial.model_validate({**params, "device": device})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a machine whose torch finds ``gpus`` GPUs."""
    fake_machine = SimpleNamespace(gpus=0)
    cuda = SimpleNamespace(device_count=lambda: fake_machine.gpus)
    fake_torch = SimpleNamespace(__version__="9.9", cuda=cuda)
    monkeypatch.setattr(devices_module, "need_framework", lambda name: fake_torch)
    return fake_machine


@pytest.mark.parametrize(
    ("gpus", "devices", "device", "expected"),
    [
        (8, "all", "auto", Ranks(8, "gpu")),
        (8, "all", "gpu", Ranks(8, "gpu")),
        (8, 3, "auto", Ranks(3, "gpu")),
        (8, 3, "cpu", Ranks(3, "cpu")),
        (0, 3, "auto", Ranks(3, "cpu")),
        (1, "all", "gpu", None),
        (0, "all", "auto", None),
    ],
)
def test_gpus_where_there_are_some(
    machine: SimpleNamespace, gpus: int, devices: Any, device: str, expected: Ranks | None
) -> None:
    """Without GPUs the ranks are processes on the CPU; one device needs no ranks."""
    machine.gpus = gpus
    assert ranks_of(trial(devices=devices, device=device)) == expected


def test_one_device_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No framework is imported for one device, since its threads are set before."""
    monkeypatch.setattr(devices_module, "need_framework", lambda name: pytest.fail("imported"))
    assert ranks_of(trial(device="gpu")) is None


@pytest.mark.parametrize("count", [1, 4])
def test_emulated_accelerators_need_no_framework(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Each accelerator is a process, also a single one, so that all numbers compare."""
    monkeypatch.setattr(devices_module, "need_framework", lambda name: pytest.fail("imported"))
    paced = trial(consumer="paced", images_per_s=200, accelerators=count)
    assert ranks_of(paced) == Ranks(count, "paced")


@pytest.mark.parametrize(
    ("lacks", "devices", "device", "message"),
    [
        ({"gpus": 2}, 3, "auto", "devices: 3 needs 3 GPUs, but torch 9.9 finds 2"),
        ({}, "all", "gpu", "torch 9.9 finds no GPU"),
    ],
)
def test_missing_devices_are_an_error(
    machine: SimpleNamespace, lacks: dict[str, Any], devices: Any, device: str, message: str
) -> None:
    """The error comes before any process is started."""
    vars(machine).update(lacks)
    with pytest.raises(Unavailable) as caught:
        ranks_of(trial(devices=devices, device=device))
    assert str(caught.value).startswith(message)


def test_access_file_closes_the_loader_that_names_the_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is created only to learn which data are copied, and closed before the copy is made."""
    loaders: list[SlowLoader] = []

    class NotedLoader(SlowLoader):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            loaders.append(self)

    def download(*arguments: object) -> Location:
        assert [loader.closed for loader in loaders] == [True]
        raise Unavailable("no space")

    monkeypatch.setattr(loader_opening, "LOADERS", Only(NotedLoader))
    monkeypatch.setattr(devices_module, "downloaded", download)
    of_store = {"inputs": "store", "access": "file", "loader": "torch-iterable"}
    paced = trial(consumer="paced", images_per_s=200, accelerators=2, **of_store)
    locations = {paced.data: Location("s3://bucket/out", "shards")}
    context = Context(locations, VirtualClock(), lambda done, unit: None, scratch=tmp_path)
    spec = TrialSpec("train", paced.model_dump())
    with pytest.raises(Unavailable, match="no space"):
        devices_module.run(spec, paced, context, Ranks(2, "paced"), {})


def test_they_are_named_together() -> None:
    """The description has the kind and the number of each device."""
    cpus = ["AMD EPYC, 1 thread"] * 2
    assert Ranks(2, "cpu").describe(cpus) == "2 x CPU (AMD EPYC, 1 thread each)"
    assert Ranks(2, "gpu").describe(["NVIDIA H100"] * 2) == "2 x NVIDIA H100"
    assert Ranks(3, "gpu").describe(["A", "B", "A"]) == "2 x A + 1 x B"
    emulated = ["emulated H100 (7,000 images/s)"] * 4
    assert Ranks(4, "paced").describe(emulated) == "4 x emulated H100 (7,000 images/s)"


NAMES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


@pytest.mark.parametrize(
    ("threads", "workers", "environment", "on_cpu", "ranks", "expected"),
    [
        # Each worker has a CPU, and at least one CPU computes.
        (None, 0, "", False, 1, 8),
        (None, 3, "", False, 1, 5),
        (None, 20, "", False, 1, 1),
        # Each rank has its part of the CPUs.
        (None, 1, "", True, 2, 3),
        (None, 0, "", True, 2, 4),
        (None, 3, "", True, 4, 1),
        # The config comes first, and then the environment.
        (3, 2, "7", False, 1, 3),
        (3, 1, "7", True, 2, 3),
        (None, 2, "7", False, 1, None),
    ],
)
def test_threads_that_compute(
    monkeypatch: pytest.MonkeyPatch,
    threads: int | None,
    workers: int,
    environment: str,
    on_cpu: bool,
    ranks: int,
    expected: int | None,
) -> None:
    """The numbers are for a machine with eight CPUs and no GPU."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(devices_module, "gpus", list)
    environment_variables = {"OMP_NUM_THREADS": environment} if environment else {}
    limits = thread_limits(threads, workers, environment_variables, on_cpu=on_cpu, ranks=ranks)
    assert limits == ({} if expected is None else dict.fromkeys(NAMES, str(expected)))


@pytest.mark.parametrize("on_cpu", [False, True])
def test_beside_a_gpu_processors_are_the_loaders(
    monkeypatch: pytest.MonkeyPatch, on_cpu: bool
) -> None:
    """Threads are limited only if the loop computes on the CPU."""
    monkeypatch.setattr(devices_module, "gpus", lambda: [{"name": "a GPU"}])
    assert bool(thread_limits(None, 2, {}, on_cpu=on_cpu)) == on_cpu
