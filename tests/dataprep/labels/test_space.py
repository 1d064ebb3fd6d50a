"""The label space, labels.json, and the 1,000 synsets of ILSVRC2012 are consistent."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.labels import Label, LabelSpace, are_whole, is_synset
from dataprep.labels.imagenet_synsets import difference_from_imagenet, imagenet_synsets
from dataprep.name_encoding import to_bytes
from tests.strategies import distinct_names, json_values


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("n01440764", True),
        ("n0144076", False),
        ("n014407641", False),
        ("x01440764", False),
        ("N01440764", False),
        ("n01440764\n", False),
    ],
)
def test_synsets_have_one_form(name: str, expected: bool) -> None:
    """A synset is an n and eight digits."""
    assert bool(is_synset(name)) is expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["0", "10", "9"], True), ([], False), (["1", "01"], False), (["1", "-1"], False)],
)
def test_whole_numbers_have_one_form(names: list[str], expected: bool) -> None:
    """All names have to be whole numbers in normal form, and there must be one."""
    assert are_whole(names) is expected


def test_texts_of_classes() -> None:
    """A plain folder is its own text, Caltech's number is removed, and a synset has no text."""
    space = LabelSpace.of(["n01440764", "001.ak47", "dogs"])
    assert space.labels == (
        Label(0, "001.ak47", "ak47"),
        Label(1, "dogs", "dogs"),
        Label(2, "n01440764", ""),
    )
    assert [label.text for label in space.with_texts({"dogs": "Canis"}).labels] == [
        *("ak47", "Canis", ""),
    ]


def test_synset_spaces() -> None:
    """A space is one of synsets only if every class is one, and if there is a class."""
    assert LabelSpace.of(["n01440764", "n01443537"]).are_synsets
    assert not LabelSpace.of(["n01440764", "dogs"]).are_synsets
    assert not LabelSpace.of([]).are_synsets


@given(names=distinct_names)
def test_labels_count_in_byte_order(names: list[str]) -> None:
    """Labels are indexes from 0 in byte order of the names, in any order of the input."""
    space = LabelSpace.of([*names, *reversed(names)])
    ordered = sorted(names, key=to_bytes)
    assert [label.synset for label in space.labels] == ordered
    assert [label.index for label in space.labels] == list(range(len(names)))
    assert [space.index[name] for name in ordered] == list(range(len(names)))


def test_numbers_are_ordered_as_numbers() -> None:
    """Numbers from 0 to K-1 are their own labels, so 10 comes after 9."""
    space = LabelSpace.sorted_by_number(str(number) for number in (11, *range(11)))
    assert [(label.index, label.synset) for label in space.labels] == [
        (number, str(number)) for number in range(12)
    ]


@given(names=distinct_names)
def test_labels_json_is_read_back(names: list[str]) -> None:
    """A space is read back from labels.json, including names that are not UTF-8."""
    space = LabelSpace.of(names)
    assert LabelSpace.from_json(space.to_json()) == space


def test_labels_json_has_the_documented_bytes() -> None:
    """labels.json holds the schema, then index, synset and text of each class, in ASCII."""
    assert LabelSpace.of(["001.ak47", "caf\xe9"]).to_json() == (
        b'{\n "schema": 1,\n "classes": [\n'
        b'  {\n   "index": 0,\n   "synset": "001.ak47",\n   "text": "ak47"\n  },\n'
        b'  {\n   "index": 1,\n   "synset": "caf\\u00e9",\n   "text": "caf\\u00e9"\n  }\n'
        b" ]\n}\n"
    )


@pytest.mark.process
def test_any_class_name_is_read_under_any_locale() -> None:
    """An output from elsewhere may have classes that the encoding of the locale lacks."""
    data = LabelSpace.of(["猫"]).to_json()
    code = "import sys; from dataprep.labels import LabelSpace; "
    code += "print(ascii(LabelSpace.from_json(sys.stdin.buffer.read()).labels[0].synset))"
    environment = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=data,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout.decode().strip() == ascii("猫")


def test_a_newer_labels_json_is_refused() -> None:
    """A newer schema is refused even if its content is unknown."""
    with pytest.raises(SchemaTooNew, match=r"schema 2.*upgrade"):
        LabelSpace.from_json(b'{"schema": 2, "labels": {}}')


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([(1, "a", "a")], "does not count from 0"),
        ([(0, "a", "a"), (1, "a", "b")], "names a class twice"),
        ([("x", "a", "a")], "0.index"),
        ([(0, "\ud800", "a")], "class 0 is not valid Unicode"),
        ([(0, "a", "a"), (1, "b", "\ud800")], "class 1 is not valid Unicode"),
    ],
)
def test_a_damaged_labels_json_is_refused(
    rows: list[tuple[object, str, str]], problem: str
) -> None:
    """The reason names the file and the fault."""
    classes = [dict(zip(("index", "synset", "text"), row, strict=True)) for row in rows]
    with pytest.raises(DatasetError, match=rf"labels\.json cannot be read: .*{problem}"):
        LabelSpace.from_json(json.dumps({"schema": 1, "classes": classes}).encode())


@given(content=json_values.map(json.dumps).map(str.encode) | st.binary())
def test_other_content_is_no_labels_json(content: bytes) -> None:
    """Arbitrary bytes and JSON raise a DatasetError, nothing else."""
    with pytest.raises(DatasetError):
        LabelSpace.from_json(content)


def test_there_are_a_thousand() -> None:
    """The list has 1,000 synsets, sorted, tench first and toilet tissue last."""
    synsets = imagenet_synsets()
    assert len(set(synsets)) == 1000
    assert list(synsets) == sorted(synsets)
    assert (synsets[0], synsets[1], synsets[-1]) == ("n01440764", "n01443537", "n15075141")
    assert hashlib.sha256("\n".join(synsets).encode()).hexdigest()[:8] == "385e0240"


def test_nothing_differs() -> None:
    """There is no remark for the 1,000, for classes that are no synsets, or for no classes."""
    assert difference_from_imagenet(imagenet_synsets()) is None
    assert difference_from_imagenet(["cat", "n01440764"]) is None
    assert difference_from_imagenet([]) is None


@pytest.mark.parametrize(
    ("classes", "parts"),
    [
        (imagenet_synsets()[1:], ["999 of ImageNet's 1,000 classes: labels", "=ilsvrc2012 keeps"]),
        ((*imagenet_synsets(), "n00000001"), ["1,000 of", " and 1 other, such as n00000001: "]),
        (("n00000001", "n00000002"), ["0 of", " and 2 others, such as n00000001: labels differ"]),
    ],
    ids=["one fewer", "one more", "others"],
)
def test_differences_are_counted(classes: tuple[str, ...], parts: list[str]) -> None:
    """Synsets in and outside of ImageNet are counted, and one outside of it is named."""
    message = difference_from_imagenet(classes) or ""
    assert all(part in message for part in parts)
