"""Trials of the layout probe, which read whole shards, records and files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.errors import TrialFailed
from iobench.probes import layout
from iobench.probes.layout import find_items
from iobench.results.trial import Context, Location, Outcome, TrialSpec
from iobench.servers.moto_server import MotoServer
from tests.iobench.probes.conftest import is_provable

Probe = Callable[..., Outcome]


@pytest.fixture(scope="module")
def shards(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Location:
    """Return the tree of photos, sharded in both formats; tests only read it."""
    output = tmp_path_factory.mktemp("layout") / "out"
    config = {
        "source": os.fspath(tree),
        "output": os.fspath(output),
        "shard_size": 10**6,
        "format": ["tfrecord", "recordio"],
        "image": {"size": 128},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return Location(os.fspath(output), "shards")


def probe(location: Location, access: str, **changes: Any) -> Outcome:
    """Run one trial, by default cold, with 3 processes and enough time."""
    params = {
        "data": "it",
        "access": access,
        "cache": "cold",
        "parallelism": 3,
        "seconds": 60.0,
        **changes,
    }
    context = Context({"it": location}, SystemClock(), lambda done, unit: None)
    return layout.run(TrialSpec("layout", params), context)


def check_cold(outcome: Outcome, location: Location) -> None:
    """Check that the trial is labelled cold if that can be proved, else warm with a reason."""
    cold = outcome.cold
    assert cold is not None
    if is_provable(Path(location.uri)):
        assert (cold.label, cold.why) == ("cold", "")
    else:
        assert cold.label == "cold" or cold.why


@pytest.mark.parametrize("access", ["shards", "records"])
def test_shards_are_read_whole_or_by_record(shards: Location, access: str) -> None:
    """Every byte is read once, by at most one process for each item."""
    entry = dataprep.open(shards.uri).manifest.formats["tfrecord"]
    outcome = probe(shards, access, parallelism=50)
    metrics = outcome.metrics
    assert metrics["bytes"] == entry.bytes
    assert metrics["samples"] == 120
    assert metrics["operations"] == (len(entry.shards) if access == "shards" else 120)
    assert metrics["processes"] == min(50, metrics["operations"])
    assert metrics["mb_per_s"] * metrics["seconds"] == pytest.approx(metrics["bytes"] / 1e6)
    assert metrics["samples_per_s"] * metrics["seconds"] == pytest.approx(metrics["samples"])
    check_cold(outcome, shards)


def test_files_are_read_one_by_one(tree: Path) -> None:
    """Each image of the class folders is read once."""
    location = Location(os.fspath(tree), "files")
    outcome = probe(location, "files")
    images = [path for path in tree.rglob("*") if path.suffix.lower() == ".jpeg"]
    assert outcome.metrics["samples"] == len(images) == 120
    assert outcome.metrics["bytes"] == sum(path.stat().st_size for path in images)
    assert 0 < outcome.metrics["latency_s_p50"] <= outcome.metrics["seconds"]
    check_cold(outcome, location)


@pytest.mark.parametrize("access", ["shards", "records"])
def test_warm_reads_go_round(shards: Location, access: str) -> None:
    """A warm trial reads from memory until the time is over."""
    outcome = probe(shards, access, cache="warm", seconds=0.3, parallelism=1)
    assert outcome.metrics["samples"] > 120
    assert outcome.cold is not None
    assert outcome.cold.label == "warm"


def test_shards_on_a_store(shards: Location, bucket: str, s3_server: MotoServer) -> None:
    """Shards on a store are read over HTTP; the server's cache is unknown."""
    store = StoreOptions(endpoint_url=s3_server.url)
    location = Location(f"s3://{bucket}/out", "shards", store)
    copy = dataprep.stores.open_store(location.uri, store)
    local = dataprep.stores.open_store(shards.uri)
    for stored_object in local.list():
        copy.put(stored_object.key, local.get(stored_object.key))
    for access, seconds in (("shards", 0.01), ("records", 0.2)):
        outcome = probe(location, access, seconds=seconds)
        assert outcome.metrics["samples"] > 0
        assert outcome.metrics["bytes"] > 0
        assert outcome.metrics["notes"]
        assert outcome.cold is not None
        assert outcome.cold.label == "server cache unknown"


def test_missing_data_fail_the_trial(shards: Location, tree: Path, tmp_path: Path) -> None:
    """The trial fails and says which data it needs, or has dataprep's message."""
    with pytest.raises(TrialFailed, match="from files, but this location holds shards"):
        probe(shards, "files")
    with pytest.raises(TrialFailed, match="records are read from shards"):
        probe(Location(os.fspath(tree), "files"), "records")
    with pytest.raises(dataprep.DataprepError, match="no complete split"):
        probe(Location(os.fspath(tmp_path), "shards"), "shards")


def test_a_shard_that_was_cut_fails_the_trial(shards: Location, tmp_path: Path) -> None:
    """A shard that is shorter than in the manifest is not measured."""
    output = tmp_path / "out"
    shutil.copytree(shards.uri, output)
    os.truncate(next((output / "tfrecord").iterdir()), 100)
    with pytest.raises(TrialFailed, match=r"100 of .* bytes at offset 0"):
        probe(Location(os.fspath(output), "shards"), "shards")


def test_the_order_of_records_depends_on_the_seed(shards: Location) -> None:
    """Seeds give different orders; a limit selects some of the records."""
    first = find_items(shards, "records", max_items=1000, seed=1)
    other = find_items(shards, "records", max_items=1000, seed=2)
    assert find_items(shards, "records", max_items=1000, seed=1) == first != other
    assert sorted(first) == sorted(other)
    assert find_items(shards, "records", max_items=7, seed=1) == first[:7]
