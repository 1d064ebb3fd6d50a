"""TensorFlow's own image decoders read the images of conversions."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dataprep.drawn.drawing import draw_image
from dataprep.image import ImagePolicy, convert
from tests import encodings as enc
from tests.dataprep.image import profiles

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

PICTURE = draw_image(21, 200, 150, detail=0.2)
SOURCES = {
    "jpeg": enc.jpeg(PICTURE),
    "grey": enc.grey_jpeg(PICTURE),
    "cmyk": enc.adobe_cmyk_jpeg(PICTURE),
    "ycck": enc.ycck_jpeg(PICTURE),
    "turned": enc.oriented_jpeg(PICTURE, 6),
    "progressive": enc.pillow(PICTURE, "JPEG", progressive=True),
    "icc": enc.pillow(PICTURE, "JPEG", icc_profile=profiles.swapped_profile()),
    "cut": enc.jpeg(PICTURE)[:-2000],
    "alpha": enc.rgba_png(PICTURE),
    "palette": enc.palette_png(PICTURE),
    "deep": enc.deep_png(PICTURE, grey=False),
    "grey16": enc.deep_png(PICTURE, grey=True),
    "moving": enc.animated_gif(PICTURE),
}
POLICIES: dict[str, dict[str, Any]] = {
    "kept": {},
    "resized": {"size": 90},
    "applied": {"orientation": "apply", "icc": "srgb", "greyscale": "rgb", "size": 90},
    "progressive": {"progressive": True, "icc": "keep", "size": 90, "subsampling": "444"},
    "png": {"encoding": "png", "alpha": "keep"},
}


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow, on the CPU and without its log."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return pytest.importorskip("tensorflow")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("policy", POLICIES)
def test_tensorflow_sees_what_pillow_sees(tf: Any, source: str, policy: str) -> None:
    """TensorFlow decodes shape and channels as reported, and pixels like Pillow.

    JPEGs differ by 3 of 255 at most on average, and PNGs not at all.
    """
    keys = {"truncated": "keep", **POLICIES[policy]}
    converted_image = convert(SOURCES[source], ImagePolicy.model_validate(keys))
    with Image.open(io.BytesIO(converted_image.data)) as image:
        expected = np.asarray(image).reshape(
            converted_image.height, converted_image.width, converted_image.channels
        )
    if converted_image.encoding == "PNG":
        assert np.array_equal(tf.io.decode_png(converted_image.data).numpy(), expected)
        return
    decoded = tf.io.decode_jpeg(converted_image.data, dct_method="INTEGER_ACCURATE").numpy()
    assert decoded.shape == (
        converted_image.height,
        converted_image.width,
        converted_image.channels,
    )
    # TensorFlow's decoder interpolates the chroma of 4:2:0 differently.
    assert np.abs(decoded.astype(int) - expected).mean() <= 3
    assert tf.io.extract_jpeg_shape(converted_image.data).numpy().tolist() == list(decoded.shape)
