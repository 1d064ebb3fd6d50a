"""Tests of dataprep.augment.jpeg_rows."""

from __future__ import annotations

import io

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dataprep.augment.crops import Box
from dataprep.augment.decode import decode_part
from dataprep.augment.jpeg_rows import upper_rows

WIDTH, HEIGHT = 203, 181
NOISE = np.random.default_rng(3).integers(90, 160, (HEIGHT, WIDTH, 3)).astype(np.uint8)


def encoded(mode: str, sampling: int, progressive: bool, restarts: int) -> bytes:
    """Noise, of which no two rows are alike, as a JPEG."""
    sink = io.BytesIO()
    options = {} if mode == "L" else {"subsampling": sampling}
    Image.fromarray(NOISE).convert(mode).save(
        sink,
        "JPEG",
        quality=50,
        progressive=progressive,
        restart_marker_blocks=restarts,
        **options,
    )
    return sink.getvalue()


@pytest.mark.parametrize("restarts", [0, 3], ids=["plain", "restarts"])
@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize(
    ("mode", "sampling"),
    [("RGB", 0), ("RGB", 1), ("RGB", 2), ("L", 0)],
    ids=["444", "422", "420", "grey"],
)
def test_rows_above_are_those_of_the_whole(
    mode: str, sampling: int, progressive: bool, restarts: int
) -> None:
    """Whatever the number of rows, all but the last few are byte for byte the same."""
    data = encoded(mode, sampling, progressive, restarts)
    whole = simplejpeg.decode_jpeg(data, "RGB", strict=False)
    for rows in range(5, HEIGHT - 16, 7):
        upper = upper_rows(data, rows)
        assert upper is not None
        pixels = simplejpeg.decode_jpeg(upper, "RGB", strict=False)
        assert pixels.shape == (rows, WIDTH, 3)
        assert np.array_equal(pixels[: rows - 4], whole[: rows - 4])


@pytest.mark.parametrize("size", [9, 20, 40, 64], ids=lambda size: f"to {size}")
@pytest.mark.parametrize("top", [0, 5, 60])
def test_a_part_is_that_of_the_whole_decoded(size: int, top: int) -> None:
    """At every fraction a part has the pixels that it has where nothing is left out."""
    data = encoded("RGB", 2, False, 0)
    box = Box(10, top, 150, 80)
    part = decode_part(data, lambda *_: box, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dataprep.augment.decode.upper_rows", lambda *_: None)
        assert np.array_equal(part, decode_part(data, lambda *_: box, size))


def test_less_is_decoded() -> None:
    """A part near the top is decoded without the rows far below it, whatever stands there."""
    data = encoded("RGB", 2, False, 0)
    cut = data[: len(data) // 2] + b"\0" * (len(data) // 4) + b"\xff\xd9"
    box = Box(0, 0, WIDTH, 40)
    assert np.array_equal(
        decode_part(cut, lambda *_: box, 32), decode_part(data, lambda *_: box, 32)
    )


@pytest.mark.parametrize("data", [b"", b"\xff\xd8", b"\xff\xd8\xff\xc0", b"no image"])
def test_what_is_no_jpeg(data: bytes) -> None:
    """Nothing can be said of it."""
    assert upper_rows(data, 8) is None


def test_arithmetic_coding_is_left_alone() -> None:
    """Only kinds that are known to be decoded so are changed."""
    data = encoded("RGB", 2, False, 0)
    at = data.index(b"\xff\xc0") + 1
    assert upper_rows(data[:at] + b"\xc9" + data[at + 1 :], 8) is None


def test_the_image_itself_stays() -> None:
    """A view of a shard is read, not written to."""
    data = bytearray(encoded("RGB", 2, False, 0))
    before = bytes(data)
    upper = upper_rows(memoryview(data), 20)
    assert upper is not None
    assert bytes(upper) != before == bytes(data)
