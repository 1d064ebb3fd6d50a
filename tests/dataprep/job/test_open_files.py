"""Tests of dataprep.job.open_files."""

from __future__ import annotations

import resource

import pytest

from dataprep.errors import ConfigError
from dataprep.job.open_files import allow_open_files


@pytest.mark.parametrize(
    ("limits", "raised"),
    [
        ((64, 64), None),
        ((63, 1000), (64, 1000)),
        ((20, resource.RLIM_INFINITY), (64, resource.RLIM_INFINITY)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised: tuple[int, int] | None
) -> None:
    """Two workers take 64; who has more keeps it."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, found: asked.append(found))
    allow_open_files(2)
    assert asked == ([] if raised is None else [raised])


def test_a_hard_limit_that_is_too_low_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many are needed, and what to do."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (32, 63))
    with pytest.raises(ConfigError, match="takes about 64, and 63 are allowed: raise the limit"):
        allow_open_files(2)
