"""Tests of dataprep.schema."""

from __future__ import annotations

import pytest

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.schema import malformed_as, parse


def test_known_schemas_are_read() -> None:
    """Every schema up to the newest known one is read."""
    assert parse(b'{"schema": 1, "a": 2}', "file", 3) == {"schema": 1, "a": 2}
    assert parse(b'{"schema": 3}', "file", 3) == {"schema": 3}


def test_newer_schemas_are_refused_by_name() -> None:
    """A newer schema is refused with the file, both numbers and what to do."""
    with pytest.raises(SchemaTooNew, match=r"file: schema 4; .* up to 3: upgrade"):
        parse(b'{"schema": 4}', "file", 3)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"null", b'{"schema": "x"}', b"\xff"])
def test_anything_else_is_one_error(data: bytes) -> None:
    """Whatever is wrong with a file, one error names it."""
    with (
        pytest.raises(DatasetError, match="file: no good"),
        malformed_as(DatasetError, "file: no good"),
    ):
        parse(data, "file", 3)


def test_errors_of_ours_pass_unchanged() -> None:
    """An error that already says what to do is not wrapped in another."""
    with pytest.raises(SchemaTooNew), malformed_as(DatasetError, "file"):
        parse(b'{"schema": 4}', "file", 3)
