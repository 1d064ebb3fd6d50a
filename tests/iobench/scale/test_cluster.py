"""A cluster on paper."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.result import Result
from iobench.scale import scale
from tests.iobench.scale.made import disk, loader, run, store, trained

WHOLE = run(loader(10_000), disk(1_000), store(500), network_gbit_per_s=20)
"""Processors 10,000 samples/s, disk 20,000, store 10,000 by 10 streams, network 50,000."""


def asked(
    devices: int = 256, rate: float | None = 171_000, per_host: int | None = 8
) -> dict[str, Any]:
    """What the config's section says."""
    return {"devices": devices, "images_per_s": rate, "devices_per_host": per_host}


def way(found: dict[str, Any], name: str) -> dict[str, Any]:
    """For data that lie there."""
    return next(each for each in found["ways"] if each["way"] == name)


def test_what_256_devices_need() -> None:
    """171,000 images/s of 50 kB: 8.55 GB/s, 18 hosts by their processors, 32 by their devices."""
    found = scale(WHOLE, asked())
    assert found["gb_per_s"] == pytest.approx(8.55)
    assert found["images_per_s_per_device"] == pytest.approx(667.97, abs=0.01)
    assert {part["part"]: part["hosts"] for part in found["parts"]} == {
        "processors": 18,
        "disk": 9,
        "store": 18,
        "network": 4,
    }
    assert (way(found, "disk")["hosts"], way(found, "disk")["short"]) == (32, False)
    assert found["streams"] == 171
    assert found["gets_per_s"] == pytest.approx(855)


def test_fewer_devices_than_a_host_holds_are_fed_by_it() -> None:
    """Three of 1,000 on a machine of 4,000, which would not feed the eight that fit into it."""
    found = scale(run(loader(4_000)), asked(devices=3, rate=3_000))
    (only,) = found["ways"]
    assert (only["hosts"], only["short"], only["fed_share"]) == (1, False, 1.0)
    assert (found["hosts_for_devices"], found["devices_per_host"]) == (1, 3)


def test_what_is_short_first_decides_how_many_hosts_there_are() -> None:
    """The disk does not matter to who reads a store."""
    slow = run(loader(4_000), disk(50), store(500))
    found = scale(slow, asked())
    assert way(found, "disk")["breaks_first"] == "disk"
    assert way(found, "disk")["hosts"] == 171
    assert way(found, "disk")["fed_share"] == pytest.approx(1_000 / 5_343.75)
    assert way(found, "store")["breaks_first"] == "processors"
    assert way(found, "store")["hosts"] == 43


def test_a_disk_above_its_limit_counts_as_its_limit() -> None:
    """The rest was a cache."""
    found = scale(run(loader(1e4), disk(1_000), targets={"disk": {"mb_per_s": 100.0}}), asked())
    part = next(each for each in found["parts"] if each["part"] == "disk")
    assert part["samples_per_s"] == 2_000


def test_without_a_rate_the_runs_own_loop_is_taken() -> None:
    """Of one device of those that it had."""
    found = scale(run(loader(10_000), *trained(500, devices=2)), asked(4, None))
    assert found["images_per_s"] == pytest.approx(1_000)
    assert "measured" in found["assumptions"][0]


@pytest.mark.parametrize(
    ("made", "rate", "lacking"),
    [
        (run(loader(1.0)), None, "what a device consumes"),
        (run(disk(1.0)), 5.0, "what a loader gives"),
        (run(loader(1.0, loader="raw")), 5.0, "what a loader gives"),
        (run(loader(1.0, decode=False)), 5.0, "what a loader gives"),
        (run(loader(1.0, loader="mock")), 5.0, "what a loader gives"),
    ],
    ids=["no rate", "no loader", "raw", "undecoded", "mock"],
)
def test_what_is_missing_is_said(made: Result, rate: float | None, lacking: str) -> None:
    """And nothing is made up."""
    found = scale(made, asked(rate=rate))
    assert "parts" not in found
    assert found["unknown"][0].startswith(lacking)


def test_storage_is_a_part_of_its_own() -> None:
    """So a loader's rate is the one from the page cache, though a cold one was faster."""
    cold = replace(loader(9e9, cache="cold"), cold=None)
    found = scale(run(loader(1_000), cold), asked())
    assert found["parts"][0]["samples_per_s"] == 1_000


def test_devices_a_host_are_this_machines() -> None:
    """Where nothing else is told."""
    gpus = replace(WHOLE, environment={"gpus": [{}, {}, {}, {}]})
    assert scale(gpus, asked(per_host=None))["devices_per_host"] == 4
    assert scale(WHOLE, asked(per_host=None))["devices_per_host"] == 1


def test_prefixes_follow_from_requests() -> None:
    """At what the file of limits says of S3."""
    known = {"limits": {"stores": {"aws-s3": {"gets_per_s_per_prefix": 500.0}}}}
    found = scale(replace(WHOLE, references=known), asked())
    assert (found["prefixes"], found["prefixes_by_sample"]) == (2, 342)


def test_a_server_of_the_runs_own_is_no_store_of_a_cluster() -> None:
    """It is said."""
    own = replace(WHOLE, environment={"stores": {"s3": {"kind": "own-server"}}})
    assert "which no cluster reads" in scale(own, asked())["assumptions"][-1]


@given(
    devices=st.integers(1, 5_000),
    more=st.integers(0, 5_000),
    each=st.floats(1, 1e5),
    per_host=st.integers(1, 16),
)
def test_more_devices_never_need_fewer_hosts(
    devices: int, more: int, each: float, per_host: int
) -> None:
    """Nor fewer streams; and the devices themselves have room."""
    few = scale(WHOLE, asked(devices, each * devices, per_host))
    many = scale(WHOLE, asked(devices + more, each * (devices + more), per_host))
    for before, after in zip(few["ways"], many["ways"], strict=True):
        assert math.ceil(devices / per_host) <= before["hosts"] <= after["hosts"]
        assert before["hosts"] * 50_000 >= each * devices * (1 - 1e-9)
        assert 0 < before["fed_share"] <= 1
        assert before["short"] == (before["fed_share"] < 1)
    assert few["streams"] <= many["streams"]


@given(rate=st.floats(1, 1e7), faster=st.floats(1, 100))
def test_a_faster_loader_never_needs_more_hosts(rate: float, faster: float) -> None:
    """Hosts fall with what each gives."""
    slow, fast = (scale(run(loader(each)), asked()) for each in (rate, rate * faster))
    assert fast["ways"][0]["hosts"] <= slow["ways"][0]["hosts"]


def test_a_loader_that_waits_for_its_store_is_told() -> None:
    """It decodes 4,000 of the 10,000 that come; one that asks for a sample at a time got 500."""
    far = loader(500, data="shards@s3")
    found = scale(run(loader(4_000), replace(far, cold=None), store(500)), asked())
    (line,) = [line for line in found["assumptions"] if "requests at a time" in line]
    assert "for a store to give all of that" in line
    assert "got 500 samples/s, where its decoding and the store each give 4,000" in line


@pytest.mark.parametrize("params", [{"rate": 3_900}, {"rate": 500, "workers": 1}])
def test_a_loader_that_decodes_no_faster_does_not_wait(params: dict[str, Any]) -> None:
    """As fast as from the page cache; or with fewer workers, of which nothing else is known."""
    far = loader(data="shards@s3", **params)
    found = scale(run(loader(4_000), replace(far, cold=None), store(500)), asked())
    assert not [line for line in found["assumptions"] if "requests at a time" in line]
