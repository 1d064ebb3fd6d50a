"""The settings of each encoding, and its largest sides."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from dataprep.image import ImagePolicy, convert
from dataprep.image.geometry import Pixels
from dataprep.sample.drawing import draw_image
from tests import encodings as enc

PHOTO = draw_image(5, 160, 120, detail=0.3)
GREY = PHOTO[:, :, :1]
NOISE = np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8)


def encoded(pixels: Pixels, **keys: Any) -> bytes:
    """Encoded by a policy of these keys."""
    sink = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(sink, "TIFF")
    return convert(sink.getvalue(), ImagePolicy.model_validate(keys)).data


def shown(data: bytes) -> Image.Image:
    """Decoded by Pillow."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("quality", [30, 75, 95, 96, 100])
@pytest.mark.parametrize("subsampling", ["420", "444"])
def test_the_dct_is_accurate(quality: int, subsampling: str) -> None:
    """Another library's encoder with libjpeg's integer DCT gives the same picture."""
    sink = io.BytesIO()
    Image.fromarray(PHOTO).save(
        sink, "JPEG", quality=quality, subsampling={"420": "4:2:0", "444": "4:4:4"}[subsampling]
    )
    found = encoded(PHOTO, quality=quality, subsampling=subsampling)
    assert np.array_equal(np.asarray(shown(found)), np.asarray(shown(sink.getvalue())))


def test_the_default_is_baseline() -> None:
    """Without a word JPEGs have one scan, 4:2:0 and quality 95."""
    found = encoded(PHOTO)
    assert found == encoded(PHOTO, quality=95, subsampling="420")
    assert simplejpeg.decode_jpeg_header(found)[3] == "420"
    assert "progressive" not in shown(found).info


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("subsampling", ["420", "422", "444"])
@pytest.mark.parametrize("keys", [{"progressive": True}, {"optimize": True}])
def test_progressive_and_optimised(channels: int, subsampling: str, keys: dict[str, Any]) -> None:
    """They are what they say, smaller than plain files, and show the same picture."""
    pixels = PHOTO[:, :, :channels]
    plain = encoded(pixels, subsampling=subsampling)
    found = encoded(pixels, subsampling=subsampling, **keys)
    assert ("progressive" in shown(found).info) == ("progressive" in keys)
    assert len(found) < len(plain)
    assert simplejpeg.decode_jpeg_header(found)[3] == ("Gray" if channels == 1 else subsampling)
    assert np.array_equal(np.asarray(shown(found)), np.asarray(shown(plain)))


@pytest.mark.parametrize("keys", [{"progressive": True}, {"optimize": True}])
def test_noise_at_quality_100(keys: dict[str, Any]) -> None:
    """No image is too noisy for the encoder's buffer."""
    data = encoded(NOISE, quality=100, subsampling="444", **keys)
    assert shown(data).size == (600, 600)


@pytest.mark.parametrize("source", ["444", "422", "420", "440", "411"])
@pytest.mark.parametrize("progressive", [False, True])
def test_subsampling_is_kept(source: str, progressive: bool) -> None:
    """With ``keep`` the source's subsampling is the result's; 420 where it has none."""
    keep = ImagePolicy(subsampling="keep", progressive=progressive, size=60)
    found = convert(enc.jpeg(PHOTO, source), keep)
    assert simplejpeg.decode_jpeg_header(found.data)[3] == source
    assert simplejpeg.decode_jpeg_header(encoded(PHOTO, subsampling="keep"))[3] == "420"


def test_png_keeps_every_pixel() -> None:
    """PNG gives back grey, RGB and RGBA; at level 0 nothing is compressed."""
    rgba = np.dstack([PHOTO, GREY])
    for pixels in (GREY, PHOTO, rgba):
        found = np.asarray(shown(encoded(pixels, encoding="png", alpha="keep")))
        assert np.array_equal(found.reshape(pixels.shape), pixels)
    sizes = [len(encoded(PHOTO, encoding="png", png_compression=n)) for n in (0, 9)]
    assert sizes[0] > PHOTO.size > sizes[1]


def test_webp() -> None:
    """Lossless WebP gives every pixel back, lossy WebP the picture, smaller at less quality."""
    lossless = encoded(PHOTO, encoding="webp", webp_lossless=True)
    assert np.array_equal(np.asarray(shown(lossless)), PHOTO)
    sizes = []
    for quality in (30, 95):
        data = encoded(PHOTO, encoding="webp", quality=quality)
        sizes.append(len(data))
        assert np.abs(np.asarray(shown(data), float) - PHOTO).mean() < 12
    assert sizes[0] < sizes[1] < len(lossless)


@pytest.mark.parametrize(("encoding", "most"), [("jpeg", 65_500), ("webp", 16_383)])
@pytest.mark.parametrize("wide", [True, False])
def test_the_largest_sides(encoding: str, most: int, wide: bool) -> None:
    """What geometry lets pass is encoded."""
    pixels = np.zeros((1, most, 3) if wide else (most, 1, 3), np.uint8)
    assert max(shown(encoded(pixels, encoding=encoding)).size) == most
