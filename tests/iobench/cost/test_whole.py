"""What training costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.cost import cost
from tests.iobench.cost.made import ASKED, PRICES, loaded, run, trained

PLAIN = run(*trained("synthetic", 1_000), *trained("cold", 500), *trained("store", 250))
"""3.6 million samples: an hour at 1,000 samples/s, two cold, four from the store."""


def rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By their data."""
    return {row["data"]: row for row in found["rows"]}


def test_an_epoch_is_hours_that_the_device_works_and_waits() -> None:
    """Of two hours cold it waits one."""
    row = rows(cost(PLAIN, ASKED))["shards@disk"]
    assert (row["hours"], row["busy_hours"], row["idle_hours"]) == pytest.approx((2, 1, 1))
    assert (row["busy_usd"], row["idle_usd"], row["requests_usd"]) == pytest.approx((10, 10, 0))
    assert (row["usd"], row["usd_to_epochs"]) == pytest.approx((20, 1_800))


def test_a_store_costs_requests_and_storage() -> None:
    """A GET a shard of 1,000 samples; 360 GB for four hours."""
    row = rows(cost(PLAIN, ASKED))["shards@s3"]
    assert row["gets"] == pytest.approx(3_600)
    assert row["requests_usd"] == pytest.approx(3.6 * 0.4)
    assert row["storage_usd"] == pytest.approx(3.6e11 / 2**30 * 0.02 * 4 / 730)


def test_who_reads_single_samples_pays_a_get_each() -> None:
    """As torch-map does."""
    single = run(*trained("store", 250, loader="torch-map"))
    (row,) = cost(single, ASKED)["rows"]
    assert row["requests_usd"] == pytest.approx(3_600 * 0.4)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("google-cloud-storage", "Google Cloud Storage"), ("aws-s3-express", "S3 Express"), ("", "")],
)
def test_prices_of_amazon_are_not_those_of_another_store(kind: str, name: str) -> None:
    """They are missing by name, and in no sum; nor is the store free."""
    environment = {"stores": {"data": {"kind": kind, "name": name}}}
    found = cost(replace(PLAIN, environment=environment), ASKED)
    row = rows(found)["shards@s3"]
    assert row["requests_usd"] is row["storage_usd"] is None
    assert row["without"] == ["requests", "storage"]
    assert any(f"requests and storage of {name or 'the store'}" in m for m in found["missing"])


def test_a_store_of_ones_own_costs_nothing() -> None:
    """Nobody bills its requests."""
    own = {"stores": {"data": {"kind": "own-server"}}}
    row = rows(cost(replace(PLAIN, environment=own), ASKED))["shards@s3"]
    assert row["requests_usd"] == row["storage_usd"] == 0.0


def test_a_loop_can_be_named() -> None:
    """Where the verdict speaks of another; one that is not there is said."""
    two = run(*trained("synthetic", 1e3), *trained("cold", 500), *trained("cold", 100, group="h"))
    (row,) = cost(two, {**ASKED, "group": "h"})["rows"]
    assert row["hours"] == pytest.approx(10)
    assert cost(two, {**ASKED, "group": "i"})["unknown"] == "no training loop is called 'i'"


def test_without_samples_those_of_the_run_are_taken() -> None:
    """100 shards of 1,000."""
    found = cost(PLAIN, {**ASKED, "samples": None})
    assert found["samples"] == pytest.approx(100_000)
    assert not found["samples_given"]


def test_without_an_hours_price_no_sum_is_made() -> None:
    """The key that would tell it is named; hours are known all the same."""
    unpriced = replace(PLAIN, references={"prices": {**PRICES, "instance_usd_per_h": None}})
    found = cost(unpriced, ASKED)
    row = rows(found)["shards@disk"]
    assert (row["usd"], row["hours"]) == (None, pytest.approx(2))
    assert any("cost.instance_usd_per_h" in line for line in found["missing"])


def test_an_own_price_overrules_the_file() -> None:
    """Contracts have others."""
    row = rows(cost(PLAIN, {**ASKED, "instance_usd_per_h": 1.0}))["shards@disk"]
    assert row["usd"] == pytest.approx(2.0)


def test_a_part_without_a_price_is_in_no_sum() -> None:
    """And is named."""
    found = cost(PLAIN, {**ASKED, "disk_usd_per_gb_month": None})
    assert rows(found)["shards@disk"]["without"] == ["storage"]
    assert any("cost.disk_usd_per_gb_month" in line for line in found["missing"])


def test_without_a_ceiling_nothing_is_said_to_wait() -> None:
    """All hours are the device's, and it is marked."""
    (row,) = cost(run(*trained("cold", 500)), ASKED)["rows"]
    assert (row["idle_hours"], row["idle_known"]) == (0, False)


@pytest.mark.parametrize("trials", [[], [loaded(1.0, "shards@disk")], trained("synthetic", 1.0)])
def test_without_a_loop_there_is_nothing_to_price(trials: list[Any]) -> None:
    """It is said."""
    found = cost(run(*trials), ASKED)
    assert found["rows"] == []
    assert found["unknown"] == "no training loop read stored data"


@given(
    rate=st.floats(1, 1e6),
    consumes=st.floats(1, 1e6),
    samples=st.integers(1, 10**10),
    epochs=st.integers(1, 1_000),
    hour=st.floats(0, 1e3),
)
def test_a_cost_adds_up(
    rate: float, consumes: float, samples: int, epochs: int, hour: float
) -> None:
    """Parts to an epoch, epochs to the whole, working and waiting to the hours."""
    made = run(*trained("synthetic", consumes), *trained("store", rate))
    asked = {"epochs": epochs, "samples": samples, "instance_usd_per_h": hour}
    (row,) = cost(made, asked)["rows"]
    parts = [row[key] for key in ("busy_usd", "idle_usd", "requests_usd", "storage_usd")]
    assert min(parts) >= 0
    assert row["usd"] == pytest.approx(sum(parts))
    assert row["usd_to_epochs"] == pytest.approx(epochs * row["usd"])
    assert row["busy_hours"] + row["idle_hours"] == pytest.approx(row["hours"])
    assert row["busy_usd"] + row["idle_usd"] == pytest.approx(row["hours"] * hour)
