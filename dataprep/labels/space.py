"""PURE. The label space: the classes of an output and their labels (``labels.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dataprep.errors import DatasetError
from dataprep.name_encoding import by_bytes, escape, is_encodable, unescape
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1
HIGHEST_NUMBER = 999_999
"""The highest class number that can be its own label.

All lower numbers become classes too, also without samples. This limits the size of a label space.
"""
_NUMBER_AND_TEXT = re.compile(r"\d+\.(.+)")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Label:
    """A class and its label.

    Attributes:
        index: the label, which counts from 0.
        synset: the name of the class, which need not be a synset, such as the name of its folder.
        text: a description of the class; empty if there is none.
    """

    index: int
    synset: str
    text: str


is_synset = re.compile(r"n\d{8}").fullmatch
"""Whether a name is a WordNet ID such as ``n01440764``. Returns a match or None."""


is_number = re.compile(r"-?[0-9]+").fullmatch
"""Whether a name is a whole number in any form, such as 7, 007 or -1. Returns a match or None."""


def are_whole(names: Collection[str]) -> bool:
    """Whether all names are whole numbers in the usual form, such as 10, not 010.

    The result is False if there are no names.
    """
    return bool(names) and all(_WHOLE_NUMBER.fullmatch(name) for name in names)


@dataclass(frozen=True)
class LabelSpace:
    """The classes of an output. The label of a class is its index in ``labels``."""

    labels: tuple[Label, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> LabelSpace:
        """Number classes in the byte order of their names. Repeated names are ignored."""
        return cls.in_order(by_bytes(set(names)))

    @classmethod
    def sorted_by_number(cls, names: Iterable[str]) -> LabelSpace:
        """Number classes whose names are whole numbers, in numeric order: 10 comes after 9.

        If the names are 0 to K-1, the label of each class is its name.
        """
        return cls.in_order(sorted(set(names), key=int))

    @classmethod
    def with_numbers_as_labels(cls, names: Collection[str]) -> LabelSpace:
        """Number classes whose names are whole numbers, so that the label of a class is its name.

        Lower numbers that are not among the names become classes without samples. Without them, the
        labels of higher numbers would change.

        Args:
            names: at least one whole number in the usual form.

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
        labels = [Label(index, name, _default_text(name)) for index, name in enumerate(names)]
        return cls(tuple(labels))

    def with_texts(self, texts: Mapping[str, str]) -> LabelSpace:
        """Return the classes with new texts, which are given by the names of their classes."""
        labels = [replace(label, text=texts.get(label.synset, label.text)) for label in self.labels]
        return LabelSpace(tuple(labels))

    @cached_property
    def index(self) -> dict[str, int]:
        """The label of each class, by its name."""
        return {label.synset: label.index for label in self.labels}

    def synset_of(self, label: int) -> str:
        """The name of the class with this label; empty for the label -1, which means no class."""
        return self.labels[label].synset if label >= 0 else ""

    @cached_property
    def are_synsets(self) -> bool:
        """Whether there are classes, and each of them is a WordNet synset."""
        return bool(self.labels) and all(is_synset(label.synset) for label in self.labels)

    def to_json(self) -> bytes:
        """Encode the classes as the content of ``labels.json``.

        The result is the same as with ``json.dumps(..., indent=1)``, which is slow for many
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
        """Read the content of ``labels.json``. Error messages contain ``name``.

        Raises:
            DatasetError: the content does not have the expected structure, or names a class twice.
            SchemaTooNew: a newer version of this package wrote the file.
        """
        with malformed_as(DatasetError, f"{name} cannot be read"):
            classes = typed(list[Label], parse(data, name, SCHEMA)["classes"])
            labels = [
                Label(label.index, unescape(label.synset), unescape(label.text))
                for label in classes
            ]
            numbers = [label.index for label in labels]
            require(numbers == list(range(len(labels))), "its 'index' does not count from 0")
            for label in labels:
                is_valid = is_encodable(label.synset) and is_encodable(label.text)
                require(is_valid, f"the name or text of class {label.index} is not valid Unicode")
            space = cls(tuple(labels))
            require(len(space.index) == len(labels), "it names a class twice")
            return space


def _default_text(name: str) -> str:
    """The text of a class for which no text is given.

    It is empty for a synset. For a name such as ``001.ak47`` (Caltech-256), it is the part after
    the number. For all other names, it is the name itself.
    """
    if is_synset(name):
        return ""
    match = _NUMBER_AND_TEXT.fullmatch(name)
    return match[1] if match else name
