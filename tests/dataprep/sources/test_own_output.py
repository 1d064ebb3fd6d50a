"""Tests of dataprep.sources.own_output, through the source that uses it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep.errors import SourceError
from dataprep.sources import Listing, open_source
from dataprep.sources import records as records_module
from dataprep.sources.options import RecordsOptions
from dataprep.sources.records import RecordsSource


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn tree resized, in both formats, a fifth held out. Read only."""
    output = tmp_path_factory.mktemp("made") / "out"
    config = {
        "source": str(tree),
        "output": str(output),
        "format": ["tfrecord", "recordio"],
        "image": {"size": 48},
        "validation": "20%",
        "shard_size": "1.2MB",
        "dask": {"workers": 1, "processes": False},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(config))
    return output


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may damage."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def source_of(output: Path, **options: Any) -> RecordsSource:
    """An output as a source."""
    found = open_source(str(output), "records", None, RecordsOptions(**options))
    assert isinstance(found, RecordsSource)
    return found


def images(source: RecordsSource, listing: Listing) -> dict[str, bytes]:
    """Every image by its name."""
    return {n: source.read(listing.located(row)) for row, n in enumerate(listing.names)}


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
@pytest.mark.parametrize("split", ["train", "validation"])
def test_an_output_is_read_by_its_tables(
    made: Path, form: str, split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, classes and images are those of the data set, and no shard is gone through."""
    monkeypatch.setattr(records_module, "scan", None)
    source = source_of(made, split=split, format=form)
    listing = source.list()
    data = dataprep.open(made, split, format=form)
    written = data.samples[data.samples["status"] == "written"]
    assert images(source, listing) == {
        name: bytes(sample.image) for name, sample in zip(written["source"], data, strict=True)
    }
    assert listing.label_space == data.label_space
    groups = dict(zip(written["source"], written["synset"], strict=True))
    assert list(listing.classes) == [groups[name] for name in listing.names]


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_an_output_of_before_is_gone_through_once(copied: Path, form: str) -> None:
    """Tables that do not tell how large images are lead to the same listing."""
    expected = source_of(copied, format=form).list()
    path = copied / "train.samples.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["image_bytes"]), path)
    manifest = copied / "train.manifest.json"
    content = json.loads(manifest.read_text())
    del content["table"]
    manifest.write_text(json.dumps(content))
    found = source_of(copied, format=form).list()
    assert found.digest() == expected.digest()
    assert found.sizes.min() > 0


def test_a_truncated_shard_fails_what_is_cut(copied: Path) -> None:
    """Samples before the cut are read, those beyond it fail by the shard's name."""
    shard = copied / "tfrecord/train-00000-of-00001"
    whole = source_of(copied).list()
    cut = int(np.sort(whole.offsets)[10]) + 5
    shard.write_bytes(shard.read_bytes()[:cut])
    source = source_of(copied)
    listing = source.list()
    assert len(listing) - len(listing.problems) == 10
    for row in range(len(listing)):
        if row not in listing.problems:
            assert len(source.read(listing.located(row))) == listing.sizes[row]
    assert {problem.reason for problem in listing.problems.values()} == {
        "tfrecord/train-00000-of-00001 ends before its record"
    }


def test_a_missing_shard_is_refused(copied: Path) -> None:
    """Its name is told, before anything is read."""
    (copied / "tfrecord/train-00000-of-00001").unlink()
    with pytest.raises(SourceError, match="lacks tfrecord/train-00000-of-00001"):
        source_of(copied).list()
    assert len(source_of(copied, format="recordio").list()) > 0


def test_a_split_that_is_not_there_is_refused(made: Path) -> None:
    """Those that are there are named."""
    with pytest.raises(SourceError, match=r"no split 'test': it has train, validation"):
        source_of(made, split="test").list()


def test_an_output_that_is_not_complete_is_refused(copied: Path) -> None:
    """Its shards are no data set yet."""
    (copied / "train.manifest.json").unlink()
    (copied / "validation.manifest.json").unlink()
    with pytest.raises(SourceError, match="not complete: split 'train' has no manifest"):
        source_of(copied).list()


@pytest.mark.parametrize("name", ["labels.json", "train.samples.parquet", "train.plan.parquet"])
def test_tables_that_cannot_be_read_are_an_error(copied: Path, name: str) -> None:
    """The split is named, and what to do."""
    (copied / name).write_bytes(b"nonsense")
    with pytest.raises(SourceError, match="tables of split 'train' cannot be read"):
        source_of(copied).list()


def test_all_labels_come_from_the_plan(copied: Path) -> None:
    """Where samples had several labels when they were planned, they have them again."""
    path = copied / "train.plan.parquet"
    table = pq.read_table(path)
    values = [[float(label), 0.25] for label in table["label"].to_pylist()]
    sink = io.BytesIO()
    pq.write_table(table.append_column("values", [values]), sink)
    path.write_bytes(sink.getvalue())
    listing = source_of(copied).list()
    assert listing.values is not None
    assert listing.label_space is not None
    index = listing.label_space.index
    assert listing.values[:, 0].tolist() == [index[group] for group in listing.classes]
    assert set(listing.values[:, 1].tolist()) == {0.25}
