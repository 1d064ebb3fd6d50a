"""Processes that measure one trial together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from iobench.loops.ranks import cause, wait_for_all

DONE: dict[str, Any] = {"outcome": {}}


def failed(at_s: float) -> dict[str, Any]:
    """What a rank says that fails then."""
    return {"failed": "connection closed by peer", "at_s": at_s}


@pytest.mark.parametrize(
    ("said", "blamed"),
    [
        ({}, None),
        ({0: DONE, 1: DONE}, None),
        ({0: DONE, 1: failed(5.0)}, 1),
        ({0: failed(5.1), 1: failed(5.0)}, 1),
        ({0: failed(5.0), 1: failed(5.1)}, 0),
        ({0: failed(5.0), 1: {}, 2: failed(4.0)}, 1),
        ({0: failed(5.0), 1: {"skipped": "no GPU"}}, 1),
    ],
)
def test_the_first_that_failed_is_the_cause(
    said: dict[int, dict[str, Any]], blamed: int | None
) -> None:
    """One that fell silent before any that says so; none as long as all have done their part."""
    assert cause(said) == blamed


def test_nobody_passes_before_the_last_has_come(tmp_path: Path) -> None:
    """Whoever it is."""
    meeting = str(tmp_path / "meeting")
    with ThreadPoolExecutor(3) as threads:
        goes = [threads.submit(wait_for_all, meeting, 4) for _ in range(3)]
        assert wait(goes, 0.05).done == set()
        wait_for_all(meeting, 4)
        assert wait(goes, 60).not_done == set()
