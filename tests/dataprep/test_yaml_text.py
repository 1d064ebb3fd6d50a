"""Tests of dataprep.yaml_text."""

from __future__ import annotations

import pytest

from dataprep.yaml_text import LARGEST_BYTES, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"", None),
        (b"a: 1\nb: [x, 2.5]\n", {"a": 1, "b": ["x", 2.5]}),
        ("base: &b {x: 1}\none: {<<: *b, y: 2}\n", {"base": {"x": 1}, "one": {"x": 1, "y": 2}}),
        ("a: &a [1, 2]\nb: [*a, *a]\n", {"a": [1, 2], "b": [[1, 2], [1, 2]]}),
    ],
)
def test_plain_documents_are_read(text: bytes | str, value: object) -> None:
    """Aliases and merged keys too, as people use them."""
    assert parse_yaml(text) == value


def laughs(form: str) -> str:
    """Twelve lines that stand for 10^11 values."""
    lines = ["a0: &a0 {x: y}"]
    for level in range(1, 12):
        names = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} " + form.format(names))
    return "\n".join(lines)


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}]}}", "{{k: [{}]}}"])
def test_aliases_of_aliases_are_counted_first(form: str) -> None:
    """No memory is taken for what they stand for; the line is told."""
    with pytest.raises(ValueError, match=r"more than 100,000 values.*line \d+"):
        parse_yaml(laughs(form))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[" * 100_000, "nested too deeply.*line 1, column 5"),
        ("- " * 100_000, "nested too deeply.*line 1"),
        ("{a: " * 3000, "nested too deeply"),
        ("a: &a [*a]", "holds itself.*line 1|unhashable|recursive"),
        ("a: 1\na: 2\n", "'a' stands twice.*line 2"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor.*line 1"),
        ("a: 2024-13-01", "month must be in"),
        ("a: " + "9" * 5000, "4300 digits"),
        ("? [a]\n: b\n", "unhashable key"),
        ('a: "b\\0c"', "a NUL or half a character.*line 1, column 4"),
        ('"\\ud800": 1', "a NUL or half a character.*line 1"),
        ("a: \x00", "special characters are not allowed"),
        ("--- a\n--- b\n", "expected a single document"),
        (b"a: \xff", "invalid start byte"),
        ("a" * (LARGEST_BYTES + 1), "1,048,576 are read at most"),
    ],
)
def test_others_are_refused_in_one_way(text: bytes | str, what: str) -> None:
    """As one kind of error, in one line."""
    with pytest.raises(ValueError, match=what) as error:
        parse_yaml(text)
    assert type(error.value) is ValueError
    assert "\n" not in str(error.value)
