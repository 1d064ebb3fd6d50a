"""Tests of dataprep.labelling.ground_truth."""

from __future__ import annotations

import pytest

from dataprep.errors import ConfigError
from dataprep.labelling.ground_truth import needs_meta, parse_ground_truth, stem

EXPECTED = {"ILSVRC2012_val_00000001": "n01751748", "ILSVRC2012_val_00000002": "n09193705"}
IDS = {490: "n01751748", 361: "n09193705"}
FILES = {
    "devkit": b"490\n361\n",
    "synset_labels.txt": b"n01751748\nn09193705\n",
    "LOC_val_solution.csv": b"ImageId,PredictionString\n"
    b"ILSVRC2012_val_00000002,n09193705 0 14 499 248 n09193705 1 2 3 4 \n"
    b"ILSVRC2012_val_00000001,n01751748 111 108 365 389 \n",
    "quoted": b'"ImageId","PredictionString"\r\n'
    b'"ILSVRC2012_val_00000002","n09193705 0 14 499 248 "\r\n'
    b'"ILSVRC2012_val_00000001","n01751748 111 108 365 389 "\r\n\r\n',
    "lines at the end": b"n01751748\r\nn09193705\r\n\r\n \n",
    "table": b"name,class\nILSVRC2012_val_00000001,n01751748\nILSVRC2012_val_00000002,n09193705\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_customary_file_says_the_same(name: str) -> None:
    """Each file gives the same class to the same image."""
    assert parse_ground_truth(FILES[name], name, IDS) == EXPECTED
    assert needs_meta(FILES[name], name) == (name == "devkit")


@pytest.mark.parametrize(
    ("data", "ids", "message"),
    [
        (b"490\n", None, r"ILSVRC2012_IDs: give labels\.meta"),
        (b"490\n7\n", IDS, "line 2: meta.mat has no class with the ID 7"),
        (b"ImageId,PredictionString\na,x 1 2\n", None, "line 2: 'x' is not a synset"),
        (b"a\nb\n", None, "expected a sample and its class"),
        (
            b"ImageId,PredictionString\na,n01751748 1\na,n09193705 1\n",
            None,
            "line 3: 'a' is 'n09193705' here and 'n01751748' before",
        ),
        (b"n01751748\n\nn09193705\n", None, "line 2: empty, but line 2 tells .*_val_00000002"),
        (b"\n490\n361\n", IDS, "line 1: empty, but line 1 tells .*_val_00000001"),
        (b"\n\n", None, "expected a sample and its class"),
        (b"", None, "expected a sample and its class"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, ids: dict[int, str] | None, message: str) -> None:
    """A file that says no class raises with its line."""
    with pytest.raises(ConfigError, match=message):
        parse_ground_truth(data, "file", ids)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b.c/d.JPEG", "d"), ("x", "x"), ("a/.hidden", ".hidden"), ("a.b.jpg", "a.b")],
)
def test_stem(name: str, expected: str) -> None:
    """The last extension goes, folders go, a name that is all extension stays."""
    assert stem(name) == expected


def test_a_table_of_numbers_is_no_list_of_ids() -> None:
    """Two columns are a sample and its class, whatever they are called and however separated."""
    for data in (b"1\t20\n2\t3\n", b"1,20\n2,3\n"):
        assert not needs_meta(data, "file")
        assert parse_ground_truth(data, "file") == {"1": "20", "2": "3"}


def test_a_class_called_as_a_column_is_no_header() -> None:
    """The first image keeps its class where that is a word such as text."""
    assert parse_ground_truth(b"#1.jpg,text\nb.jpg,dog\n", "file") == {
        "#1.jpg": "text",
        "b.jpg": "dog",
    }
