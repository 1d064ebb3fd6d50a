"""The usual augmentation in TensorFlow's own operations, stateless, so that it repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dataprep.adapters.frameworks import import_framework
from dataprep.augment import Augmentation
from dataprep.augment.colour import EIGENVALUES, EIGENVECTORS
from dataprep.augment.crops import AREA, ASPECT, EVALUATION_SHARE, TRIES
from dataprep.augment.normalise import affine
from dataprep.errors import ConfigError

tf: Any = import_framework("tensorflow")

# ISO/IEC 15948, 11.2.2
_PNG_COLOUR_TYPE = 25
_PNG_ALPHA = 4


def preparation(augmentation: Augmentation, seed: int, encoding: str = "JPEG") -> Any:
    """A function of ((encoded image, label), draw) to (image, label); see ``with_draws``.

    Crops are drawn by TensorFlow's own operation, as TensorFlow's pipelines do it. It draws the
    height where the others draw the area: on ImageNet's shapes its crops have 0.38 of the image
    on average, the others' 0.44. Where ten tries find none, the whole image is taken. (The rule
    of ``random_crop`` in TensorFlow's operations costs a seventh of the whole preparation.)

    Raises:
        ConfigError: this TensorFlow has no decoder of ``encoding``.
    """
    decode = None if encoding == "JPEG" else _decoder(encoding)

    def prepare(sample: tuple[Any, Any], draw: Any) -> tuple[Any, Any]:
        encoded, label = sample
        key = tf.stack([tf.constant(seed, tf.int64), draw])
        image = _part(encoded, augmentation, key, decode)
        if augmentation.random:
            image = _varied(image, augmentation, tf.random.fold_in(key, 1))
        return _finished(image, augmentation), label

    return prepare


def _decoder(encoding: str) -> Callable[[Any], Any]:
    """A function of an encoded image to uint8 (height, width, 3), on white where transparent."""
    if encoding == "PNG":
        return _decode_png
    if encoding == "WEBP" and hasattr(tf.io, "decode_webp"):
        return lambda encoded: _on_white(tf.io.decode_webp(encoded)[0])
    raise ConfigError(
        f"TensorFlow {tf.__version__} does not decode {encoding}: install TensorFlow 2.21, or "
        "read this data set with dataprep.to_torch"
    )


def _decode_png(encoded: Any) -> Any:
    kind = tf.io.decode_raw(tf.strings.substr(encoded, _PNG_COLOUR_TYPE, 1), tf.uint8)[0]
    return tf.cond(
        tf.bitwise.bitwise_and(kind, _PNG_ALPHA) > 0,
        lambda: _on_white(tf.io.decode_png(encoded, channels=4)),
        lambda: tf.io.decode_png(encoded, channels=3),
    )


def _on_white(pixels: Any) -> Any:
    """RGB of RGBA, rounded as Pillow rounds it for the other adapters."""
    colours, alpha = pixels[..., :3], pixels[..., 3:]

    def laid() -> Any:
        share = tf.cast(alpha, tf.int32)
        sums = tf.cast(colours, tf.int32) * share + 255 * (255 - share)
        return tf.cast((sums + 127) // 255, tf.uint8)

    return tf.cond(tf.reduce_min(alpha) < 255, laid, lambda: colours)


def _part(
    encoded: Any, augmentation: Augmentation, key: Any, decode: Callable[[Any], Any] | None
) -> Any:
    """float32 (size, size, 3), 0 to 255; of a JPEG only the part that is needed is decoded."""
    whole = None if decode is None else decode(encoded)
    shape = tf.io.extract_jpeg_shape(encoded) if whole is None else tf.shape(whole)
    if augmentation.random:
        begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
            shape,
            tf.zeros([1, 0, 4]),
            seed=key,
            min_object_covered=0.0,
            aspect_ratio_range=ASPECT,
            area_range=AREA,
            max_attempts=TRIES,
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.concat([begin[:2], extent[:2]], 0)
    else:
        short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
        side = tf.maximum(1, tf.cast(tf.round(short * EVALUATION_SHARE), tf.int32))
        window = tf.stack([(shape[0] - side) // 2, (shape[1] - side) // 2, side, side])
    if whole is not None:
        top, left, height, width = tf.unstack(window)
        part = whole[top : top + height, left : left + width]
        return tf.image.resize(part, (augmentation.size, augmentation.size))
    # The default of TensorFlow's wheel is the fast inverse DCT, which no other decoder here uses.
    image = tf.io.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_ACCURATE")
    return tf.image.resize(image, (augmentation.size, augmentation.size))


def _varied(image: Any, augmentation: Augmentation, key: Any) -> Any:
    image = tf.image.stateless_random_flip_left_right(image, key)
    if augmentation.jitter:
        low, high = 1 - augmentation.jitter, 1 + augmentation.jitter
        brightness = tf.random.stateless_uniform((), tf.random.fold_in(key, 1), low, high)
        image = tf.image.stateless_random_contrast(
            image * brightness, low, high, tf.random.fold_in(key, 2)
        )
        grey = tf.image.rgb_to_grayscale(image)
        saturation = tf.random.stateless_uniform((), tf.random.fold_in(key, 3), low, high)
        image = grey + saturation * (image - grey)
    if augmentation.noise:
        alpha = tf.random.stateless_normal((3,), tf.random.fold_in(key, 4), 0, augmentation.noise)
        components = tf.constant(255 * EIGENVECTORS * EIGENVALUES, tf.float32)
        image = image + tf.linalg.matvec(components, alpha)
    if augmentation.jitter or augmentation.noise:
        image = tf.clip_by_value(image, 0, 255)
    return image


def _finished(image: Any, augmentation: Augmentation) -> Any:
    if not augmentation.normalise:
        return tf.cast(tf.round(image), tf.uint8)
    size = augmentation.size
    scale, shift = (np.tile(part, size) for part in affine())
    # A whole row at a time: broadcasting over a last axis of 3 costs as much as the decoding.
    rows = tf.reshape(image, (size, size * 3)) * scale + shift
    return tf.reshape(rows, (size, size, 3))
