"""The objects by which hosts communicate: their requests are counted and bounded."""

from __future__ import annotations

from dataprep.stores.memory import MemoryStore
from iobench.clock import VirtualClock
from iobench.runner.hosts.rendezvous import Polling, Rendezvous


def rendezvous(name: str = "a", clock: VirtualClock | None = None) -> Rendezvous:
    """Return an empty rendezvous with the usual intervals."""
    return Rendezvous(MemoryStore(f"memory://rendezvous-{name}"), clock=clock or VirtualClock())


def test_objects_are_put_read_listed_and_removed() -> None:
    """The objects of an inner rendezvous lie below its name."""
    inner = rendezvous().within("run")
    assert inner.get("x") is None
    inner.put("x", {"a": 1})
    inner.put("y", {})
    assert inner.get("x") == {"a": 1}
    assert inner.keys("") == ["x", "y"]
    assert rendezvous().keys("") == ["run/x", "run/y"]
    inner.remove(["x", "y", "not there"])
    assert inner.keys("") == []
    assert inner.requests == {"puts": 2, "gets": 2, "lists": 2, "deletes": 3}


def test_requests_below_a_name_are_counted_together() -> None:
    """The counts are those of the whole rendezvous, which is priced."""
    outer = rendezvous("b")
    outer.within("one").put("x", {})
    outer.within("two").put("x", {})
    assert outer.requests["puts"] == 2


def test_waiting_ends_with_what_was_awaited_or_at_the_limit() -> None:
    """Waiting never takes longer than the limit."""
    clock = VirtualClock()
    room = rendezvous("c", clock)
    assert room.wait(lambda: "there" if clock.now_s() >= 3 else None, 10.0) == "there"
    begun_s = clock.now_s()
    assert room.wait(lambda: None, 10.0) is None
    assert clock.now_s() - begun_s == 10.0


def test_an_hour_of_waiting_takes_at_most_a_request_in_two_seconds() -> None:
    """A few more requests are sent at the beginning, when an answer is likely."""
    clock = VirtualClock()
    room = rendezvous("d", clock)
    room.wait(lambda: room.get("never"), 3600.0)
    assert 1800 <= room.requests["gets"] <= 1820


def test_quick_looks_are_bounded_by_their_time() -> None:
    """Each host sends at most 601 quick requests before each trial."""
    clock = VirtualClock()
    room = rendezvous("e", clock)
    usual = Polling()
    room.wait(lambda: room.get("never"), usual.quick_limit_s, quick=True)
    assert room.requests["gets"] <= usual.quick_limit_s / usual.quick_s + 2
