"""Figures that are not evidence: disagreeing repeats, lost bytes, rates beyond the storage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.analysis.analyse import analyse
from iobench.cli.advice_output import SavedAdvice
from iobench.errors import NoAdvice
from iobench.results.trial import Cold, Trial
from tests.iobench.analysis.made import (
    COLD,
    PROBED,
    SAMPLE_BYTES,
    UNPROVED,
    WARM,
    analysed,
    by_code,
    done,
    loader,
    loop,
    probe,
    run,
)

LINK = {(8_000_000, 1): 11.8, (8_000_000, 4): 12.0, (8_000_000, 16): 12.0, (1_000_000, 4): 11.9}
DEVICE = loop("synthetic", 2000, workers=2)
DIRECT = Cold("direct", "direct")


def altered(trials: list[Trial], **metrics: list[Any]) -> list[Trial]:
    """Return the trials with other metrics, which are lists with one value for each repeat."""
    changed = []
    for trial in trials:
        other_values = {name: values[trial.repeat] for name, values in metrics.items()}
        changed.append(replace(trial, metrics={**trial.metrics, **other_values}))
    return changed


def disk(
    mb_per_s: float, *, target: str = "data", parallelism: int = 4, cold: Cold = DIRECT
) -> list[Trial]:
    """Return trials of the disk probe that read a target, in direct mode or as ``cold`` says."""
    params: dict[str, Any] = {"target": target, "operation": "read", "pattern": "sequential"}
    params |= {"cache": cold.asked, "block_bytes": 2**20, "parallelism": parallelism}
    return done("disk", params, cold, mb_per_s=mb_per_s)


def test_repeats_that_differ_by_more_than_2_times_are_no_evidence() -> None:
    """Neither a cause nor a change is named, and the headline says why."""
    rates = [200.0, 210.0, 220.0, 230.0, 240.0, 500.0]
    result = analysed(loop("synthetic", 1000), altered(loop("warm", 220), samples_per_s=rates))
    assert not [f for f in result.findings if f.code.startswith("slow-")]
    assert result.advice.changes == ()
    assert "the largest repeat is 2.5 times the smallest" in result.verdict
    assert result.confidence is not None
    assert result.confidence.level == "low"


def test_a_loader_whose_repeats_disagree_predicts_nothing() -> None:
    """The repeats of the loop agree, but no gain is predicted from those of the loader."""
    rates = [300.0, 900.0, 900.0, 900.0, 900.0, 900.0]
    wild = altered(loader(900, 2), samples_per_s=rates)
    result = analysed(loader(450, 1), wild, loop("synthetic", 2000), loop("warm", 445))
    assert all(change.gain is None for change in result.advice.changes)
    assert result.advice.changes[0].setting == "measure_workers"


def test_trials_that_lost_bytes_are_no_evidence() -> None:
    """A repeat whose fetched and consumed samples differ by more than 5 % is left out."""
    balance = [1.0, 1.02, 0.98, 1.0, 1.0, 0.5]
    rates = [300.0, 300.0, 300.0, 300.0, 300.0, 590.0]
    warm = altered(loop("warm", 300), balance=balance, samples_per_s=rates)
    result = analysed(loop("synthetic", 1000), warm)
    assert result.loop is not None
    assert len(result.loop.inputs["warm"]) == 5
    assert result.summary["samples_per_second"] == pytest.approx(300)
    lost = altered(loop("warm", 300), balance=[0.5] * 6)
    result = analysed(loop("synthetic", 1000), lost)
    assert "fetched samples are 50 % of the consumed ones" in result.verdict
    assert not [f for f in result.findings if f.code.startswith("slow-")]


def test_a_loop_faster_than_its_link_is_a_fault_of_the_measurement() -> None:
    """No finding rests on a loop of 52 MB/s behind a link of 12 MB/s."""
    result = analysed(DEVICE, loop("store", 1300, workers=2), probe(LINK), **PROBED)
    (fault,) = [f for f in result.findings if f.code == "faster-than-storage"]
    assert fault.severity == "problem"
    assert "52 MB/s" in fault.evidence
    assert "12.1 MB/s at most" in fault.evidence
    assert "no evidence" in result.verdict
    assert result.confidence is not None
    assert result.confidence.level == "low"
    assert result.advice.changes == ()
    assert result.feeds is None
    possible = by_code(DEVICE, loop("store", 300, workers=2), probe(LINK), **PROBED)
    assert "faster-than-storage" not in possible
    assert "slow-store-bandwidth" in possible


def test_a_fault_is_not_advised_upon(tmp_path: Any) -> None:
    """``iobench advise`` refuses such a run and says what to do instead."""
    result = analyse(run(DEVICE, loop("store", 1300, workers=2), probe(LINK), **PROBED))
    with pytest.raises(NoAdvice, match=r"are not reliable .* measure again with more images"):
        _ = SavedAdvice(tmp_path, result).text


def test_a_loader_and_a_loop_faster_than_their_disk() -> None:
    """Trials labelled cold were not cold if they read 41 MB/s from a disk limited to 12 MB/s."""
    slow = [loader(800, 2, cache="cold"), DEVICE, loop("cold", 1000, workers=2), disk(11.8)]
    result = analysed(*slow)
    faults = [f.evidence for f in result.findings if f.code == "faster-than-storage"]
    assert len(faults) == 2
    assert "11.9 MB/s at most" in faults[0]
    few = [loop("cold", 1000, workers=2), DEVICE, disk(11.8, parallelism=1)]
    assert "faster-than-storage" not in by_code(*few)
    assert "ceiling-not-measured" in by_code(*few)
    other = {"targets": {"data": {"total_bytes": 1}, "b": {"total_bytes": 2}}}
    other_disk = [DEVICE, loop("cold", 1000, workers=2), disk(11.8, target="b")]
    assert "faster-than-storage" not in by_code(*other_disk, environment=other)


def test_raw_reading_of_the_same_data_is_a_ceiling() -> None:
    """The ceiling needs as many requests at a time: two sequential workers send four."""
    raw: dict[str, Any] = {"loader": "raw", "data": "shards@s3"}
    over = [DEVICE, loop("store", 500, workers=2)]
    assert "faster-than-storage" in by_code(*over, loader(300, 4, **raw))
    assert "faster-than-storage" not in by_code(*over, loader(300, 2, **raw))
    assert "faster-than-storage" not in by_code(*over, loader(460, 4, **raw))
    raw_files: dict[str, Any] = {"loader": "raw", "data": "files@s3"}
    assert "faster-than-storage" not in by_code(*over, loader(300, 4, **raw_files))


@pytest.mark.parametrize(("cold", "is_ceiling"), [(COLD, True), (UNPROVED, False)])
def test_only_a_read_that_was_cold_is_a_ceiling(cold: Cold, is_ceiling: bool) -> None:
    """A read that was to be cold and came from memory says nothing about the disk."""
    fast = [DEVICE, loop("cold", 1000, workers=2)]
    raw = loader(300, 4, loader="raw", cache="cold")
    raw = [replace(trial, cold=cold) for trial in raw]
    assert ("faster-than-storage" in by_code(*fast, disk(11.8, cold=cold))) is is_ceiling
    assert ("faster-than-storage" in by_code(*fast, raw)) is is_ceiling


def test_a_point_with_smaller_reads_is_no_ceiling_where_latency_limits() -> None:
    """The loader's larger reads may be faster than the probe's small ones."""
    small = {(100_000, 1): 1.0, (100_000, 4): 4.0, (100_000, 16): 15.0}
    findings = by_code(DEVICE, loop("store", 1300, workers=2), probe(small), **PROBED)
    assert "faster-than-storage" not in findings
    assert "ceiling-not-measured" in findings


def test_a_ceiling_that_was_not_measured_is_a_finding() -> None:
    """The finding names the keys that measure it; a loop that reads memory needs none."""
    findings = by_code(DEVICE, loop("store", 300, workers=2))
    assert "with at least 4 requests at a time" in findings["ceiling-not-measured"].evidence
    assert "object_store.targets" in findings["ceiling-not-measured"].advice
    cold = by_code(DEVICE, loop("cold", 300, workers=2))
    assert "disk.targets" in cold["ceiling-not-measured"].advice
    assert "ceiling-not-measured" not in by_code(DEVICE, loop("warm", 300, workers=2))
    measured = by_code(DEVICE, loop("cold", 300, workers=2), disk(500))
    assert "ceiling-not-measured" not in measured


@pytest.mark.parametrize(
    ("name", "source", "requests"),
    [
        ("torch-map", "store", "64 requests"),
        ("torch-map", "cold", "2 requests"),
        ("torch-iterable", "cold", "2 requests"),
        ("tf-data", "cold", "1 request"),
        ("tf-data", "store", "2 requests"),
    ],
)
def test_a_disk_is_read_by_one_request_in_each_worker(
    name: str, source: str, requests: str
) -> None:
    """Readers of a store make several requests at a time, and readers of a disk make one."""
    findings = by_code(DEVICE, loop(source, 300, workers=2, loader=name))
    assert findings["ceiling-not-measured"].evidence.endswith(f"at least {requests} at a time")


def test_rates_of_fast_storage_have_no_exponent() -> None:
    """Rates in MB/s from 1,000 on are written with all their digits."""
    fast = {(8_000_000, 4): 1_500.0}
    loops = [DEVICE, loop("store", 60_000, workers=2)]
    evidence = by_code(*loops, probe(fast), **PROBED)["faster-than-storage"].evidence
    assert "2,400 MB/s, where" in evidence
    assert "got 1,507 MB/s at most" in evidence


def test_warm_figures_have_no_ceiling() -> None:
    """Rates of warm trials are not compared with a disk, since memory is faster than any disk."""
    fast = loop("warm", 1900, workers=2, cold=WARM)
    rate = 1900 * SAMPLE_BYTES / 1e6
    assert "faster-than-storage" not in by_code(DEVICE, fast, disk(rate / 10))


def test_readahead_of_the_kernel_counts_for_the_disk() -> None:
    """A disk gives 12 MB/s if its probe took 6 MB/s and the kernel read the rest ahead."""
    half_taken = Cold("cold", "cold", 0.0, 2.0, False)
    params: dict[str, Any] = {"target": "slow", "operation": "read", "pattern": "sequential"}
    params |= {"cache": "cold", "block_bytes": 1_000_000, "parallelism": 4, "engine": "processes"}
    analysis = analysed(done("disk", params, half_taken, mb_per_s=6.0))
    assert analysis.verdict == (
        "The disk slow gives at most 12 MB/s (sequential read, cold; the probe took 6 MB/s of it, "
        "the kernel read the rest ahead)."
    )
    (entry,) = analysis.summary["disks"]
    assert entry["arrived_mb_per_s"]["median"] == pytest.approx(12.0, rel=0.01)
