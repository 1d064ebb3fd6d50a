"""Measured rates beside their ceilings, and what is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.diagnosis import diagnose
from iobench.diagnosis.limits import findings
from iobench.held import held
from iobench.result import Result
from iobench.roofline import roofline
from iobench.summary import summarise
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import one, result

SATA = {"kind": "sata", "device": {"link_mb_per_s": 600.0, "transport": "sata"}}


def probed(cache: str = "direct", rate: float = 500.0, repeat: int = 0, shown: str = "") -> Trial:
    """A read of a disk, shown to be what was asked unless ``shown`` says otherwise."""
    params = {"target": "disk", "operation": "read", "pattern": "sequential", "cache": cache}
    cold = Cold(cache, shown or cache)
    return one("disk", params, repeat=repeat, mb_per_s=rate, cold=cold)


def with_target(trials: list[Trial], target: dict[str, Any], label: str = "disk") -> Result:
    """A run on a machine with that target."""
    return replace(result(trials), environment={"targets": {label: target}})


@pytest.mark.parametrize(
    ("trial", "verdict"),
    [
        (probed("direct", 560.0), "within"),
        (probed("direct", 900.0), "beyond"),
        (probed("cold", 900.0), "beyond"),
        (probed("cold", 900.0, shown="warm"), "cache"),
        (probed("warm", 9000.0), "cache"),
    ],
    ids=["slower", "direct", "cold", "not shown cold", "warm"],
)
def test_above_the_limit_is_a_cache(trial: Trial, verdict: str) -> None:
    """Where the device was meant; of the page cache no limit is asked."""
    (row,) = roofline(with_target([trial], SATA))
    assert row["verdict"] == verdict
    assert row["share"] == pytest.approx(row["mb_per_s"]["median"] / 600)
    assert [found.code for found in findings([row])] == ["beyond-limit"] * (verdict == "beyond")


def test_the_fastest_of_several_settings_stands_for_a_place() -> None:
    """One row for each thing that was measured."""
    slow = replace(probed(rate=100.0), params={**probed().params, "block_bytes": 4096})
    (row,) = roofline(with_target([slow, probed(rate=300.0)], SATA))
    assert row["mb_per_s"]["median"] == 300.0


def test_a_place_is_found_once() -> None:
    """By its fastest rate, with who says so."""
    run = with_target([probed("direct", 700.0), probed("cold", 900.0)], SATA)
    (found,) = findings(roofline(run))
    assert found.evidence == (
        "disk gave 900 MB/s (sequential read, cold), and its SATA port carries 600 at most "
        "(the kernel (sysfs))"
    )


def test_loops_are_held_against_where_their_data_lie() -> None:
    """On the disk under the folder, or behind the network, with bytes a sample."""
    disk = one("loader", {"loader": "raw", "data": "shards@disk"}, mb_per_s=42.0, samples_per_s=1e3)
    far = one("loader", {"loader": "raw", "data": "shards@s3"}, mb_per_s=200.0, samples_per_s=1e3)
    run = with_target([replace(disk, cold=Cold("cold", "cold")), far], SATA, "data")
    run = replace(run, config={"limits": {"network_gbit_per_s": 1.0}})
    near, remote = roofline(run)
    assert (near["place"], near["limit_mb_per_s"], near["sample_bytes"]) == ("data", 600.0, 42e3)
    assert (remote["side"], remote["limit_mb_per_s"]) == ("store", 125.0)
    assert remote["verdict"] == "beyond"


def test_more_than_is_guaranteed_is_no_cache() -> None:
    """It is said that it does not last."""
    trial = one("object", {"store": "s3", "client": "boto3", "operation": "get"}, mb_per_s=900.0)
    known = {
        "limits": {"instance_type": "g5.xlarge", "instance": {"network_baseline_gbit_per_s": 2.5}}
    }
    (row,) = roofline(replace(result([trial]), references=known))
    assert row["verdict"] == "above-guaranteed"
    assert [found.code for found in findings([row])] == ["above-guaranteed"]


def test_held_adds_rows_that_the_diagnosis_reads() -> None:
    """To a summary that is there."""
    run = replace(with_target([probed(rate=900.0)], SATA), summary={"verdict": "v"})
    found = held(run)
    assert found.summary["verdict"] == "v"
    assert len(found.summary["roofline"]) == 1
    told = replace(found, summary={**summarise(run), **found.summary})
    assert "beyond-limit" in {each.code for each in diagnose(told)}


def test_a_run_without_trials_has_no_rows() -> None:
    """Nor one of a loader whose bytes nobody counted."""
    assert roofline(result([])) == []
    assert (
        roofline(result([one("loader", {"loader": "null", "data": ""}, samples_per_s=1.0)])) == []
    )
