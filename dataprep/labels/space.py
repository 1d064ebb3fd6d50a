"""PURE. The label space: the classes of an output and their numbers (``labels.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dataprep.errors import DatasetError
from dataprep.names import by_bytes, escape, unescape
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1
HIGHEST_NUMBER = 999_999
"""The highest class number that is its own label although classes below it have no samples."""
_NUMBERED = re.compile(r"\d+\.(.+)")
_WHOLE = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Label:
    """One class: ``synset`` is the name of its folder, ``text`` its name in words."""

    index: int
    synset: str
    text: str


is_synset = re.compile(r"n\d{8}").fullmatch
"""Whether a name is a WordNet id such as ``n01440764``: a match, or None."""


is_number = re.compile(r"-?[0-9]+").fullmatch
"""Whether a name is a whole number in any form, such as 7, 007 or -1: a match, or None."""


def are_whole(names: Collection[str]) -> bool:
    """Whether there are names, and all are whole numbers in normal form: 10, not 010."""
    return bool(names) and all(_WHOLE.fullmatch(name) for name in names)


@dataclass(frozen=True)
class LabelSpace:
    """Classes in the order of their labels: a label is an index into ``labels``."""

    labels: tuple[Label, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> LabelSpace:
        """Number these classes in the byte order of their names; repeats are ignored."""
        return cls.in_order(by_bytes(set(names)))

    @classmethod
    def numbered(cls, names: Iterable[str]) -> LabelSpace:
        """Number classes whose names are whole numbers in numeric order: 10 comes after 9.

        Where the names are 0 to K-1 each class is its own label.
        """
        return cls.in_order(sorted(set(names), key=int))

    @classmethod
    def as_numbered(cls, names: Collection[str]) -> LabelSpace:
        """Number classes whose names are whole numbers so that each of them is its own label.

        Numbers between them are classes too. Without this, the labels of a file would change.

        Raises:
            ValueError: a number is above ``HIGHEST_NUMBER``.
        """
        highest = max(map(int, names))
        if highest > HIGHEST_NUMBER:
            raise ValueError(f"the number {highest} is above {HIGHEST_NUMBER:,}")
        return cls.in_order([str(number) for number in range(highest + 1)])

    @classmethod
    def in_order(cls, names: Sequence[str]) -> LabelSpace:
        """Number these classes, all different, in the order given."""
        return cls(tuple(Label(i, name, _default_text(name)) for i, name in enumerate(names)))

    def with_texts(self, texts: Mapping[str, str]) -> LabelSpace:
        """Return the same classes with the texts that ``texts`` gives, by class name."""
        labels = [replace(one, text=texts.get(one.synset, one.text)) for one in self.labels]
        return LabelSpace(tuple(labels))

    @cached_property
    def index(self) -> dict[str, int]:
        """Class name to label."""
        return {label.synset: label.index for label in self.labels}

    def synset_of(self, label: int) -> str:
        """The class with this label; empty for -1, the label of a sample without a class."""
        return self.labels[label].synset if label >= 0 else ""

    @cached_property
    def are_synsets(self) -> bool:
        """Whether every class is a WordNet synset."""
        return bool(self.labels) and all(is_synset(label.synset) for label in self.labels)

    def to_json(self) -> bytes:
        """Return the content of ``labels.json``.

        It is what ``json.dumps`` writes with an indent of 1, which is slow for many classes.
        """
        if not self.labels:
            return json.dumps({"schema": SCHEMA, "classes": []}, indent=1).encode() + b"\n"
        classes = json.dumps(
            [
                {"index": one.index, "synset": escape(one.synset), "text": escape(one.text)}
                for one in self.labels
            ],
            separators=(",\n   ", ": "),
        ).replace("},\n   {", "\n  },\n  {\n   ")
        return (
            f'{{\n "schema": {SCHEMA},\n "classes": [\n  {{\n   {classes[2:-2]}\n  }}\n ]\n}}\n'
        ).encode()

    @classmethod
    def from_json(cls, data: bytes, name: str = "labels.json") -> LabelSpace:
        """Read ``labels.json``; errors call it ``name``.

        Raises:
            DatasetError: the file has another form.
            SchemaTooNew: a newer version wrote it.
        """
        with malformed_as(DatasetError, f"{name} cannot be read"):
            classes = typed(list[Label], parse(data, name, SCHEMA)["classes"])
            labels = [Label(one.index, unescape(one.synset), unescape(one.text)) for one in classes]
            numbers = [label.index for label in labels]
            require(numbers == list(range(len(labels))), "its 'index' does not count from 0")
            space = cls(tuple(labels))
            require(len(space.index) == len(labels), "it names a class twice")
            return space


def _default_text(name: str) -> str:
    """Return a text made from a class name: Caltech's ``001.ak47`` is "ak47", a synset has none."""
    if is_synset(name):
        return ""
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name
