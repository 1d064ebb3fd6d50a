"""Leave to write: asked for by what writes, in the thread that has it, while the block lasts."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from dataprep.errors import LeaseLost
from dataprep.stores.leave import ask, require, writing_while


class Asked:
    """Counts; refuses when told to."""

    def __init__(self) -> None:
        self.times = 0
        self.lost = False

    def __call__(self) -> None:
        self.times += 1
        if self.lost:
            raise LeaseLost("another run has it")


def send(method: str) -> None:
    """As botocore does before each attempt."""
    ask(request=SimpleNamespace(method=method), event_name="before-send.s3.X")


@pytest.mark.parametrize(
    ("method", "times"), [("PUT", 1), ("POST", 1), ("DELETE", 1), ("GET", 0), ("HEAD", 0)]
)
def test_what_writes_asks(method: str, times: int) -> None:
    """Asking is itself a request that reads."""
    asked = Asked()
    with writing_while(asked):
        send(method)
    assert asked.times == times


def test_who_has_lost_it_sends_nothing() -> None:
    """The error is that of the check."""
    asked = Asked()
    asked.lost = True
    with writing_while(asked), pytest.raises(LeaseLost):
        send("PUT")


def test_where_nobody_else_can_write_nobody_is_asked() -> None:
    """Nor what was asked around it."""
    asked = Asked()
    require()
    with writing_while(asked), writing_while(None):
        require()
    assert asked.times == 0


def test_it_ends_with_the_block() -> None:
    """Also by an error, and to what was asked around it."""
    inner, outer = Asked(), Asked()
    with writing_while(outer):
        with pytest.raises(KeyError), writing_while(inner):
            raise KeyError
        send("PUT")
    send("PUT")
    assert (inner.times, outer.times) == (0, 1)


def test_another_thread_has_its_own() -> None:
    """The one that renews a lease has to write to know."""
    asked = Asked()
    with writing_while(asked):
        thread = threading.Thread(target=send, args=("PUT",))
        thread.start()
        thread.join()
    assert asked.times == 0
