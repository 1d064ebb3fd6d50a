"""The first line of a summary says as what the source was understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import dataprep
from tests.commandline import in_process
from tests.small_photos import jpeg, photos
from tests.tars import tar_of, zipped

SYNSETS = ("n01440764", "n02123045", "n02124075", "n03445777")


def job(source: Path, output: Path, *options: str) -> Sequence[str]:
    """The options of a job in this process."""
    return ["--source", str(source), "--output", str(output), *options]


def test_the_summaries_begin_with_what_was_understood(tmp_path: Path) -> None:
    """``shard`` and ``plan`` begin with kind, classes, images and labels, also in their JSON."""
    source = tmp_path / "photos"
    photos(source, {"cat": 2, "dog": 3, "owl": 1})
    line = f"{source}/: class folders, 3 classes, 6 images; labels 0 to 2 in the order of names"
    facts = {
        "source": f"{source}/",
        "kind": "class folders",
        "classes": 3,
        "images": 6,
        "label_order": "in the order of names",
        "notes": [],
    }
    arguments = job(source, tmp_path / "out")
    assert in_process("plan", *arguments, code=0).out.splitlines()[0] == line
    assert in_process("plan", *arguments, "--json", code=0).one_object["understood"] == facts
    first = in_process("shard", *arguments, code=0)
    assert first.out.splitlines()[0] == line
    assert line in first.err
    again = in_process("shard", *arguments, code=0)
    assert again.out.splitlines()[0] == line
    assert in_process("shard", *arguments, "--json", code=0).one_object["understood"] == facts


def test_one_line_for_all_splits(tmp_path: Path) -> None:
    """A job with a validation split has one such line, and a part of a job has the same."""
    source = tmp_path / "photos"
    photos(source, {"cat": 4, "dog": 4})
    line = f"{source}/: class folders, 2 classes, 8 images; labels 0 to 1 in the order of names"
    output = in_process(
        "shard", *job(source, tmp_path / "out"), "--validation", "25%", code=0
    ).out.splitlines()
    assert output[0] == line
    assert output.count(line) == 1
    part = ("shard", *job(source, tmp_path / "parts"), "--part", "0/2")
    assert in_process(*part, code=0).out.splitlines()[0] == line
    assert in_process(*part, "--json", code=0).one_object["understood"]["images"] == 8


@pytest.mark.parametrize(
    ("rows", "options", "order"),
    [
        ("b.jpg,zebra\na.jpg,ant\n", (), "in the order of names"),
        ("a.jpg,10\nb.jpg,9\n", (), "in numeric order"),
        ("a.jpg,ant\nb.jpg,zebra\n", ("classes",), "as labels.classes lists them"),
    ],
)
def test_the_order_of_labels_is_said(
    tmp_path: Path, rows: str, options: Sequence[str], order: str
) -> None:
    """Names, numbers and a list of classes each have their own description of the order."""
    photos(tmp_path, {".": 0})
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(jpeg(len(name)))
    (tmp_path / "list.csv").write_text(f"path,label\n{rows}")
    (tmp_path / "classes.txt").write_text("zebra\nant\n")
    settings = [f"--set=labels.{option}={tmp_path}/{option}.txt" for option in options]
    arguments = job(tmp_path / "list.csv", tmp_path / "out", "--kind", "listing", *settings)
    first = in_process("plan", *arguments, code=0).out.splitlines()[0]
    assert first == (f"{tmp_path}/list.csv: a listing, 2 classes, 2 images; labels 0 to 1 {order}")


def test_synsets_in_the_names_of_members_are_the_classes(tmp_path: Path) -> None:
    """Names of images with synsets give the classes, because ``train_images_N.tar.gz`` has none."""
    source = tmp_path / "archives"
    source.mkdir()
    for number in range(3):
        members = {
            f"{synset}_{number}_{synset}.JPEG": jpeg(10 * number + row)
            for row, synset in enumerate(SYNSETS)
        }
        (source / f"train_images_{number}.tar.gz").write_bytes(zipped(tar_of(members)))
    done = in_process("shard", *job(source, tmp_path / "out", "--kind", "ilsvrc"), code=0)
    message = f"{source}/: archives, 4 classes, 12 images; labels 0 to 3 in the order of names"
    assert done.out.splitlines()[0] == message
    dataset = dataprep.open(tmp_path / "out")
    assert tuple(label.synset for label in dataset.label_space.labels) == SYNSETS
    assert Counter(dataset[number].label for number in range(12)) == dict.fromkeys(range(4), 3)


def test_archives_of_several_classes_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    """The message names an archive, its folders and the key to set, and nothing is written."""
    source = tmp_path / "archives"
    source.mkdir()
    for number, pets in enumerate((("cat", "dog"), ("owl", "rat"))):
        members = {f"{pet}/{number}.jpg": jpeg(number) for pet in pets}
        (source / f"pets-{'ab'[number]}.tar").write_bytes(tar_of(members))
    done = in_process("shard", *job(source, tmp_path / "out", "--kind", "ilsvrc"), code=2)
    assert "pets-a.tar has several folders (cat, dog)" in done.err
    assert "--set ilsvrc.classes=folders" in done.err
    assert not (tmp_path / "out").exists()


def test_a_list_of_im2rec_for_detection_is_refused(tmp_path: Path) -> None:
    """Values of a list for detection become no classes. The list is refused, nothing is written."""
    photos(tmp_path / "img", {".": 4})
    lines = []
    for number in range(4):
        # The header has 4 values (its width, the width of a box, the image's size). A box follows.
        values = [4, 5, 120, 90, number % 2, 0.1, 0.2, 0.6, 0.7]
        lines.append("\t".join([str(number), *map(str, values), f"img/{number}.jpg"]))
    listing = tmp_path / "boxes.lst"
    listing.write_text("\n".join(lines) + "\n")
    before = listing.read_bytes()
    done = in_process("shard", *job(listing, tmp_path / "out", "--kind", "listing"), code=2)
    (complaint,) = done.complaints
    assert "im2rec's list for detection, not for classes" in complaint
    assert "a header of 4 values, then boxes of 5 values each" in complaint
    assert listing.read_bytes() == before
    assert not (tmp_path / "out").exists()
