"""Listings are sources of tables, rows and paths."""

from __future__ import annotations

import csv
import io
import os
import pickle
import posixpath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.config.files import parse_settings
from dataprep.config.shard_config import ShardConfig
from dataprep.errors import JobError, SourceError, SourceNotFound
from dataprep.formats.protocol import IndexEntry
from dataprep.formats.recordio import RecordIOFormat
from dataprep.job.conversion import require_visible_source
from dataprep.job.request import open_request
from dataprep.name_encoding import escape
from dataprep.sources import Listing, Located, OnDisk, Problem, open_source
from dataprep.sources.listing import LEAVES_ROOT, sample_name, split_name
from dataprep.sources.listing_table import parse
from dataprep.sources.options import ListingOptions
from dataprep.stores import StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests.strategies import file_names, mutated


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two class folders and a stray file."""
    folder = tmp_path / "photos"
    for name in ("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg", "odd"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


def listed(folder: Path, text: str | bytes, name: str = "list.csv", **options: Any) -> Listing:
    """The entries of a listing in ``folder``."""
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
    """Missing, unlabelled, outside and repeated rows are each listed once with a reason."""
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
    """A wrong root is refused. The error has the root, a missing path and the key to set."""
    text = "path,label\nphotos/cats/1.jpg,cat\ncats/9.jpg,cat\n"
    for options, tried in (({}, photos), ({"root": str(tmp_path / "no")}, tmp_path / "no")):
        with pytest.raises(SourceNotFound) as caught:
            listed(photos, text, **options)
        assert "'photos/cats/1.jpg'" in str(caught.value)
        assert f"relative paths begin at {tried}" in str(caught.value)
        assert "--set listing.root=FOLDER" in str(caught.value)
    assert len(listed(photos, f"{text}cats/1.jpg,cat\n").problems) == 2


def test_some_missing_files_beside_other_failures_are_not_all_files(photos: Path) -> None:
    """If every row fails, but not all for a missing file, the most common reason is named."""
    text = "path,label\ncats/1.jpg,\ncats/2.jpg,\ngone.jpg,cat\n"
    assert len(listed(photos, text).problems) == 3
    source, output = str(photos / "list.csv"), str(photos / "out")
    config = ShardConfig(source=source, kind="listing", output=output)
    with pytest.raises(SourceNotFound, match=r"no images in .*2 of its files: no label"):
        open_request(config, print)
    with pytest.raises(SourceNotFound, match="none of the files exists"):
        listed(photos, "path,label\ngone.jpg,cat\ngone.jpg,cat\n.DS_Store,cat\n")
    listed(photos, "path,label\ngone.jpg,cat\ngone/2.jpg,cat\ncats/1.jpg,\n")
    with pytest.raises(SourceNotFound, match=r"2 of its files: not there .*listing\.root=FOLDER"):
        open_request(config, print)


def test_missing_files_that_are_listed_again_with_another_label(photos: Path) -> None:
    """If a missing file is listed again, its first row counts."""
    with pytest.raises(SourceNotFound, match="none of the files exists"):
        listed(photos, "path,label\nx.jpg,cat\nx.jpg,dog\ny.jpg,dog\n")


@pytest.mark.parametrize("path", [".DS_Store", "cats/Thumbs.db"])
def test_a_system_file_is_skipped_with_or_without_a_label(photos: Path, path: str) -> None:
    """A system file needs no label to be skipped."""
    for label in ("", "cat"):
        listing = listed(photos, f"path,label\ncats/1.jpg,cat\n{path},{label}\n")
        row = listing.names.index(path)
        assert listing.problems == {row: Problem("skipped", "hidden or system file")}


NUMBERED = {
    "label 10 is 10, not the second": (
        "path,label\n" + "".join(f"cats/{i}.jpg,{i}\n" for i in reversed(range(12))),
        [str(i) for i in range(12)],
        "",
    ),
    "gaps are renumbered": (
        "path,label\ncats/1.jpg,10\ndogs/1.jpg,2\n",
        ["2", "10"],
        "2 to 10 are not 0 to 1",
    ),
    "NA makes names of all": ("path,label\ncats/1.jpg,10\ndogs/1.jpg,NA\n", None, ""),
    "an empty label does not": ("path,label\ncats/1.jpg,0\ndogs/1.jpg,\n", ["0"], ""),
}


@pytest.mark.parametrize(("text", "space", "note"), NUMBERED.values(), ids=NUMBERED)
def test_labels_that_are_numbers_stay_so(
    photos: Path, text: str, space: list[str] | None, note: str
) -> None:
    """Numbers are sorted as numbers, and renumbering is noted."""
    for number in range(12):
        (photos / "cats" / f"{number}.jpg").write_bytes(b"x")
    listing = listed(photos, text)
    assert (listing.label_space is None) == (space is None)
    if listing.label_space is not None:
        assert [label.synset for label in listing.label_space.labels] == space
    assert len(listing.notes) == bool(note)
    assert note in "".join(listing.notes)


@pytest.mark.parametrize("name", ["names.txt", "labels.json"])
def test_a_file_of_names_keeps_the_numbers(photos: Path, name: str) -> None:
    """Line i names class i. Names instead of numbers must be in the file."""
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
    """Values stay with the names of their rows."""
    text = "path,a,b\ndogs/1.jpg,1,0.5\ncats/1.jpg,0,7\n"
    listing = listed(photos, text, labels=("a", "b"))
    assert listing.names == ["cats/1.jpg", "dogs/1.jpg"]
    assert listing.values is not None
    assert np.array_equal(listing.values, np.array([[0, 7], [1, 0.5]], np.float32))
    changed = listed(photos, text.replace("0.5", "0.6"), labels=("a", "b"))
    assert changed.digest() != listing.digest()


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
    """The extension gives the kind of table unless an option does."""
    assert listed(photos, "path\tlabel\ncats/1.jpg\tcat\n", name, **options).classes == ["cat"]


def test_escaped_names_are_undone_where_told(photos: Path) -> None:
    """The table of samples of an output is a listing with escaped names."""
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
    """The error has the name of the listing, not that of an image."""
    with pytest.raises(SourceNotFound, match=r"no listing at .*none\.csv"):
        open_source(str(tmp_path / "none.csv"), "listing").list()


def test_files_here_and_objects_there_in_one_listing(
    photos: Path, s3_server: MotoServer, bucket: str
) -> None:
    """A local listing may name objects of any bucket, and then has overlapping reads."""
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
    assert isinstance(source, OnDisk)
    assert source.disk_paths() == [str(photos)]
    (photos / "far.csv").write_text(f"path,label\ns3://{bucket}/far/x y.jpg,b\ncats/no.jpg,a\n")
    far_alone = open_source(str(photos / "far.csv"), "listing", options)
    far_alone.list()
    assert isinstance(far_alone, OnDisk)
    assert far_alone.disk_paths() == []


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["cats/1.jpg", "dogs/1.jpg", "/nowhere/1.jpg"], ["photos"]),
        (["{root}/photos/cats/1.jpg"], ["photos"]),
        (["{root}/data/b/2.jpg", "{root}/data/a/1.jpg"], ["data/a", "data/b"]),
        (["cats/1.jpg", "{root}/data/a/1.jpg"], ["photos", "data/a"]),
        ([f"{{root}}/many/{number}/1.jpg" for number in range(40)], ["many"]),
    ],
    ids=["relative", "absolute below the root", "absolute", "both", "many folders"],
)
def test_workers_have_to_see_the_folders_that_rows_use(
    photos: Path, tmp_path: Path, paths: list[str], expected: list[str]
) -> None:
    """Workers need the folders that rows use, and not that of the listing."""
    for name in ("data/a/1.jpg", "data/b/2.jpg", *(f"many/{number}/1.jpg" for number in range(40))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    rows = "".join(f"{path.format(root=tmp_path)},cat\n" for path in paths)
    (photos / "list.csv").write_text(f"path,label\n{rows}")
    source = open_source(str(photos / "list.csv"), "listing")
    source.list()
    assert isinstance(source, OnDisk)
    assert source.disk_paths() == [f"{tmp_path}/{folder}" for folder in expected]


def test_a_worker_that_lacks_the_folder_of_absolute_rows_says_so(
    photos: Path, tmp_path: Path
) -> None:
    """The error names the missing folder, and not that of the listing."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.jpg").write_bytes(b"x")
    (photos / "list.csv").write_text(f"path,label\n{tmp_path}/data/1.jpg,cat\n")
    source = open_source(str(photos / "list.csv"), "listing")
    source.list()
    worker_copy = pickle.loads(pickle.dumps(source))
    photos.rename(tmp_path / "elsewhere")
    require_visible_source(worker_copy)
    (tmp_path / "data").rename(tmp_path / "not-mounted")
    with pytest.raises(JobError, match=f"does not see the source {tmp_path}/data,"):
        require_visible_source(worker_copy)


def test_rows_are_sorted_and_their_own_order_kept() -> None:
    """Every column stays with its name, and ``order`` gives the original order of rows."""
    listing = Listing.sorted(
        ["b", "a", "\udcff", "a"],
        [2, 1, 4, 3],
        ["B", "A", "C", "D"],
        {3: Problem("skipped", "again")},
        containers=["s", "t", "u", "v"],
        offsets=np.array([20, 10, 40, 30]),
        values=np.array([[2.0], [1.0], [4.0], [3.0]], np.float32),
    )
    assert listing.names == ["a", "a", "b", "\udcff"]
    assert listing.sizes.tolist() == [1, 3, 2, 4]
    assert listing.classes == ["A", "", "B", "C"]
    assert listing.problems == {1: Problem("skipped", "again")}
    assert listing.located(2) == Located("b", 2, "s", 20)
    assert listing.values is not None
    assert listing.values.ravel().tolist() == [1, 3, 2, 4]
    assert listing.order is not None
    assert listing.order.tolist() == [2, 0, 3, 1]
    assert len(Listing.sorted([], [], [], {})) == 0


Rows = tuple[list[str], list[list[str]], bool]

CSV = b'path,label\ncats/1.jpg,cat\n"a,b\nc.jpg",dog\n\xff.jpg, dog \n'
LST = b"0\t3.000000\tcats/1.jpg\n7\t0\ta b.jpg\r\n\n2\t10.0\t\xff.jpg"


def rows(data: str | bytes, name: str = "x.csv", **options: Any) -> Rows:
    """The paths and labels of a listing, and whether the labels are numbers."""
    data = data.encode() if isinstance(data, str) else data
    return parse(data, name, ListingOptions(**options))


def parquet(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_rows_are_paths_and_class_names() -> None:
    """Quotes may enclose delimiters and line ends. Options choose columns by name, or from 0."""
    paths, labels, numeric = rows(CSV)
    assert paths == ["cats/1.jpg", "a,b\nc.jpg", "\udcff.jpg"]
    assert (labels, numeric) == ([["cat"], ["dog"], ["dog"]], False)
    assert rows("x,y\na,1\n", path="y", label="x")[0] == ["1"]
    assert rows("x,x\na,b\n", path=1, label=0)[0] == ["b"]
    assert rows("a\tb\nc\td\n", "x.tsv", header=False)[:2] == (["a", "c"], [["b"], ["d"]])


@pytest.mark.parametrize("path", ["path", "filename", "FILE", "Image"])
@pytest.mark.parametrize("label", ["label", "Class", "synset"])
def test_customary_columns_are_found(path: str, label: str) -> None:
    """The columns are found in any case and position, and behind a byte order mark."""
    table_rows = rows(f"\ufeffwidth,{label},{path}\n9,cat,a.jpg\n")
    assert table_rows[:2] == (["a.jpg"], [["cat"]])


@pytest.mark.parametrize(
    ("labels", "numeric"),
    [
        (["10", "9"], True),
        (["10.0", "9.000"], True),
        (["+10", ""], True),
        (["10", "9x"], False),
        (["001", "002"], False),
        (["1.5", "2"], False),
    ],
)
def test_a_column_of_whole_numbers_is_numeric(labels: list[str], numeric: bool) -> None:
    """One label that is no whole number in normal form makes all labels names."""
    text = "".join(f"a{number},{label}\n" for number, label in enumerate(labels))
    assert rows(f"path,label\n{text}")[2] is numeric


@pytest.mark.parametrize(
    ("name", "data", "options", "message"),
    [
        ("x.csv", b"", {}, "x.csv is empty"),
        ("x.csv", b"path,label\n1,2\n3\n", {}, "x.csv, row 3: 1 columns, the first row has 2"),
        ("x.csv", b'path,label\n"a,b\n', {}, "x.csv, line "),
        ("x.csv", b"name,label\na,b\n", {}, "x.csv has no column 'path': it has 'name', 'label'"),
        ("x.csv", b"path,label\na,b\n", {"label": "kind"}, "x.csv has no column 'kind'"),
        ("x.csv", b"path,label\na,b\n", {"path": 2}, "x.csv has no column 2: it has 'path'"),
        ("x.csv", b"path,label\na,b\n,c\n", {}, "x.csv: the path of sample 2 is empty"),
        ("x.csv", b"path,label\na,\xff\n", {}, "x.csv: label '\\udcff' is not UTF-8"),
        ("x.csv", "path,label\n".encode("utf-16"), {}, "x.csv is in UTF-16"),
        ("x.parquet", b"path,label\n", {}, "x.parquet cannot be read as Parquet"),
        ("x.lst", b"0\t1\ta\n\n1\tb\n", {}, "x.lst, row 2: 2 columns; a .lst has index, label"),
        ("x.lst", b"0\t1\t\n", {}, "x.lst: the path of sample 1 is empty"),
    ],
)
def test_what_is_no_table_is_refused(name: str, data: bytes, options: Any, message: str) -> None:
    """The error names the file, the row or column, and a remedy."""
    with pytest.raises(SourceError) as caught:
        rows(data, name, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("column", "labels", "numeric"),
    [
        (pa.array([10, None], pa.int16()), ["10", ""], True),
        (pa.array([10.0, float("nan")]), ["10", ""], True),
        (pa.array(["cat", "dog"]).dictionary_encode(), ["cat", "dog"], False),
        (pa.array([b"cat", b"dog"]), ["cat", "dog"], False),
        (pa.array([True, False]), ["1", "0"], True),
    ],
    ids=["int", "float", "dictionary", "binary", "bool"],
)
def test_parquet_columns_of_any_kind(column: Any, labels: list[str], numeric: bool) -> None:
    """Numbers, texts and bytes of Parquet mean the same as in CSV. Nulls and NaN are no labels."""
    data = parquet(path=[b"a\xff", b"b"], label=column)
    assert rows(data, "x.pq") == (["a\udcff", "b"], [[label] for label in labels], numeric)


@pytest.mark.parametrize("image", [{"bytes": b"\xff", "path": "a.jpg"}, b"\xff\xd8\xff\xe0"])
def test_images_inside_parquet_are_refused_by_name(image: Any) -> None:
    """Images inside Parquet, as from Hugging Face, are refused with an explanation."""
    with pytest.raises(SourceError, match=r"column 'image' has images, not paths.*listing\.path"):
        rows(parquet(image=[image], label=["x"]), "x.parquet")


@pytest.mark.parametrize("path", [None, 1, ["a.jpg"]], ids=repr)
def test_parquet_columns_without_paths_are_refused(path: Any) -> None:
    """A column that has no paths is refused with the key that selects the right one."""
    with pytest.raises(SourceError, match=r"x\.parquet: the path of sample 1 is empty or no text"):
        rows(parquet(path=[path], label=["x"]), "x.parquet")


def test_lines_of_lst_are_paths_and_numbers() -> None:
    """The index is not used, bytes other than UTF-8 are kept, and empty lines are skipped."""
    labels = [["3.000000"], ["0"], ["10.0"]]
    assert rows(LST, "x.lst") == (["cats/1.jpg", "a b.jpg", "\udcff.jpg"], labels, True)
    assert rows("0\t3\t0.5\ta\n", "x.lst")[:2] == (["a"], [["3", "0.5"]])


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("0\t1\ta\n1\t-1\tb\n", "label -1 is no class: classes count from 0"),
        ("0\t1\ta\n1\t2.5\tb\n", "label 2.5 is no whole number"),
        ("0\t1\ta\n1\tinf\tb\n", "label inf is no whole number"),
        ("0\t1\t2\ta\n1\t1\tb\n2\t1\t2\tc\n", "1 labels, where most have 2"),
    ],
)
def test_a_label_of_lst_that_is_no_class_fails_its_row(
    tmp_path: Path, text: str, problems: str
) -> None:
    """A label that is no class fails its row, and other rows are samples."""
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "x.lst").write_text(text)
    listing = open_source(str(tmp_path / "x.lst"), "listing").list()
    assert [problem.reason for problem in listing.problems.values()] == [problems]
    assert listing.names[min(listing.problems)] == "b"


@pytest.mark.parametrize("options", [{}, {"labels": ("label", "label")}])
def test_a_label_that_has_to_be_a_number(tmp_path: Path, options: Any) -> None:
    """In a .lst, or in a row of several labels, a label that is no number is named and refused."""
    name, text = ("x.csv", "path,label\na,cat\n") if options else ("x.lst", "0\tcat\ta\n")
    (tmp_path / name).write_text(text)
    source = open_source(str(tmp_path / name), "listing", None, ListingOptions(**options))
    with pytest.raises(SourceError, match=rf"{name}: .*'cat'"):
        source.list()


@given(names=st.lists(file_names.map(os.fsdecode).filter(bool), min_size=1, max_size=8))
def test_our_own_lst_reads_as_it_was(names: list[str]) -> None:
    """Names with tabs, line ends, backslashes and any bytes are read back."""
    entries = [IndexEntry(i, i, 0, 0, escape(name)) for i, name in enumerate(names)]
    assert rows(bytes(RecordIOFormat().indexes(entries)[".lst"]), "ours.lst")[0] == names


@pytest.mark.parametrize(
    ("path", "escaped", "name"),
    [
        (rb"C:\photos\a.jpg", None, r"C:\photos\a.jpg"),
        (rb"a\\b\x09.jpg", None, "a\\b\t.jpg"),
        (rb"a\\b\x09.jpg", False, r"a\\b\x09.jpg"),
        (rb"a\q\x09", True, "a\\q\t"),
    ],
)
def test_backslashes_of_others_are_only_backslashes(
    path: bytes, escaped: bool | None, name: str
) -> None:
    """Without the option, names are unescaped only if every backslash belongs to an escape."""
    assert rows(b"0\t0\t" + path + b"\n", "x.lst", escaped=escaped)[0] == [name]


@given(
    table=st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name),
            st.from_regex(r"[a-z][a-z ,\"\n]{0,6}[a-z]", fullmatch=True),
        ),
        min_size=1,
        max_size=6,
    ),
    delimiter=st.sampled_from([",", "\t", ";"]),
)
def test_what_pythons_writer_writes_is_read(table: list[tuple[bytes, str]], delimiter: str) -> None:
    """Any path and label that Python's csv module quotes is read back."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["path", "label"])
    writer.writerows([(os.fsdecode(path), label) for path, label in table])
    paths, labels, _ = rows(os.fsencode(sink.getvalue()), delimiter=delimiter)
    assert paths == [os.fsdecode(path) for path, _ in table]
    assert labels == [[label] for _, label in table]


@pytest.mark.parametrize(("name", "sound"), [("x.csv", CSV), ("x.lst", LST)])
@given(data=st.data())
def test_any_bytes_are_rows_or_an_error(name: str, sound: bytes, data: st.DataObject) -> None:
    """Any bytes are rows, or an error names the file."""
    try:
        paths, labels, _ = rows(data.draw(st.binary(max_size=80) | mutated(st.just(sound))), name)
    except SourceError as error:
        assert str(error).startswith(name)  # noqa: PT017  any other error shall fail
    else:
        assert len(paths) == len(labels)
        assert all(paths)


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        ("/data/", "cats/1.jpg", "cats/1.jpg"),
        ("/data/", "./cats//1.jpg", "cats/1.jpg"),
        ("/data/", "dogs/../cats/1.jpg", "cats/1.jpg"),
        ("/data/", "/data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "//data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "file:///data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "/database/1.jpg", "/database/1.jpg"),
        ("/data/", "/data/../other/1.jpg", "/other/1.jpg"),
        ("/data/", "s3://b/cats/1.jpg", "s3://b/cats/1.jpg"),
        ("s3://b/p/", "cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p/", "s3://b/p/cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p/", "s3://b/pp/1.jpg", "s3://b/pp/1.jpg"),
        ("s3://b/p/", "s3://b/p/a//../1.jpg", "a//../1.jpg"),
        ("s3://b/p/", "/data/1.jpg", "/data/1.jpg"),
        ("/data/", "s3://b/img.jpg?key=abc", "s3://b/img.jpg?key=abc"),
        ("/data/", "s3://b/me@host/1.jpg", "s3://b/me@host/1.jpg"),
        ("/", "/data/1.jpg", "data/1.jpg"),
    ],
)
def test_one_file_has_one_name(root: str, path: str, name: str) -> None:
    """A path below the root is relative to it in every notation, and keys on S3 do not change."""
    assert sample_name(path, root) == (name, "")


@pytest.mark.parametrize("path", ["../1.jpg", "a/../../1.jpg", "..", "../data/1.jpg"])
def test_a_relative_path_may_not_leave_the_root(path: str) -> None:
    """The row fails under its name in the listing, and no file has a zero byte in its name."""
    assert sample_name(path, "/data/") == (path, LEAVES_ROOT)
    assert sample_name("a\0b", "/data/")[1]


@pytest.mark.parametrize(
    "address",
    [
        "s3://jo:hunter2@bucket/1.jpg",
        "s3://bucket/1.jpg?X-Amz-Signature=hunter2",
        "https://host/1.jpg?sig=hunter2",
        "gs://bucket/1.jpg",
        "s3://bucket",
        "s3:///key",
    ],
)
def test_other_addresses_are_refused_without_their_credentials(address: str) -> None:
    """An address with credentials is refused, because names are stored in the table of samples."""
    with pytest.raises(SourceError, match="paths and addresses s3://BUCKET/KEY") as caught:
        sample_name(address, "/data/")
    assert "hunter2" not in str(caught.value)


@given(path=st.text(st.sampled_from("ab./"), min_size=1, max_size=12))
def test_names_are_read_from_where_the_path_points(path: str) -> None:
    """A name and its root lead to the file that the path means, and never above the root."""
    name, problem = sample_name(path, "/root/r/")
    meant = posixpath.normpath(posixpath.join("/root/r", path)).replace("//", "/")
    if problem:
        assert not meant.startswith("/root/r/") or path.endswith(("/", ".")) or ".." in path
        return
    root, key = split_name(name)
    assert posixpath.normpath(os.path.join(root or "/root/r", key)) == meant  # noqa: PTH118
    assert ".." not in key.split("/")


DETECTION = "0\t4\t5\t120\t90\t1\t0.1\t0.2\t0.6\t0.7\tcats/1.jpg\n"
TWO_BOXES = "1\t4\t5\t120\t90\t0\t0.1\t0.2\t0.6\t0.7\t2\t0\t0\t1\t1\tcats/2.jpg\n"


@pytest.mark.parametrize(
    "text",
    [
        DETECTION,
        DETECTION + TWO_BOXES,
        TWO_BOXES + "2\t4\t5\t120\t90\tdogs/1.jpg\n",
        "0\t2\t6\t1\t0.1\t0.2\t0.6\t0.7\t0\tcats/1.jpg\n",
        TWO_BOXES + "2\t4\t5\t120\t90\t0\t0.6\t0.2\t0.1\t0.7\tdogs/1.jpg\n",
        "0\t2\t5\tcats/1.jpg\n1\t2\t5\tdogs/1.jpg\n",
    ],
    ids=["one box", "several boxes", "no box", "wider boxes", "a wrong box", "no boxes at all"],
)
def test_a_list_for_detection_is_refused(photos: Path, text: str) -> None:
    """The width of im2rec's header is not used as the class of every image."""
    with pytest.raises(SourceError, match=r"x\.lst is im2rec's list for detection.*--boxes"):
        listed(photos, text, "x.lst")


@pytest.mark.parametrize(
    "text",
    [
        "0\t4\t0.5\tcats/1.jpg\n1\t7\t0.25\tdogs/1.jpg\n",
        "0\t4\t5\t1\t0\t1\t0\t9\t3\t1\t2\tcats/1.jpg\n1\t7\t5\t1\t0\t1\t0\t9\t3\t1\t2\tdogs/1.jpg\n",
    ],
)
def test_several_labels_are_kept(photos: Path, text: str) -> None:
    """The first of several labels is the label of its sample, and all of them are kept."""
    listing = listed(photos, text, "x.lst")
    assert listing.values is not None
    assert listing.label_space is not None
    labels = [listing.label_space.index[group] for group in listing.classes]
    assert labels == listing.values[:, 0].tolist() == [4, 7]


def test_several_labels_that_cannot_be_kept_are_refused(photos: Path) -> None:
    """A class number that is too high for a label is named, with the key to set."""
    text = "0\t8000000\t0.5\tcats/1.jpg\n"
    with pytest.raises(SourceError, match=r"8000000 is above.*listing\.class_names"):
        listed(photos, text, "x.lst")


@pytest.mark.parametrize(
    "text",
    ["path;label\ncats/1.jpg;a\n", "path;label\ncats/1.jpg;a;\n", "path,label\ncats/1.jpg,a ,\n"],
)
def test_semicolons_and_separators_at_the_end(photos: Path, text: str) -> None:
    """A table with semicolons is read, and so is one with a separator behind the last column."""
    assert outcomes(listed(photos, text)) == [("cats/1.jpg", "a", "")]


def test_lines_of_path_and_label_name_their_settings(photos: Path) -> None:
    """A Caffe file is refused with its first line and with settings that read it."""
    text = "cats/1.jpg 5 \ndogs/1.jpg 3\n"
    with pytest.raises(SourceError, match=r"'cats/1\.jpg 5'.*listing\.delimiter=' '"):
        listed(photos, text, "val.txt")
    settings = ["format=csv", "delimiter= ", "header=false"]
    listing = listed(photos, text, "val.txt", **parse_settings(settings))
    assert outcomes(listing) == [("cats/1.jpg", "5", ""), ("dogs/1.jpg", "3", "")]


def test_a_table_of_paths_alone_has_no_classes(photos: Path) -> None:
    """A table of paths can be read with ``--unlabelled``. Other single columns are refused."""
    listing = listed(photos, "path\ncats/1.jpg\ndogs/1.jpg\n")
    assert outcomes(listing) == [("cats/1.jpg", "", ""), ("dogs/1.jpg", "", "")]
    with pytest.raises(SourceError, match="has no column"):
        listed(photos, "cats/1.jpg\ndogs/1.jpg\n")


def test_quotes_behind_a_blank_are_refused(photos: Path) -> None:
    """Quotes behind a blank would become part of the class, and are refused."""
    text = 'path, label\n"cats/1.jpg", "a"\n"dogs/1.jpg", "b"\n'
    with pytest.raises(SourceError, match=r'the label "a" contains its quotes.*remove the blanks'):
        listed(photos, text)


def test_a_row_of_another_width_is_shown(photos: Path) -> None:
    """The error has the row and the key of the delimiter."""
    with pytest.raises(SourceError, match=r"row 2: 3 columns.*listing\.delimiter.*'1\.jpg, a, b'"):
        listed(photos, "path,label\n1.jpg,a,b\n")


@pytest.mark.parametrize("root", [None, "photos"])
def test_a_relative_listing_is_read_in_a_process_of_another_folder(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str | None
) -> None:
    """Paths are made absolute in the driver, and the listing itself does not change."""
    folder = photos if root is None else tmp_path
    monkeypatch.chdir(folder)
    Path("list.csv").write_text("path,label\ncats/1.jpg,cat\n")
    source = open_source("list.csv", "listing", None, ListingOptions(root=root))
    listing = source.list()
    packed = pickle.dumps(source)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = pickle.loads(packed)
    assert listing.names == ["cats/1.jpg"]
    assert copy.read(listing.located(0)) == b"cats/1.jpg"
    assert copy.uri == str(folder / "list.csv")
