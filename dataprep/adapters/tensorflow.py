"""A data set as a ``tf.data.Dataset``, augmented by TensorFlow's own operations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataprep.adapters import import_framework
from dataprep.adapters.augment import (
    AREA,
    ASPECT,
    EIGENVALUES,
    EIGENVECTORS,
    EVALUATION_SHARE,
    SCALE,
    SHIFT,
    TRIES,
    Augmentation,
)
from dataprep.adapters.records import Records
from dataprep.assign import Order, epoch_order, framework_seed
from dataprep.dataset import Dataset
from dataprep.image.rgb import decode_whole
from dataprep.stores.local import LocalStore

tf: Any = import_framework("tensorflow")

_READERS = 4
_READ_BYTES = 4 * 2**20


def pipeline(
    dataset: Dataset,
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

    Images stay encoded if ``augmentation`` is None.
    """
    readers = _READERS if parallel_calls is None else min(_READERS, parallel_calls)
    records = _epoch_reader(dataset, order, readers, shuffle_buffer)
    if augmentation is None:
        samples = _epochs(epoch).flat_map(records)
    else:
        # A number for each sample of each epoch, which with the seed is the key of its stream of
        # random numbers. Counting in the data set takes a tenth of the time of computing the same
        # in a function.
        zipped, counter = tf.data.Dataset.zip, tf.data.Dataset.counter
        drawn = _epochs(epoch).flat_map(lambda one: zipped((records(one), counter(one * 2**32))))
        calls = tf.data.AUTOTUNE if parallel_calls is None else parallel_calls or None
        is_jpeg = dataset.manifest.encoding == "JPEG"
        prepare = partial(_prepared, augmentation=augmentation, seed=order.seed, is_jpeg=is_jpeg)
        samples = drawn.map(prepare, num_parallel_calls=calls)
    samples = samples.apply(tf.data.experimental.assert_cardinality(len(dataset)))
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


def _epoch_reader(
    dataset: Dataset, order: Order, readers: int, buffer: int
) -> Callable[[Any], Any]:
    """A function of an epoch to a data set of (encoded image, label from 0).

    If the order is shuffled, ``readers`` shards are read at a time, one record of each in turn, and
    mixed in a buffer of ``buffer`` records.
    """
    count = len(dataset.manifest.formats[dataset.format].shards)
    read = _shard_reader(dataset)

    def draw(epoch: np.int64) -> tuple[NDArray[np.int64], np.int64]:
        shards = np.array(epoch_order(order, count, int(epoch)), np.int64)
        return shards, np.int64(framework_seed(order, int(epoch)))

    def records(epoch: Any) -> Any:
        numbers, seed = tf.numpy_function(draw, [epoch], [tf.int64, tf.int64])
        shards = tf.data.Dataset.from_tensor_slices(tf.ensure_shape(numbers, [None]))
        if not order.shuffle or readers <= 1:
            found = shards.flat_map(read)
        else:
            found = shards.interleave(
                read, cycle_length=readers, num_parallel_calls=readers, deterministic=True
            )
        if not order.shuffle or not buffer:
            return found
        # Set in the graph of this function only, so that the global seed of the program has no
        # effect. (If that is 0, shuffle does not accept a seed that is a tensor.)
        tf.random.set_seed(1)
        seed = tf.ensure_shape(seed, [])
        return found.shuffle(buffer, seed=seed, reshuffle_each_iteration=False)

    return records


def _shard_reader(dataset: Dataset) -> Callable[[Any], Any]:
    """A function of a shard's number to a data set of its (encoded image, label from 0)."""
    if not isinstance(dataset.store, LocalStore):
        signature = (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64))
        read_with = partial(tf.data.Dataset.from_generator, partial(_samples, Records(dataset)))
        return lambda shard: read_with(args=(shard,), output_signature=signature)
    root, snapshot = dataset.store.root, dataset.snapshot
    paths = tf.constant([os.fspath(root / shard.key) for shard in dataset.shards()], tf.string)
    options = dataset.manifest.record_options(dataset.format)
    image, label = options.layout.feature("encoded"), options.layout.feature("label")
    features = {
        image: tf.io.FixedLenFeature([], tf.string),
        label: tf.io.FixedLenFeature([], tf.int64),
    }

    def check() -> bool:
        snapshot.check()
        return True

    def parse(number: Any, record: Any) -> tuple[Any, Any]:
        # At the first record TensorFlow has the file open, and nothing can replace it any more.
        first = tf.equal(number, 0)
        same = tf.cond(first, lambda: tf.numpy_function(check, [], tf.bool), lambda: first)
        with tf.control_dependencies([same]):
            found = tf.io.parse_single_example(record, features)
        return found[image], found[label] - options.label_offset

    def read(shard: Any) -> Any:
        records = tf.data.TFRecordDataset(paths[shard], buffer_size=_READ_BYTES)
        return records.enumerate().map(parse)

    return read


def _samples(records: Records, shard: np.int64) -> Iterator[tuple[bytes, int]]:
    view = memoryview(records.shard(int(shard)))
    for index in records.samples_of(int(shard)):
        yield bytes(records.image_within(view, index)), int(records.labels[index])


def _prepared(
    sample: tuple[Any, Any], draw: Any, *, augmentation: Augmentation, seed: int, is_jpeg: bool
) -> tuple[Any, Any]:
    """The image as a training array, and the label; see ``pipeline`` for ``draw``.

    TensorFlow's own operation draws the crops, as in TensorFlow's pipelines. It draws the height
    where the others draw the area: on ImageNet's shapes its crops have 0.38 of the image on
    average, the others' 0.44. If ten tries find none, it takes the whole image. (The rule of
    ``random_crop`` in TensorFlow's operations takes a seventh of the whole preparation.)
    """

    encoded, label = sample
    size = augmentation.size
    key = tf.stack([tf.constant(seed, tf.int64), draw])
    part = _part(encoded, augmentation, key, is_jpeg=is_jpeg)
    image = tf.image.resize(part, (size, size))
    if augmentation.random:
        image = _varied(image, augmentation, tf.random.fold_in(key, 1))
    if not augmentation.normalise:
        return tf.cast(tf.round(image), tf.uint8), label
    # A whole row at a time: broadcasting over a last axis of 3 takes as long as decoding.
    rows = tf.reshape(image, (size, size * 3)) * np.tile(SCALE, size) + np.tile(SHIFT, size)
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
    pixels = tf.ensure_shape(tf.numpy_function(decode_whole, [encoded], tf.uint8), [None, None, 3])
    top, left, height, width = tf.unstack(_window(tf.shape(pixels), augmentation, key))
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
    side = tf.maximum(1, tf.cast(tf.round(short * EVALUATION_SHARE), tf.int32))
    return tf.stack([(shape[0] - side) // 2, (shape[1] - side) // 2, side, side])


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
