"""How often, and after which waits."""

from __future__ import annotations

import time

import pytest

from dataprep.stores.attempts import attempts


def test_waits_double_and_the_last_attempt_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait before the first, none after the last."""
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    assert list(attempts(4, first_wait_s=0.5)) == [False, False, False, True]
    assert waits == [0.5, 1.0, 2.0]


def test_one_attempt_is_the_last_and_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to wait for."""
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    assert list(attempts(1, first_wait_s=0.5)) == [True]


def test_who_succeeds_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that is left early takes no further wait."""
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    for last in attempts(3, first_wait_s=0.5):
        assert not last
        break
