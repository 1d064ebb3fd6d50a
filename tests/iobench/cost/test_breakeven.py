"""When a change pays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.cost import cost
from iobench.cost.words import of_breakeven
from iobench.result import Result
from iobench.trial import Trial
from tests.iobench.cost.made import ASKED, PRICES, copying, loaded, run, trained

MADE = {"shards@disk": {"samples": 1_000, "reencoded": 900, "seconds": 2.0, "workers": 2}}
LOOP = (*trained("synthetic", 1_000), *trained("cold", 500))


def resizing(made: Result, **asked: Any) -> dict[str, Any]:
    """The first break-even."""
    found: dict[str, Any] = cost(made, {**ASKED, **asked})["breakevens"][0]
    return found


def staging(made: Result, **asked: Any) -> dict[str, Any]:
    """The second."""
    found: dict[str, Any] = cost(made, {**ASKED, **asked})["breakevens"][1]
    return found


def test_resizing_pays_once_it_has_saved_what_it_took() -> None:
    """Two hours at 500 images/s; half an hour of each epoch."""
    made = run(*LOOP, *trained("cold", 400, "originals@disk", "o"), making=MADE)
    found = resizing(made)
    assert found["once_hours"] == pytest.approx(2)
    assert found["saved_hours"] == pytest.approx(0.5)
    assert (found["once_usd"], found["saved_usd"]) == pytest.approx((20, 5))
    assert (found["pays_from_epoch"], found["pays"]) == (4, True)
    assert not resizing(made, epochs=3)["pays"]


def test_what_saves_nothing_never_pays() -> None:
    """Originals that are as fast."""
    made = run(*LOOP, *trained("cold", 600, "originals@disk", "o"), making=MADE)
    assert resizing(made)["pays_from_epoch"] is None


def test_what_repeats_hide_is_no_epoch() -> None:
    """500 and 490 by the medians; one repeat of each says the opposite."""
    after = [*trained("cold", 500), *repeated(trained("cold", 480), 1)]
    before = [
        *trained("cold", 490, "originals@disk", "o"),
        *repeated(trained("cold", 505, "originals@disk", "o"), 1),
    ]
    found = resizing(run(*trained("synthetic", 1_000), *after, *before, making=MADE))
    assert (found["told_apart"], found["pays_from_epoch"], found["pays"]) == (True, None, False)
    better = [*trained("cold", 500), *repeated(trained("cold", 510), 1)]
    found = resizing(run(*trained("synthetic", 1_000), *better, *before, making=MADE))
    assert found["saved_usd"] > 0
    assert (found["told_apart"], found["pays_from_epoch"], found["pays"]) == (False, None, False)
    said = of_breakeven(found, {"currency": "USD", "epochs": 90})
    assert "repeats differ by more than that, so that no epoch can be named" in said


def repeated(trials: list[Trial], repeat: int) -> list[Trial]:
    """The same in another round."""
    return [replace(trial, repeat=repeat, id=f"{trial.id}/{repeat}") for trial in trials]


def test_parts_without_a_price_are_named_with_what_is_saved() -> None:
    """A disk for the copy: nobody told."""
    made = run(*LOOP, *trained("store", 250), copying(100.0))
    found = staging(made, disk_usd_per_gb_month=None)
    said = of_breakeven(found, {"currency": "USD", "epochs": 90})
    assert "an epoch (without storage, whose price is not known), and pays" in said


def test_loaders_stand_for_loops_no_faster_than_the_device() -> None:
    """Both by loaders, since a loop's rate has its training in it."""
    pair = (loaded(2_000, "shards@disk"), loaded(250, "originals@disk"))
    found = resizing(run(*LOOP, *pair, making=MADE))
    assert found["saved_hours"] == pytest.approx(4 - 1)
    assert "no faster than its device" in found["basis"]


def test_loaders_with_other_work_stand_for_nothing() -> None:
    """An image that is not augmented is another one."""
    loops = [
        *trained("synthetic", 1_000, augment=True),
        *trained("cold", 500, augment=True),
    ]
    pair = (loaded(2_000, "shards@disk"), loaded(250, "originals@disk", augment=False))
    assert "originals" in resizing(run(*loops, *pair, making=MADE))["unknown"]


@pytest.mark.parametrize(
    "making",
    [{}, {"shards@disk": {"samples": 10, "reencoded": 0, "seconds": 1.0, "workers": 1}}],
    ids=["unknown", "packed only"],
)
def test_without_a_job_that_resized_its_time_is_not_known(making: dict[str, Any]) -> None:
    """Packing is no resizing."""
    made = run(*LOOP, *trained("cold", 400, "originals@disk", "o"), making=making)
    assert "how long resizing takes" in resizing(made)["unknown"]


def test_without_prices_hours_are_compared() -> None:
    """The same machine does both."""
    made = run(
        *LOOP,
        *trained("cold", 400, "originals@disk", "o"),
        making=MADE,
        prices={**PRICES, "instance_usd_per_h": None},
    )
    found = resizing(made)
    assert (found["compared"], found["pays_from_epoch"]) == ("hours", 4)


def test_staging_pays_for_its_copy_and_its_disk() -> None:
    """360 GB at 100 MB/s take an hour; the store's epochs two hours more and their requests."""
    made = run(*LOOP, *trained("store", 250), copying(100.0))
    found = staging(made)
    assert (found["from"], found["to"]) == ("shards@s3", "shards@disk")
    assert found["once_hours"] == pytest.approx(1)
    assert found["once_usd"] == pytest.approx(10 + 3.6 * 0.4)
    assert found["saved_usd"] == pytest.approx(2 * 10 + 3.6 * 0.4)
    assert found["pays_from_epoch"] == 1


def test_what_stays_on_the_store_is_no_saving() -> None:
    """A disk is paid beside it."""
    made = run(*LOOP, *trained("store", 250), copying(100.0))
    dear = staging(made, disk_usd_per_gb_month=100.0)
    kept = 3.6e11 / 2**30 * 100 * 2 / 730
    assert dear["saved_usd"] == pytest.approx(20 + 3.6 * 0.4 - kept)
    assert dear["pays_from_epoch"] is None


def test_what_was_not_measured_is_named() -> None:
    """Data from both, and how fast they can be copied."""
    assert "shards@s3 and shards@disk" in staging(run(*LOOP))["unknown"]
    assert "object_store" in staging(run(*LOOP, *trained("store", 250)))["unknown"]


@given(slow=st.floats(1, 999), job=st.floats(1, 1e5))
def test_at_the_break_even_what_was_saved_covers_what_was_spent(slow: float, job: float) -> None:
    """And an epoch earlier it does not."""
    making = {"shards@disk": {**MADE["shards@disk"], "seconds": 1_000 / job}}
    found = resizing(run(*LOOP, *trained("cold", slow, "originals@disk", "o"), making=making))
    epoch = found["pays_from_epoch"]
    if epoch is None:
        assert found["saved_usd"] <= 0
        return
    assert epoch * found["saved_usd"] >= found["once_usd"] * (1 - 1e-9)
    assert epoch == 1 or (epoch - 1) * found["saved_usd"] < found["once_usd"] * (1 + 1e-9)
