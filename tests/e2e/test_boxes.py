"""Bounding boxes and record layouts work from the command line to the records and back."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import dataprep
from dataprep.formats import get_format
from dataprep.formats.example import decode_example
from tests import commandline
from tests.commandline import FORMATS, JOB, comparable, files, in_process, make, objects
from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow

SIDE = 200
OWN_LAYOUT = {
    "jpg": "encoded",
    "cls": "label",
    "box/x0": "bbox/xmin",
    "box/y0": "bbox/ymin",
    "box/x1": "bbox/xmax",
    "box/y1": "bbox/ymax",
    "where": "source",
    "n": "number",
    "h": "height",
}


@pytest.fixture(scope="session")
def annotated(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XML file for every other image: its middle, one swapped box, one outside box.

    Read only.
    """
    folder = tmp_path_factory.mktemp("boxes") / "Annotation"
    for location, image in enumerate(sorted(tree.glob("*/*"))[::2]):
        with Image.open(image) as opened:
            width, height = opened.size
        name = image.parent.name if location % 5 else "Scottish_deerhound"
        middle = (width // 4, height // 4, 3 * width // 4, 3 * height // 4)
        swapped = (*middle[2:], *middle[:2])
        outside = (-9, -9, width + 9, height + 9)
        second_boxes = {1: swapped, 2: outside}
        xml = "<annotation><filename>%s</filename><size>"
        xml += f"<width>{width}</width><height>{height}</height></size>"
        for box in (middle, second_boxes.get(location, middle)):
            values = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
            inner = "".join(f"<{key}>{value}</{key}>" for key, value in values)
            xml += f"<object><name>{name}</name><bndbox>{inner}</bndbox></object>"
        path = folder / image.parent.name / f"{image.stem}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(xml + "</annotation>")
    return folder


def arguments(tree: Path, output: Path, boxes: Path) -> list[str | Path]:
    """The arguments of a job with boxes. Its crop keeps the middle of each image."""
    return [
        *("--source", tree, "--output", output, "--boxes", boxes, *JOB),
        *("--mode", "crop", "--size", str(SIDE), "--quality", "98", "--workers", "2"),
        *("--set", "image.upscale=true"),
    ]


@pytest.fixture(scope="session")
def boxed(tree: Path, annotated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the tree with its boxes. Read only."""
    output = tmp_path_factory.mktemp("boxed") / "out"
    done = in_process("shard", *arguments(tree, output, annotated), code=0)
    assert "60 annotations read" in done.err
    assert "60 of 120 images have 120 boxes" in done.err
    assert "24 boxes of classes that are not in labels.json" in done.err
    return output


def test_boxes_are_moved_with_the_crop(boxed: Path) -> None:
    """Boxes of the middle half of a source are larger in the crop, along the cropped side.

    Tars have the same boxes as Examples, which store them as float32. The manifest counts the
    changes of boxes, and the table has the number of boxes of each sample.
    """
    dataset = dataprep.open(boxed)
    table = dataset.samples.set_index("source")
    samples_with_boxes = [sample for sample in dataset if sample.boxes]
    assert len(samples_with_boxes) == 60
    for sample in samples_with_boxes:
        assert (sample.width, sample.height) == (SIDE, SIDE)
        row = table[table.index.str.endswith(sample.filename.decode())].iloc[0]
        short_side = min(row["source_width"], row["source_height"])
        width_of_box = min(1, row["source_width"] / short_side / 2)
        height_of_box = min(1, row["source_height"] / short_side / 2)
        box = sample.boxes[0]
        assert box.xmax - box.xmin == pytest.approx(width_of_box, abs=0.02)
        assert box.ymax - box.ymin == pytest.approx(height_of_box, abs=0.02)
        assert (box.xmin + box.xmax, box.ymin + box.ymax) == pytest.approx((1, 1), abs=0.02)
        assert {box.label for box in sample.boxes} == {sample.label}
    tars = dataprep.open(boxed, format="webdataset")
    for sample, other in zip(dataset, tars, strict=True):
        assert [*other.boxes] == [pytest.approx(box, abs=1e-6) for box in sample.boxes]
        assert {box.label for box in other.boxes} <= {other.label}
    counts = {k: n for k, n in dataset.manifest.warnings.items() if k.startswith("boxes_")}
    assert counts == {"boxes_mended": 1, "boxes_clipped": 1, "boxes_unknown_class": 12}
    assert sorted(table["boxes"].unique().tolist()) == [0, 2]
    assert [len(sample.boxes) for sample in dataset] == table["boxes"].tolist()


def test_labels_of_boxes_have_the_offset_inside(boxed: Path) -> None:
    """The record stores box labels with the same offset as the label of the image."""
    key = dataprep.open(boxed).manifest.formats["tfrecord"].shards[0].key
    for record in get_format("tfrecord").read((boxed / key).read_bytes(), key):
        features = decode_example(record.payload)
        label = features["image/class/label"]
        assert label.values[0] in range(1, 7)
        assert set(features["image/object/bbox/label"].values) <= {label.values[0]}


def test_verify_counts_boxes(boxed: Path, tmp_path: Path) -> None:
    """A receipt with another number of boxes than its record is reported with the record."""
    for depth in ("--quick", "--deep"):
        in_process("verify", boxed, depth, code=0)
    output = Path(shutil.copytree(boxed, tmp_path / "out"))
    path = min((output / "receipts").iterdir())
    receipt = json.loads(path.read_bytes())
    row = receipt["samples"]["boxes"].index(2)
    receipt["samples"]["boxes"][row] = 1
    path.write_text(json.dumps(receipt))
    done = in_process("verify", output, "--deep", code=1)
    assert f"record {row}, byte " in done.out
    assert "2 boxes, the receipt says 1" in done.out


def test_a_tar_gives_the_same_bytes(
    tree: Path, annotated: Path, boxed: Path, tmp_path: Path
) -> None:
    """Annotations in a tar give the same shards as annotations in a folder."""
    archive = tmp_path / "boxes.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(annotated, "Annotation")
    in_process("shard", *arguments(tree, tmp_path / "out", archive), code=0)
    assert comparable(objects(tmp_path / "out")) == comparable(objects(boxed))


def test_a_killed_job_goes_on_without_its_annotations(
    tree: Path, annotated: Path, boxed: Path, tmp_path: Path, gate: Gate
) -> None:
    """The plan contains the boxes, so a resumed job needs no XML file to make the same bytes."""
    copied = Path(shutil.copytree(annotated, tmp_path / "boxes"))
    output = tmp_path / "out"
    job = arguments(tree, output, copied)
    gated = [f"gated://{output}" if part == output else part for part in job]
    killed = commandline.dataprep(
        "shard", *gated, *commandline.IN_ONE_PROCESS, env=gate.kills_at("receipts/", 2)
    )
    assert killed.code != 0
    assert (output / "train.plan.parquet").exists()
    assert not (output / "train.manifest.json").exists()
    shutil.rmtree(copied)
    done = in_process("shard", *job, code=0)
    assert "resuming" in done.err
    assert comparable(objects(output)) == comparable(objects(boxed))


def test_a_job_with_boxes_is_not_one_without(
    tree: Path, boxed: Path, annotated: Path, tmp_path: Path
) -> None:
    """Resuming with other box options, or without boxes, is refused with the difference."""
    output = Path(shutil.copytree(boxed, tmp_path / "out"))
    before = files(output)
    job = arguments(tree, output, annotated)
    without = [part for part in job if part not in ("--boxes", annotated)]
    for changed in (without, [*job, "--set", "boxes.least_visible=0.5"]):
        done = in_process("shard", *changed, code=2)
        assert "boxes" in done.err
    assert files(output) == before


def test_a_validation_split_has_its_own_boxes(tree: Path, annotated: Path, tmp_path: Path) -> None:
    """Each split has the boxes of its own images."""
    job = [*arguments(tree, tmp_path / "out", annotated), "--validation", "30%"]
    assert in_process("shard", *job).code == 0
    counts = [
        sum(len(sample.boxes) for sample in dataprep.open(tmp_path / "out", split))
        for split in ("train", "validation")
    ]
    assert sum(counts) == 120
    assert min(counts) > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("--boxes", "nowhere"), "no boxes at 'nowhere'"),
        (
            ("--layout", "tfds", "--set", "format=[tfrecord,recordio]"),
            "boxes would be lost: no format of this job keeps them",
        ),
        (("--set", "boxes.key=path"), "no image has boxes at"),
        (
            ("--layout", "imagnet"),
            "--layout imagnet: no layout 'imagnet': use one of imagenet, tfds, or a mapping",
        ),
        (("--set", "layout={x: encodet}"), "no field 'encodet': use one of encoded, label, "),
    ],
)
def test_what_is_refused(
    tree: Path, annotated: Path, tmp_path: Path, changes: tuple[str, ...], message: str
) -> None:
    """A wrong option for boxes is refused in one line before anything is written."""
    moved = Path(shutil.copytree(annotated, tmp_path / "elsewhere" / "x"))
    job = arguments(tree, tmp_path / "out", moved.parent)
    done = in_process("shard", *job, *changes, code=2)
    (complaint,) = [line for line in done.err.splitlines() if line.startswith("dataprep: ")]
    assert message in complaint
    assert not (tmp_path / "out" / "train.job.json").exists()


@pytest.mark.parametrize("location", [".", "tfrecord"], ids=["an output", "bare shards"])
def test_shards_as_a_source_do_not_lose_boxes_in_silence(
    boxed: Path, tmp_path: Path, location: str
) -> None:
    """If a job on shards drops their boxes, it reports this, for its own shards and for others."""
    job: list[str | Path] = ["--source", boxed / location, "--kind", "records", "--size", "64"]
    done = in_process("shard", *job, "--output", tmp_path / "out", code=0)
    assert "bounding boxes, which are not carried over" in done.err


LAYOUTS: Mapping[str, Any] = {"imagenet": "imagenet", "tfds": "tfds", "own": OWN_LAYOUT}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(tree: Path, annotated: Path, tmp_path: Path, name: str) -> None:
    """The reader takes the layout from the manifest: images, labels and its other fields.

    Both styles of torch read it, and read images without decoding the other features.
    """
    values: dict[str, Any] = {
        "source": str(tree),
        "output": str(tmp_path / "out"),
        "layout": LAYOUTS[name],
        "image": {"mode": "short", "size": 96},
        "boxes": None if name == "tfds" else str(annotated),
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(values))
    dataset = dataprep.open(tmp_path / "out")
    assert dataset.manifest.config["layout"] == LAYOUTS[name]
    assert [sample.label for sample in dataset] == dataset.labels.tolist()
    assert dataset[5] == list(dataset)[5]
    assert dataset.manifest.formats["tfrecord"].label_offset == (1 if name == "imagenet" else 0)
    expected = dataset.samples
    if name == "own":
        assert [s.source.decode() for s in dataset] == expected["source"].tolist()
        assert [s.number for s in dataset] == list(range(len(dataset)))
    else:
        names = [s.filename.decode() for s in dataset]
        assert names == expected["source"].str.rpartition("/")[2].tolist()
    if name != "tfds":
        assert [s.height for s in dataset] == expected["height"].tolist()
        assert expected["height"].tolist() != expected["source_height"].tolist()
        assert sum(len(s.boxes) for s in dataset) == 120
    (verification,) = dataprep.verify(tmp_path / "out", depth="deep")
    assert verification.ok, str(verification)
    if find_spec("torch"):
        wanted_pairs = [(bytes(sample.image), sample.label) for sample in dataset]
        batches: Any = dataprep.to_torch(dataset, shuffle=False)
        assert [batches[i] for i in range(len(batches))] == wanted_pairs
        assert list(dataprep.to_torch(dataset, iterable=True, shuffle=False)) == wanted_pairs


def test_labels_of_a_list_reach_its_records(tree: Path, tmp_path: Path) -> None:
    """Of several labels, the first is the class. Values, the list and the table have them all."""
    images = sorted(tree.glob("*/*"))[:30]
    lines = [f"{i}\t{i % 3}\t{i / 4}\t-1.5\t{path}\n" for i, path in enumerate(images)]
    (tmp_path / "x.lst").write_text("".join(lines))
    layout = {"image": "encoded", "label": "label", "labels": "values"}
    more = {"layout": layout, "label_offset": {"recordio": 1, "webdataset": 2}}
    make(tmp_path / "x.lst", tmp_path / "out", kind="listing", **more)
    for name in FORMATS:
        dataset = dataprep.open(tmp_path / "out", format=name)
        assert len(dataset) == 30
        for sample, source, values in zip(
            dataset, dataset.samples["source"], dataset.samples["values"], strict=True
        ):
            position = next(i for i, path in enumerate(images) if path.name in source)
            assert sample.values == (position % 3, position / 4, -1.5)
            assert tuple(values.tolist()) == sample.values
            assert sample.label == position % 3
    (verification,) = dataprep.verify(tmp_path / "out", depth="deep")
    assert verification.ok, str(verification)
    listed = next((tmp_path / "out" / "index" / "recordio").glob("*.lst")).read_text()
    records = dataprep.open(tmp_path / "out", format="recordio")
    by_number = {sample.number: sample for sample in records}
    for number, *labels, _ in (line.split("\t") for line in listed.splitlines()):
        first, *others = by_number[int(number)].values
        assert [float(label) for label in labels] == [first + 1, *others]
