"""Tests of dataprep.archives.inflation."""

from __future__ import annotations

import pytest

from dataprep.archives.inflation import cost_in_words


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([3_060], "3.1 kB are decompressed once, about 1 s of one processor."),
        ([3_140_000], "3.1 MB are decompressed once, about 1 s of one processor."),
        ([10**9] * 2, "2.0 GB in 2 files are decompressed once, about 8 s of one processor."),
        ([148 * 10**6] * 1000, "148.0 GB in 1,000 files are decompressed once, about 10 min of"),
    ],
)
def test_what_it_costs(sizes: list[int], words: str) -> None:
    """The bytes, the files where they are several, and the time stand in units that fit."""
    line = cost_in_words(sizes)
    assert line.startswith(f"compressed: {words}")
    assert line.endswith("gunzip --keep would spare both")


def test_how_far_points_lie_apart() -> None:
    """Of an archive of many GB points lie further apart, and each read costs more."""
    assert "up to 1 MiB of decompression before it" in cost_in_words([10**9] * 100)
    assert "up to 5 MiB of decompression before it" in cost_in_words([148 * 10**9])


def test_files_of_which_some_may_be_plain() -> None:
    """Where nobody knows how many are compressed, it is at most all of them."""
    assert "compressed: up to 4.0 MB in 4 files are" in cost_in_words([10**6] * 4, at_most=True)
