"""PURE. The label space: the classes of an output and their labels (``labels.json``)."""

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
"""The highest class number that can be its own label if there are gaps below it."""
_NUMBER_AND_TEXT = re.compile(r"\d+\.(.+)")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Label:
    """A class.

    Attributes:
        index: the label, which counts from 0.
        synset: the name of the class, such as that of its folder.
        text: a description of the class.
    """

    index: int
    synset: str
    text: str


is_synset = re.compile(r"n\d{8}").fullmatch
"""Whether a name is a WordNet id such as ``n01440764``: a match, or None."""


is_number = re.compile(r"-?[0-9]+").fullmatch
"""Whether a name is a whole number in any form, such as 7, 007 or -1: a match, or None."""


def are_whole(names: Collection[str]) -> bool:
    """Whether there are names and all of them are whole numbers in normal form: 10, not 010."""
    return bool(names) and all(_WHOLE_NUMBER.fullmatch(name) for name in names)


@dataclass(frozen=True)
class LabelSpace:
    """The classes of an output, in order: the label of a class is its index in ``labels``."""

    labels: tuple[Label, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> LabelSpace:
        """Number classes in the byte order of their names. Repeated names are ignored."""
        return cls.in_order(by_bytes(set(names)))

    @classmethod
    def numbered(cls, names: Iterable[str]) -> LabelSpace:
        """Number classes whose names are whole numbers in numeric order: 10 comes after 9.

        If the names are 0 to K-1, each class is its own label.
        """
        return cls.in_order(sorted(set(names), key=int))

    @classmethod
    def as_numbered(cls, names: Collection[str]) -> LabelSpace:
        """Number classes whose names are whole numbers, so that each class is its own label.

        Numbers between them become classes without samples. Otherwise, labels would change.

        Raises:
            ValueError: a number is above ``HIGHEST_NUMBER``.
        """
        highest = max(map(int, names))
        if highest > HIGHEST_NUMBER:
            raise ValueError(f"the number {highest} is above {HIGHEST_NUMBER:,}")
        return cls.in_order([str(number) for number in range(highest + 1)])

    @classmethod
    def in_order(cls, names: Sequence[str]) -> LabelSpace:
        """Number classes in the given order. All names must differ."""
        return cls(tuple(Label(i, name, _default_text(name)) for i, name in enumerate(names)))

    def with_texts(self, texts: Mapping[str, str]) -> LabelSpace:
        """The same classes with other texts. ``texts`` has the text of some classes by name."""
        labels = [replace(label, text=texts.get(label.synset, label.text)) for label in self.labels]
        return LabelSpace(tuple(labels))

    @cached_property
    def index(self) -> dict[str, int]:
        """The label of each class, by its name."""
        return {label.synset: label.index for label in self.labels}

    def synset_of(self, label: int) -> str:
        """The name of the class with this label; empty for -1, which means no class."""
        return self.labels[label].synset if label >= 0 else ""

    @cached_property
    def are_synsets(self) -> bool:
        """Whether every class is a WordNet synset."""
        return bool(self.labels) and all(is_synset(label.synset) for label in self.labels)

    def to_json(self) -> bytes:
        """The content of ``labels.json``.

        It has the format of ``json.dumps`` with an indent of 1, which would be slow for many
        classes.
        """
        if not self.labels:
            return json.dumps({"schema": SCHEMA, "classes": []}, indent=1).encode() + b"\n"
        rows = []
        for label in self.labels:
            synset, text = escape(label.synset), escape(label.text)
            rows.append({"index": label.index, "synset": synset, "text": text})
        compact = json.dumps(rows, separators=(",\n   ", ": "))
        classes = compact.replace("},\n   {", "\n  },\n  {\n   ")
        content = classes[2:-2]  # without "[{" and "}]"
        return (
            f'{{\n "schema": {SCHEMA},\n "classes": [\n  {{\n   {content}\n  }}\n ]\n}}\n'
        ).encode()

    @classmethod
    def from_json(cls, data: bytes, name: str = "labels.json") -> LabelSpace:
        """Read ``labels.json``. Errors call the file ``name``.

        Raises:
            DatasetError: the file has another form.
            SchemaTooNew: a newer version wrote it.
        """
        with malformed_as(DatasetError, f"{name} cannot be read"):
            classes = typed(list[Label], parse(data, name, SCHEMA)["classes"])
            labels = [
                Label(label.index, unescape(label.synset), unescape(label.text))
                for label in classes
            ]
            numbers = [label.index for label in labels]
            require(numbers == list(range(len(labels))), "its 'index' does not count from 0")
            space = cls(tuple(labels))
            require(len(space.index) == len(labels), "it names a class twice")
            return space


def _default_text(name: str) -> str:
    """The text of a class without a text. It is empty for a synset.

    For a name as in Caltech-256, ``001.ak47``, it is the part after the number.
    """
    if is_synset(name):
        return ""
    match = _NUMBER_AND_TEXT.fullmatch(name)
    return match[1] if match else name
