"""The rate of a watched loop, from loaders of known speed on a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from tests.iobench.watching.logged import epoch
from tests.iobench.watching.simulated import BATCH, SimulatedLoader, watched
from tests.iobench.watching.test_report import outcome_of

# The link carries 290 samples/s, and the device takes 2,000.
LINK = SimulatedLoader(batch_s=BATCH / 290)
STEP_S = BATCH / 2000
RATES = {"samples_per_s", "samples_per_s_low", "samples_per_s_high", "rate_rule"}


def rates(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures that state a rate."""
    return {name: metrics[name] for name in RATES & set(metrics)}


def note(metrics: Mapping[str, Any]) -> str:
    """Return the note about the rate, or an empty text."""
    return next((note for note in metrics["notes"] if note.startswith("the rate is")), "")


def test_batches_fetched_before_the_first_one_are_no_rate() -> None:
    """1,000 samples of a link of 290 samples/s that come together give a range, and not 2,000."""
    metrics = watched(replace(LINK, queue=50, ahead=50), 50, STEP_S)
    assert "samples_per_s" not in metrics
    assert metrics["samples_per_s_low"] == pytest.approx(253, rel=0.01)
    assert metrics["samples_per_s_high"] == pytest.approx(2000, rel=0.01)
    assert note(metrics).startswith("the rate is a range: 253 samples/s since the first request")


@pytest.mark.parametrize(("epochs", "rule"), [(2, None), (3, "epochs"), (10, "epochs")])
def test_three_whole_epochs_with_their_starts_are_one_rate(epochs: int, rule: str | None) -> None:
    """Epochs of data that fit into the read-ahead are a wait and a burst each."""
    metrics = watched(replace(LINK, queue=50, ahead=50), 50, STEP_S, epochs=epochs)
    epoch_s = 50 * LINK.batch_s + 50 * STEP_S
    assert metrics.get("rate_rule") == rule
    if rule is None:
        assert metrics["samples_per_s_low"] <= 50 * BATCH / epoch_s * 1.001
        assert metrics["samples_per_s_high"] > 1.5 * metrics["samples_per_s_low"]
    else:
        assert metrics["samples_per_s"] == pytest.approx(50 * BATCH / epoch_s, rel=0.01)


def test_a_first_epoch_that_was_slower_is_no_part_of_one_rate() -> None:
    """The first of three epochs reads a disk at a tenth of the rate of the page cache."""
    records = epoch(0, 0.0, 30, wait_s=27)
    records += epoch(1, 913.5, 30, wait_s=1, work_s=2)
    records += epoch(2, 1004.0, 30, wait_s=1, work_s=2)
    metrics = outcome_of(*records).metrics
    assert "samples_per_s" not in metrics
    assert metrics["samples_per_s_low"] == pytest.approx(4 * 90 / 1094, rel=0.01)
    assert metrics["samples_per_s_high"] == pytest.approx(4 * 60 / 181, rel=0.01)


@pytest.mark.parametrize("handover_s", [0.0, 0.001])
@pytest.mark.parametrize("batches", [50, 400])
def test_a_queue_that_was_full_before_the_first_request_is_no_rate(
    batches: int, handover_s: float
) -> None:
    """If the loop never waits, the rate at which the queue is filled is unknown."""
    loader = replace(LINK, queue=batches, full=batches, handover_s=handover_s)
    metrics = watched(loader, batches, STEP_S)
    assert not rates(metrics)
    assert f"the first {batches} batches came at once" in note(metrics)
    assert metrics["samples"] == (batches - 1) * BATCH


def test_a_queue_that_was_full_does_not_count_once_it_is_empty() -> None:
    """After 64 batches at once, a few more give no rate, and many more give that of the link."""
    loader = replace(LINK, queue=64, full=64)
    assert not rates(watched(loader, 90, STEP_S))
    metrics = watched(loader, 1500, STEP_S)
    assert metrics["rate_rule"] == "bounds"
    assert metrics["samples_per_s"] == pytest.approx(290, rel=0.02)


def test_batches_that_were_ready_count_in_their_own_epoch_only() -> None:
    """50 ready batches of an epoch that was left do not affect three whole epochs after it."""
    records = epoch(0, 0.0, 50, wait_s=0.0, work_s=0.01)[:-1]
    begun_s = records[-1][4]
    for number in range(1, 4):
        records += epoch(number, begun_s, 100, wait_s=0.5, work_s=0.5)
        begun_s = records[-1][4]
    metrics = outcome_of(*records).metrics
    assert metrics["rate_rule"] == "epochs"
    assert metrics["samples_per_s"] == pytest.approx(4.0, rel=0.02)


def test_one_late_batch_is_no_end_of_a_full_queue() -> None:
    """One late batch on a busy machine does not mean that the queue was empty."""
    records, now_s = [], 0.0
    for number in range(100):
        got_s = now_s + (0.02 if number == 5 else 0.0005)
        records.append((0, 0, now_s, got_s, got_s + STEP_S, 20.0))
        now_s = got_s + STEP_S
    assert not rates(outcome_of(*records).metrics)


def test_data_in_memory_are_unknown_until_epochs_have_been_repeated() -> None:
    """A queue may hold one epoch before the first request, but not 25 of them."""
    loader = SimulatedLoader(batch_s=0.0, handover_s=0.001)
    assert not rates(watched(loader, 30, STEP_S, epochs=3))
    metrics = watched(loader, 30, STEP_S, epochs=25)
    assert metrics["samples_per_s"] == pytest.approx(loader.rate(STEP_S), rel=0.01)


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_a_steady_loader_has_one_rate(workers: int) -> None:
    """The rate is the loader's if the device is faster."""
    loader = replace(LINK, workers=workers, queue=2 * workers, start_s=0.1)
    metrics = watched(loader, 60 * workers, STEP_S)
    assert metrics["rate_rule"] == "bounds"
    assert metrics["samples_per_s"] == pytest.approx(290, rel=0.02)


def test_a_slow_device_has_one_rate() -> None:
    """The rate is the device's, although the loop never waits after its first batch."""
    metrics = watched(replace(LINK, start_s=1.0), 200, 0.2)
    assert metrics["wait_share"] == 0
    assert metrics["rate_rule"] == "bounds"
    assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.2, rel=0.01)


def test_a_start_that_is_part_of_the_time_makes_a_range() -> None:
    """One second until the first batch is a sixth of 25 steps of 0.2 s."""
    metrics = watched(replace(LINK, start_s=1.0), 25, 0.2)
    assert metrics["samples_per_s_low"] == pytest.approx(82, abs=1)
    assert metrics["samples_per_s_high"] == pytest.approx(100, abs=1)


@pytest.mark.parametrize("at_once", [True, False])
def test_time_between_epochs_counts_if_the_next_epoch_comes_at_once(at_once: bool) -> None:
    """A loader that fetches the next epoch during validation has no single rate."""

    def validation(number: int, clock: VirtualClock) -> None:
        del number
        clock.sleep(5.0)

    loader = SimulatedLoader(batch_s=0.0 if at_once else 0.1, start_s=0.0)
    metrics = watched(loader, 50, 0.1, epochs=40, between=validation)
    if at_once:
        assert "samples_per_s" not in metrics
    else:
        assert metrics["samples_per_s"] == pytest.approx(BATCH / 0.1, rel=0.03)


LOADERS = st.builds(
    SimulatedLoader,
    batch_s=st.floats(0.002, 0.2),
    queue=st.sampled_from([16, 32, 64]),
    workers=st.sampled_from([1, 2, 4, 8]),
    full=st.sampled_from([0, 0, 16, 64]),
    ahead=st.sampled_from([1, 1, 16]),
    handover_s=st.sampled_from([0.0, 0.001]),
)


@settings(max_examples=25, deadline=None)
@given(LOADERS, st.floats(0.002, 0.2), st.sampled_from([30, 80, 150]))
def test_one_rate_is_right_and_a_range_holds_the_truth(
    loader: SimulatedLoader, step_s: float, batches: int
) -> None:
    """A single rate is right within 5 %, whatever was fetched ahead or ready before."""
    loader = replace(loader, full=min(loader.full, loader.queue))
    truth = loader.rate(step_s)
    metrics = watched(loader, batches, step_s)
    stated = rates(metrics)
    assert bool(note(metrics)) == ("samples_per_s" not in stated)
    if "samples_per_s" in stated:
        assert set(stated) == {"samples_per_s", "rate_rule"}
        assert stated["samples_per_s"] == pytest.approx(truth, rel=0.05)
    elif stated:
        assert stated["samples_per_s_low"] <= truth * 1.01
        assert stated["samples_per_s_high"] >= truth * 0.99
