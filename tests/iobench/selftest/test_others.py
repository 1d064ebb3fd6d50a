"""How busy other programs kept the processors."""

from __future__ import annotations

from collections import namedtuple

import pytest

from iobench.selftest.others import Others

Times = namedtuple("Times", ["user", "system", "idle", "iowait", "guest"])
Own = namedtuple("Own", ["user", "system", "children_user", "children_system"])


def share(monkeypatch: pytest.MonkeyPatch, after: Times, own: Own) -> float:
    """Of a block in which these seconds passed."""
    machine = iter([Times(100, 10, 50, 5, 20), after])
    process = iter([Own(1, 1, 0, 0), own])
    monkeypatch.setattr("psutil.cpu_times", lambda: next(machine))
    monkeypatch.setattr("os.times", lambda: next(process))
    with Others() as found:
        pass
    return found.share


def test_neither_idle_nor_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 seconds 8 are busy, and 3 of them ours or our children's: a quarter is others'."""
    found = share(monkeypatch, Times(106, 12, 60, 7, 26), Own(2, 1, 1, 1))
    assert found == pytest.approx(5 / 20)


@pytest.mark.parametrize("own", [Own(1, 1, 0, 0), Own(30, 1, 0, 0)])
def test_no_time_has_no_share(monkeypatch: pytest.MonkeyPatch, own: Own) -> None:
    """Whatever was taken."""
    assert share(monkeypatch, Times(100, 10, 50, 5, 20), own) == 0


def test_clocks_that_disagree_give_no_negative_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the machine did is all of it."""
    assert share(monkeypatch, Times(101, 10, 50, 5, 20), Own(30, 1, 0, 0)) == 0


def test_the_real_one_is_a_share() -> None:
    """On this machine."""
    with Others() as found:
        sum(range(10_000))
    assert 0 <= found.share <= 1
