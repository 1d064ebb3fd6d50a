"""What a late first batch waits for, as findings."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.diagnosis.first_batch import findings
from iobench.result import Finding
from iobench.trial import Trial
from tests.iobench.summary.made import one

PARAMS = {"loader": "torch-folder", "data": "files@disk", "cache": "warm", "workers": 8}
PARTS = ("listing", "worker_start", "fetch", "decode")


def late(
    part: str, *took_s: float, whole_s: float = 20.0, params: dict[str, Any] | None = None
) -> list[Trial]:
    """Repeats of one point of which ``part`` takes so long."""
    measured: dict[str, Any] = {"time_to_first_batch_s": whole_s, "objects": 1_281_167}
    return [
        one(
            "loader",
            {**PARAMS, "batch_size": 64, **(params or {})},
            repeat=repeat,
            **{**measured, f"first_batch_{part}_s": seconds},
        )
        for repeat, seconds in enumerate(took_s)
    ]


def found(*trials: Trial) -> list[Finding]:
    """Of a run of these."""
    return list(findings(trials))


def test_listing_many_files_asks_for_shards() -> None:
    """With how many there are, how long it takes, and of how much."""
    (finding,) = found(*late("listing", 18.0, 17.0, 19.0))
    assert (finding.code, finding.severity) == ("first-batch-listing", "warning")
    assert finding.evidence == (
        "loader torch-folder files@disk warm workers=8 batch=64: 20 s to the first batch, 18 s of "
        "it (90%) listing 1,281,167 files"
    )
    assert "dataprep shard" in finding.advice


def test_shards_are_not_to_be_packed_into_shards() -> None:
    """There the store is waited for."""
    (finding,) = found(*late("listing", 18.0, params={"data": "shards@s3"}))
    assert "opening 1,281,167 shards" in finding.evidence
    assert "dataprep shard" not in finding.advice


@pytest.mark.parametrize(
    ("part", "doing", "advice"),
    [
        ("worker_start", "starting 8 workers", "fewer workers"),
        ("fetch", "reading its samples", "storage is waited for"),
        ("decode", "decoding and augmenting its samples", "less work a sample"),
    ],
)
def test_each_part_has_its_advice(part: str, doing: str, advice: str) -> None:
    """And its own code."""
    (finding,) = found(*late(part, 15.0))
    assert finding.code == f"first-batch-{part.replace('_', '-')}"
    assert finding.evidence.endswith(f"15 s of it (75%) {doing}")
    assert advice in finding.advice


@pytest.mark.parametrize("part", PARTS)
def test_half_of_it_is_not_the_most(part: str) -> None:
    """Every repeat has to lie above: one that does not leaves it open what is waited for."""
    for took_s in ([10.0], [18.0, 18.0, 9.0]):
        (finding,) = found(*late(part, *took_s))
        assert finding.code == "late-first-batch"
        assert finding.evidence.endswith("20 s to the first batch, of which no part is the most")
    (finding,) = found(*late(part, 18.0, 18.0, 10.5))
    assert finding.code == f"first-batch-{part.replace('_', '-')}"


@pytest.mark.parametrize("part", PARTS)
def test_an_early_first_batch_is_no_finding(part: str) -> None:
    """Whatever it waits for: 10 seconds are where it begins to matter."""
    assert found(*late(part, 9.8, whole_s=9.9)) == []
    assert len(found(*late(part, 9.8, whole_s=10.0))) == 1


def test_a_grid_has_one_finding() -> None:
    """Of the point that waits longest, with how many others do."""
    points = {2: 15.0, 4: 19.0, 8: 16.0}
    trials = [
        trial
        for workers, took_s in points.items()
        for trial in late("fetch", took_s, params={"workers": workers})
    ]
    (finding,) = found(*trials)
    assert "workers=4 batch=64: 20 s to the first batch, 19 s of it" in finding.evidence
    assert finding.evidence.endswith("; so too in 2 more points")


def test_loops_are_judged_as_well() -> None:
    """Under the name of their group and input."""
    params = {"group": "g", "input": "cold", "data": "files@disk", "batch_size": 64, "workers": 0}
    trial = one(
        "train",
        {**params, "consumer": "torch", "loader": "torch-folder", "model": "lenet"},
        samples_per_s=1.0,
        au_mlperf=0.5,
        first_batch_worker_start_s=11.0,
        time_to_first_batch_s=12.0,
    )
    (finding,) = found(trial)
    assert finding.evidence == (
        "train g cold batch=64: 12 s to the first batch, 11 s of it (92%) starting whatever makes "
        "batches"
    )


def test_of_loaders_that_tell_nothing_only_the_time_is_known() -> None:
    """And of old runs; a download before the first sample is named."""
    params = {**PARAMS, "batch_size": 1}
    (finding,) = found(one("loader", params, samples_per_s=1.0, time_to_first_batch_s=99.0))
    assert (finding.code, finding.severity) == ("late-first-batch", "warning")
    assert "99 s to the first batch" in finding.evidence
    copied = one("loader", {**params, "access": "file"}, time_to_first_batch_s=10.0)
    assert "a download of all data before it" in found(copied)[0].evidence
    assert found(one("loader", params, samples_per_s=1.0, time_to_first_batch_s=9.9)) == []
