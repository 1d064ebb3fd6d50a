"""Tests of dataprep.json_types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from dataprep.json_types import require, same_type, typed


@dataclass(frozen=True, slots=True)
class Inner:
    """A part of a file."""

    size: int
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
    sound: bool = True


SOUND = Outer("a", (Inner(1), Inner(2, "e")), ((1, 2),), {"x": Inner(3)}, {"k": [None, 1.5]})


def test_what_was_written_comes_back() -> None:
    """Lists become tuples, and keys with values the dataclasses that they were."""
    assert typed(Outer, json.loads(json.dumps(asdict(SOUND)))) == SOUND


def test_keys_of_later_versions_are_left_aside() -> None:
    """And those with a default may be missing."""
    content = json.loads(json.dumps(asdict(SOUND)))
    content["novelty"] = content["parts"][0]["novelty"] = 1
    del content["share"], content["parts"][0]["etag"]
    assert typed(Outer, content) == SOUND


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        (["name"], 1, "'name' is 1, not a text"),
        (["name"], None, "'name' is null, not a text"),
        (["name"], "\ud800", "surrogates"),
        (["parts"], {}, "'parts' is keys with values, not a list"),
        (["parts", 1, "size"], "2", r"'parts\.1\.size' is '2', not a whole number"),
        (["parts", 1, "size"], True, r"'parts\.1\.size' is true, not a whole number"),
        (["parts", 1, "size"], 2.0, r"'parts\.1\.size' is 2\.0, not a whole number"),
        (["parts", 1, "size"], 2**63, r"'parts\.1\.size' is a number of more than 64 bits"),
        (["parts", 1, "etag"], 7, r"'parts\.1\.etag' is 7, not a text"),
        (["points", 0], [1], r"'points\.0' has 1 values, not 2"),
        (["by_name", "x"], [], r"'by_name\.x' is a list, not keys with values"),
        (["share"], float("nan"), "'share' is nan, not a number"),
        (["share"], 10**400, "'share' is a number of more than 64 bits"),
        (["sound"], 1, "'sound' is 1, not true or false"),
    ],
)
def test_another_type_is_refused_with_its_key(path: list[Any], value: object, what: str) -> None:
    """Nothing is made of a value that was not written so."""
    content = json.loads(json.dumps(asdict(SOUND)))
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises((TypeError, ValueError, OverflowError), match=what):
        typed(Outer, content)


def test_a_key_that_is_missing_is_named() -> None:
    """With the keys that lead to it."""
    content = json.loads(json.dumps(asdict(SOUND)))
    del content["by_name"]["x"]["size"]
    with pytest.raises(TypeError, match=r"'by_name\.x\.size' is missing"):
        typed(Outer, content)


def test_lists_of_one_type() -> None:
    """Looked at together; the first that is another is told by its place."""
    assert same_type([1, 2], int, "n") == [1, 2]
    assert same_type(["a"], str, "n") == ["a"]
    with pytest.raises(TypeError, match="not a list"):
        same_type("ab", str, "n")
    with pytest.raises(TypeError, match=r"'n\.1' is '2'"):
        same_type([1, "2"], int, "n")
    with pytest.raises(TypeError, match="64 bits"):
        same_type([1, 2**63], int, "n")
    with pytest.raises(ValueError, match="surrogates"):
        same_type(["\udc80"], str, "n")


def test_require() -> None:
    """What does not hold is said."""
    require(True, "never")
    with pytest.raises(ValueError, match="it is so"):
        require(False, "it is so")
