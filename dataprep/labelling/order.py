"""PURE. Which label each class has, from the files in which people keep that.

A class a line; ``0,cat`` or ``cat,0``; JSON as torchvision's ``class_to_idx`` (``{"cat": 0}``),
Hugging Face's ``id2label`` (``{"0": "cat"}``), Keras' ``{"0": ["n01440764", "tench"]}`` or a list;
a ``labels.json`` of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from dataprep.counted import counted
from dataprep.errors import ConfigError, DatasetError
from dataprep.labelling.tables import Pair, json_of, once, pairs, text_of
from dataprep.labels import LabelSpace

_T = TypeVar("_T")


class _Row(NamedTuple):
    name: str
    text: str
    label: int


def parse_order(data: bytes, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The classes in the order of their labels, and what people call some of them.

    Where the file gives numbers they are the labels; otherwise a class's place in it is.

    Args:
        data: the file.
        name: of the file, for errors.

    Raises:
        ConfigError: it names no class or one twice, or its labels are not 0 to K-1, each once.
    """
    rows = _rows(data, name)
    if not rows:
        raise ConfigError(f"{name}: names no class")
    twice = _repeated(row.name for row in rows)
    if twice is not None:
        raise ConfigError(f"{name}: the class {twice!r} stands there twice")
    rows.sort(key=lambda row: row.label)
    _require_all([row.label for row in rows], name)
    return tuple(row.name for row in rows), {row.name: row.text for row in rows if row.text}


def _rows(data: bytes, name: str) -> list[_Row]:
    content = json_of(text_of(data, name), name)
    if isinstance(content, dict):
        if {"schema", "classes"} <= content.keys():
            return _of_labels(data, name)
        values = list(content.values())
        if all(type(value) is int for value in values):  # a bool is none
            return [_Row(key, "", value) for key, value in content.items()]
        if all(isinstance(value, list) for value in values):
            numbers = sorted(map(int, content)) if all(map(_is_number, content)) else []
            found = pairs(data, name)  # in the order of the numbers
            return [_Row(r.key, r.value or "", n) for n, r in zip(numbers, found, strict=True)]
    return list(_of_columns(pairs(data, name), name))


def _of_labels(data: bytes, name: str) -> list[_Row]:
    try:
        space = LabelSpace.from_json(data)
    except DatasetError as error:
        raise ConfigError(f"{name}: {error}") from None
    return [_Row(label.synset, label.text, label.index) for label in space.labels]


def _of_columns(found: Sequence[Pair], name: str) -> Iterator[_Row]:
    first = all(_is_number(row.key) for row in found)
    second = all(_is_number(row.value) for row in found)
    if first and second and any(row.key != row.value for row in found):
        raise ConfigError(
            f"{name}: both columns are numbers, and either could be the labels: write the classes "
            "alone, a line each, in the order of their labels"
        )
    if second:
        for name_of, number in once(found, name).items():
            yield _Row(name_of, "", int(number))
    elif first and any(row.value for row in found):
        for number, name_of in once(found, name).items():
            yield _Row(name_of, "", int(number))
    else:
        for place, row in enumerate(found):
            yield _Row(row.key, row.value or "", place)


def _is_number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdigit() and len(text) < 10


def _require_all(labels: Sequence[int], name: str) -> None:
    if list(labels) == list(range(len(labels))):
        return
    twice, missing = _repeated(labels), set(range(len(labels))).difference(labels)
    what = f"{twice} stands there twice" if twice is not None else f"{min(missing)} is missing"
    raise ConfigError(
        f"{name}: the labels of {counted(len(labels), 'class')} are 0 to {len(labels) - 1}, each "
        f"once, but in it {what}; without numbers classes are labelled in the order of the file"
    )


def _repeated(values: Iterable[_T]) -> _T | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)
