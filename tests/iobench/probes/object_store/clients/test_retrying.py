"""Requests again, counted."""

from __future__ import annotations

import pytest

from iobench.clock import VirtualClock
from iobench.probes.object_store.clients.protocol import RequestFailed
from iobench.probes.object_store.clients.retrying import Retrying


class Failing:
    """Fails with each status in turn, then returns."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)

    def __call__(self) -> str:
        if self.statuses:
            status = self.statuses.pop(0)
            raise RequestFailed(status, f"{status} for a test")
        return "done"


@pytest.mark.parametrize("status", ["429", "500", "503", "connection", "timeout"])
def test_what_may_pass_is_sent_again_and_counted(status: str) -> None:
    """Each repetition counts, and waits first."""
    clock = VirtualClock()
    retrying = Retrying(5, clock)
    assert retrying.call(Failing(status, status)) == "done"
    assert retrying.retries == 2
    assert 0.2 <= clock.now_s() <= 0.6


@pytest.mark.parametrize("status", ["400", "403", "404", "416", "truncated"])
def test_what_does_not_pass_is_not_sent_again(status: str) -> None:
    """A refusal stays one."""
    retrying = Retrying(5, VirtualClock())
    with pytest.raises(RequestFailed, match=status):
        retrying.call(Failing(status))
    assert retrying.retries == 0


def test_attempts_are_bounded() -> None:
    """The last failure is raised, and only repetitions count."""
    retrying = Retrying(3, VirtualClock())
    request = Failing(*["503"] * 9)
    with pytest.raises(RequestFailed, match="503"):
        retrying.call(request)
    assert (retrying.retries, len(request.statuses)) == (2, 6)
    assert retrying.refused == 3


def test_only_answers_that_ask_for_fewer_are_refusals() -> None:
    """503 and 429, the last one too."""
    retrying = Retrying(5, VirtualClock())
    retrying.call(Failing("500", "429", "timeout", "503"))
    assert (retrying.retries, retrying.refused) == (4, 2)
    with pytest.raises(RequestFailed):
        Retrying(1, VirtualClock()).call(Failing("503"))


def test_one_attempt_is_no_retry() -> None:
    """With one attempt nothing waits."""
    clock = VirtualClock()
    with pytest.raises(RequestFailed):
        Retrying(1, clock).call(Failing("503"))
    assert clock.now_s() == 0.0
