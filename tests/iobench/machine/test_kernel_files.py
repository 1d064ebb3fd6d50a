"""Small files of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.machine.kernel_files import number, text, word


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written anew by each example."""
    return tmp_path_factory.mktemp("kernel") / "file"


@given(st.binary(max_size=200))
def test_whatever_stands_there_is_read(file: Path, content: bytes) -> None:
    """No bytes break it; a word is short and plain."""
    file.write_bytes(content)
    assert isinstance(text(file), str)
    found = word(file)
    assert len(found) <= 60
    assert found.isascii()
    assert found.isprintable()
    assert found == " ".join(found.split()) or len(found) == 60


@given(st.integers(0, 10**20))
def test_numbers(file: Path, value: int) -> None:
    """With the line feed that the kernel adds."""
    file.write_text(f"{value}\n")
    assert number(file) == value


@pytest.mark.parametrize("content", ["", "max", "-1", "1 2", "1.5", "٣", "9" * 5000])
def test_other_things_are_no_number(file: Path, content: str) -> None:
    """Nor digits of other scripts, nor more of them than any number of the kernel's has."""
    file.write_text(content)
    assert number(file) is None


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    """A missing file, and a folder."""
    for path in (tmp_path / "gone", tmp_path):
        assert (text(path), word(path), number(path)) == ("", "", None)
