"""Tests of dataprep.archives.compression."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from dataprep.archives.compression import beginning, compression_of, hint


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (gzip.compress(b"x", mtime=0), "gzip"),
        (lzma.compress(b"x"), "xz"),
        (bz2.compress(b"x"), "bzip2"),
        (b"\x28\xb5\x2f\xfd rest", "zstd"),
        (b"\xff\xd8\xff\xe0", None),
        (b"", None),
    ],
)
def test_compressions_are_told_by_content(data: bytes, name: str | None) -> None:
    """The first bytes say how a file is compressed."""
    assert compression_of(data) == name


@pytest.mark.parametrize(
    ("name", "program"), [("xz", "unxz"), ("bzip2", "bunzip2"), ("zstd", "unzstd")]
)
def test_the_hint_names_the_program(name: str, program: str) -> None:
    """Who has another compression than gzip is told what to run."""
    assert program in hint(name)


def test_the_beginning_of_a_gzip_file() -> None:
    """The first bytes of the content come from the first bytes of the file, and none of damage."""
    content = bytes(i * 7 % 251 for i in range(100_000))
    assert beginning(gzip.compress(content)[:4096], 512) == content[:512]
    assert beginning(b"\x1f\x8b\x08" + b"\xff" * 100, 512) == b""
