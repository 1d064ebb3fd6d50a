"""The figures of a trial that several hosts ran."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.results.host_sums import combine_host_parts, main_rate
from iobench.results.trial import HostPart


def part(host: int, *, start: tuple[float, float] = (0.0, 0.1), **metrics: Any) -> HostPart:
    """A host that measured for ten seconds."""
    return HostPart(host, "done", metrics=metrics, began_s=start, ended_s=10.0)


def test_rates_are_summed_and_the_slowest_host_is_named() -> None:
    """By the number of samples, if there is one."""
    combined = combine_host_parts(
        2, [part(1, samples_per_s=100.0, mb_per_s=9.0), part(0, samples_per_s=300.0, mb_per_s=4.0)]
    )
    assert combined.sums == {"samples_per_s": 400.0, "mb_per_s": 13.0}
    assert combined.slowest == 1
    assert [host_part.host for host_part in combined.parts] == [0, 1]


def test_a_rate_that_a_host_lacks_has_no_sum() -> None:
    """It would look like the sum over all hosts."""
    combined = combine_host_parts(2, [part(0, mb_per_s=4.0, iops=2.0), part(1, mb_per_s=4.0)])
    assert combined.sums == {"mb_per_s": 8.0}


def test_a_host_without_a_result_is_missing_and_in_no_sum() -> None:
    """Its reason is kept."""
    combined = combine_host_parts(
        3, [part(0, mb_per_s=4.0), HostPart(2, "failed", "gone"), part(1, mb_per_s=5)]
    )
    assert combined.sums == {"mb_per_s": 9.0}
    assert list(combined.missing) == [2]
    assert combined.slowest == 0


def test_the_spread_of_starts_is_an_upper_bound() -> None:
    """It runs from the earliest possible start to the latest possible one."""
    combined = combine_host_parts(
        3, [part(0, start=(0.0, 0.02)), part(1, start=(0.0, 0.30)), part(2, start=(0.05, 0.10))]
    )
    assert combined.start_spread_s == pytest.approx(0.30)


def test_hosts_that_end_at_other_times_measured_together_for_a_part() -> None:
    """Here the second host goes on for as long again."""
    longer = HostPart(1, "done", began_s=(0.0, 0.0), ended_s=20.0)
    combined = combine_host_parts(
        2, [HostPart(0, "done", began_s=(0.0, 0.0), ended_s=10.0), longer]
    )
    assert combined.together_share == pytest.approx(0.5)


def test_one_host_has_no_spread() -> None:
    """There is nothing to compare."""
    combined = combine_host_parts(1, [part(0, mb_per_s=4.0)])
    assert (combined.start_spread_s, combined.together_share) == (None, None)


def test_hosts_are_compared_by_their_first_rate() -> None:
    """None if a trial has no rate; a truth value is no rate."""
    assert main_rate({"iops": 3.0, "mb_per_s": 1}) == ("mb_per_s", 1.0)
    assert main_rate({"seconds": 3.0, "mb_per_s": True}) is None
