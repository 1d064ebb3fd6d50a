"""The part of the data that a warm trial reads is fixed, and small enough to stay in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dataprep
from iobench.clock import VirtualClock
from iobench.data.data_summary import open_shards, summarize_data
from iobench.data.warm_part import warm_part
from iobench.errors import Unavailable
from iobench.loaders import LOADERS, LoaderSettings
from iobench.machine.hardware import available_bytes
from iobench.probes.layout import find_items
from iobench.results.trial import Location

PAGE = 4096


@pytest.fixture(scope="module")
def shards(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Location:
    """Return 120 photos in several shards of both formats."""
    output = tmp_path_factory.mktemp("warm") / "out"
    config = {
        "source": str(tree),
        "output": str(output),
        "format": ("tfrecord", "recordio"),
        "image": {"size": 256},
        "shard_size": "1MB",
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return Location(str(output), "shards")


@pytest.fixture(scope="module")
def files(tree: Path) -> Location:
    """Return 120 photos in 6 class folders."""
    return Location(str(tree), "files")


def batches(loader: str, location: Location, **settings: Any) -> list[Any]:
    """Return the images and labels of each batch in one epoch of a loader."""
    options = LoaderSettings(batch_size=16, decode=False, **settings)
    opened = LOADERS.load(loader)(location, options, VirtualClock())
    try:
        return [(list(batch.images), list(batch.labels)) for batch in opened.epoch(0)]
    finally:
        opened.close()


def images(loader: str, location: Location, **settings: Any) -> list[bytes]:
    """Return the encoded images of one epoch, sorted."""
    batch_list = batches(loader, location, **settings)
    return sorted(bytes(image) for batch_images, _ in batch_list for image in batch_images)


@pytest.mark.parametrize("form", ["shards", "files"])
def test_everything_is_read_if_it_fits(form: str, request: pytest.FixtureRequest) -> None:
    """All shards or files are read, and the share is 1."""
    location = request.getfixturevalue(form)
    part = warm_part(location, 10**9)
    assert (part.location, part.share) == (location, 1.0)


def test_half_of_the_free_memory_is_the_limit(shards: Location) -> None:
    """This machine or its control group gives the limit if the caller gives none."""
    assert available_bytes() // 2 > summarize_data(shards, "tfrecord").bytes
    assert warm_part(shards).share == 1.0


@given(share=st.floats(0.3, 1.5), form=st.sampled_from(["shards", "files"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_the_part_is_below_the_limit(
    shards: Location, files: Location, share: float, form: str
) -> None:
    """The chosen shards or files take less than the limit; twice as many would not fit."""
    location, reads = (shards, "tfrecord") if form == "shards" else (files, "files")
    full_summary = summarize_data(location, reads)
    limit = int(full_summary.bytes * share)
    part = warm_part(location, limit)
    chosen = summarize_data(part.location, reads)
    assert chosen.bytes < limit
    assert chosen.bytes == sum(path.stat().st_size for path in chosen.files)
    assert set(chosen.files) <= set(full_summary.files)
    assert part.share == pytest.approx(chosen.bytes / full_summary.bytes, abs=0.01)
    assert chosen.classes == full_summary.classes
    if part.location.every > 1:
        paths = full_summary.files[:: part.location.every // 2]
        cached_bytes = sum(-(-path.stat().st_size // PAGE) * PAGE for path in paths)
        assert cached_bytes >= limit * 0.98  # RecordIO may be a little larger than TFRecord.


@pytest.mark.parametrize("form", ["shards", "files"])
def test_the_part_is_the_same_every_time(form: str, request: pytest.FixtureRequest) -> None:
    """The choice is stable when repeated, and with a little more or less free memory."""
    location = request.getfixturevalue(form)
    bytes = summarize_data(location, "tfrecord" if form == "shards" else "files").bytes
    parts = [warm_part(location, int(bytes * share)) for share in (0.8, 0.85, 0.9)]
    assert parts[0].location.every == 2
    assert parts == [parts[0]] * 3
    assert warm_part(parts[0].location, int(bytes * 0.85)) == parts[0]


def test_files_are_spread_over_the_classes(files: Location) -> None:
    """Each class keeps half of its files."""
    part = warm_part(files, int(summarize_data(files, "files").bytes * 0.85))
    all_files, half = Counter[int](), Counter[int]()
    for counts, location in ((all_files, files), (half, part.location)):
        for _, labels in batches("raw", location):
            counts.update(int(label) for label in labels)
    assert set(half) == set(all_files)
    assert all(abs(all_files[label] / 2 - half[label]) <= 1 for label in all_files)


@pytest.mark.parametrize("workers", [0, 2])
def test_raw_reads_these_shards_alone(shards: Location, workers: int) -> None:
    """The images of every second shard are read once each."""
    part = warm_part(shards, int(summarize_data(shards, "tfrecord").bytes * 0.85))
    dataset = dataprep.open(shards.uri)
    expected = [bytes(sample.image) for shard in dataset.shards()[::2] for sample in shard]
    assert images("raw", part.location, workers=workers) == sorted(expected)
    assert len(expected) < len(dataset)


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["torch-iterable", "torch-map"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_torch_reads_these_shards_alone(shards: Location, loader: str, world_size: int) -> None:
    """All ranks together read the images of every second shard once each."""
    part = warm_part(shards, int(summarize_data(shards, "tfrecord").bytes * 0.85))
    dataset = dataprep.open(shards.uri)
    expected = [bytes(sample.image) for shard in dataset.shards()[::2] for sample in shard]
    actual = []
    for rank in range(world_size):
        actual += images(loader, part.location, workers=0, rank=rank, world_size=world_size)
    assert sorted(actual) == sorted(expected)


@pytest.mark.slow
def test_torch_folder_reads_these_files_alone(files: Location) -> None:
    """Every second image file is read once."""
    part = warm_part(files, int(summarize_data(files, "files").bytes * 0.85))
    paths = summarize_data(files, "files").files[::2]
    ordered = sorted(path.read_bytes() for path in paths)
    assert images("torch-folder", part.location, workers=0) == ordered


def test_no_reader_of_a_location_passes_over_the_part(shards: Location, files: Location) -> None:
    """The layout probe and the count of samples read the part, too."""
    for location, accesses in ((shards, ("shards", "records")), (files, ("files",))):
        part = Location(location.uri, location.holds, every=2)
        for access in accesses:
            items = find_items(part, access, max_items=10**6, seed=0)  # type: ignore[arg-type]
            reads = "files" if access == "files" else "tfrecord"
            summary = summarize_data(part, reads)
            paths = {f"{location.uri}/{item.key}" for item in items}
            assert paths == {str(path) for path in summary.files}
            assert sum(item.samples for item in items) == summary.samples


def test_data_on_a_store_are_not_restricted() -> None:
    """Data on a store are not in the page cache, and no request is made for them."""
    location = Location("s3://bucket/prefix", "shards")
    assert warm_part(location, 1).location == location


@pytest.mark.parametrize(
    ("form", "message"),
    [("shards", "the first shard .* make smaller shards"), ("files", "first file")],
)
def test_not_even_one_fits(form: str, message: str, request: pytest.FixtureRequest) -> None:
    """The error says that one shard or file is larger than the limit."""
    with pytest.raises(Unavailable, match=rf"{message}.*free memory"):
        warm_part(request.getfixturevalue(form), 1000)


def test_small_files_take_whole_pages(tmp_path: Path) -> None:
    """Sixteen files of 100 bytes take sixteen pages of memory."""
    for number in range(16):
        folder = tmp_path / f"class-{number % 2}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number:02}.jpg").write_bytes(bytes(100))
    location = Location(str(tmp_path), "files")
    assert warm_part(location, 16 * PAGE + 1).location.every == 1
    part = warm_part(location, 16 * PAGE)
    assert (part.location.every, part.share) == (2, 0.5)


def test_labels_are_those_of_all_data(shards: Location) -> None:
    """A label means the same class in the part and in all data."""
    all_shards, part = open_shards(shards), open_shards(Location(shards.uri, "shards", every=2))
    numbers = np.concatenate([np.array(shard.samples) for shard in all_shards.shards()[::2]])
    assert part.labels.tolist() == all_shards.labels[numbers].tolist()
    assert part.label_space == all_shards.label_space
