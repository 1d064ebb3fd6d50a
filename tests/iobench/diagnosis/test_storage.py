"""Loops that wait for storage, and for what about it."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.diagnosis.storage import RULES
from iobench.trial import Trial
from tests.iobench.diagnosis.made_loops import by_code, diagnosed, primary, stalled
from tests.iobench.summary.made import one

CODES = {rule.code for rule in RULES}
GETS: dict[str, Any] = {
    "store_requests": 990,
    "store_refused": 0,
    "store_read_bytes": 990 * 4_000_000,
    "store_first_byte_s": 0.09,
    "store_get_s": 0.1,
}


def remote(fetch: float = 0.5, **metrics: Any) -> list[Trial]:
    """A loop that waits for a store."""
    params = {"data": "shards@s3", **metrics.pop("params", {})}
    return stalled(fetch=fetch, source="store", params=params, **{**GETS, **metrics})


def codes(*given: list[Trial], **how: Any) -> set[str]:
    """What is found about storage."""
    return by_code(*given, **how).keys() & CODES


@pytest.mark.parametrize(
    ("first_s", "code"), [(0.0501, "slow-store-latency"), (0.0499, "slow-store-bandwidth")]
)
def test_a_slow_store_begins_late_or_delivers_slowly(first_s: float, code: str) -> None:
    """Half of a GET's time before its first byte is where one ends and the other begins."""
    found = by_code(remote(store_first_byte_s=first_s))
    assert found.keys() & CODES == {code}
    assert found[code].primary
    assert found[code].severity == "problem"
    assert found[code].share == pytest.approx(0.5)
    assert "a GET takes 100 ms, of that 50 ms" in found[code].evidence


def test_requests_that_were_not_seen_leave_the_store_slow() -> None:
    """As in results of older versions, and of stores that are not S3."""
    unseen = remote(store_first_byte_s=None, store_get_s=None, store_refused=None)
    assert codes(unseen) == {"slow-store"}


@pytest.mark.parametrize(("fetch", "fires"), [(0.0501, True), (0.0499, False)])
def test_five_percent_is_worth_a_word(fetch: float, fires: bool) -> None:
    """From disks as from stores."""
    assert bool(codes(remote(fetch))) is fires
    assert codes(stalled(fetch=fetch)) == ({"slow-disk"} if fires else set())


@pytest.mark.parametrize(("fetch", "severity"), [(0.21, "problem"), (0.19, "warning")])
def test_a_fifth_of_the_time_is_a_problem(fetch: float, severity: str) -> None:
    """As it is for input as a whole."""
    assert by_code(stalled(fetch=fetch))["slow-disk"].severity == severity


@pytest.mark.parametrize(("refused", "fires"), [(11, True), (10, False)])
def test_a_store_that_throttles_is_not_called_slow(refused: int, fires: bool) -> None:
    """More than one answer of a hundred; the reason comes before the symptom."""
    found = by_code(remote(store_refused=refused))
    assert found.keys() & CODES == {"store-throttles" if fires else "slow-store-latency"}
    if fires:
        assert found["store-throttles"].primary
        assert "11 of 1,001 answers were 503 or 429" in found["store-throttles"].evidence


def test_refusals_that_cost_nothing_are_no_cause() -> None:
    """The loop keeps up for all that."""
    assert codes(remote(0.01, store_refused=500)) == set()


@pytest.mark.parametrize(("size", "code"), [(999_000, "tiny-files"), (1_001_000, "slow-disk")])
def test_small_files_are_called_by_name(size: int, code: str) -> None:
    """Below a megabyte each."""
    waiting = stalled(fetch=0.5, params={"data": "files@disk"}, mean_object_bytes=size)
    assert codes(waiting) == {code}
    assert primary(waiting) == code


def test_small_shards_are_no_small_files() -> None:
    """However small they are, a read brings many samples."""
    assert codes(stalled(fetch=0.5, mean_object_bytes=200_000)) == {"slow-disk"}


def test_a_range_for_each_sample_is_as_small_a_read() -> None:
    """Access lazy asks for each sample by itself; direct reads whole shards."""
    small = {"store_read_bytes": 990 * 100_000}
    assert codes(remote(params={"access": "lazy"}, **small)) == {"tiny-files"}
    assert codes(remote(**small)) == {"slow-store-latency"}


def test_what_the_disk_did_meanwhile_is_evidence() -> None:
    """And what the probe got of it."""
    probe = one(
        "disk",
        {
            "target": "t",
            "operation": "read",
            "pattern": "sequential",
            "cache": "direct",
            "block_bytes": 1,
            "depth": 1,
        },
        mb_per_s=1600.0,
    )
    waiting = stalled(fetch=0.5, disk_read_mb_per_s=40.0, cpu_iowait_share=0.33)
    evidence = by_code(waiting, [probe])["slow-disk"].evidence
    assert "disks gave 40 MB/s meanwhile, iowait 33%" in evidence
    assert "it was not shown to be cold" not in evidence


def test_the_ladders_last_rung_counts_before_the_difference_of_inputs() -> None:
    """Both are of the same time."""
    found = by_code(stalled(preparation=0.5), ladder={"cold": 0.4})
    assert found["slow-disk"].share == 0.4


@pytest.mark.parametrize(("busy", "fires"), [(0.49, True), (0.51, False)])
def test_unsplit_waits_are_of_storage_where_processors_are_idle(busy: float, fires: bool) -> None:
    """As the cloud's guide has it; the warm loop was not measured."""
    unsplit = [
        trial
        for trial in stalled(fetch=0.5, cpu_busy_share=busy)
        if trial.params["input"] != "warm"
    ]
    assert codes(unsplit) == ({"slow-disk"} if fires else set())


def object_trial(refused: int | None, requests: int = 99, connections: int = 4) -> Trial:
    """Of the object probe."""
    params = {"store": "s3", "client": "boto3", "operation": "get", "object_bytes": 1000}
    return one("object", {**params, "connections": connections}, refused=refused, requests=requests)


@pytest.mark.parametrize(("refused", "fires"), [(2, True), (0, False), (None, False)])
def test_probes_that_were_refused(refused: int | None, fires: bool) -> None:
    """Clients that do not count it say nothing; a probe is no loop, and explains no share."""
    found = by_code([object_trial(refused)])
    assert ("store-throttles" in found) is fires
    if fires:
        assert found["store-throttles"].share is None
        assert found["store-throttles"].primary


def test_one_refusal_of_a_hundred_is_not_yet_throttling() -> None:
    """Just above it is; the point that was refused most stands for all."""
    assert codes([object_trial(1, 99)]) == set()
    given = [object_trial(1, 98), object_trial(50, 50, connections=16)]
    (found,) = [one for one in diagnosed(given) if one.code == "store-throttles"]
    assert "50 of 100 answers (50%)" in found.evidence
    assert found.evidence.endswith("so too in 1 more points")


@pytest.mark.parametrize(("rate", "fires"), [(49.0, True), (51.0, False)])
def test_layouts_tell_small_files_from_shards(rate: float, fires: bool) -> None:
    """At less than half of the rate, side by side."""
    same = {"parallelism": 4, "cache": "warm"}
    given = [
        one("layout", {"data": "shards@disk", "access": "shards", **same}, samples_per_s=100.0),
        one("layout", {"data": "files@disk", "access": "files", **same}, samples_per_s=rate),
    ]
    assert codes(given) == ({"tiny-files"} if fires else set())
    assert codes(given[1:]) == set()
