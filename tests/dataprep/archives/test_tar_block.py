"""Tests of dataprep.archives.tar_block."""

from __future__ import annotations

import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.archives.tar_block import BLOCK, is_header, number, pax_records
from tests.tars import tar_of


@given(value=st.integers(0, 2**62))
def test_numbers_are_those_of_tarfile(value: int) -> None:
    """Octal and base-256 fields of Python's tarfile read as what was written."""
    assert number(tarfile.itn(value, 12, tarfile.GNU_FORMAT)) == value  # type: ignore[attr-defined]


def test_signed_checksums_are_taken() -> None:
    """Headers whose checksum adds up signed bytes, as old programs have them, are headers."""
    block = bytearray(tar_of({"ü": b""}))[:BLOCK]
    assert is_header(bytes(block))
    signed = sum(b - 256 if b > 127 else b for b in block[:148] + block[156:]) + 256
    block[148:156] = b"%06o\0 " % signed
    assert is_header(bytes(block))
    block[0] ^= 1
    assert not is_header(bytes(block))


@pytest.mark.parametrize(
    "content", [b"5", b"99 a=b\n", b"6 ab\n\n", b"0 a=b\n", b"x a=b\n", b"7 a=bc"]
)
def test_pax_records_that_follow_no_rule(content: bytes) -> None:
    """A pax header whose records do not add up is refused."""
    with pytest.raises(ValueError, match="pax record"):
        pax_records(content)


def test_pax_records() -> None:
    """Records may hold equals signs and line feeds; the length decides."""
    assert pax_records(b"9 a=b=\nc\n7 p=qq\n\0\0") == {b"a": b"b=\nc", b"p": b"qq"}
