"""How many threads a framework computes with."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iobench.loops import threads
from iobench.loops.threads import limit_threads, rank_environment

NAMES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def eight(process: int) -> set[int]:
    """Eight processors."""
    return set(range(8))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without a word on threads, on eight processors without a GPU."""
    made: dict[str, str] = {}
    # A stand-in for the module: what others put into the environment is not looked at.
    monkeypatch.setattr(threads, "os", SimpleNamespace(environ=made, sched_getaffinity=eight))
    monkeypatch.setattr(threads, "gpus", list)
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
    monkeypatch.setattr(threads, "gpus", lambda: [{"name": "a GPU"}])
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
