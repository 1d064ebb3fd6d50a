"""Tests of dataprep.labelling.files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dataprep.errors import ConfigError
from dataprep.labelling import Labelling, LabelOptions, load_labelling
from dataprep.labelling.devkit import GROUND_TRUTH, META
from dataprep.labels import LabelSpace
from dataprep.sources import Listing
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer
from tests.dataprep.labelling.devkits import meta_mat, tarball

VALIDATION = {"ILSVRC2012_val_00000001": "n02110185", "ILSVRC2012_val_00000002": "n02119789"}

SPACE = LabelSpace.numbered("012")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A devkit as a tarball and unpacked, and some tables."""
    files = {
        f"kit/data/{META}": meta_mat(),
        f"kit/data/{GROUND_TRUTH}": b"3\n1\n",
        "devkit.tar.gz": tarball({f"d/{META}": meta_mat(), f"d/{GROUND_TRUTH}": b"3\n1\n"}),
        "alone.txt": b"3\n1\n",
        "classes.txt": b"zebra Equus\nant\n".replace(b" ", b"\t"),
        "map.csv": b"bee,ant\n",
        "twice.txt": b"ant\nbee\nant\n",
    }
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path


def load(**options: str) -> Labelling:
    """What these files say."""
    return load_labelling(LabelOptions(**options), None)


def test_nothing_is_asked_for() -> None:
    """Without files nothing changes."""
    listing = Listing(["a/1"], np.ones(1, np.int64), ["a"])
    assert load().applied(listing, lambda text: None) is listing
    assert load().space("ba") == LabelSpace.of("ab")


def test_the_devkit_wherever_it_lies(folder: Path, bucket: str, s3_server: MotoServer) -> None:
    """The tarball, the unpacked file with meta.mat beside it or named, on disk and on S3."""
    options = StoreOptions(endpoint_url=s3_server.url)
    open_store(f"s3://{bucket}/kit", options).put(
        "dev.tar.gz", (folder / "devkit.tar.gz").read_bytes()
    )
    found = [
        load(ground_truth=f"{folder}/devkit.tar.gz"),
        load(ground_truth=f"{folder}/kit/data/{GROUND_TRUTH}"),
        load(ground_truth=f"{folder}/kit"),
        load(ground_truth=f"{folder}/alone.txt", meta=f"{folder}/devkit.tar.gz"),
        load(ground_truth=f"{folder}/alone.txt", meta=f"{folder}/kit/data/{META}"),
        load_labelling(LabelOptions(ground_truth=f"s3://{bucket}/kit/dev.tar.gz"), options),
    ]
    assert [one.truth for one in found] == [VALIDATION] * 6
    assert all(one.texts["n02100735"] == "English setter" for one in found)
    with pytest.raises(ConfigError, match=r"give labels\.meta"):
        load(ground_truth=f"{folder}/alone.txt")


def test_texts_of_meta(folder: Path) -> None:
    """meta.mat gives texts to the classes of a training set too."""
    for place in (f"{folder}/kit/data/{META}", f"{folder}/kit/", f"{folder}/devkit.tar.gz"):
        space = load(texts=place).space(["n02119789", "n99999999"])
        assert [label.text for label in space.labels] == ["kit fox, Vulpes macrotis", ""]


def test_an_order(folder: Path) -> None:
    """Labels follow the file, its second column is the text, and strangers are refused."""
    space = load(classes=f"{folder}/classes.txt").space(["ant"])
    assert [(label.synset, label.text) for label in space.labels] == [
        ("zebra", "Equus"),
        ("ant", "ant"),
    ]
    with pytest.raises(ConfigError, match=r"does not name 1 class .*'bee'.*labels\.map"):
        load(classes=f"{folder}/classes.txt").space(["ant", "bee"])
    assert len(load(classes="ilsvrc2012").space(["n01443537"]).labels) == 1000
    assert load(classes="ilsvrc2012").space(["n01443537"]).index["n01443537"] == 1


def test_a_map(folder: Path) -> None:
    """Classes are merged before they are numbered."""
    listing = Listing(["a", "b"], np.ones(2, np.int64), ["bee", "ant"])
    assert load(map=f"{folder}/map.csv").applied(listing, print).classes == ["ant", "ant"]


def test_names_that_a_map_does_not_find_are_said(folder: Path) -> None:
    """One of them is named; a class of the source without a sample here is found."""
    listing = Listing(["a", "b"], np.ones(2, np.int64), ["1", "0"], label_space=SPACE)
    (folder / "typo.csv").write_text("catt,bird\n1,one\n2,two\nz,y\n")
    notes: list[str] = []
    load(map=f"{folder}/typo.csv").applied(listing, notes.append)
    assert notes == ["labels.map renames 2 classes that the source does not have, such as 'catt'"]


def test_a_map_has_two_columns(folder: Path) -> None:
    """A list of classes is none: it would leave all of them out."""
    for name, text in (("one.txt", "ant\nbee\n"), ("list.json", '["ant", "bee"]')):
        (folder / name).write_text(text)
        with pytest.raises(ConfigError, match=r"'ant' stands alone, where two columns are read"):
            load(map=f"{folder}/{name}")


def test_numbers_with_gaps_are_said(folder: Path) -> None:
    """A map that leaves a gap among numbers tells that labels close it; an order keeps them."""
    (folder / "numbers.csv").write_text("1,2\n")
    (folder / "order.txt").write_text("0\n1\n2\n")
    listing = Listing(["a", "b", "c"], np.ones(3, np.int64), list("012"), label_space=SPACE)
    notes: list[str] = []
    mapped = load(map=f"{folder}/numbers.csv").applied(listing, notes.append)
    assert list(load().space(mapped.classes, mapped.label_space).index) == ["0", "2"]
    assert [note[:44] for note in notes] == ["the classes 0 to 2 are not 0 to 1 without a "]
    ordered = load(map=f"{folder}/numbers.csv", classes=f"{folder}/order.txt")
    assert ordered.applied(listing, notes.append).classes == ["0", "2", "2"]
    assert ordered.space(["0", "2"], mapped.label_space).index == SPACE.index
    assert len(notes) == 1


def test_disagreement_is_said() -> None:
    """Where ground truth and folder differ, a note counts it."""
    notes: list[str] = []
    listing = Listing(["a/1", "a/2"], np.ones(2, np.int64), ["a", "a"])
    Labelling(truth={"1": "a", "2": "b"}, truth_name="truth.csv").applied(listing, notes.append)
    assert notes == [
        "1 sample in the folder of another class than truth.csv says, which is believed"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ground_truth": "none.txt"}, r"labels\.ground_truth: there is no file '.*none\.txt'"),
        ({"texts": "kits"}, r"labels\.texts: there is no file"),
        ({"classes": "twice.txt"}, "the class 'ant' stands there twice"),
        ({"meta": "alone.txt", "ground_truth": "alone.txt"}, r"not the devkit's meta\.mat"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, options: dict[str, str], message: str) -> None:
    """A file that is missing or is something else is named with its key."""
    with pytest.raises(ConfigError, match=message):
        load(**{key: f"{folder}/{name}" for key, name in options.items()})
