"""``iobench selftest --json`` on a real clock: what it tells, not how long it took."""

from __future__ import annotations

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from iobench import selftest
from iobench.cli import app
from iobench.clock import VirtualClock
from iobench.selftest import whole
from iobench.selftest.cases import INPUTS, Case, Delays, Plan

pytestmark = pytest.mark.slow

TINY = Plan(
    delays=Delays(copy_s=0.001, augment_s=0.002, decode_s=0.003, fetch_s=0.004),
    batch_size=1,
    device_s=0.001,
    slow_device_s=0.002,
    more_rounds=1,
    between=10,
    workers=1,
    prefetch=1,
    prefetch_steps=8,
    images=10,
    side=64,
)


def test_every_row_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with their figures and their verdicts; the exit code says whether all of them are well.

    Of a few cases. Delays of a few milliseconds are lost in what a busy machine adds: which rows
    are well is left open.
    """
    pytest.importorskip("torch")
    monkeypatch.setattr(whole, "Plan", lambda: TINY)
    few = [Case(TINY.delays.only(*stages)) for stages in ((), ("copy",), ("decode", "fetch"))]
    monkeypatch.setattr(whole, "cases", lambda delays: few)
    monkeypatch.setattr(selftest, "checks", partial(selftest.checks, VirtualClock(), steps=7))
    done = CliRunner().invoke(app, ["selftest", "--json", "--rounds", "2"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    told = json.loads(done.stdout)
    parts = ["checks", "rungs_s", "ladder", "prefetch", "others_busy_share", "not_run", "ok"]
    assert list(told) == parts
    assert 0 <= told["others_busy_share"] <= 1
    assert done.exit_code == (0 if told["ok"] else 1)
    rows = [*told["checks"], *told["ladder"], *told["prefetch"]]
    assert told["ok"] == all(row["ok"] for row in rows)
    assert list(told["rungs_s"]) == list(INPUTS)
    assert all(seconds > 0 for seconds in told["rungs_s"].values())
    assert told["not_run"] == []
    rows_of = [(row["case"], row["stage"]) for row in told["ladder"]]
    assert rows_of == [("copy", "copy")] + [
        ("decode and fetch", one) for one in ("decode", "fetch")
    ]
    for row in told["ladder"]:
        assert row["injected_s"] == TINY.delays[row["stage"]]
        assert row["error"] == pytest.approx(row["recovered_s"] / row["injected_s"] - 1)
    assert [row["case"] for row in told["prefetch"]] == ["device", "copy"]
    assert {row["workers"] for row in told["prefetch"]} == {1}
    assert "round 2 of 2: decode and fetch slowed" in done.stderr


def test_an_interrupted_one_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And has nothing to go on with."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(selftest, "checks", stopped)
    done = CliRunner().invoke(app, ["selftest"])
    assert (done.exit_code, done.stderr) == (130, "iobench: interrupted\n")
