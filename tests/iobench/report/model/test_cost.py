"""The section of what training costs."""

from __future__ import annotations

from dataclasses import replace

from iobench.held import held
from iobench.report.model.cost import section
from iobench.report.model.shapes import Table, Words
from iobench.trial import Trial
from tests.iobench.cost.made import ASKED, PRICES, run, trained
from tests.iobench.summary.made import result

LOOP = (*trained("synthetic", 1_000), *trained("cold", 500))


def test_an_epoch_by_its_parts() -> None:
    """And what would pay, below."""
    made = section(held(replace(run(*LOOP), config={"cost": ASKED})))
    assert made is not None
    table = next(block for block in made.blocks if isinstance(block, Table))
    (row,) = table.rows
    assert [cell.text for cell in row] == [
        *("shards@disk, cold", "2", "$10.00", "$10.00", "$0.00", "$0.00", "$20.00", "$1,800.00")
    ]
    assert row[1].note == "50.0\u00a0% waiting"
    words = [block for block in made.blocks if isinstance(block, Words)]
    assert words[1].lines[0].startswith("Resizing beforehand: not known")


def test_unknown_prices_are_unknown() -> None:
    """With the key that would tell them."""
    run_ = run(*LOOP, prices={**PRICES, "instance_usd_per_h": None})
    made = section(held(replace(run_, config={"cost": ASKED})))
    assert made is not None
    table = next(block for block in made.blocks if isinstance(block, Table))
    assert [cell.text for cell in table.rows[0]][2:4] == ["unknown", "unknown"]
    last = made.blocks[-1]
    assert isinstance(last, Words)
    assert any("cost.instance_usd_per_h" in line for line in last.lines)


def test_a_run_without_a_loop_says_so() -> None:
    """In a section of one line."""
    none: tuple[Trial, ...] = ()
    made = section(held(replace(run(*none), config={"cost": ASKED})))
    assert made is not None
    assert len(made.blocks) == 1


def test_nobody_is_told_what_was_not_asked_for() -> None:
    """Older results have no such part."""
    assert section(result([])) is None
    assert section(held(run(*LOOP))) is None
