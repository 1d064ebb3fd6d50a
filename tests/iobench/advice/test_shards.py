"""Shard size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.trial import Trial
from tests.iobench.advice.made import DATA, advice, forms, over_photos, run
from tests.iobench.whatif.made import fetched, loader, together

CURVE = {1: 400.0, 4: 700.0, 16: 780.0, 64: 800.0}


def sweep(rates: dict[int, float], objects: int = 1000, **params: Any) -> list[Trial]:
    """A loader over shards of several sizes, from a cold disk; 4 GB of them."""
    told = {"cache": "cold", "objects": objects, "object_bytes": 4e6, **params}
    return together(*(loader(r, 2, data=f"shards-{s}MB@disk", **told) for s, r in rates.items()))


def test_the_smallest_at_95_per_cent_of_the_peak_is_advised() -> None:
    """760 are asked for; 4 MB has 700, 16 MB 780. Now are 1 MB."""
    found = advice(run(sweep(CURVE)))["shard_size"]
    assert (found.state, found.value, found.now) == ("change", 16_000_000, 1_000_000)
    assert found.gain is not None
    assert found.gain.median == pytest.approx(780 / 400)
    assert dict(found.config) == {"shard_size": 16_000_000}


def test_each_worker_has_a_few_shards() -> None:
    """Of 80 MB two workers have four each at 10 MB at most."""
    found = advice(run(sweep(CURVE, objects=20)))["shard_size"]
    assert found.value == 10_000_000
    assert "every worker (2) has 4 shards of these 80 MB" in found.evidence


def test_what_is_large_enough_stays() -> None:
    """Shards of 16 MB, as the config makes them: no need for others."""
    found = advice(run(loader(300.0, 2), sweep(CURVE)))["shard_size"]
    assert (found.state, found.value, found.now) == ("keep", 16_000_000, 16_000_000)
    assert found.evidence.startswith("you are decode-bound, resharding will not help: 16 MB")


def test_an_object_store_tells_where_no_loader_was_swept() -> None:
    """Its own 95 %, within what shards may have; now are 1 MB."""
    points = [fetched(size, 4, rate) for size, rate in ((10**5, 1e7), (8 * 10**6, 9.8e7))]
    more, data = fetched(64 * 10**6, 4, 1e8), {**DATA, "shard_size": 1_000_000}
    found = advice(run(loader(300.0, 2), *points, more, data=data))["shard_size"]
    assert (found.state, found.value) == ("change", 8_000_000)
    assert "moto, boto3" in found.evidence


def test_files_that_stay_files_need_no_size() -> None:
    """It is told, and not advised."""
    photos = loader(300.0, 2, loader="torch-folder", data="photos@disk")
    found = advice(run(photos, sweep(CURVE)))["shard_size"]
    assert (found.state, found.value) == ("keep", None)
    assert found.evidence.startswith("its data are no shards; if they were, 16 MB")
    packed = advice(run(forms(), over_photos(), sweep(CURVE)))["shard_size"]
    assert (packed.state, packed.value) == ("change", 16_000_000)


@pytest.mark.parametrize(("mb", "state"), [(20.0, "keep"), (2.0, "change")])
def test_shards_that_are_given_have_the_size_they_have(mb: float, state: str) -> None:
    """20 MB lie between 16 and 64, which both are enough; 2 MB are too small."""
    given = loader(300.0, 2, object_bytes=mb * 1e6)
    data = {**DATA, "shards": "/shards", "source": None}
    found = advice(run(given, sweep(CURVE), data=data))["shard_size"]
    assert (found.state, found.value) == (state, 20_000_000 if state == "keep" else 16_000_000)
    assert found.now == mb * 1e6
    assert "no shards" not in found.evidence


def test_shards_larger_than_a_store_needs_stay() -> None:
    """16 MB where 8 reach 95 %: smaller ones bring nothing."""
    points = [fetched(size, 4, rate) for size, rate in ((10**5, 1e7), (8 * 10**6, 9.8e7))]
    found = advice(run(loader(300.0, 2), *points, fetched(64 * 10**6, 4, 1e8)))["shard_size"]
    assert (found.state, found.value) == ("keep", 16_000_000)


def test_without_a_sweep_nothing_is_known() -> None:
    """The config that sweeps is named."""
    found = advice(run(loader(300.0, 2)))["shard_size"]
    assert (found.state, "configs/bench/shard-size.yaml" in found.evidence) == ("unknown", True)


def test_shards_that_are_to_be_made_are_enough_for_their_readers() -> None:
    """Although no sizes were compared: 40 MB in shards of 64 MiB would be one."""
    few = [replace(t, metrics={**t.metrics, "objects": 10}) for t in forms()]
    found = advice(run(few, over_photos()))["shard_size"]
    assert (found.state, found.value) == ("change", 5_000_000)
    assert "every worker (2) has 4 shards of these 40 MB" in found.evidence


def test_resized_images_do_not_count_as_these_shards() -> None:
    """80 MB of shards; the same images at 384 pixels are 160 MB."""
    larger = loader(300.0, 2, data="shards-384px@disk", objects=40)
    found = advice(run(sweep(CURVE, objects=20), larger))["shard_size"]
    assert found.value == 10_000_000


def test_workers_that_are_advised_are_to_have_their_shards_too() -> None:
    """Eight of them, not the one of now: 800 MB are 25 MB for each of four shards."""
    points = together(*(loader(100.0 * w, w, objects=200, object_bytes=4e6) for w in (1, 2, 4, 8)))
    late = sweep({1: 100.0, 16: 200.0, 64: 800.0}, objects=200)
    found = advice(run(points, late))
    assert found["workers"].value == 8
    assert found["shard_size"].value == 25_000_000
    assert "every worker (8)" in found["shard_size"].evidence


def test_data_too_small_for_its_readers_are_called_so() -> None:
    """4 MB and two workers: shards have 1 MB at least."""
    found = advice(run(sweep({1: 400.0, 4: 410.0}, objects=1)))["shard_size"]
    assert found.value == 1_000_000
    assert "these 4.0 MB are 4 shards of 1 MB" in found.evidence
    assert "too few for 4 for every worker (2)" in found.evidence
