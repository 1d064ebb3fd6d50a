"""Classes and their numbers: one label space for all splits of an output."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

from dataprep.counted import counted
from dataprep.errors import DatasetError, OutputConflict
from dataprep.names import by_bytes, escape_all, unescape
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1
_NUMBERED = re.compile(r"\d+\.(.+)")
_as_json = json.encoder.encode_basestring_ascii
_WHOLE = re.compile(r"0|[1-9][0-9]*")


class Label(NamedTuple):
    """One class: ``synset`` is its folder's name, ``text`` what people call it."""

    index: int  # type: ignore[assignment]  # hides tuple.index
    synset: str
    text: str


@dataclass(frozen=True, slots=True)
class _Class:
    index: int
    synset: str
    text: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """``labels.json``, names escaped."""

    classes: tuple[_Class, ...]


is_synset = re.compile(r"n\d{8}").fullmatch
"""Whether a name is a WordNet id such as ``n01440764``: a match, or None."""


def are_whole(names: Collection[str]) -> bool:
    """Whether there are names, and all are whole numbers as one writes them: 10, not 010."""
    return bool(names) and all(_WHOLE.fullmatch(name) for name in names)


@dataclass(frozen=True)
class LabelSpace:
    """Classes, in the byte order of their names or one that was given; a label is the index."""

    labels: tuple[Label, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> LabelSpace:
        """The space of these class folders, each once."""
        return cls.in_order(by_bytes(set(names)))

    @classmethod
    def in_order(cls, names: Sequence[str]) -> LabelSpace:
        """The space of these classes, labels in the order given; no name stands there twice."""
        labels = [
            Label(i, name, "" if is_synset(name) else _text(name)) for i, name in enumerate(names)
        ]
        return cls(tuple(labels))

    def with_texts(self, texts: Mapping[str, str]) -> LabelSpace:
        """The same classes, called as ``texts`` says where it says something."""
        if not texts:
            return self
        return LabelSpace(
            tuple(label._replace(text=texts.get(label.synset, label.text)) for label in self.labels)
        )

    @classmethod
    def numbered(cls, names: Iterable[str]) -> LabelSpace:
        """The space of classes whose names are whole numbers, in the order of these.

        Where they are 0 to K-1 each number is its own label; 10 comes after 9.
        """
        return cls.in_order(sorted(set(names), key=int))

    @cached_property
    def index(self) -> dict[str, int]:
        """Class name to label."""
        return {label.synset: label.index for label in self.labels}

    @property
    def texts(self) -> dict[str, str]:
        """Class name to what people call it."""
        return {label.synset: label.text for label in self.labels}

    @cached_property
    def are_synsets(self) -> bool:
        """Whether every class is a WordNet synset."""
        return bool(self.labels) and all(map(is_synset, [label.synset for label in self.labels]))

    def require(self, names: Iterable[str], split: str) -> None:
        """Refuse a split whose classes are not all in this space.

        Raises:
            OutputConflict: it names the classes that are not.
        """
        strangers = by_bytes(set(names) - self.index.keys())
        if strangers:
            shown = ", ".join(repr(name) for name in strangers[:5])
            more = f" and {len(strangers) - 5} more" if len(strangers) > 5 else ""
            raise OutputConflict(
                f"split {split!r} has {counted(len(strangers), 'class')} that labels.json of this "
                f"output does not know: {shown}{more}. All splits share one label space: use "
                "another --output, or check the source"
            )

    def require_order(self, names: Sequence[str], split: str) -> None:
        """Refuse a split that asks for other labels than these.

        Raises:
            OutputConflict: it names the first label that differs.
        """
        own = tuple(label.synset for label in self.labels)
        if own == tuple(names):
            return
        pairs = enumerate(zip_longest(own, names))
        first, (here, there) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        raise OutputConflict(
            f"labels.classes gives split {split!r} other labels than labels.json of this output: "
            f"label {first} is {_shown(here)} in labels.json and {_shown(there)} in labels.classes "
            f"({counted(len(own), 'class')} and {len(names):,}). All splits share one label space: "
            "leave labels.classes out, or use another --output"
        )

    def other_texts(self, texts: Mapping[str, str]) -> tuple[Label, ...]:
        """The classes that ``texts`` calls something else."""
        return tuple(
            label for label in self.labels if texts.get(label.synset, label.text) != label.text
        )

    def to_json(self) -> bytes:
        """``labels.json``."""
        synsets = map(_as_json, escape_all([label.synset for label in self.labels]))
        texts = map(_as_json, escape_all([label.text for label in self.labels]))
        # As json.dumps with indent=1 writes it, which is slow for many classes.
        rows = [
            f'{{\n   "index": {index},\n   "synset": {synset},\n   "text": {text}\n  }}'
            for index, (synset, text) in enumerate(zip(synsets, texts, strict=True))
        ]
        classes = "[\n  " + ",\n  ".join(rows) + "\n ]" if rows else "[]"
        return f'{{\n "schema": {SCHEMA},\n "classes": {classes}\n}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes, name: str = "labels.json") -> LabelSpace:
        """Read ``labels.json``; ``name`` is what errors call it.

        Raises:
            DatasetError: it is no such file.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(DatasetError, f"{name} cannot be read"):
            rows = typed(_Stored, parse(data, name, SCHEMA)).classes
            labels = tuple(Label(r.index, unescape(r.synset), unescape(r.text)) for r in rows)
            numbers = [label.index for label in labels]
            require(numbers == list(range(len(labels))), "its 'index' does not count from 0")
            names = {label.synset for label in labels}
            require(len(names) == len(labels), "a class stands there twice")
            return cls(labels)


def _shown(name: str | None) -> str:
    return "none" if name is None else repr(name)


def _text(name: str) -> str:
    """A readable text: Caltech's ``001.ak47`` is "ak47"."""
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name
