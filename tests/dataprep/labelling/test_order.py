"""Tests of dataprep.labelling.order."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError
from dataprep.labelling.order import parse_order
from dataprep.labels import Label, LabelSpace
from tests.strategies import distinct_names

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


@pytest.mark.parametrize("text", NUMBERED.values(), ids=NUMBERED.keys())
def test_numbers_in_the_file_are_the_labels(text: str) -> None:
    """Whichever way classes and numbers stand, and the place in the file where there are none."""
    assert parse_order(text.encode(), "file") == (("ant", "dog", "cat"), {})


def test_a_second_column_of_words_is_the_text() -> None:
    """Tables and JSON of names and texts are in the order of the file; Keras' by its numbers."""
    for text in (
        "zebra,Equus\nant\n",
        '{"zebra": "Equus", "ant": ""}',
        '{"1": ["ant"], "0": ["zebra", "Equus"]}',
    ):
        assert parse_order(text.encode(), "file") == (("zebra", "ant"), {"zebra": "Equus"})


def test_classes_may_be_numbers() -> None:
    """As a column of their own, or as torchvision has folders of numbers, sorted as texts."""
    assert parse_order(b"0\n1\n10\n2\n", "file")[0] == ("0", "1", "10", "2")
    folders = {name: label for label, name in enumerate(sorted(map(str, range(12))))}
    assert parse_order(json.dumps(folders).encode(), "file")[0] == tuple(folders)
    assert parse_order(b"0,0\n1,1\n", "file")[0] == ("0", "1")


@given(names=distinct_names)
def test_a_labels_json_is_read_back(names: list[str]) -> None:
    """That of another output gives its labels and texts, whatever its classes are called."""
    space = LabelSpace(tuple(Label(i, name, f"a {i}") for i, name in enumerate(names)))
    order, texts = parse_order(space.to_json(), "labels.json")
    assert LabelSpace.in_order(order).with_texts(texts) == space


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: names no class"),
        ("{}", "file: names no class"),
        ("ant\nbee\nant\n", "file: the class 'ant' stands there twice"),
        ('{"ant": 1, "bee": 2}', "labels of 2 classes are 0 to 1, each once, but in it 0 is miss"),
        ("1,ant\n2,bee\n", "but in it 0 is missing; without numbers"),
        ("ant,1\nbee,1\n", "but in it 1 stands there twice"),
        ('{"0": ["a"], "5": ["b"]}', "but in it 1 is missing"),
        ("0,ant\n0,bee\n", "line 2: '0' is 'bee' here and 'ant' before"),
        ("0,ant\n1\n", "line 2: '1' stands alone"),
        ("0,1\n1,0\n", "file: both columns are numbers"),
        ('{"schema": 1, "classes": 2}', "file: labels.json cannot be read"),
    ],
)
def test_what_is_no_order_is_refused(text: str, message: str) -> None:
    """The reason names the file, and the label or line."""
    with pytest.raises(ConfigError, match=message):
        parse_order(text.encode(), "file")


almost_orders = st.from_regex(r'[\[{",:a01\]}\n\t ]*').map(str.encode)


@given(data=st.binary() | almost_orders)
def test_any_bytes(data: bytes) -> None:
    """Whatever a file holds, distinct classes or a ConfigError come of it."""
    with contextlib.suppress(ConfigError):
        order, texts = parse_order(data, "file")
        assert order
        assert len(set(order)) == len(order)
        assert texts.keys() <= set(order)
