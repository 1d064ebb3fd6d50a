"""The first line of a summary says what the source was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commandline import in_process
from tests.small_photos import jpeg, photos


def job(source: Path, output: Path, *options: str) -> Sequence[str]:
    """The options of a job in this process."""
    return ["--source", str(source), "--output", str(output), *options]


def test_the_summaries_begin_with_what_was_understood(tmp_path: Path) -> None:
    """``shard`` and ``plan`` name kind, classes, images and labels, first and in the JSON."""
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
    """A job with a validation split has read one source; a part of a job says the same."""
    source = tmp_path / "photos"
    photos(source, {"cat": 4, "dog": 4})
    line = f"{source}/: class folders, 2 classes, 8 images; labels 0 to 1 in the order of names"
    whole = in_process(
        "shard", *job(source, tmp_path / "out"), "--validation", "25%", code=0
    ).out.splitlines()
    assert whole[0] == line
    assert whole.count(line) == 1
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
    """Names, numbers and a list of classes each have their own words."""
    photos(tmp_path, {".": 0})
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(jpeg(len(name)))
    (tmp_path / "list.csv").write_text(f"path,label\n{rows}")
    (tmp_path / "classes.txt").write_text("zebra\nant\n")
    settings = [f"--set=labels.{option}={tmp_path}/{option}.txt" for option in options]
    arguments = job(tmp_path / "list.csv", tmp_path / "out", "--kind", "listing", *settings)
    first = in_process("plan", *arguments, code=0).out.splitlines()[0]
    assert first == (f"{tmp_path}/list.csv: a listing, 2 classes, 2 images; labels 0 to 1 {order}")
