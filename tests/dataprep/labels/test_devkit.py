"""The class of each validation image: ILSVRC's devkit, Kaggle's table and others."""

from __future__ import annotations

import io
import tarfile

import pytest

from dataprep.errors import ConfigError
from dataprep.labels.class_files import (
    GROUND_TRUTH,
    META,
    Row,
    ground_truth,
    has_ids,
    read_rows,
    unpacked,
)
from tests.dataprep.labels.devkits import tarball

EXPECTED = {"ILSVRC2012_val_00000001": "n01751748", "ILSVRC2012_val_00000002": "n09193705"}
IDS = [Row("meta.mat", (490, "n01751748", "")), Row("meta.mat", (361, "n09193705", ""))]
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


def truth_in(data: bytes, meta: list[Row] | None = None) -> dict[str, str]:
    """The class of each sample."""
    return ground_truth(read_rows(data, "file"), "file", meta or [])


@pytest.mark.parametrize("name", FILES)
def test_every_customary_file_gives_the_same_classes(name: str) -> None:
    """Only the devkit's file consists of IDs, which need meta.mat."""
    assert truth_in(FILES[name], IDS) == EXPECTED
    assert has_ids(read_rows(FILES[name], name)) == (name == "devkit")


@pytest.mark.parametrize(
    ("data", "meta", "message"),
    [
        (b"490\n", None, "file, line 1: '490' is neither a synset nor an ID in meta.mat"),
        (b"490\n7\n", IDS, "line 2: '7' is neither a synset nor an ID in meta.mat"),
        (b"ImageId,PredictionString\na,x 1 2\n", None, "line 2: 'x' is neither a synset"),
        (b"a\nb\n", None, "line 1: 'a' is neither a synset"),
        (b"a,\nb,c\n", None, "expected a sample and its class"),
        (b"n01751748\na,b\n", None, "line 2: 'a' is neither"),
        (
            b"ImageId,PredictionString\na,n01751748 1\na,n09193705 1\n",
            None,
            "line 3: 'a' is 'n09193705' here and 'n01751748' before",
        ),
        (b"n01751748\n\nn09193705\n", None, "line 2 is empty, but gives .*_val_00000002"),
        (b"\n490\n361\n", IDS, "line 1 is empty, but gives .*_val_00000001"),
        (b"\n\n", None, "expected a sample and its class"),
        (b"", None, "expected a sample and its class"),
    ],
)
def test_what_gives_no_class_is_refused(data: bytes, meta: list[Row] | None, message: str) -> None:
    """The error has the line."""
    with pytest.raises(ConfigError, match=message):
        truth_in(data, meta)


@pytest.mark.parametrize("data", [b"1\t20\n2\t3\n", b"1,20\n2,3\n"])
def test_a_table_of_numbers_is_no_list_of_ids(data: bytes) -> None:
    """Two columns are a sample and its class, whatever they are called and however separated."""
    assert not has_ids(read_rows(data, "file"))
    assert truth_in(data) == {"1": "20", "2": "3"}


def test_the_tarball() -> None:
    """Both files of the devkit are found by base name; any other file is returned as it is."""
    data = tarball({f"ILSVRC2012_devkit_t12/data/{META}": b"m", f"x/{GROUND_TRUTH}": b"g"})
    assert unpacked(data, META, "devkit") == b"m"
    assert unpacked(data, GROUND_TRUTH, "devkit") == b"g"
    assert unpacked(b"text", META, "file") == b"text"


def linked() -> bytes:
    """A tarball with a link of the right name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        link = tarfile.TarInfo(f"data/{META}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tarball({f"data/{GROUND_TRUTH}": b"g"}), r"devkit is not the devkit: it has no meta\.mat"),
        (linked(), r"it has no meta\.mat"),
        (b"\x1f\x8bno archive", "devkit cannot be unpacked"),
        (tarball({"a": bytes(9999)})[:-30], "devkit cannot be unpacked"),
    ],
    ids=["another", "link", "damaged", "cut"],
)
def test_another_tarball_is_refused(data: bytes, message: str) -> None:
    """The error says what is missing; links are not followed."""
    with pytest.raises(ConfigError, match=message):
        unpacked(data, META, "devkit")
