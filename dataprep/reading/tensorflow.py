"""Read a data set as a ``tf.data.Dataset``, which TensorFlow decodes and augments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from dataprep.image.rgb import decode_rgb
from dataprep.reading.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
    Augmentation,
)
from dataprep.reading.epoch_order import Order, mixed_by_buffer, order_from_start
from dataprep.reading.frameworks import import_framework
from dataprep.reading.normalisation import SCALE, SHIFT
from dataprep.reading.record_reader import Records

tf: Any = import_framework("tensorflow")

_WINDOW_SAMPLES = 64
"""Samples that Python hands to TensorFlow at a time, so that the cost of a call is shared."""

_FLIP_AND_COLOUR_STREAM = 1
"""Folded into the seeds of a sample, so that the random numbers for flip and colours differ from
those for the crop."""


def pipeline(
    records: Records,
    encoding: str,
    order: Order,
    augmentation: Augmentation | None,
    *,
    epoch: Any,
    shuffle_buffer: int,
    batch_size: int | None,
    parallel_calls: int | None,
    prefetch: int | None,
) -> Any:
    """Return a ``tf.data.Dataset`` of (image, label), one epoch for each iteration.

    The arguments are the same as for ``dataprep.to_tf``, except for these:

    Args:
        records: reads the images.
        encoding: the encoding of the images: JPEG, PNG or WEBP.
        order: the order of all ranks.
        augmentation: how to decode and augment the images; None if images stay encoded.
    """
    order_on_host = records.order_on_host(order)
    checked_order = order_from_start(order, records.samples_by_share(order))
    # A start at the end of an epoch becomes the beginning of the next epoch. This is not possible
    # if the program chooses the epoch by a variable.
    if not isinstance(epoch, tf.Variable):
        order, epoch = checked_order, checked_order.epoch
        order_on_host = records.order_on_host(order)
    buffer = shuffle_buffer if order.shuffle else 0
    samples = _epochs(epoch).flat_map(partial(_encoded, records, order_on_host, buffer))
    if augmentation is None:
        samples = samples.map(_without_key)
    else:
        calls: int | None = parallel_calls
        if parallel_calls is None:
            calls = tf.data.AUTOTUNE
        elif parallel_calls == 0:
            calls = None  # prepare images on demand, one after the other
        is_jpeg = encoding == "JPEG"
        prepare = partial(_prepared, augmentation=augmentation, seed=order.seed, is_jpeg=is_jpeg)
        samples = samples.map(prepare, num_parallel_calls=calls)
    if not order.start:
        count = len(records.samples_of_rank(order_on_host, order.epoch))
        samples = samples.apply(tf.data.experimental.assert_cardinality(count))
    if batch_size is not None:
        samples = samples.batch(batch_size)
    if parallel_calls != 0:
        samples = samples.prefetch(tf.data.AUTOTUNE if prefetch is None else prefetch)
    options = tf.data.Options()
    options.deterministic = True
    if parallel_calls:
        options.threading.private_threadpool_size = parallel_calls
    return samples.with_options(options)


def _epochs(epoch: Any) -> Any:
    """Return a data set of one number, which is the epoch of the iteration: int64.

    The epoch is the value of the variable when the iteration begins. If ``epoch`` is a number, it
    is the first epoch, and each further iteration is the next epoch.
    """
    if isinstance(epoch, tf.Variable):
        return tf.data.Dataset.from_tensors(0).map(lambda _: tf.cast(epoch, tf.int64))
    latest = tf.Variable(epoch - 1, dtype=tf.int64, trainable=False)
    return tf.data.Dataset.from_tensors(0).map(lambda _: latest.assign_add(1))


def _without_key(image: Any, label: Any, key: Any) -> tuple[Any, Any]:
    """Return the image and the label of an encoded sample, without its key."""
    return image, label


def _encoded(records: Records, order: Order, buffer: int, epoch: Any) -> Any:
    """Return a data set of the samples of an epoch: encoded image, label from 0, and key.

    For the key, see ``_windows``.
    """
    signature = (
        tf.TensorSpec((None,), tf.string),
        tf.TensorSpec((None,), tf.int64),
        tf.TensorSpec((None,), tf.int64),
    )
    read = partial(_windows, records, order, buffer)
    windows = tf.data.Dataset.from_generator(read, args=(epoch,), output_signature=signature)
    return windows.unbatch()


def _windows(
    records: Records, order: Order, buffer: int, epoch: np.int64
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield arrays of encoded images, labels and keys, for some samples at a time.

    The key is the seed of the sample's random numbers. It is different for each sample and epoch,
    as long as a data set has at most 2^32 samples.
    """
    samples = records.stream(records.samples_of_rank(order, int(epoch)))
    if buffer:
        samples = mixed_by_buffer(order, samples, buffer, int(epoch))
    while window := list(islice(samples, _WINDOW_SAMPLES)):
        numbers = np.array([number for number, _ in window], np.int64)
        images = np.array([bytes(image) for _, image in window], object)
        yield images, records.labels[numbers], numbers + epoch * 2**32


def _prepared(
    encoded: Any,
    label: Any,
    key: Any,
    *,
    augmentation: Augmentation,
    seed: int,
    is_jpeg: bool,
) -> tuple[Any, Any]:
    """Return the augmented image as an array of shape (size, size, 3), and the label.

    An operation of TensorFlow draws the crops, as in most programs that use TensorFlow. It draws
    the height of a crop, while ``random_crop`` draws its area. For images with the shapes of
    ImageNet, its crops have 0.38 of the image on average, those of ``random_crop`` have 0.44. If no
    crop of ten tries fits, it takes the whole image. (The rule of ``random_crop``, written in
    operations of TensorFlow, would take one seventh of the time in which an image is prepared.)
    """
    size = augmentation.size
    seeds = tf.stack([tf.constant(seed, tf.int64), key])
    crop = _decoded_crop(encoded, augmentation, seeds, is_jpeg=is_jpeg)
    image = tf.image.resize(crop, (size, size))
    if augmentation.random:
        image = _flipped_and_recoloured(
            image, augmentation, tf.random.fold_in(seeds, _FLIP_AND_COLOUR_STREAM)
        )
    if not augmentation.normalise:
        return tf.cast(tf.round(image), tf.uint8), label
    # Normalise a whole row at a time. Broadcasting over a last axis of 3 takes as long as decoding.
    rows = tf.reshape(image, (size, size * 3))
    rows = rows * np.tile(SCALE, size) + np.tile(SHIFT, size)
    return tf.reshape(rows, (size, size, 3)), label


def _decoded_crop(encoded: Any, augmentation: Augmentation, seeds: Any, *, is_jpeg: bool) -> Any:
    """Return the crop of an image. If it is a JPEG, only the crop is decoded."""
    if is_jpeg:
        crop = _crop_of(tf.io.extract_jpeg_shape(encoded), augmentation, seeds)
        # By default TensorFlow uses the fast inverse DCT, which the other decoders do not use.
        return tf.io.decode_and_crop_jpeg(encoded, crop, channels=3, dct_method="INTEGER_ACCURATE")
    # ``decode_rgb`` puts transparent pixels on white, as in the readers of other frameworks. It
    # also decodes WebP, which some versions of TensorFlow cannot do.
    pixels = tf.numpy_function(decode_rgb, [encoded], tf.uint8)
    pixels = tf.ensure_shape(pixels, [None, None, 3])
    crop = _crop_of(tf.shape(pixels), augmentation, seeds)
    top, left, height, width = tf.unstack(crop)
    return pixels[top : top + height, left : left + width]


def _crop_of(shape: Any, augmentation: Augmentation, seeds: Any) -> Any:
    """Return the crop of an image with this shape: top, left, height, width.

    Without random augmentation, it is a square in the middle of the image.
    """
    if augmentation.random:
        begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
            shape,
            tf.zeros([1, 0, 4]),
            seed=seeds,
            min_object_covered=0.0,
            aspect_ratio_range=ASPECT,
            area_range=AREA,
            max_attempts=TRIES,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat([begin[:2], extent[:2]], 0)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.cast(tf.round(short * EVALUATION_SHARE), tf.int32)
    side = tf.maximum(1, side)
    margins = (shape[:2] - side) // 2
    return tf.stack([margins[0], margins[1], side, side])


def _flipped_and_recoloured(image: Any, augmentation: Augmentation, seeds: Any) -> Any:
    """Flip half of the images, then change brightness, contrast, saturation and lighting.

    Each property has random numbers of its own: its number is folded into the seeds.
    """
    image = tf.image.stateless_random_flip_left_right(image, seeds)
    if augmentation.jitter:
        low, high = 1 - augmentation.jitter, 1 + augmentation.jitter
        brightness = tf.random.stateless_uniform((), tf.random.fold_in(seeds, 1), low, high)
        image = tf.image.stateless_random_contrast(
            image * brightness, low, high, tf.random.fold_in(seeds, 2)
        )
        grey = tf.image.rgb_to_grayscale(image)
        saturation = tf.random.stateless_uniform((), tf.random.fold_in(seeds, 3), low, high)
        image = grey + saturation * (image - grey)
    if augmentation.noise:
        alpha = tf.random.stateless_normal((3,), tf.random.fold_in(seeds, 4), 0, augmentation.noise)
        components = tf.constant(255 * EIGENVECTORS * EIGENVALUES, tf.float32)
        image = image + tf.linalg.matvec(components, alpha)
    if augmentation.jitter or augmentation.noise:
        image = tf.clip_by_value(image, 0, 255)
    return image
