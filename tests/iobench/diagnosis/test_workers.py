"""Workers beside processors."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.diagnosis.workers import RULES
from iobench.trial import Trial
from tests.iobench.diagnosis.made_loops import by_code, primary, stalled

CODES = {rule.code for rule in RULES}


def codes(*given: list[Trial], **how: Any) -> set[str]:
    """What is found about workers."""
    return by_code(*given, **how).keys() & CODES


@pytest.mark.parametrize(("cpu_s", "fires"), [(15.9, True), (16.1, False)])
def test_processors_that_could_feed_the_device(cpu_s: float, fires: bool) -> None:
    """The device takes 200 samples/s; four fifths of four processors are 3.2."""
    waiting = stalled(preparation=0.5, worker_cpu_s_per_1000_samples=cpu_s)
    assert codes(waiting) == ({"too-few-workers"} if fires else set())
    if fires:
        found = by_code(waiting)["too-few-workers"]
        assert found.primary
        assert found.severity == "problem"
        assert found.share == pytest.approx(0.5)
        assert "would keep 3.2 of 4 processors busy" in found.evidence
        assert found.advice.startswith("training.workers: 4 would feed the device, if each gives")


def test_it_says_more_than_which_rung_is_long() -> None:
    """More workers shorten all of them, so that they come first."""
    waiting = stalled(preparation=0.5, worker_cpu_s_per_1000_samples=5.0)
    assert primary(waiting, ladder={"decode": 0.505}) == "too-few-workers"
    assert primary(waiting, ladder={"decode": 0.52}) == "slow-decode"


@pytest.mark.parametrize(("busy", "fires"), [(0.49, True), (0.50, False)])
def test_without_processor_time_idle_processors_tell(busy: float, fires: bool) -> None:
    """As the cloud's guide has it."""
    found = codes(stalled(preparation=0.5, cpu_busy_share=busy))
    assert found == ({"too-few-workers"} if fires else set())


@pytest.mark.parametrize(("workers", "fires"), [(1, True), (2, False)])
def test_without_either_few_workers_a_processor_tell(workers: int, fires: bool) -> None:
    """Fewer than half of the processors."""
    found = codes(stalled(preparation=0.5, params={"workers": workers}))
    assert found == ({"too-few-workers"} if fires else set())


def test_a_loop_without_workers_is_its_own() -> None:
    """Where the device computes elsewhere, its process prepares alone; no time at all is known."""
    alone: dict[str, Any] = {"params": {"workers": 0}, "worker_cpu_s_per_1000_samples": 0.0}
    elsewhere = stalled(
        preparation=0.5, emulated=True, cpu_s_per_1000_samples=0.0, cpu_busy_share=0.99, **alone
    )
    found = by_code(elsewhere)["too-few-workers"]
    assert "would keep 0 of 4 processors busy" in found.evidence
    assert "if each gives what the loop by itself gave (100 of 200 samples/s)" in found.advice
    here = stalled(preparation=0.5, cpu_s_per_1000_samples=0.0, cpu_busy_share=0.99, **alone)
    assert codes(here) == set()


@pytest.mark.parametrize(("share", "fires"), [(0.0501, True), (0.0499, False)])
def test_a_loop_that_hardly_waits_has_workers_enough(share: float, fires: bool) -> None:
    """However idle the processors are."""
    found = codes(stalled(preparation=share, cpu_busy_share=0.1))
    assert found == ({"too-few-workers"} if fires else set())


@pytest.mark.parametrize(
    ("own", "busy", "code"),
    [
        (0.4, 0.99, "other-programs"),
        (1.2, 0.99, "too-few-workers"),
        (0.4, 0.79, "too-few-workers"),
    ],
)
def test_processors_that_others_have(own: float, busy: float, code: str) -> None:
    """Little more than one processor would do, and less than that is left of four."""
    waiting = stalled(
        preparation=0.5, worker_cpu_s_per_1000_samples=5.1, cpu_busy_share=busy, cores_busy=own
    )
    assert codes(waiting) == {code}
    assert primary(waiting) == code


@pytest.mark.parametrize(("cpu_s", "code"), [(5.01, "other-programs"), (4.99, "too-few-workers")])
def test_who_asks_for_little_is_not_crowded_out(cpu_s: float, code: str) -> None:
    """Less than a quarter of the processors is found beside whoever is busy."""
    waiting = stalled(
        preparation=0.5, worker_cpu_s_per_1000_samples=cpu_s, cpu_busy_share=1.0, cores_busy=0.1
    )
    assert codes(waiting) == {code}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("cpu_s", "own", "crowded"),
    [
        (10.0, 1.9, True),
        (10.0, 2.1, False),
        (20.0, 2.9, True),
        (20.0, 3.1, False),
    ],
)
def test_a_processor_that_is_the_device_is_crowded_out_as_well(
    workers: int, cpu_s: float, own: float, crowded: bool
) -> None:
    """It wants two of four processors, or all, and others leave it ``own``: of all that it wants,
    others must have a quarter at least."""
    waiting = stalled(
        preparation=0.5,
        params={"workers": workers},
        cpu_s_per_1000_samples=cpu_s,
        worker_cpu_s_per_1000_samples=0.1 * workers,
        cpu_busy_share=1.0,
        cores_busy=own,
    )
    otherwise = {"too-few-workers"} if workers else set()
    assert codes(waiting) == ({"other-programs"} if crowded else otherwise)


def test_no_more_workers_are_advised_than_are_too_many() -> None:
    """Two give a tenth of what the device takes; twenty on four processors would be called so."""
    waiting = stalled(preparation=0.9, worker_cpu_s_per_1000_samples=0.1)
    advice = by_code(waiting)["too-few-workers"].advice
    assert advice.startswith("training.workers: 8 first, of 2")
    assert codes(stalled(preparation=0.9, params={"workers": 8})) == set()


@pytest.mark.parametrize(("workers", "fires"), [(9, True), (8, False)])
def test_more_than_two_workers_a_processor(workers: int, fires: bool) -> None:
    """A loop that keeps up too: they take memory."""
    found = codes(stalled(params={"workers": workers}))
    assert found == ({"too-many-workers"} if fires else set())


def test_workers_of_all_ranks_count() -> None:
    """Five each on two devices are ten."""
    found = by_code(stalled(params={"workers": 5}, devices=2))
    assert found["too-many-workers"].evidence == "g: 10 workers on 4 processors"


def test_a_control_groups_share_counts_as_processors() -> None:
    """The lesser of both."""
    given = stalled(params={"workers": 9})
    limited = {"processors": 64, "processor_quota": 4.0}
    assert codes(given, environment=limited) == {"too-many-workers"}
    assert codes(given, environment={"processors": 64, "processor_quota": None}) == set()
    assert codes(given, environment={"cpu": "?"}) == set()
