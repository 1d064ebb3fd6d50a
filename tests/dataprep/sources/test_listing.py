"""Tests of dataprep.sources.listing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataprep.errors import SourceError, SourceNotFound
from dataprep.sources import Listing, open_source
from dataprep.sources.options import ListingOptions
from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two class folders and a stray file."""
    folder = tmp_path / "photos"
    for name in ("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg", "odd"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


def listed(folder: Path, text: str | bytes, name: str = "list.csv", **options: Any) -> Listing:
    """What a listing in ``folder`` holds."""
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return open_source(str(folder / name), "listing", None, ListingOptions(**options)).list()


def outcomes(listing: Listing) -> list[tuple[str, str, str]]:
    """Name, class and problem of each row."""
    return [
        (
            name,
            listing.classes[row],
            listing.problems[row].reason if row in listing.problems else "",
        )
        for row, name in enumerate(listing.names)
    ]


def test_rows_that_name_no_sample_have_a_reason(photos: Path) -> None:
    """Missing, unlabelled, outside and repeated rows are accounted for, each once."""
    listing = listed(
        photos,
        "path,label\ncats/1.jpg,cat\n./cats/1.jpg,cat\ndogs/1.jpg,dog\ncats/../dogs/1.jpg,cat\n"
        "gone.jpg,cat\n../x.jpg,cat\ncats/2.jpg,\ncats,cat\n",
    )
    assert outcomes(listing) == [
        ("../x.jpg", "", "its path leaves the root of the listing"),
        ("cats", "", "not there"),
        ("cats/1.jpg", "cat", ""),
        ("cats/1.jpg", "", "listed before"),
        ("cats/2.jpg", "", "no label"),
        ("dogs/1.jpg", "dog", ""),
        ("dogs/1.jpg", "", "listed before with another label"),
        ("gone.jpg", "", "not there"),
    ]
    kinds = [listing.problems[row].status for row in sorted(listing.problems)]
    assert kinds == ["failed", "failed", "skipped", "failed", "failed", "failed"]


def test_the_order_of_the_rows_is_kept_beside_that_of_names(photos: Path) -> None:
    """An unshuffled job writes the listing's own order."""
    listing = listed(photos, "path,label\nodd,b\ncats/2.jpg,a\ndogs/1.jpg,b\n")
    assert listing.order is not None
    assert [listing.names[row] for row in listing.order] == ["odd", "cats/2.jpg", "dogs/1.jpg"]


def test_a_root_moves_relative_paths(photos: Path, tmp_path: Path) -> None:
    """Relative paths begin at listing.root; absolute ones below it have the same names."""
    text = f"path,label\ncats/1.jpg,cat\n{photos}/dogs/1.jpg,dog\n"
    listing = listed(tmp_path, text, root=str(photos))
    assert outcomes(listing) == [("cats/1.jpg", "cat", ""), ("dogs/1.jpg", "dog", "")]
    absolute = listed(tmp_path, f"path,label\n{photos}/dogs/1.jpg,dog\n", root=str(photos / "cats"))
    assert absolute.names == [f"{photos}/dogs/1.jpg"]


def test_nothing_at_all_is_there(photos: Path, tmp_path: Path) -> None:
    """A wrong root is refused. The error shows the root, a missing path and the key to set."""
    text = "path,label\nphotos/cats/1.jpg,cat\ncats/9.jpg,cat\n"
    for options, tried in (({}, photos), ({"root": str(tmp_path / "no")}, tmp_path / "no")):
        with pytest.raises(SourceNotFound) as caught:
            listed(photos, text, **options)
        assert "'photos/cats/1.jpg'" in str(caught.value)
        assert f"relative paths begin at {tried}" in str(caught.value)
        assert "--set listing.root=FOLDER" in str(caught.value)
    assert len(listed(photos, f"{text}cats/1.jpg,cat\n").problems) == 2


def test_labels_that_are_numbers_stay_so(tmp_path: Path) -> None:
    """Twelve classes 0 to 11: label 10 is 10, not the second as in the order of names."""
    rows = []
    for i in range(12):
        (tmp_path / f"{i}.jpg").write_bytes(b"x")
        rows.append(f"{i}\t{i:f}\t{i}.jpg\n")
    listing = listed(tmp_path, "".join(reversed(rows)), "list.lst")
    assert listing.label_space is not None
    assert [label.synset for label in listing.label_space.labels] == [str(i) for i in range(12)]
    assert listing.notes == ()


def test_numbers_with_gaps_are_renumbered_and_said(photos: Path) -> None:
    """Labels 2 and 10 become 0 and 1, in this order, and a note says so."""
    listing = listed(photos, "path,label\ncats/1.jpg,10\ndogs/1.jpg,2\n")
    assert listing.label_space is not None
    assert [label.synset for label in listing.label_space.labels] == ["2", "10"]
    assert "2 to 10 are not 0 to 1" in listing.notes[0]


def test_a_name_among_numbers(photos: Path) -> None:
    """NA makes names of all labels, in the order of texts; an empty label does not."""
    listing = listed(photos, "path,label\ncats/1.jpg,10\ndogs/1.jpg,NA\n")
    assert listing.label_space is None
    assert listed(photos, "path,label\ncats/1.jpg,0\ndogs/1.jpg,\n").notes == ()


@pytest.mark.parametrize("name", ["names.txt", "labels.json"])
def test_a_file_of_names_keeps_the_numbers(photos: Path, name: str) -> None:
    """Line i names class i; names that are listed instead of numbers have to be among them."""
    from dataprep.labels import LabelSpace

    (photos / "names.txt").write_text("a\nb\nc\n")
    (photos / "labels.json").write_bytes(LabelSpace.of("abc").to_json())
    names = str(photos / name)
    listing = listed(photos, "path,label\ncats/1.jpg,2\ndogs/1.jpg,3\n", class_names=names)
    assert listing.label_space is not None
    assert [label.synset for label in listing.label_space.labels] == ["a", "b", "c"]
    assert outcomes(listing) == [
        ("cats/1.jpg", "c", ""),
        ("dogs/1.jpg", "", "label 3 has no name in class_names"),
    ]
    by_name = listed(photos, "path,label\ncats/1.jpg,b\n", class_names=names)
    assert by_name.classes == ["b"]
    with pytest.raises(SourceError, match="does not name, such as 'z'"):
        listed(photos, "path,label\ncats/1.jpg,z\n", class_names=names)


def test_several_labels_follow_their_rows(photos: Path) -> None:
    """Values stand in the rows of the names that they belong to."""
    listing = listed(photos, "path,a,b\ndogs/1.jpg,1,0.5\ncats/1.jpg,0,7\n", labels=("a", "b"))
    assert listing.names == ["cats/1.jpg", "dogs/1.jpg"]
    assert listing.values is not None
    assert np.array_equal(listing.values, np.array([[0, 7], [1, 0.5]], np.float32))


def test_a_change_of_a_value_is_another_source(photos: Path) -> None:
    """The digest covers all labels, not the classes alone."""
    text = "path,a,b\ndogs/1.jpg,1,0.5\ncats/1.jpg,0,7\n"
    before = listed(photos, text, labels=("a", "b")).digest()
    assert listed(photos, text.replace("0.5", "0.6"), labels=("a", "b")).digest() != before


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("list.tsv", {}),
        ("list.csv", {"delimiter": "\t"}),
        ("list.txt", {"format": "tsv"}),
        ("list", {"format": "csv", "delimiter": "\t"}),
    ],
)
def test_tables_by_extension_or_option(photos: Path, name: str, options: dict[str, str]) -> None:
    """The extension tells the kind of table unless an option does."""
    assert listed(photos, "path\tlabel\ncats/1.jpg\tcat\n", name, **options).classes == ["cat"]


def test_escaped_names_are_undone_where_told(photos: Path) -> None:
    """The table of samples of an output is a listing too: its names are escaped."""
    (photos / "a\tb\udcff.jpg").write_bytes(b"x")
    listing = listed(photos, "path,label\na\\x09b\\xff.jpg,cat\n", escaped=True)
    assert outcomes(listing) == [("a\tb\udcff.jpg", "cat", "")]


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("list.doc", "x", SourceError, r"list\.doc: \.csv, \.tsv, \.parquet or \.lst"),
        ("list.csv", "path,label\n", SourceNotFound, "lists nothing"),
        (
            "list.csv",
            "path,label\nhttps://h/1.jpg,a\n",
            SourceError,
            "copy images that",
        ),
    ],
)
def test_what_cannot_be_a_source_is_refused(
    photos: Path, name: str, text: str, error: type[Exception], message: str
) -> None:
    """The error says what is expected instead."""
    with pytest.raises(error, match=message):
        listed(photos, text, name)


def test_a_listing_that_is_not_there(tmp_path: Path) -> None:
    """Its own name is told, not that of an image."""
    with pytest.raises(SourceNotFound, match=r"no listing at .*none\.csv"):
        open_source(str(tmp_path / "none.csv"), "listing").list()


def test_files_here_and_objects_there_in_one_listing(
    photos: Path, s3_server: MotoServer, bucket: str
) -> None:
    """A local listing may name objects of any bucket; its reads then overlap."""
    options = StoreOptions(endpoint_url=s3_server.url)
    open_store(f"s3://{bucket}/far", options).put("x y.jpg", b"from far")
    (photos / "list.csv").write_text(
        f"path,label\ncats/1.jpg,a\ns3://{bucket}/far/x y.jpg,b\ns3://{bucket}/far/no.jpg,b\n"
    )
    source = open_source(str(photos / "list.csv"), "listing", options)
    assert source.concurrency == 1
    listing = source.list()
    assert source.concurrency > 4
    assert outcomes(listing) == [
        ("cats/1.jpg", "a", ""),
        (f"s3://{bucket}/far/no.jpg", "", "not there"),
        (f"s3://{bucket}/far/x y.jpg", "b", ""),
    ]
    assert source.read(listing.located(2)) == b"from far"
    assert source.read(listing.located(0)) == b"cats/1.jpg"
