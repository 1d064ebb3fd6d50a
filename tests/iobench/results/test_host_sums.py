"""The sums over the hosts that measured a trial."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.results.host_sums import combine_host_parts
from iobench.results.trial import HostPart


def part(host: int, *, start: tuple[float, float] = (0.0, 0.1), **metrics: Any) -> HostPart:
    """Return the part of a host that measured for ten seconds."""
    return HostPart(host, "done", metrics=metrics, began_s=start, ended_s=10.0)


def test_rates_are_summed_and_the_slowest_host_is_named() -> None:
    """The slowest host is that with the fewest samples/s, if there is such a rate."""
    slow = part(1, samples_per_s=100.0, mb_per_s=9.0)
    fast = part(0, samples_per_s=300.0, mb_per_s=4.0)
    combined = combine_host_parts(2, [slow, fast])
    assert combined.sums == {"samples_per_s": 400.0, "mb_per_s": 13.0}
    assert combined.slowest == 1
    assert [host_part.host for host_part in combined.parts] == [0, 1]


def test_a_rate_that_a_host_lacks_has_no_sum() -> None:
    """A sum over some hosts would be taken for the sum over all."""
    combined = combine_host_parts(2, [part(0, mb_per_s=4.0, iops=2.0), part(1, mb_per_s=4.0)])
    assert combined.sums == {"mb_per_s": 8.0}


def test_a_host_without_a_result_is_missing_and_in_no_sum() -> None:
    """A failed host is listed as missing, and the sum is over the others."""
    failed = HostPart(2, "failed", "gone")
    combined = combine_host_parts(3, [part(0, mb_per_s=4.0), failed, part(1, mb_per_s=5)])
    assert combined.sums == {"mb_per_s": 9.0}
    assert list(combined.missing) == [2]
    assert combined.slowest == 0


def test_the_spread_of_starts_is_an_upper_bound() -> None:
    """It runs from the earliest possible start to the latest possible one."""
    starts_s = ((0.0, 0.02), (0.0, 0.30), (0.05, 0.10))
    parts = [part(host, start=start) for host, start in enumerate(starts_s)]
    combined = combine_host_parts(3, parts)
    assert combined.start_spread_s == pytest.approx(0.30)


def test_hosts_that_end_at_other_times_measured_together_for_a_part() -> None:
    """Two hosts measured together for half of the time if one took twice as long."""
    shorter = HostPart(0, "done", began_s=(0.0, 0.0), ended_s=10.0)
    longer = HostPart(1, "done", began_s=(0.0, 0.0), ended_s=20.0)
    combined = combine_host_parts(2, [shorter, longer])
    assert combined.together_share == pytest.approx(0.5)


def test_one_host_has_no_spread() -> None:
    """A single host has neither a spread of starts nor a common share."""
    combined = combine_host_parts(1, [part(0, mb_per_s=4.0)])
    assert (combined.start_spread_s, combined.together_share) == (None, None)


def test_hosts_are_compared_by_the_first_rate_that_all_have() -> None:
    """The first common rate in the order of the product counts, and a truth value is no rate."""
    with_iops = part(0, iops=9.0, mb_per_s=1)
    without = part(1, samples_per_s=True, iops=3.0, mb_per_s=2.0)
    assert combine_host_parts(2, [with_iops, without]).slowest == 0
    assert combine_host_parts(2, [part(0, seconds=3.0), without]).slowest is None


def test_a_rate_is_not_compared_with_a_bound_of_another_host() -> None:
    """A host between 290 and 1,256 samples/s may be faster than a host with 1,000."""
    exact = part(0, samples_per_s=1000.0, mb_per_s=40.0)
    bounded = part(1, samples_per_s_low=290.0, samples_per_s_high=1256.0)
    combined = combine_host_parts(2, [exact, bounded])
    assert combined.slowest is None
    assert combined.sums == {"samples_per_s_low": 1290.0, "samples_per_s_high": 2256.0}
    with_bytes = part(1, samples_per_s_low=290.0, samples_per_s_high=1256.0, mb_per_s=50.0)
    assert combine_host_parts(2, [exact, with_bytes]).slowest == 0
