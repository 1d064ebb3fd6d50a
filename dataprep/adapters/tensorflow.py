"""A data set as a ``tf.data.Dataset``, augmented by TensorFlow's own operations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from dataprep.adapters import import_framework
from dataprep.adapters.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    TRIES,
    Augmentation,
)
from dataprep.adapters.normalisation import SCALE, SHIFT
from dataprep.adapters.records import Records
from dataprep.assign import Order, mixed_by_buffer, order_from_start
from dataprep.image.rgb import decode_whole

tf: Any = import_framework("tensorflow")

_WINDOW = 64  # samples that Python passes on at a time


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
    """(image, label) of one epoch for each iteration; see ``dataprep.to_tf``.

    Images, which are encoded as ``encoding``, stay so if ``augmentation`` is None.
    """
    local = records.order_on_host(order)
    following = order_from_start(order, records.samples_by_share(order))
    if not isinstance(epoch, tf.Variable):
        epoch, order, local = following.epoch, following, records.order_on_host(following)
    buffer = shuffle_buffer if order.shuffle else 0
    samples = _epochs(epoch).flat_map(partial(_encoded, records, local, buffer))
    if augmentation is None:
        samples = samples.map(lambda image, label, key: (image, label))
    else:
        calls = tf.data.AUTOTUNE if parallel_calls is None else parallel_calls or None
        is_jpeg = encoding == "JPEG"
        prepare = partial(_prepared, augmentation=augmentation, seed=order.seed, is_jpeg=is_jpeg)
        samples = samples.map(prepare, num_parallel_calls=calls)
    if not order.start:
        count = len(records.samples_of_rank(local, order.epoch))
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
    """One epoch number, int64, for each iteration: from the variable, or the next one.

    It is read when the iteration begins, so that the current value of a variable counts.
    """
    if isinstance(epoch, tf.Variable):
        return tf.data.Dataset.from_tensors(0).map(lambda _: tf.cast(epoch, tf.int64))
    following = tf.Variable(epoch - 1, dtype=tf.int64, trainable=False)
    return tf.data.Dataset.from_tensors(0).map(lambda _: following.assign_add(1))


def _encoded(records: Records, order: Order, buffer: int, epoch: Any) -> Any:
    """The encoded images of an epoch, their labels from 0, and the key of each."""
    signature = (
        tf.TensorSpec((None,), tf.string),
        tf.TensorSpec((None,), tf.int64),
        tf.TensorSpec((None,), tf.int64),
    )
    read = partial(_windows, records, order, buffer)
    found = tf.data.Dataset.from_generator(read, args=(epoch,), output_signature=signature)
    return found.unbatch()


def _windows(
    records: Records, order: Order, buffer: int, epoch: np.int64
) -> Iterator[tuple[Any, Any, Any]]:
    """Images, labels and keys of some samples at a time.

    The key tells the random numbers of each sample in each epoch apart.
    """
    samples = records.stream(records.samples_of_rank(order, int(epoch)))
    if buffer:
        samples = mixed_by_buffer(order, samples, buffer, int(epoch))
    while window := list(islice(samples, _WINDOW)):
        numbers = np.array([number for number, _ in window], np.int64)
        images = np.array([bytes(image) for _, image in window], object)
        yield images, records.labels[numbers], numbers + epoch * 2**32


def _prepared(
    encoded: Any,
    label: Any,
    draw: Any,
    *,
    augmentation: Augmentation,
    seed: int,
    is_jpeg: bool,
) -> tuple[Any, Any]:
    """The image as a training array, and the label; ``draw`` is the key of the sample.

    TensorFlow's own operation draws the crops, as in TensorFlow's pipelines. It draws the height
    where the others draw the area: on ImageNet's shapes its crops have 0.38 of the image on
    average, the others' 0.44. If ten tries find none, it takes the whole image. (The rule of
    ``random_crop`` in TensorFlow's operations takes a seventh of the whole preparation.)
    """
    size = augmentation.size
    key = tf.stack([tf.constant(seed, tf.int64), draw])
    part = _part(encoded, augmentation, key, is_jpeg=is_jpeg)
    image = tf.image.resize(part, (size, size))
    if augmentation.random:
        image = _varied(image, augmentation, tf.random.fold_in(key, 1))
    if not augmentation.normalise:
        return tf.cast(tf.round(image), tf.uint8), label
    # A whole row at a time: broadcasting over a last axis of 3 takes as long as decoding.
    rows = tf.reshape(image, (size, size * 3))
    rows = rows * np.tile(SCALE, size) + np.tile(SHIFT, size)
    return tf.reshape(rows, (size, size, 3)), label


def _part(encoded: Any, augmentation: Augmentation, key: Any, *, is_jpeg: bool) -> Any:
    """The part that is used: of a JPEG nothing else is decoded."""
    if is_jpeg:
        window = _window(tf.io.extract_jpeg_shape(encoded), augmentation, key)
        # The default of TensorFlow's wheel is the fast inverse DCT; no other decoder here uses it.
        return tf.io.decode_and_crop_jpeg(
            encoded, window, channels=3, dct_method="INTEGER_ACCURATE"
        )
    # As the other adapters: on a white background, and WebP with every version of TensorFlow.
    pixels = tf.numpy_function(decode_whole, [encoded], tf.uint8)
    pixels = tf.ensure_shape(pixels, [None, None, 3])
    window = _window(tf.shape(pixels), augmentation, key)
    top, left, height, width = tf.unstack(window)
    return pixels[top : top + height, left : left + width]


def _window(shape: Any, augmentation: Augmentation, key: Any) -> Any:
    """The part of an image of ``shape`` that is used: top, left, height, width."""
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
        return tf.concat([begin[:2], extent[:2]], 0)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.cast(tf.round(short * EVALUATION_SHARE), tf.int32)
    side = tf.maximum(1, side)
    margins = (shape[:2] - side) // 2
    return tf.stack([margins[0], margins[1], side, side])


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
