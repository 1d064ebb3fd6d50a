"""Tests of dataprep.labels."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DatasetError, OutputConflict, SchemaTooNew
from dataprep.labels import Label, LabelSpace, are_whole, is_synset
from dataprep.names import to_bytes
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
def test_synsets_are_known_by_their_form(name: str, expected: bool) -> None:
    """A synset is an n and eight digits, nothing else."""
    assert bool(is_synset(name)) is expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["0", "10", "9"], True), ([], False), (["1", "01"], False), (["1", "-1"], False)],
)
def test_whole_numbers_are_known_by_their_form(names: list[str], expected: bool) -> None:
    """All have to be whole numbers as one writes them; no names are none."""
    assert are_whole(names) is expected


def test_texts() -> None:
    """A plain folder is its own text, Caltech's number is dropped, a synset has no text."""
    space = LabelSpace.of(["n01440764", "001.ak47", "dogs"])
    assert space.labels == (
        Label(0, "001.ak47", "ak47"),
        Label(1, "dogs", "dogs"),
        Label(2, "n01440764", ""),
    )
    assert not space.are_synsets


def test_synset_spaces() -> None:
    """A space is one of synsets only if every class is, and there is one."""
    assert LabelSpace.of(["n01440764", "n01443537"]).are_synsets
    assert not LabelSpace.of([]).are_synsets


@given(names=distinct_names)
def test_labels_count_in_byte_order(names: list[str]) -> None:
    """Labels are 0-based indexes in byte order of the names, whatever order or repeats come in."""
    space = LabelSpace.of([*names, *reversed(names)])
    ordered = [label.synset for label in space.labels]
    assert ordered == sorted(names, key=to_bytes)
    assert [label.index for label in space.labels] == list(range(len(names)))
    assert [space.index[name] for name in ordered] == list(range(len(names)))


@given(names=distinct_names)
def test_labels_json_comes_back(names: list[str]) -> None:
    """A space comes back from labels.json, names that are not UTF-8 included."""
    space = LabelSpace.of(names)
    assert LabelSpace.from_json(space.to_json()) == space


def test_labels_json_is_as_documented() -> None:
    """labels.json holds the schema and index, synset and text of each class."""
    assert json.loads(LabelSpace.of(["001.ak47"]).to_json()) == {
        "schema": 1,
        "classes": [{"index": 0, "synset": "001.ak47", "text": "ak47"}],
    }


def test_a_newer_labels_json_is_refused() -> None:
    """A newer schema is refused even where its content is unknown."""
    with pytest.raises(SchemaTooNew, match=r"schema 2.*upgrade"):
        LabelSpace.from_json(b'{"schema": 2, "labels": {}}')


@given(content=json_values.map(json.dumps).map(str.encode) | st.binary())
def test_other_content_is_no_labels_json(content: bytes) -> None:
    """Arbitrary bytes and JSON raise a DatasetError, nothing else."""
    with pytest.raises(DatasetError):
        LabelSpace.from_json(content)


def test_strangers_are_named() -> None:
    """A split with unknown classes is refused, up to five of them named; a subset is not."""
    space = LabelSpace.of("abc")
    space.require("ab", "validation")
    with pytest.raises(OutputConflict, match=r"'validation' has 1 class .*: 'x'\."):
        space.require("ax", "validation")
    names: Any = [f"x{i}" for i in range(7)]
    with pytest.raises(OutputConflict, match=r"7 classes .*'x0', .*'x4' and 2 more"):
        space.require(names, "validation")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("acb", "label 1 is 'b' in labels.json and 'c' in labels.classes"),
        ("ab", "label 2 is 'c' in labels.json and none in labels.classes"),
        ("abcd", "label 3 is none in labels.json and 'd' in labels.classes"),
    ],
)
def test_another_order_is_refused(order: str, said: str) -> None:
    """The first label that differs is named; the same order is not refused."""
    space = LabelSpace.of("abc")
    space.require_order("abc", "validation")
    with pytest.raises(OutputConflict, match=said):
        space.require_order(order, "validation")


def test_other_texts() -> None:
    """Classes that are called something else, and none of those of which nothing is said."""
    space = LabelSpace.of("abc")
    assert space.other_texts({"a": "a", "b": "B", "x": "X"}) == (Label(1, "b", "b"),)
    assert space.other_texts({}) == ()


def test_numbers_are_ordered_as_numbers() -> None:
    """Where they are 0 to K-1 each is its own label, and 10 comes after 9."""
    space = LabelSpace.numbered(str(number) for number in (11, *range(11)))
    assert [(label.index, label.synset) for label in space.labels] == [
        (number, str(number)) for number in range(12)
    ]
