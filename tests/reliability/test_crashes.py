"""The short form: a few random placements of each kind of crash, with a seed that is printed."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

from tests.reliability.crash_attempts import crash, hang, killed_once, memory, placed
from tests.reliability.crash_jobs import THREADS, Place, processes

SEED = int(os.environ.get("DATAPREP_SEED", "7"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Images enough for three shards."""
    return Place(tmp_path_factory.mktemp("crashes"))


@pytest.fixture
def chance() -> random.Random:
    """The same for the same seed."""
    print(f"DATAPREP_SEED={SEED}")  # noqa: T201  shown where the test fails
    return random.Random(SEED)


@pytest.mark.parametrize("options", [THREADS, processes(2)], ids=["threads", "processes"])
def test_samples_that_crash_fail_alone(
    place: Place, chance: random.Random, options: Sequence[str]
) -> None:
    """All others are stored, to the bytes of a job in which the same ones fail without a crash."""
    assert crash(place, placed(place, chance, most=2), options) == []


def test_a_worker_killed_over_sound_samples(place: Place, chance: random.Random) -> None:
    """Nothing fails."""
    assert killed_once(place, chance, processes(1)) == []


def test_a_sample_that_takes_all_memory(place: Place, chance: random.Random) -> None:
    """The job stops, names it, fails nothing, and goes on elsewhere."""
    assert memory(place, chance, THREADS) == []


def test_a_sample_that_hangs(place: Place, chance: random.Random) -> None:
    """It is found although native code holds the interpreter, and fails where that is wanted."""
    assert hang(place, chance, "fail") == []
