"""Tests of dataprep.names."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given

from dataprep.names import escape, to_bytes, unescape
from tests.strategies import distinct_names, file_names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n01440764/n01440764_10026.JPEG", "n01440764/n01440764_10026.JPEG"),
        ("naïve 犬 🐕.jpg", "naïve 犬 🐕.jpg"),
        ("a\tb\nc", r"a\x09b\x0ac"),
        ("back\\slash", r"back\\slash"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
        ("\x85\u2028\u2029", r"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"),
        (r"\x41", r"\\x41"),
        ("\x7f\x00", r"\x7f\x00"),
    ],
)
def test_known_names(name: str, text: str) -> None:
    """Ordinary names look like themselves; the documented rest is escaped byte for byte."""
    assert escape(name) == text
    assert unescape(text) == name


@given(name=file_names)
def test_escaped_names_come_back(name: str) -> None:
    """Any name comes back, and so do its bytes."""
    assert unescape(escape(name)) == name
    assert os.fsdecode(to_bytes(name)) == name


@given(name=file_names)
def test_escaped_names_are_one_field_of_one_line(name: str) -> None:
    """An escaped name is valid UTF-8, one line, free of tabs, and survives JSON."""
    text = escape(name)
    assert text.encode().decode() == text
    assert text.splitlines() == ([text] if text else [])
    assert "\t" not in text
    assert json.loads(json.dumps(text)) == text


@given(names=distinct_names)
def test_different_names_stay_different(names: list[str]) -> None:
    """No two names share an escaped form or bytes."""
    assert len({escape(name) for name in names}) == len(names)
    assert len({to_bytes(name) for name in names}) == len(names)


def test_a_text_that_is_escaped_in_part_keeps_its_other_bytes() -> None:
    """As in a .lst whose names somebody wrote both ways."""
    assert unescape(os.fsdecode(b"a\\x09b\xe9")) == os.fsdecode(b"a\tb\xe9")
