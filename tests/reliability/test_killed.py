"""Jobs killed at random moments and run again; ``killed.py`` does the same many times."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.reliability.killed import KINDS, Bench, Kind, bench

SEED = os.environ.get("DATAPREP_SEED", "20261122")
SHORT = (
    (KINDS[0], "a folder"),
    (Kind("SIGKILL to the driver"), "S3, in parts"),
    (Kind("SIGKILL to the group", engine="threads"), "S3, in parts"),
    (Kind("SIGKILL to the group", job="finalize"), "a folder"),
    (Kind("Ctrl-C"), "a folder"),
    (Kind("Ctrl-C twice", engine="threads"), "a folder"),
)


@pytest.fixture(scope="module")
def rounds() -> Iterator[Bench]:
    """Over fewer images than the long form has."""
    with bench(60) as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "where"),
    SHORT,
    ids=[f"{kind.fault}, {kind.job} by {kind.engine}, {where}" for kind, where in SHORT],
)
def test_killed_and_run_again(rounds: Bench, kind: Kind, where: str) -> None:
    """The same bytes as undisturbed, and nothing temporary, no process and no lease left.

    ``DATAPREP_SEED`` repeats what failed with the seed that is told.
    """
    print(f"DATAPREP_SEED={SEED}")  # noqa: T201  shown where the test fails
    seen = rounds.round(kind, where, random.Random(f"{SEED} {kind} {where}"))
    assert seen.problems == []
    assert seen.kills
