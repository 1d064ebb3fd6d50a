"""Images that are no JPEGs, decoded and augmented by TensorFlow."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dataprep.adapters.frameworks import import_framework
from dataprep.augment import Augmentation
from dataprep.augment.crops import EVALUATION_SHARE
from dataprep.augment.decode import decode_whole
from dataprep.errors import ConfigError

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

ENCODINGS: dict[str, dict[str, Any]] = {"PNG": {}, "WEBP": {"lossless": True, "exact": True}}
PIXELS = np.random.default_rng(5).integers(0, 256, (90, 120, 3), np.uint8)


def encoded(kind: str, mode: str = "RGB") -> bytes:
    """Noise in an encoding that loses nothing."""
    sink = io.BytesIO()
    image = Image.fromarray(PIXELS).convert(mode)
    image.save(sink, kind, **ENCODINGS[kind])
    return sink.getvalue()


@pytest.fixture(scope="module")
def tf() -> Any:
    """TensorFlow, if it is there."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_framework("tensorflow")
    except ImportError as error:
        pytest.skip(str(error))


@pytest.fixture
def prepare(tf: Any) -> Callable[..., Any]:
    """An image as it comes out of ``to_tf``."""
    from dataprep.adapters.tf_images import preparation

    def run(data: bytes, kind: str, augmentation: Augmentation, draw: int = 0) -> Any:
        made = tf.function(preparation(augmentation, 3, kind))
        image, label = made((tf.constant(data), tf.constant(7)), tf.constant(draw, tf.int64))
        assert int(label) == 7
        return image.numpy()

    return run


@pytest.mark.parametrize("kind", ENCODINGS)
def test_the_centre(tf: Any, prepare: Callable[..., Any], kind: str) -> None:
    """Without chance it is TensorFlow's own resize of the centre of the pixels."""
    side = round(90 * EVALUATION_SHARE)
    top, left = (90 - side) // 2, (120 - side) // 2
    part = PIXELS[top : top + side, left : left + side]
    wanted = np.round(tf.image.resize(part, (48, 48)).numpy()).astype(np.uint8)
    plain = Augmentation(size=48, random=False, normalise=False)
    assert np.array_equal(prepare(encoded(kind), kind, plain), wanted)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_chance_repeats(prepare: Callable[..., Any], kind: str) -> None:
    """Random crops depend on the draw alone, and are other ones for another."""
    random = Augmentation(size=32, normalise=False)
    first = prepare(encoded(kind), kind, random, 1)
    assert first.shape == (32, 32, 3)
    assert np.array_equal(first, prepare(encoded(kind), kind, random, 1))
    assert not np.array_equal(first, prepare(encoded(kind), kind, random, 2))


@pytest.mark.parametrize(("kind", "mode"), [("PNG", "L"), ("PNG", "RGBA"), ("WEBP", "RGBA")])
def test_three_channels_always(prepare: Callable[..., Any], kind: str, mode: str) -> None:
    """Grey becomes three equal ones, also with alpha."""
    plain = Augmentation(size=32, random=False, normalise=False)
    found = prepare(encoded(kind, mode), kind, plain)
    assert found.shape == (32, 32, 3)
    if mode == "L":
        assert np.ptp(found, axis=2).max() == 0


@pytest.mark.parametrize("kind", ENCODINGS)
def test_what_is_transparent_lies_on_white(prepare: Callable[..., Any], kind: str) -> None:
    """Every colour at every alpha is to the bit what the other adapters make of it."""
    colours, alpha = np.mgrid[0:256, 0:256].astype(np.uint8)
    pixels = np.stack([colours, 255 - colours, colours, alpha], axis=-1)
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, kind, **ENCODINGS[kind])
    side = round(256 * EVALUATION_SHARE)
    plain = Augmentation(size=side, random=False, normalise=False)
    found = prepare(sink.getvalue(), kind, plain)
    top = (256 - side) // 2
    wanted = decode_whole(sink.getvalue())[top : top + side, top : top + side]
    assert np.array_equal(found, wanted)


def test_a_decoder_that_is_not_there(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TensorFlow that is too old for WebP is told by its version, before anything is read."""
    from dataprep.adapters.tf_images import preparation

    monkeypatch.delattr(tf.io, "decode_webp")
    with pytest.raises(ConfigError, match=f"TensorFlow {tf.__version__} does not decode WEBP"):
        preparation(Augmentation(), 0, "WEBP")
