"""Loops: an epoch bounds what is read, and who computes says how long it takes."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.forecast import Facts
from iobench.forecast.bounds import Bounds
from iobench.forecast.loops import HELD_PER_S, OPENING, loader, training
from iobench.forecast.predicted import Predicted
from iobench.loaders import LOADERS
from tests.iobench.forecast.made import AMAZON, data

LOADER = {"loader": "raw", "data": "shards@disk", "cache": "warm", "workers": 2, "seconds": 3.0}
TRAINING: dict[str, Any] = {
    "group": "loop",
    "input": "warm",
    "consumer": "torch",
    "loader": "torch-iterable",
    "data": "shards@disk",
    "over": "shards@disk",
    "workers": 2,
    "steps": 10,
    "batch_size": 8,
}
ON_DISK = Facts({"shards@disk": data()})
ON_AMAZON = Facts({"shards@s3": data(store="bucket")}, {"bucket": AMAZON})


@pytest.mark.parametrize("name", LOADERS.names())
def test_a_loader_lasts_as_long_as_it_is_told(name: str) -> None:
    """Beside its start; warm no shorter."""
    found = loader({**LOADER, "loader": name}, ON_DISK, 600.0)
    assert found.likely_s is not None
    assert 3.0 < found.likely_s < 10.0
    assert found.seconds == Bounds(3.0, 600.0)
    assert found.disk_read == Bounds(0.0, 50e6)
    assert found.unknown == ()


def test_each_process_has_requests_of_its_own() -> None:
    """Three with two workers are as many streams as one with six."""
    remote = {**LOADER, "data": "shards@s3"}
    three = loader({**remote, "processes": 3}, ON_AMAZON, 600.0)
    six = loader({**remote, "workers": 6}, ON_AMAZON, 600.0)
    assert three.requests == six.requests
    assert three.store_read == six.store_read


def test_a_cold_loader_may_end_with_its_epoch() -> None:
    """Which may be short."""
    assert loader({**LOADER, "cache": "cold"}, ON_DISK, 600.0).seconds.low == 0.0


def test_a_loader_without_data_moves_nothing() -> None:
    """It has no place."""
    found = loader({**LOADER, "loader": "mock", "data": ""}, Facts(), 600.0)
    assert found.disk_read == Bounds()


@pytest.mark.parametrize(("name", "each"), [("raw", 12_500_000), ("torch-map", 50_000)])
def test_requests_to_a_store_are_bounded(name: str, each: int) -> None:
    """Whole shards or single samples, by two streams a worker, with 10 s before the clock."""
    found = loader({**LOADER, "loader": name, "data": "shards@s3"}, ON_AMAZON, 600.0)
    high = found.requests[1]
    assert high is not None
    streams = 4
    assert high.gets - OPENING.gets * (1 + streams) <= streams * (13.0 / (0.01 + each / 1e8) + 1)
    assert found.store == "bucket"
    assert found.store_read.high is not None
    assert found.store_read.high <= 4 * 100e6 * 13.0 + streams * each


def test_a_real_loop_has_no_known_length() -> None:
    """It depends on model and device: that is said, with the bound."""
    found = training(TRAINING, ON_DISK, 600.0)
    assert found.likely_s is None
    assert found.seconds == Bounds(0.0, 600.0)
    assert found.unknown == (
        "how long a training loop of loop takes: it depends on the model and the device",
    )
    assert found.disk_read == Bounds(0.0, 50e6)


@pytest.mark.parametrize("device", [{"images_per_s": 80.0}, {"preset": "H100"}])
def test_an_emulated_device_has(device: dict[str, Any]) -> None:
    """Its rate is known."""
    found = training({**TRAINING, "consumer": "paced", **device}, ON_DISK, 600.0)
    rate = device.get("images_per_s", 7000.0)
    assert found.likely_s == pytest.approx(80 / rate + 3.0)


def test_an_epoch_bounds_a_loop_on_a_store() -> None:
    """Whatever its time."""
    found = training({**TRAINING, "input": "store", "data": "shards@s3"}, ON_AMAZON, 600.0)
    assert found.requests[1] is not None
    assert found.requests[1].gets == OPENING.gets * 5 + 4
    assert found.store_read.high == 50e6


@pytest.mark.parametrize("rung", ["collate", "augment", "decode"])
def test_what_is_held_in_memory_is_read_sample_by_sample(rung: str) -> None:
    """Before the loop, which takes as much longer; by threads, from the disk or the store."""
    local = training({**TRAINING, "input": rung}, ON_DISK, 600.0)
    assert local.disk_read == Bounds(0.0, 50e6)
    assert any("held in memory" in words for words in local.assumed)
    paced = {**TRAINING, "input": rung, "consumer": "paced", "images_per_s": 80.0}
    assert training(paced, ON_DISK, 600.0).likely_s == pytest.approx(1.0 + 3.0 + 80 / HELD_PER_S)
    remote = training({**TRAINING, "input": rung, "data": "shards@s3"}, ON_AMAZON, 600.0)
    by_shard = training({**TRAINING, "input": "store", "data": "shards@s3"}, ON_AMAZON, 600.0)
    assert remote.requests[1] is not None
    assert by_shard.requests[1] is not None
    assert remote.requests[1].gets > by_shard.requests[1].gets


def test_one_batch_in_host_memory_reads_nothing() -> None:
    """As one on the device."""
    found = training({**TRAINING, "input": "copy", "data": ""}, ON_DISK, 600.0)
    assert found.disk_read == Bounds(0.0, 0.0)


def test_data_that_nobody_could_look_at() -> None:
    """Are bounded by the store, and said to be unknown."""
    found = loader({**LOADER, "data": "shards@s3"}, Facts(stores={"bucket": AMAZON}), 600.0)
    assert "what shards@s3 holds" in found.unknown[0]
    assert found.requests[1] is not None
    assert loader(LOADER, Facts(), 600.0).disk_read.high is None


@pytest.mark.parametrize(("devices", "gpus", "ranks"), [(4, 0, 4), ("all", 8, 8), ("all", 0, 1)])
def test_every_device_has_readers_of_its_own(devices: Any, gpus: int, ranks: int) -> None:
    """Which open the data, and share one epoch of it."""
    facts = Facts({"shards@s3": data(store="bucket")}, {"bucket": AMAZON}, gpus=gpus)
    params = {**TRAINING, "input": "store", "data": "shards@s3", "devices": devices}
    found = training(params, facts, 600.0)
    assert found.requests[1] is not None
    assert found.requests[1].gets == OPENING.gets * (1 + 4 * ranks) + 4
    assert found.store_read.high == 50e6


TABLES = 100_000 + 250 * 1000
"""What opening reads of the made-up data, at most."""


class TestAccess:
    """Modes move what they say, and no more."""

    def of(self, access: str, name: str, **changed: Any) -> Predicted:
        """A trial of two whole epochs on Amazon's S3."""
        told = {key: value for key, value in LOADER.items() if key != "seconds"}
        params = {**told, "loader": name, "data": "shards@s3", "access": access, "epochs": 2}
        return loader({**params, **changed}, ON_AMAZON, 600.0)

    def test_a_download_reads_every_object_once(self) -> None:
        """And writes it, however many epochs follow."""
        found = self.of("file", "torch-map", connections=8)
        assert found.disk_written == Bounds(50e6, 50e6 + TABLES)
        assert found.store_read == Bounds(50e6, 50e6 + 3 * TABLES)
        assert found.disk_read == Bounds(0.0, 100e6)
        low, high = found.requests
        assert high is not None
        assert low.gets == 4
        assert 4 < high.gets <= 4 + 6 * OPENING.gets
        assert (low.lists, high.lists) == (1, 1)

    def test_a_stream_reads_every_object_once_an_epoch(self) -> None:
        """4 shards, twice."""
        found = self.of("pipe", "torch-iterable", shuffle_buffer=100)
        assert found.store_read.high == 100e6 + 5 * TABLES
        assert found.requests[1] is not None
        assert found.requests[1].gets == 8 + 5 * OPENING.gets
        assert found.disk_written == Bounds()

    def test_single_samples_are_a_request_each(self) -> None:
        """1,000 of them, twice."""
        found = self.of("lazy", "torch-map")
        assert found.store_read.high == 100e6 + 5 * TABLES
        assert found.requests[1] is not None
        assert found.requests[1].gets == 2000 + 5 * OPENING.gets

    def test_a_mount_reads_its_disk(self) -> None:
        """Once an epoch at most."""
        params = {**LOADER, "access": "mount", "cache": "cold", "epochs": 2}
        found = loader(params, ON_DISK, 600.0)
        assert found.disk_read == Bounds(0.0, 100e6)
        assert found.store == ""

    def test_how_long_epochs_take_is_not_known(self) -> None:
        """Only what bounds them."""
        for found in (self.of("file", "raw"), self.of("lazy", "torch-map")):
            assert found.likely_s is None
            assert found.seconds == Bounds(0.0, 600.0)
            assert any("epochs take" in why for why in found.unknown)

    def test_a_download_is_part_of_a_time_that_is_told(self) -> None:
        """50 MB at 100 MB/s before the seconds that are measured."""
        params = {**LOADER, "data": "shards@s3", "access": "file"}
        direct = loader(LOADER, ON_DISK, 600.0).likely_s
        assert direct is not None
        assert loader(params, ON_AMAZON, 600.0).likely_s == pytest.approx(direct + 0.5)

    def test_a_training_loop_downloads_first(self) -> None:
        """Every object, though its steps may not see them all."""
        params = {**TRAINING, "input": "store", "data": "shards@s3", "access": "file"}
        found = training(params, ON_AMAZON, 600.0)
        assert found.disk_written == Bounds(50e6, 50e6 + TABLES)
        assert found.store_read == Bounds(50e6, 50e6 + 3 * TABLES)
        assert found.unknown[-1].startswith("how long a training loop")

    def test_data_that_nobody_could_look_at_have_no_bounds(self) -> None:
        """What a download moves is what there is."""
        params = {**LOADER, "data": "shards@s3", "access": "file"}
        found = loader(params, Facts(stores={"bucket": AMAZON}), 600.0)
        assert found.store_read.high is None
        assert found.requests[1] is None
        assert found.likely_s is None
