"""Images without classes can be sharded, resumed, verified, inspected and read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep.errors import ConfigError, OutputConflict
from dataprep.formats.shard_reader import ShardReader
from dataprep.stores import open_store
from iobench.clock import SystemClock
from iobench.loaders.raw import RawLoader
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location
from tests.commandline import FORMATS, files, in_process
from tests.tars import tar_of

CLASS_FEATURES = {
    *("image/class/label", "image/class/synset", "image/class/text", "image/object/bbox/label"),
}


@pytest.fixture(scope="module")
def contest(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images in one folder, like the ``test/`` folder of a contest."""
    folder = tmp_path_factory.mktemp("contest") / "test"
    folder.mkdir()
    for number, path in enumerate(sorted(tree.rglob("*.JPEG"))[:12]):
        shutil.copy(path, folder / f"{number:03}.jpg")
    return folder


def config(source: Path, output: Path, **changes: Any) -> dataprep.ShardConfig:
    """The config of an unlabelled job in both formats, in this process."""
    settings = {
        "source": source,
        "output": output,
        "kind": "flat",
        "split": "test",
        "format": FORMATS,
        "unlabelled": True,
        "dask": {"workers": 1, "processes": False},
        **changes,
    }
    return dataprep.ShardConfig.model_validate(settings)


@pytest.fixture(scope="module")
def output(contest: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the unlabelled job. Read only."""
    folder = tmp_path_factory.mktemp("unlabelled") / "out"
    dataprep.shard(config(contest, folder))
    return folder


def test_the_table_has_the_label_minus_one(output: Path) -> None:
    """Each sample has the label -1, not null, and no class."""
    table = pq.read_table(output / "test.samples.parquet")
    assert table["label"].to_pylist() == [-1] * 12
    assert table["synset"].null_count == 12
    assert json.loads((output / "labels.json").read_text()) == {"schema": 1, "classes": []}


def test_examples_have_no_class_fields(output: Path) -> None:
    """Examples have all features of the layout except those of the class."""
    store = open_store(output)
    (info,) = store.list("tfrecord/")
    for record in ShardReader(store, info):
        assert CLASS_FEATURES.isdisjoint(record.features)
        assert {"image/encoded", "image/filename", "image/width"} <= record.features.keys()


def test_image_records_have_minus_one(output: Path) -> None:
    """Image records and the list beside them have the label -1."""
    store = open_store(output)
    (info,) = store.list("recordio/")
    assert [record.features["label"].values for record in ShardReader(store, info)] == [
        (-1.0,)
    ] * 12
    (listed,) = (output / "index" / "recordio").glob("*.lst")
    assert {line.split("\t")[1] for line in listed.read_text().splitlines()} == {"-1.000000"}


@pytest.mark.parametrize("name", FORMATS)
def test_readers_give_minus_one(output: Path, name: str) -> None:
    """Samples have the label -1 by number, in order and as an array, in all formats."""
    dataset = dataprep.open(output, "test", format=name)
    assert [sample.label for sample in dataset] == [-1] * 12
    assert dataset[3].label == -1
    assert dataset.labels.tolist() == [-1] * 12
    assert dataset.label_space.labels == ()


def test_verify_finds_nothing(output: Path) -> None:
    """verify finds no fault at any depth."""
    for depth in ("--quick", "--deep"):
        in_process("verify", output, depth, code=0)


def test_inspect_shows_it(output: Path, tmp_path: Path) -> None:
    """An overview, one record, a contact sheet and a page say that there are no classes."""
    assert "no labels" in in_process("inspect", output, code=0).out
    record = in_process("inspect", output, "--split", "test", "--record", "2", "--json", code=0)
    assert record.one_object["known"]["label"] == -1
    sheet = tmp_path / "sheet.png"
    in_process("inspect", output, "--split", "test", "--contact-sheet", sheet, code=0)
    in_process("inspect", output, "--html", tmp_path / "page.html", code=0)
    assert "The samples have no classes: each label is -1." in (tmp_path / "page.html").read_text()


def test_the_command_line_has_the_option(contest: Path, tmp_path: Path) -> None:
    """``--kind flat --unlabelled`` is enough, and plan shows that there are no labels."""
    job = ("--source", contest, "--output", tmp_path / "out", "--kind", "flat", "--unlabelled")
    assert "no labels" in in_process("plan", *job, code=0).out
    in_process("shard", *job, "--set", "dask.processes=false", code=0)
    assert dataprep.open(tmp_path / "out").labels.tolist() == [-1] * 12


def test_it_resumes_and_parts_make_the_same(contest: Path, output: Path, tmp_path: Path) -> None:
    """A second run keeps every shard, and two parts and finalize make the same files."""
    (again,) = dataprep.shard(config(contest, output))
    assert again.made_shards == 0
    job = ("--source", contest, "--output", tmp_path / "parts", "--kind", "flat", "--unlabelled")
    formats = [option for name in FORMATS for option in ("--format", name)]
    for part in ("0/2", "1/2"):
        arguments = ("--split", "test", "--part", part, "--set", "dask.processes=false")
        in_process("shard", *job, *formats, *arguments, code=0)
    in_process("finalize", tmp_path / "parts", code=0)
    assert files(tmp_path / "parts") == files(output)
    for name in files(output):
        if name.startswith(("tfrecord/", "recordio/", "webdataset/", "index/")) or name.endswith(
            "samples.parquet"
        ):
            assert (tmp_path / "parts" / name).read_bytes() == (output / name).read_bytes()


def test_a_labelled_job_is_not_resumed_as_unlabelled(contest: Path, output: Path) -> None:
    """The setting belongs to the job, and the refusal names it."""
    truth = output.parent / "truth.csv"
    truth.write_text("".join(f"{number:03}.jpg,cat\n" for number in range(12)))
    labelled = {"unlabelled": False, "labels": {"ground_truth": str(truth)}}
    with pytest.raises(OutputConflict, match=r"unlabelled: true before, nothing now"):
        dataprep.shard(config(contest, output, **labelled))


def test_it_joins_an_output_with_classes(tree: Path, contest: Path, tmp_path: Path) -> None:
    """Beside a split with classes it changes no label, and no TFRecord offset applies to it."""
    dataprep.shard(
        config(tree, tmp_path / "out", kind="imagefolder", split="train", unlabelled=False)
    )
    labels = (tmp_path / "out" / "labels.json").read_bytes()
    (summary,) = dataprep.shard(config(contest, tmp_path / "out"))
    assert summary.understood is not None
    assert summary.understood.line == f"{contest}/: a folder of images, 12 images; no labels"
    assert (tmp_path / "out" / "labels.json").read_bytes() == labels
    for name in FORMATS:
        dataset = dataprep.open(tmp_path / "out", "test", format=name)
        assert {sample.label for sample in dataset} == {-1}
    in_process("verify", tmp_path / "out", code=0)
    in_process("inspect", tmp_path / "out", "--html", tmp_path / "page.html", code=0)


def test_classes_that_are_listed_are_no_labels(contest: Path, tmp_path: Path) -> None:
    """``labels.classes`` counts for a later split, and the first line and the JSON say so."""
    (tmp_path / "classes.txt").write_text("10\n9\n")
    job = ("--source", contest, "--output", tmp_path / "out", "--kind", "flat", "--unlabelled")
    listed = ("--set", f"labels.classes={tmp_path / 'classes.txt'}")
    line = f"{contest}/: a folder of images, 12 images; no labels"
    assert in_process("plan", *job, *listed, code=0).out.splitlines()[0] == line
    facts = in_process("plan", *job, *listed, "--json", code=0).one_object["understood"]
    assert (facts["classes"], facts["images"], facts["notes"]) == (0, 12, [])
    done = in_process("shard", *job, *listed, "--set", "dask.processes=false", code=0)
    assert done.out.splitlines()[0] == line


def test_a_split_with_classes_cannot_come_after_it(
    tree: Path, contest: Path, output: Path, tmp_path: Path
) -> None:
    """An unlabelled output has no classes, and the refusal names the right order of splits."""
    shutil.copytree(output, tmp_path / "out")
    train = config(tree, tmp_path / "out", kind="imagefolder", split="train", unlabelled=False)
    with pytest.raises(OutputConflict, match="make the split with classes first"):
        dataprep.shard(train)


def test_it_has_a_validation_split(contest: Path, tmp_path: Path) -> None:
    """The validation share is a share of all images, as if they had one class."""
    splits = dataprep.shard(config(contest, tmp_path / "out", split="all", validation="25%"))
    assert [summary.manifest.samples.written for summary in splits] == [9, 3]


@pytest.mark.parametrize("kind", ["ilsvrc", "records", "recordio scanned", "tfrecord scanned"])
def test_other_kinds_of_source_without_classes(
    contest: Path, output: Path, tmp_path: Path, kind: str
) -> None:
    """A flat tar and unlabelled shards give the same samples again."""
    source = output
    section: dict[str, Any] = {"records": {"split": "test"}}
    if kind == "ilsvrc":
        source = tmp_path / "test.tar"
        source.write_bytes(tar_of({path.name: path.read_bytes() for path in contest.iterdir()}))
        section = {}
    elif kind.endswith("scanned"):
        source, section = output / kind.split()[0], {}
    kind = "ilsvrc" if kind == "ilsvrc" else "records"
    dataprep.shard(config(source, tmp_path / "out", kind=kind, **section))
    dataset = dataprep.open(tmp_path / "out", "test")
    assert dataset.labels.tolist() == [-1] * 12
    original = {sample.image for sample in dataprep.open(output, "test")}
    assert {sample.image for sample in dataset} == original
    with pytest.raises(ConfigError, match="or --unlabelled for images without classes"):
        dataprep.shard(config(source, tmp_path / "b", kind=kind, unlabelled=False, **section))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "imagefolder"}, r"gives its images classes, such as 'n\d+'.*--kind flat"),
        ({"labels": {"ground_truth": "truth.csv"}}, "excludes labels.ground_truth"),
        ({"labels": {"map": "truth.csv"}}, "excludes labels.map"),
        ({"label_offset": {"recordio": 1}}, "excludes label_offset"),
        ({"boxes": "boxes.csv"}, "excludes boxes"),
    ],
)
def test_classes_are_refused(
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    message: str,
) -> None:
    """A source or setting with classes is refused, and nothing is written."""
    (tmp_path / "truth.csv").write_text("a,b\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        dataprep.shard(config(tree, tmp_path / "out", **changes))
    assert not (tmp_path / "out").exists()


def test_loaders_of_the_benchmark_read_it(output: Path) -> None:
    """Batches have the label -1."""
    location = Location(os.fspath(output), "shards", split="test")
    loader = RawLoader(location, LoaderSettings(batch_size=5), SystemClock())
    labels = [batch.labels.tolist() for batch in loader.epoch(0)]
    loader.close()
    assert [label for batch in labels for label in batch] == [-1] * 12


@pytest.mark.frameworks
def test_a_framework_gets_minus_one(output: Path) -> None:
    """Samples in torch have the label -1."""
    pytest.importorskip("torch")
    samples = dataprep.to_torch(dataprep.open(output, "test"), iterable=True)
    assert [int(label) for _, label in samples] == [-1] * 12
