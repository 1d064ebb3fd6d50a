"""Tests of dataprep.errors."""

from __future__ import annotations

import builtins
import pickle
import re

import pytest

from dataprep import errors
from dataprep.errors import DataprepError, ImageError, RecordError

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, DataprepError)
}


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """Class to parent and builtin, as the tree in the module's docstring shows them."""
    found: dict[str, tuple[str | None, str | None]] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").split("::", 1)[1].splitlines():
        if match := re.match(r"([ │├└─]*)(\w+)(?:\s+([A-Z]\w+)(?=\s\s))?(?:\s|$)", line):
            depth, name, builtin = len(match[1]), match[2], match[3]
            while above and above[-1][0] >= depth:
                above.pop()
            found[name] = (above[-1][1] if above else None, builtin)
            above.append((depth, name))
    return found


def test_the_tree_lists_every_class() -> None:
    """The drawn tree holds exactly the classes of the module."""
    assert drawn().keys() == CLASSES.keys()
    assert len(CLASSES) > 25


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_each_error_stands_where_it_is_drawn(name: str) -> None:
    """Each class has the parent that the tree shows, and is the builtin beside it."""
    parent, builtin = drawn()[name]
    bases = CLASSES[name].__bases__
    wanted = {Exception if parent is None else CLASSES[parent]}
    if builtin is not None:
        wanted.add(getattr(builtins, builtin))
    assert set(bases) == wanted


@pytest.mark.parametrize("kind", CLASSES.values(), ids=str)
def test_errors_cross_processes(kind: type[DataprepError]) -> None:
    """Each error keeps class and message through pickle, as on its way from a worker."""
    again = pickle.loads(pickle.dumps(kind("what to do: 7 %")))
    assert type(again) is kind
    assert str(again) == "what to do: 7 %"
    assert again.exit_code == kind.exit_code


@pytest.mark.parametrize(
    "kind", [value for value in CLASSES.values() if not issubclass(value, RecordError)], ids=str
)
def test_an_exit_code_of_its_own_crosses_too(kind: type[DataprepError]) -> None:
    """An error whose exit code was changed keeps it through pickle."""
    error = kind("refused")
    error.exit_code = 77
    assert pickle.loads(pickle.dumps(error)).exit_code == 77


@pytest.mark.parametrize(
    "kind", [value for value in CLASSES.values() if issubclass(value, RecordError)], ids=str
)
def test_record_errors_keep_their_place(kind: type[RecordError]) -> None:
    """A record error keeps record and offset through pickle; without them both are -1."""
    again = pickle.loads(pickle.dumps(kind("broken", record=3, offset=2**40)))
    assert (str(again), again.record, again.offset) == ("broken", 3, 2**40)
    assert (kind("broken").record, kind("broken").offset) == (-1, -1)


def test_image_errors_have_kinds_of_their_own() -> None:
    """Every image error is counted under a kind of its own."""
    kinds = [value.kind for value in CLASSES.values() if issubclass(value, ImageError)]
    assert len(kinds) == len(set(kinds)) == 10


def test_exit_codes() -> None:
    """Wrong requests end with 2, jobs that ran with 1."""
    wrong = {name for name, value in CLASSES.items() if value.exit_code == 2}
    assert wrong == {
        "ConfigError",
        "CorruptArchive",
        "DatasetError",
        "FormatMissing",
        "ManifestMissing",
        "NotAnArchive",
        "OutputConflict",
        "SchemaTooNew",
        "SourceError",
        "SourceNotFound",
        "TruncatedArchive",
    }
    assert {value.exit_code for value in CLASSES.values()} == {1, 2}
