"""Small files about classes are read: tables, lists, JSON, meta.mat, and ground truth."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.labels import Label, LabelSpace
from dataprep.labels.class_files import (
    GROUND_TRUTH,
    HEADERS,
    META,
    Row,
    class_order,
    column_mapping,
    ground_truth,
    has_ilsvrc_ids,
    read_rows,
    unpack_devkit,
)
from tests.dataprep.labels.devkits import meta_mat, tarball
from tests.strategies import distinct_names

SHAPES = {
    "LOC_synset_mapping.txt": "n01440764 tench, Tinca tinca\nn01443537 goldfish\n",
    "imagenet_metadata.txt": "n01440764\ttench, Tinca tinca\nn01443537\tgoldfish\n",
    "csv": 'n01440764,"tench, Tinca tinca"\nn01443537,goldfish\n',
    "csv with a header": 'synset,text\nn01440764,"tench, Tinca tinca"\nn01443537,goldfish\n',
    "keras": '{"1": ["n01443537", "goldfish"], "0": ["n01440764", "tench, Tinca tinca"]}',
    "json": '{"n01440764": "tench, Tinca tinca", "n01443537": "goldfish"}',
    "labels.json": LabelSpace.of(["n01440764", "n01443537"])
    .with_texts({"n01440764": "tench, Tinca tinca", "n01443537": "goldfish"})
    .to_json()
    .decode(),
    "byte order mark": "\ufeffn01440764\ttench, Tinca tinca\r\n\r\n# words\nn01443537\tgoldfish",
}
NUMBERED = {
    "class_to_idx": '{"dog": 1, "cat": 2, "ant": 0}',
    "id2label": '{"1": "dog", "0": "ant", "2": "cat"}',
    "keras": '{"1": ["dog"], "0": ["ant"], "2": ["cat"]}',
    "list": '["ant", "dog", "cat"]',
    "lines": "ant\ndog\ncat\n",
    "lines with a header": "class\nant\ndog\ncat\n",
    "number first": "1,dog\n0,ant\n2,cat\n",
    "number last": "class,label\ndog,1\ncat,2\nant,0\n",
    "tabs": "index\tname\n1\tdog\n0\tant\n2\tcat\n",
}


def cells_in(text: str) -> list[tuple[str | int, ...]]:
    """The cells of each row."""
    return [cells for _, cells in read_rows(text.encode(), "file")]


def order_in(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The classes by label, and their texts."""
    return class_order(read_rows(text.encode(), "file"), "file")


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_texts_of_classes(text: str) -> None:
    """Every customary file gives class and text."""
    expected = {"n01440764": "tench, Tinca tinca", "n01443537": "goldfish"}
    assert column_mapping(read_rows(text.encode(), "file")) == expected


def test_meta_mat_has_the_classes_without_children() -> None:
    """The rows have ID, synset and words. A parent synset of WordNet is left out."""
    assert [cells for _, cells in read_rows(meta_mat(), "meta.mat")] == [
        (1, "n02119789", "kit fox, Vulpes macrotis"),
        (2, "n02100735", "English setter"),
        (3, "n02110185", "Siberian husky"),
    ]


@pytest.mark.parametrize("data", [meta_mat()[:300], b"MATLAB", b"MATLAB 7.3 MAT-file" + bytes(500)])
def test_another_matlab_file_is_refused(data: bytes) -> None:
    """The error names the file."""
    with pytest.raises(ConfigError, match=r"kit/meta\.mat is not the devkit's meta\.mat"):
        read_rows(data, "kit/meta.mat")


@pytest.mark.parametrize("text", NUMBERED.values(), ids=NUMBERED.keys())
def test_numbers_in_the_file_are_the_labels(text: str) -> None:
    """A number before or behind the class is its label. Otherwise the line number is the label."""
    assert order_in(text) == (("ant", "dog", "cat"), {})


@pytest.mark.parametrize(
    "text",
    [
        "zebra,Equus\nant\n",
        '{"zebra": "Equus", "ant": ""}',
        '{"1": ["ant"], "0": ["zebra", "Equus"]}',
    ],
)
def test_a_second_column_of_words_is_the_text(text: str) -> None:
    """Tables and JSON are in the order of the file, and Keras' file in that of its numbers."""
    assert order_in(text) == (("zebra", "ant"), {"zebra": "Equus"})


def test_classes_may_be_numbers() -> None:
    """Classes may be numbers: in one column, in two equal ones, or numbered as by torchvision."""
    assert order_in("0\n1\n10\n2\n")[0] == ("0", "1", "10", "2")
    assert order_in("0,0\n1,1\n")[0] == ("0", "1")
    folders = {name: label for label, name in enumerate(sorted(map(str, range(12))))}
    assert order_in(json.dumps(folders))[0] == tuple(folders)


@given(names=distinct_names)
def test_a_labels_json_is_read_back(names: list[str]) -> None:
    """The labels.json of another output gives its labels and texts, for any names of classes."""
    space = LabelSpace(tuple(Label(i, name, f"a {i}") for i, name in enumerate(names)))
    order, texts = order_in(space.to_json().decode())
    assert LabelSpace.in_order(order).with_texts(texts) == space


@given(first=st.sampled_from(sorted(HEADERS)), second=st.sampled_from(sorted(HEADERS)))
def test_a_header_has_a_known_word_in_both_columns(first: str, second: str) -> None:
    """A row is a header only if both columns have a known word."""
    assert cells_in(f"{first.upper()},{second.title()}\ncat,Cat\n") == [("cat", "Cat")]
    for cells in ((f"x{first}", second), (first, f"x{second}"), (first, "")):
        assert cells_in(",".join(cells) + "\ncat,Cat\n") == [cells, ("cat", "Cat")]


def test_a_header_of_one_column() -> None:
    """Only a few words are headers of one column, because others are likely classes."""
    assert cells_in("Class\ncat\n") == [("cat",)]
    assert cells_in("image\ntext\n") == [("image",), ("text",)]


def test_comments_are_a_hash_and_a_space() -> None:
    """A name that begins with a hash and no space is a name."""
    assert cells_in("# old and new\n#\n#1.jpg,cat\n") == [("#1.jpg", "cat")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a,b\na,b,c\n", "file, line 2 has 3 columns"),
        (b"a,b\n,c\n", "file, line 2: the first column is empty"),
        (b'a,b\n"a,c\n', "file, line 2: unexpected end of data"),
        (b"\xff\xff", "file is not text in UTF-8"),
        ("a,b\n".encode("utf-16"), "file is not text in UTF-8: save it as UTF-8"),
        (b"{", "file is not JSON"),
        (b'{"0": ["a", "b", "c"]}', "entry 1: .* is not a class and its text"),
        (b'{"x": ["a", "b"]}', "entry 1: .* is not a class and its text"),
        (b'{"a": {"b": 1}}', "entry 1: .* is not a class and its text"),
        (b'["a", "\\ud800"]', "entry 2: .*ud800.* is not valid Unicode"),
        (b'{"a": "\\ud800"}', "entry 1: .* is not valid Unicode"),
        (b'["a", true]', "entry 2: .*true.* is not a class and its text"),
        (b'{"schema": 1, "classes": 2}', "^file cannot be read: "),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(data: bytes, message: str) -> None:
    """The error has the name of the file and the line or entry."""
    with pytest.raises(ConfigError, match=message):
        read_rows(data, "file")


def test_two_columns_need_one_value_for_each_key() -> None:
    """Repeated equal pairs and empty values are harmless. Another value, or none, is refused."""
    assert column_mapping(read_rows(b"a,b\na,b\nc,\n", "file")) == {"a": "b", "c": ""}
    with pytest.raises(ConfigError, match="file, line 2: 'a' is 'c' here and 'b' before"):
        column_mapping(read_rows(b"a,b\na,c\n", "file"))
    with pytest.raises(ConfigError, match="file, line 2: 'b' has no second column"):
        column_mapping(read_rows(b"a,\nb\n", "file"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file names no class"),
        ("{}", "file names no class"),
        ("ant\nbee\nant\n", "file names the class 'ant' more than once"),
        ('{"ant": 1, "bee": 2}', "labels of 2 classes must be 0 to 1, each once, but 0 is missing"),
        ("1,ant\n2,bee\n", "but 0 is missing; without numbers"),
        ("ant,1\nbee,1\n", "but 0 is missing"),
        ('{"0": ["a"], "5": ["b"]}', "but 1 is missing"),
        ("0,ant\n0,bee\n", "but 1 is missing"),
        ("0,ant\n1\n", "some lines have a number and a class"),
        ("0,ant\nbee\n", "some lines have a number and a class"),
        (
            "ant,1\nbee\n",
            "some lines have a number and a class, others one .*: write both in every",
        ),
        ("ant,1\nbee,\n", "some lines have a number and a class"),
        ("0,ant\n1,\n", "some lines have a number and a class"),
        ("0,\n1\n", "some lines have a number and a class"),
        ("cat,1998\ndog\n", "some lines have .*; .* is a text, give each class a text"),
        ("747,Boeing\nCessna\n", "some lines have .*; .* is a text, give each class a text"),
        ('[["ant", 1], ["bee"]]', "some entries have a number and a class, .*every entry"),
        ('[[0, "ant", "Ant"], ["bee"]]', "some entries have a number and a class"),
        ('[[0, "ant", "Ant"], ["bee", 1]]', "some entries have a number and a class"),
        ("0,1\n1,0\n", "file: both columns are numbers"),
        ("cat 0\ndog 1\n", "file, line 1: 'cat 0' has a blank between class and label"),
        ("cat 2\nsea dog 1\n", "file, line 1: 'cat 2' has a blank"),
        ("0 cat\n1 sea dog\n", "file, line 1: '0 cat' has a blank"),
    ],
)
def test_what_is_no_order_is_refused(text: str, message: str) -> None:
    """The reason names the file, and the label or class."""
    with pytest.raises(ConfigError, match=message):
        order_in(text)


@pytest.mark.parametrize("text", ["n01440764 7\nn01443537\n", "n01440764,7\nn01443537,\n"])
def test_a_number_beside_only_some_synsets_is_refused(text: str) -> None:
    """It is more probably a label, of which others were forgotten, than a text."""
    with pytest.raises(ConfigError, match="some lines have a number and a class, others one of"):
        order_in(text)


def test_some_synsets_may_have_no_text() -> None:
    """A text that is no number is not taken for a label."""
    text = "n01440764 tench\nn01443537\n"
    assert order_in(text) == (("n01440764", "n01443537"), {"n01440764": "tench"})


@pytest.mark.parametrize(
    "text",
    [
        "Boeing 707\nBoeing 737\n",
        "level 0\nlevel 1\n",
        "A 320\nB 1\n",
        "cat\ndog 1\n",
        "a 0,x\nb 1,y\n",
    ],
)
def test_names_with_numbers_in_them_are_names(text: str) -> None:
    """Numbers that cannot be labels, or that are all behind one name, belong to names."""
    assert order_in(text)[0] == tuple(line.split(",")[0] for line in text.splitlines())


almost_files = st.from_regex(r'[\[{",:a01\]}\n\t ]*').map(str.encode)


@given(data=st.binary() | st.text().map(str.encode) | almost_files)
def test_any_bytes(data: bytes) -> None:
    """Any bytes give distinct classes or a ConfigError."""
    with contextlib.suppress(ConfigError):
        order, texts = class_order(read_rows(data, "file"), "file")
        assert len(set(order)) == len(order) > 0
        assert texts.keys() <= set(order)


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
    assert has_ilsvrc_ids(read_rows(FILES[name], name)) == (name == "devkit")


@pytest.mark.parametrize("data", [b"490\n361,\n", b"490,\n361\n", b"490;;\n361;\n"])
def test_empty_columns_at_the_end_of_ids_are_ignored(data: bytes) -> None:
    """Spreadsheets write delimiters for empty columns after an ID."""
    assert has_ilsvrc_ids(read_rows(data, "file", spaced=True))
    assert ground_truth(read_rows(data, "file", spaced=True), "file", IDS) == EXPECTED


@pytest.mark.parametrize(
    ("data", "meta", "message"),
    [
        (b"490\n", None, "file, line 1: '490' is neither a synset nor an ID in meta.mat"),
        (b"490\n7\n", IDS, "line 2: '7' is neither a synset nor an ID in meta.mat"),
        (b"ImageId,PredictionString\na,x 1 2\n", None, "line 2: 'x' is neither a synset"),
        (b"ImageId,PredictionString\na\n", None, "line 2: 'a': expected a sample and its class"),
        (b"a\nb\n", None, "line 1: 'a' is neither a synset"),
        (b"a,\nb,c\n", None, "expected a sample and its class"),
        (b"n01751748\na,b\n", None, "line 2 has 2 columns, expected one"),
        (
            b"ImageId,PredictionString\na,n01751748 1\na,n09193705 1\n",
            None,
            "line 3: 'a' is 'n09193705' here and 'n01751748' before",
        ),
        (b"n01751748\n\nn09193705\n", None, "line 2 is empty or a comment, .*_val_00000002"),
        (b"n01751748\n# c\nn09193705\n", None, "line 2 is empty or a comment, but gives"),
        (
            b"\n490\n361\n",
            IDS,
            "line 1 is empty, a comment or a header, .*_val_00000001: write one",
        ),
        (b"synset\nn01751748\n", None, "line 1 is empty, a comment or a header, but gives"),
        (b"# c\nn01751748\n", None, "line 1 is empty, a comment or a header, but gives"),
        (b"n01751748\nn09193705,n01751748\n", None, "line 2 has 2 columns, expected one"),
        (b"490\n361,490\n", IDS, "line 2 has 2 columns, expected one .*: '361, 490'"),
        (b'["n01751748", ["n09193705", "cat"]]', None, "entry 2 has 2 columns, expected one"),
        (b"\n\n", None, "expected a sample and its class"),
        (b"", None, "expected a sample and its class"),
    ],
)
def test_what_gives_no_class_is_refused(data: bytes, meta: list[Row] | None, message: str) -> None:
    """The error has the line."""
    with pytest.raises(ConfigError, match=message):
        truth_in(data, meta)


@pytest.mark.parametrize(
    "text",
    [
        "a/1.jpg 3\nb, c.jpg 10\n",
        "a/1.jpg 3 \nb, c.jpg 10\t\n".replace("\t", "  "),
        "a/1.jpg   3\r\nb, c.jpg   10\r\n",
        "a/1.jpg;3\nb, c.jpg;10\n",
        "path;label\na/1.jpg;3;\nb, c.jpg;10;\n",
        'a/1.jpg,3\n"b, c.jpg",10,\n',
        "a/1.jpg\t3\nb, c.jpg\t10\t\n",
        "a/1.jpg 3.0\nb, c.jpg 10.0\n",
        "image label\na/1.jpg 3\nb, c.jpg 10\n",
    ],
)
def test_a_path_and_its_label_however_they_are_separated(text: str) -> None:
    """A path and its label are separated as in Caffe files, by semicolons, or at line ends."""
    truth = ground_truth(read_rows(text.encode(), "val.txt", spaced=True), "val.txt", [])
    assert truth == {"a/1.jpg": "3", "b, c.jpg": "10"}


@pytest.mark.parametrize(
    ("text", "shown_line"),
    [
        ("1.jpg 0 1\n2.jpg 1 0\n", "val.txt, line 1 has 3 columns, expected two: '1.jpg, 0, 1'"),
        ("1.jpg|3\n2.jpg|4\n", r"val.txt, line 1: '1.jpg\|3' is neither .*as in 1.jpg,cat"),
        ("1.jpg 3\n2.jpg\n", "val.txt, line 1: '1.jpg 3' is neither .*as in 1.jpg,cat"),
        ("1.jpg,3\n2.jpg,\n", "val.txt, line 2: '2.jpg, ': expected a sample and its class"),
        ("1.jpg;3\n2.jpg;\n", "val.txt, line 2: '2.jpg, ': expected a sample and its class"),
    ],
)
def test_a_line_that_is_not_understood_is_shown(text: str, shown_line: str) -> None:
    """The error has the line, the expected form, and the key or kind to set."""
    with pytest.raises(ConfigError, match=shown_line) as refusal:
        ground_truth(read_rows(text.encode(), "val.txt", spaced=True), "val.txt", [])
    assert "--kind listing" in str(refusal.value)


@pytest.mark.parametrize("data", [b"1\t20\n2\t3\n", b"1,20\n2,3\n"])
def test_a_table_of_numbers_is_no_list_of_ids(data: bytes) -> None:
    """Two columns are a sample and its class, with any names and separators."""
    assert not has_ilsvrc_ids(read_rows(data, "file"))
    assert truth_in(data) == {"1": "20", "2": "3"}


def test_blanks_before_quotes_are_no_part_of_a_class() -> None:
    """A table with a blank behind each comma gives the class without its quotes."""
    assert truth_in(b'"1.jpg", "cat, big"\n"2.jpg", "dog"\n') == {
        "1.jpg": "cat, big",
        "2.jpg": "dog",
    }


def test_the_tarball() -> None:
    """Both files of the devkit are found by base name, and any other file is returned as it is."""
    data = tarball({f"ILSVRC2012_devkit_t12/data/{META}": b"m", f"x/{GROUND_TRUTH}": b"g"})
    assert unpack_devkit(data, META, "devkit") == b"m"
    assert unpack_devkit(data, GROUND_TRUTH, "devkit") == b"g"
    assert unpack_devkit(b"text", META, "file") == b"text"


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
        (gzip.compress(gzip.decompress(tarball({"a": b"b"}))[:1024]), "unpacked: .* byte 1,024"),
    ],
    ids=["another", "link", "damaged", "cut", "without an end marker"],
)
def test_another_tarball_is_refused(data: bytes, message: str) -> None:
    """The error says what is missing, and links are not followed."""
    with pytest.raises(ConfigError, match=message):
        unpack_devkit(data, META, "devkit")
