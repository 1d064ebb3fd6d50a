"""Tests of dataprep.image.check."""

from __future__ import annotations

import numpy as np
import pytest

from dataprep.errors import CorruptImage, NotAnImage
from dataprep.image import ImagePolicy, check, convert
from dataprep.sample.drawing import draw_image
from tests import encodings as enc

IMAGE = draw_image(6, 160, 120, detail=0.2)
PLAIN = enc.jpeg(IMAGE)


@pytest.mark.parametrize("encoding", ["jpeg", "png", "webp"])
@pytest.mark.parametrize(
    ("data", "channels"), [(enc.rgba_png(IMAGE), 4), (PLAIN, 3), (enc.grey_jpeg(IMAGE), 1)]
)
def test_what_is_stored_is_found_sound(encoding: str, data: bytes, channels: int) -> None:
    """Width, height and channels of every encoding; cut anywhere it does not decode."""
    alpha = "flatten" if encoding == "jpeg" else "keep"
    policy = ImagePolicy.model_validate({"encoding": encoding, "alpha": alpha})
    stored = convert(data, policy)
    wanted = {("jpeg", 4): 3, ("webp", 1): 3}.get((encoding, channels), channels)
    assert check(stored.data) == (160, 120, wanted)
    assert stored.channels == wanted
    for size in (40, len(stored.data) // 2, len(stored.data) - 20):
        with pytest.raises((CorruptImage, NotAnImage)):
            check(stored.data[:size])


def test_damage_within() -> None:
    """A JPEG damaged in its middle, and a PNG with one wrong byte, do not decode."""
    with pytest.raises(CorruptImage, match="corrupt JPEG"):
        check(enc.with_garbage(PLAIN, np.random.default_rng(0)))
    png = bytearray(enc.pillow(IMAGE, "PNG"))
    png[len(png) // 2] ^= 1
    with pytest.raises(CorruptImage):
        check(bytes(png))


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "BMP"])
def test_what_is_never_stored(kind: str) -> None:
    """Other containers are refused."""
    with pytest.raises(CorruptImage, match="not a JPEG, PNG or WebP: begins with"):
        check(enc.pillow(IMAGE, kind, "P" if kind == "GIF" else "RGB"))


@pytest.mark.parametrize("data", [enc.deep_png(IMAGE, grey=True), enc.palette_png(IMAGE)])
def test_pngs_that_were_not_stored_here(data: bytes) -> None:
    """A PNG of 16 bits or with a palette is none that this package stores."""
    with pytest.raises(CorruptImage, match="nothing that was stored here"):
        check(data)
