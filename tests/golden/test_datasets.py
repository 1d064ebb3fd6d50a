"""Data sets of earlier versions are opened, verified, resumed, finalised and read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dataprep
from dataprep.checking import verify
from dataprep.checking.inspection import inspect
from dataprep.errors import DatasetError, OutputConflict, RecordError, SchemaTooNew
from dataprep.job.finish import finalize
from dataprep.name_encoding import to_bytes
from tests.golden.make_datasets import CLASSES, CONFIGS, source, unpack

DATASETS = Path(__file__).parent / "datasets"
SETS = sorted(path.parent.relative_to(DATASETS).as_posix() for path in DATASETS.glob("*/*/output"))
RECORDS = {"folders": 12, "listing": 12, "tars": 12}


@pytest.fixture(params=SETS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a data set in ``output``, and of its images in ``source``."""
    name: str = request.param
    folder = tmp_path / name
    shutil.copytree(DATASETS / name, folder)
    unpack(source(folder.name), folder / "source")
    return folder


def content(folder: Path) -> dict[Path, bytes]:
    """The content of every file below a folder, by path."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_are_some_of_each_kind() -> None:
    """There are data sets of the first version, of one without a table digest, and of this one."""
    assert {"pipeline-1/folders", "pipeline-2/tars", "pipeline-4/listing"} <= {*SETS}
    assert {name.partition("/")[2] for name in SETS} == {*CONFIGS}


@pytest.mark.parametrize("form", ["tfrecord", "recordio"])
def test_it_is_read(golden: Path, form: str) -> None:
    """Every sample has its label and the image of its source."""
    files = {name.rpartition(b"/")[2]: name for name in source("folders")}
    with dataprep.open(golden / "output", format=form) as dataset:
        assert len(dataset) == RECORDS[golden.name]
        for number, sample in enumerate(dataset):
            row = dataset.written.iloc[number]
            assert sample.label == dataset.labels[number] == row["label"]
            assert dataset[number] == sample
            assert min(dataset.images[number].shape[:2]) in (12, 18)
            base = to_bytes(dataprep.name_encoding.unescape(row["source"])).rpartition(b"/")[2]
            folder = files[base].partition(b"/")[0].decode()
            numbered = golden.name == "listing"
            names = ["0", "1", "2"] if numbered else sorted(CLASSES)
            synset = dataset.label_space.labels[sample.label].synset
            assert synset == names[sample.label]
            assert numbered or synset == folder


def test_several_labels_and_boxes_are_kept() -> None:
    """The labels of the listing and the boxes of the table are read back."""
    with dataprep.open(DATASETS / "pipeline-4/listing/output") as dataset:
        values = np.array([sample.values for sample in dataset])
        assert values.shape == (12, 3)
        assert set(values[:, 1]) == {0.5}
        assert sorted(values[:, 2]) == list(range(-11, 1))
    with dataprep.open(DATASETS / "pipeline-4/tars/output") as dataset:
        assert sum(len(sample.boxes) for sample in dataset) == 9


def test_it_is_verified_and_inspected(golden: Path) -> None:
    """--deep finds no fault in any split, a record is shown, and nothing is written."""
    before = content(golden)
    verification = verify(golden / "output", depth="deep")
    assert [entry.faults for entry in verification] == [()] * len(verification)
    assert "train" in inspect(golden / "output").text
    assert inspect(golden / "output", record=0).ok
    assert content(golden) == before


def test_it_is_finalised(golden: Path) -> None:
    """A complete split stays as it is. Without its manifest, an equal one is written."""
    output = golden / "output"
    before = json.loads((output / "train.manifest.json").read_bytes())
    lines: list[str] = []
    finalize(output, "train", max_failures="50%", note=lines.append)
    assert "complete already" in lines[0]
    (output / "train.manifest.json").unlink()
    finalize(output, "train", max_failures="50%")
    rebuilt = json.loads((output / "train.manifest.json").read_bytes())
    keys = ("split", "fingerprint", "config", "formats", "samples")
    assert {key: rebuilt[key] for key in keys} == {key: before[key] for key in keys}
    assert all(not verification.faults for verification in verify(output))


def test_a_later_version_says_why_it_does_not_resume(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other libraries would make other bytes: the refusal names them, and nothing is written."""
    before = content(golden)
    monkeypatch.chdir(golden / "source")
    versions = json.loads((golden / "output/train.job.json").read_bytes())["versions"]
    if versions == dict(dataprep.output.versions.versions_that_determine_bytes()):
        resume(golden.name)
    else:
        with pytest.raises(OutputConflict, match=r"pipeline|simplejpeg|opencv|pillow"):
            resume(golden.name)
    assert content(golden) == before


def test_it_is_resumed_by_its_own_libraries(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the libraries of that time, a resumed job has nothing to do and changes nothing."""
    before = content(golden)
    monkeypatch.chdir(golden / "source")
    versions = json.loads((golden / "output/train.job.json").read_bytes())["versions"]

    def versions_of_then(*, same_everywhere: bool = True) -> tuple[tuple[str, str], ...]:
        assert same_everywhere
        return tuple(versions.items())

    for module in ("resume", "prepare"):
        monkeypatch.setattr(
            f"dataprep.job.{module}.versions_that_determine_bytes", versions_of_then, raising=False
        )
    filters = json.loads((golden / "output/train.job.json").read_bytes())["config"]["image"]
    if filters.get("filter", "bicubic") != "bicubic":
        # That filter is not installed any more, and the plan that was made with it does not change.
        with pytest.raises(OutputConflict, match=r'image\.filter: "gaussian" before'):
            resume(golden.name)
    else:
        resume(golden.name)
    assert content(golden) == before


def resume(name: str) -> None:
    """Run ``dataprep shard`` with the config of the data set."""
    from dataprep.config.shard_config import load

    config = CONFIGS[name]
    options: dict[str, object] = {"source": {"folders": ".", "listing": "list.csv"}.get(name)}
    options |= {"output": "../output", "format": ("tfrecord", "recordio")}
    options["source"] = options["source"] or "train.tar"
    if "--size" in config:
        options |= {"image.size": 12}
    if name == "folders":
        options |= {"validation": "25%", "max_failures": "50%"}
    if name == "listing":
        layout = {"my/image": "encoded", "my/label": "label", "my/all": "values"}
        options |= {"kind": "listing", "listing.labels": ["class", "x", "y"]}
        options["layout"] = {**layout, "my/name": "source"}
    if name == "tars":
        options |= {"kind": "ilsvrc", "boxes": {"source": "boxes.csv", "units": "pixels"}}
    dataprep.shard(load(None, options))


KINDS: dict[str, Callable[[Path], object]] = {
    "train.manifest.json": lambda output: dataprep.open(output),
    "train.job.json": lambda output: finalize(output, "train"),
    "labels.json": lambda output: dataprep.open(output).label_space,
    "receipts/train-00000-of-00001.json": lambda output: without_manifest(output),
}


def without_manifest(output: Path) -> None:
    """An output without its manifest, which can be built again from the receipts."""
    (output / "train.manifest.json").unlink()
    finalize(output, "train", max_failures="50%")


@pytest.mark.parametrize("key", KINDS)
def test_a_newer_schema_is_refused_by_name(tmp_path: Path, key: str) -> None:
    """The refusal of each kind of file names the file, both schema numbers and what to do."""
    output = tmp_path / "output"
    shutil.copytree(DATASETS / "pipeline-4/folders/output", output)
    path = output / key
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "schema": 9, "novelty": 1}))
    before = content(output)
    with pytest.raises(
        SchemaTooNew, match=rf"{key}: schema 9; this version reads up to 1: upgrade dataprep"
    ):
        KINDS[key](output)
    before.pop(output / "train.manifest.json", None)
    assert content(output).items() >= before.items()


@pytest.mark.parametrize("schema", [0, -1, 1.5, True, "1", None, [1], 10**400])
def test_what_is_no_number_of_a_schema_is_refused(tmp_path: Path, schema: object) -> None:
    """A schema that is no number is refused as a damaged file, not as a newer one."""
    output = tmp_path / "output"
    shutil.copytree(DATASETS / "pipeline-4/folders/output", output)
    path = output / "train.manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "schema": schema}))
    with pytest.raises((DatasetError, RecordError), match=r"train\.manifest\.json"):
        dataprep.open(output)
