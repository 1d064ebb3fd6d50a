"""The bytes of a decoded image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptImage
from iobench.data.pixels import packed, unpacked

sides = st.integers(1, 9)


@given(sides, sides, st.integers(0, 255))
def test_packed_pixels_come_back(height: int, width: int, first: int) -> None:
    """Every pixel is equal for any shape of the image."""
    image = (np.arange(height * width * 3) + first).astype(np.uint8).reshape(height, width, 3)
    assert np.array_equal(unpacked(packed(image)), image)


def test_the_layout_is_the_documented_one() -> None:
    """The bytes are height, width, then RGB by rows."""
    image = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)
    assert packed(image) == b"\x01\0\0\0\x02\0\0\0\x01\x02\x03\x04\x05\x06"


def test_nothing_is_copied() -> None:
    """The unpacked pixels share the memory of the record."""
    record = bytearray(packed(np.zeros((2, 2, 3), np.uint8)))
    image = unpacked(record)
    record[8] = 7
    assert image[0, 0, 0] == 7


@pytest.mark.parametrize(
    "data", [b"", b"\x01\0\0\0", b"\0" * 8, b"\x01\0\0\0\x01\0\0\0\x00", b"\xff\xd8\xff\xe0" * 9]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    """Neither an encoded image nor a part of a packed one is accepted."""
    with pytest.raises(CorruptImage, match="not a decoded image"):
        unpacked(data)


@given(st.binary(max_size=40))
def test_no_bytes_pass_by_mistake(data: bytes) -> None:
    """Bytes that are accepted are exactly those of a packed image."""
    try:
        image = unpacked(data)
    except CorruptImage:
        return
    assert packed(image) == data
