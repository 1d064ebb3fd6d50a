"""Tests of dataprep.image.tiff."""

from __future__ import annotations

import pytest

from dataprep.image.tiff import has_whole_directory
from dataprep.sample import encodings as enc
from dataprep.sample.drawing import draw_image
from tests.dataprep.image.test_depth import by_opencv

IMAGE = draw_image(10, 40, 30, detail=0.2)
FILES = [
    enc.pillow(IMAGE, "TIFF"),
    enc.pillow(IMAGE, "TIFF", compression="tiff_lzw"),
    by_opencv(".tiff", IMAGE.astype("uint16")),
]


@pytest.mark.parametrize("data", FILES)
def test_whole_files(data: bytes) -> None:
    """A sound file's directory is in it."""
    assert has_whole_directory(data)


@pytest.mark.parametrize("data", FILES)
@pytest.mark.parametrize("big", [False, True])
def test_directories_that_are_cut(data: bytes, big: bool) -> None:
    """Cut in the directory, or before it, in any order of bytes, it is not whole."""
    start = int.from_bytes(data[4:8], "little")
    for size in (8, start + 1, start + 2, start + 40):
        assert not has_whole_directory(data[:size])
    if big:
        assert not has_whole_directory(b"MM\0*" + data[4:])


def test_values_that_are_cut() -> None:
    """Values that stand behind the directory belong to it."""
    data = FILES[1]
    assert not has_whole_directory(data[:-1])
