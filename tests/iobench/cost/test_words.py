"""Costs in lines."""

from __future__ import annotations

import pytest

from iobench.cost import cost
from iobench.cost.words import dollars, lines
from tests.iobench.cost.made import ASKED, PRICES, copying, run, trained

LOOP = (*trained("synthetic", 1_000), *trained("cold", 500))


def test_a_loop_is_told_by_what_it_costs() -> None:
    """An epoch, all epochs, what waiting takes of it."""
    said = list(lines(cost(run(*LOOP), ASKED)))
    assert said[:2] == [
        "g: epochs of 3,600,000 samples, 90 epochs.",
        "shards@disk, cold: $20.00 an epoch, $1,800.00 to 90 epochs; the device waits 1 h of 2 h "
        "an epoch ($10.00).",
    ]
    assert said[2].startswith("Resizing beforehand: not known; measure the same data")


def test_a_break_even_is_an_epoch() -> None:
    """With what it takes and what it saves."""
    said = list(lines(cost(run(*LOOP, *trained("store", 250), copying(100.0)), ASKED)))
    (line,) = [line for line in said if line.startswith("Staging")]
    assert line.startswith(
        "Staging to a local disk (shards@s3 to shards@disk) takes $11.44 and 1 h once, saves "
        "$21.44 and 2 h an epoch, and pays from epoch 1 on (copied at 100 MB/s (GETs by boto3); "
    )


def test_without_a_price_hours_are_told() -> None:
    """And the key that is missing."""
    said = list(lines(cost(run(*LOOP, prices={**PRICES, "instance_usd_per_h": None}), ASKED)))
    assert said[1].endswith("dollars are not known.")
    assert any("cost.instance_usd_per_h" in line for line in said)


def test_nothing_to_price_is_one_line() -> None:
    """With the reason."""
    assert list(lines(cost(run(), ASKED))) == [
        "What training costs cannot be told: no training loop read stored data."
    ]


@pytest.mark.parametrize(
    ("value", "currency", "said"),
    [
        (1234.5, "USD", "$1,234.50"),
        (0.0, "USD", "$0.00"),
        (0.998, "USD", "$1.00"),
        (0.00123, "USD", "$0.0012"),
        (-1.5, "USD", "-$1.50"),
        (-0.00123, "USD", "-$0.0012"),
        (2.0, "EUR", "2.00 EUR"),
        (None, "USD", "unknown"),
    ],
)
def test_money(value: float | None, currency: str, said: str) -> None:
    """Cents, and what is below them."""
    assert dollars(value, currency) == said
