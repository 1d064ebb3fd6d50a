"""The summary of a location: its samples, classes and files, before any sample is read."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import dataprep
from dataprep.errors import DatasetError, PermissionRefused, SourceError
from dataprep.sources import open_source
from iobench.clock import SystemClock
from iobench.data.data_summary import DataSummary, check_data_form, image_files, summarize_data
from iobench.data.making import DataMaker
from iobench.data.settings import DataSettings
from iobench.errors import Unavailable
from iobench.loaders.dali import DaliLoader
from iobench.loaders.settings import LoaderSettings
from iobench.probes import layout
from iobench.probes.layout import find_items, open_reader
from iobench.results.trial import Context, Location, TrialSpec


@pytest.fixture(scope="module")
def maker(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> DataMaker:
    """Return a maker of shards and files of the drawn tree."""
    folder = str(tmp_path_factory.mktemp("stored"))
    settings = DataSettings(source=str(tree), size=64, folder=folder)

    return DataMaker(settings, lambda: nullcontext(Location("", "empty")), lambda note: None)


@pytest.mark.parametrize("reads", ["tfrecord", "recordio"])
def test_shards(maker: DataMaker, reads: str) -> None:
    """The summary has samples, classes, and the files of that format with their sizes."""
    summary = summarize_data(maker.location("shards@disk"), reads)
    assert (summary.samples, summary.classes) == (120, 6)
    assert summary.files
    assert all(reads in str(path) for path in summary.files)
    assert summary.bytes == sum(path.stat().st_size for path in summary.files)
    assert summary.sample_bytes == summary.bytes / 120


def test_files(maker: DataMaker) -> None:
    """Each sample is one file."""
    summary = summarize_data(maker.location("files@disk"), "files")
    assert (summary.samples, summary.classes, len(summary.files)) == (120, 6, 120)
    assert summary.bytes == sum(path.stat().st_size for path in summary.files)


def test_only_images_are_samples(tree: Path, tmp_path: Path) -> None:
    """Notes and lists beside the images are neither read nor counted."""
    root = Path(shutil.copytree(tree, tmp_path / "photos"))
    for path in [next(root.iterdir()) / "notes.txt", root / "labels.csv"]:
        path.write_text("not an image")
    location = Location(str(root), "files")
    summary = summarize_data(location, "files")
    images_only = summarize_data(Location(str(tree), "files"), "files")
    assert summary.samples == images_only.samples
    assert summary.bytes == images_only.bytes
    assert summary.classes == images_only.classes
    suffixes = {path.suffix for path in images_only.files}
    assert {path.suffix for path in summary.files} == suffixes


def summarise_shards(location: Location) -> None:
    """Summarise the shards."""
    summarize_data(location, "tfrecord")


def run_layout_trial(location: Location) -> None:
    """Run a trial of the layout probe on the shards."""
    params = {"data": "it", "access": "shards", "cache": "cold", "parallelism": 1, "seconds": 60.0}
    context = Context({"it": location}, SystemClock(), lambda done, unit: None)
    layout.run(TrialSpec("layout", params), context)


def read_as_layout_probe(location: Location) -> None:
    """Read one shard as a process of the layout probe does."""
    (first, *_) = find_items(location, "shards", max_items=1, seed=0)
    with open_reader(location, first) as read:
        read(first)


def begin_dali_epoch(location: Location) -> None:
    """Begin an epoch of DALI's loader, with a replacement for DALI itself."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("dali", "dali.fn", "dali.tfrecord", "dali.plugin.pytorch"):
            patch.setitem(sys.modules, f"nvidia.{name}", MagicMock())
        settings = LoaderSettings(shuffle=False)
        next(DaliLoader(location, settings, SystemClock()).epoch(0), None)


READERS = (summarise_shards, run_layout_trial, read_as_layout_probe, begin_dali_epoch)


@pytest.mark.parametrize("key", ["../secret/{}", "tfrecord/../../secret/{}"])
@pytest.mark.parametrize("read", READERS)
def test_a_key_that_leads_out_of_the_output_is_refused(
    maker: DataMaker, tmp_path: Path, read: Callable[[Location], None], key: str
) -> None:
    """A manifest with a key outside the data set is refused, since anybody may have written it."""
    copy = Path(shutil.copytree(maker.location("shards@disk").uri, tmp_path / "out"))
    manifest = copy / "train.manifest.json"
    content = json.loads(manifest.read_text())
    first = content["formats"]["tfrecord"]["shards"][0]
    (tmp_path / "secret").mkdir()
    name = first["key"].rpartition("/")[2]
    (copy / first["key"]).rename(tmp_path / "secret" / name)
    first["key"] = key.format(name)
    manifest.write_text(json.dumps(content))
    with pytest.raises(PermissionRefused, match="would leave"):
        read(Location(str(copy), "shards"))


@pytest.mark.parametrize(("name", "reads"), [("files@disk", "tfrecord"), ("shards@disk", "files")])
def test_another_form_is_not_available(maker: DataMaker, name: str, reads: str) -> None:
    """The message names the form that the loader reads and that of the data."""
    with pytest.raises(Unavailable, match=r"this loader reads .*; these data are"):
        summarize_data(maker.location(name), reads)


@pytest.mark.parametrize("holds", ["shards", "files"])
def test_an_empty_location(tmp_path: Path, holds: str) -> None:
    """A missing folder is an error."""
    reads = "files" if holds == "files" else "tfrecord"
    location = Location(str(tmp_path / "none"), holds)  # type: ignore[arg-type]
    with pytest.raises((DatasetError, SourceError)):
        summarize_data(location, reads)


def test_forms_that_fit_pass() -> None:
    """Every record format is read from shards."""
    check_data_form(Location("x", "shards"), "recordio")
    check_data_form(Location("x", "files"), "files")


def test_no_samples_have_no_size() -> None:
    """A summary without samples divides by nothing."""
    assert DataSummary(0, 0, 0, ()).sample_bytes == 0


def test_labels_are_those_of_the_shards(tree: Path, tmp_path: Path) -> None:
    """A file has the label that sharding its folder gives it; other files have none."""
    root = Path(shutil.copytree(tree, tmp_path / "photos"))
    for path in [next(root.iterdir()) / "notes.txt", root / "labels.csv", root / "README"]:
        path.write_text("not an image")
    files = image_files(open_source(str(root)).list())
    output = tmp_path / "out"
    config = {"source": str(root), "output": str(output)}
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    dataset = dataprep.open(output)
    table = dataset.samples[dataset.samples["status"] == "written"]
    labels_of_files = dict(zip(files.names, files.labels.tolist(), strict=True))
    labels_of_samples = dict(zip(table["source"], table["label"], strict=True))
    assert labels_of_files == labels_of_samples
    assert files.classes == len(dataset.label_space.labels)


def test_sizes_are_those_of_the_files(tree: Path) -> None:
    """Sizes are in the order of the names."""
    files = image_files(open_source(str(tree)).list())
    assert files.sizes.tolist() == [(tree / name).stat().st_size for name in files.names]
