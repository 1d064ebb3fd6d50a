"""JSON files with a schema number, read as the types that they were written from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.manifest import Count
from dataprep.schema import malformed_as, parse, require, typed


@dataclass(frozen=True, slots=True)
class Inner:
    """A part of a file."""

    size: Count
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """A file."""

    name: str
    parts: tuple[Inner, ...]
    points: tuple[tuple[int, int], ...]
    by_name: Mapping[str, Inner]
    config: Mapping[str, Any]
    share: float = 0.5


SOUND = Outer("a", (Inner(1), Inner(2, "e")), ((1, 2),), {"x": Inner(3)}, {"k": [None, 1.5]})


def stored() -> dict[str, Any]:
    """What a file of it holds."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(SOUND)))
    return content


def test_known_schemas_are_read() -> None:
    """Every schema up to the newest known one is read."""
    assert parse(b'{"schema": 1, "a": 2}', "file", 3) == {"schema": 1, "a": 2}
    assert parse(b'{"schema": 3}', "file", 3) == {"schema": 3}


def test_newer_schemas_are_refused_by_name() -> None:
    """A newer schema is refused with the file, both numbers and what to do, as itself."""
    with (
        pytest.raises(SchemaTooNew, match=r"file: schema 4; .* up to 3: upgrade"),
        malformed_as(DatasetError, "other"),
    ):
        parse(b'{"schema": 4}', "file", 3)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"null", b'{"schema": "x"}', b'{"schema": 0}', b"\xff"]
)
def test_anything_else_is_one_error(data: bytes) -> None:
    """Whatever is wrong with a file, one error names it."""
    with (
        pytest.raises(DatasetError, match="file: no good"),
        malformed_as(DatasetError, "file: no good"),
    ):
        parse(data, "file", 3)


def test_what_was_written_comes_back() -> None:
    """Lists become tuples, and JSON objects the dataclasses that they were."""
    assert typed(Outer, stored()) == SOUND


def test_unknown_keys_are_ignored() -> None:
    """A later version can add keys; those with a default may be missing."""
    content = stored()
    content["novelty"] = content["parts"][0]["novelty"] = 1
    del content["share"], content["parts"][0]["etag"]
    assert typed(Outer, content) == SOUND


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["name"], 1),
        (["name"], None),
        (["parts"], {}),
        (["parts", 1, "size"], "2"),
        (["parts", 1, "size"], True),
        (["parts", 1, "size"], 2.5),
        (["parts", 1, "size"], -1),
        (["parts", 1, "size"], 2**63),
        (["parts", 1, "etag"], 7),
        (["points", 0], [1]),
        (["by_name", "x"], []),
        (["share"], "a half"),
    ],
)
def test_another_type_is_refused_with_its_key(path: list[Any], value: object) -> None:
    """A value that cannot have been written so is an error that names its key."""
    content: Any = stored()
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=r"\.".join(map(str, path))):
        typed(Outer, content)


def test_a_missing_key_is_named() -> None:
    """With the keys that lead to it."""
    content = stored()
    del content["by_name"]["x"]["size"]
    with pytest.raises(ValueError, match=r"'by_name\.x\.size': Field required"):
        typed(Outer, content)


def test_require() -> None:
    """A condition that does not hold raises the problem."""
    require(True, "never")
    with pytest.raises(ValueError, match="it is so"):
        require(False, "it is so")
