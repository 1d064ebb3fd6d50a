"""Trials of several hosts are prepared, wait for the signal to begin, and then measure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pytest

from iobench.clock import SystemClock
from iobench.data.making import DataMaker
from iobench.data.settings import DataSettings
from iobench.errors import TrialFailed
from iobench.machine.processes import SuspendedTime
from iobench.results.trial import Context, Location, Outcome, Status, TrialSpec
from iobench.trials.loader_grid import LoaderGrid
from iobench.trials.loader_grid import loader_points as plan_loaders
from iobench.trials.training_settings import Training
from iobench.trials.training_settings import training_points as plan_loops
from iobench.trials.trial_process import ChildProcess, Message, TrialRequest
from iobench.trials.trial_process_main import TRIAL_FUNCTIONS
from iobench.trials.trial_timeout import run_with_timeout
from tests.commandline import wait_until

DISK: dict[str, Any] = {
    "target": "here",
    "operation": "read",
    "pattern": "sequential",
    "block_bytes": 2**16,
    "parallelism": 1,
    "cache": "warm",
    "file_bytes": 2**20,
    "seconds": 0.05,
}


def loader(**values: Any) -> dict[str, Any]:
    """Return a point of a grid of loaders."""
    values = {"workers": 0, "batch_size": 4, "seconds": 0.05, "image_size": 32, **values}
    return dict(next(plan_loaders(LoaderGrid.model_validate(values))))


def loop(**values: Any) -> dict[str, Any]:
    """Return a point of a training loop on an emulated device."""
    usual = {"consumer": "paced", "images_per_s": 1000, "batch_size": 2, "steps": 4, "workers": 0}
    return dict(next(plan_loops(Training.model_validate({**usual, **values}))))


def _no_bucket() -> AbstractContextManager[Location]:
    """Fail, since these tests use no bucket."""
    raise NotImplementedError


@pytest.fixture(scope="module")
def locations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Location]:
    """Return the locations of a few small images and of a folder on a disk."""
    folder = tmp_path_factory.mktemp("begin")
    settings = DataSettings(images=40, classes=2, size=64, folder=str(folder / "data"))
    maker = DataMaker(settings, _no_bucket, lambda line: None)
    shards = maker.location("shards@disk")
    return {"disk/here": Location(str(folder / "run"), "empty"), "shards@disk": shards}


def measured_in_a_process(
    locations: dict[str, Location], begin: Callable[[], None]
) -> tuple[Status, Outcome | None, str]:
    """Return status, outcome and reason of a disk trial in a process of its own."""
    return run_with_timeout(
        TrialSpec("disk", DISK),
        locations,
        timeout_s=60,
        environment={},
        progress=lambda done, unit: None,
        begin=begin,
    )


DISK_WRITE = {**DISK, "operation": "write", "cache": "buffered"}
LAYOUT: dict[str, Any] = {"data": "shards@disk", "access": "shards", "cache": "warm"}
LAYOUT |= {"parallelism": 1, "seconds": 0.05}
ACCELERATORS = loop(loader="torch-iterable", accelerators=2, inputs=["warm"])
KINDS_OF_TRIALS = {
    "disk read": ("disk", DISK),
    "disk write": ("disk", DISK_WRITE),
    "layout": ("layout", LAYOUT),
    "loader": ("loader", loader(loader="raw", workers=1)),
    "loader in two processes": ("loader", loader(loader="torch-iterable", processes=2)),
    "loop": ("train", loop(loader="raw", workers=1, inputs=["warm"])),
    "loop on data of the device": ("train", loop(loader="raw", inputs=["synthetic"])),
    "accelerators side by side": ("train", ACCELERATORS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS_OF_TRIALS)
def test_a_trial_begins_once_and_only_when_it_may(
    name: str, locations: dict[str, Location]
) -> None:
    """Each kind of trial moves and trains nothing before it begins."""
    kind, params = KINDS_OF_TRIALS[name]
    moved: list[float] = []
    begun: list[float] = []

    def begin() -> float:
        begun.append(sum(moved))
        return 0.0

    def progress(done: float, unit: str) -> None:
        moved.append(done)

    context = Context(locations, SystemClock(), progress, begin=begin)
    outcome = resolve_name(TRIAL_FUNCTIONS[kind])(TrialSpec(kind, params), context)
    assert begun == [0.0]
    assert outcome.metrics["seconds"] > 0
    assert moved


@pytest.mark.slow
def test_a_trial_whose_hosts_do_not_begin_has_failed(locations: dict[str, Location]) -> None:
    """The process of the trial is ended, and the reason is that of the hosts."""
    called = []

    def begin() -> None:
        called.append(True)
        raise TrialFailed("host 2 is late")

    verdict = measured_in_a_process(locations, begin)
    assert verdict == ("failed", None, "host 2 is late")
    assert called == [True]


@pytest.mark.slow
def test_a_trial_in_a_process_begins_when_its_hosts_do(locations: dict[str, Location]) -> None:
    """A line on its stdin releases it."""
    called = []
    status, outcome, _ = measured_in_a_process(locations, lambda: called.append(True))
    assert (status, called) == ("done", [True])
    assert outcome is not None
    assert outcome.metrics["mb_per_s"] > 0


@pytest.mark.slow
def test_a_trial_waits_until_it_may_begin(locations: dict[str, Location]) -> None:
    """A prepared trial sends no message until it may begin."""
    messages: list[Message] = []

    def next_message(child: ChildProcess) -> Message:
        def arrived() -> bool:
            messages.extend(m for m in child.messages() if "progress" not in m)
            return bool(messages)

        wait_until(arrived, "a message")
        return messages.pop(0)

    with ChildProcess(os.environ, own_session=False) as child:
        child.request(TrialRequest(TrialSpec("disk", DISK), locations, waits=True))
        assert next_message(child) == {"ready": True}
        child.wait(1.0)
        assert not child.ended
        assert child.messages() == []
        child.let_begin()
        assert "outcome" in next_message(child)


@pytest.mark.slow
def test_waiting_for_hosts_is_no_time_of_the_trial(
    locations: dict[str, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait neither uses up the trial's limit nor counts as suspended."""
    waited_s = 0.0

    def begin() -> None:
        nonlocal waited_s
        waited_s = 10_000.0

    clock = partial(SuspendedTime, clock=lambda: time.monotonic() + waited_s)
    monkeypatch.setattr("iobench.trials.trial_timeout.SuspendedTime", clock)
    status, outcome, why = measured_in_a_process(locations, begin)
    assert status == "done", why
    assert outcome is not None
    assert "stood_still_s" not in outcome.metrics
