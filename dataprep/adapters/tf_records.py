"""Encoded images and labels as a ``tf.data.Dataset``, from shards in the order of an epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.records import Records
from dataprep.dataset import Dataset
from dataprep.formats import RecordOptions
from dataprep.stores.local import LocalStore

tf: Any = import_framework("tensorflow")

_READ_BYTES = 4 * 2**20


def epochs(epoch: Any) -> Any:
    """One epoch's number, int64: that of a variable, or one more for each iteration.

    It is read when iteration begins, so that a variable's value of that moment counts.
    """
    if isinstance(epoch, tf.Variable):
        return tf.data.Dataset.from_tensors(0).map(lambda _: tf.cast(epoch, tf.int64))
    following = tf.Variable(epoch - 1, dtype=tf.int64, trainable=False)
    return tf.data.Dataset.from_tensors(0).map(lambda _: following.assign_add(1))


def encoded_samples(dataset: Dataset, seed: int, buffer: int, readers: int) -> Any:
    """A function of an epoch's number to a data set of (JPEG, label from 0).

    ``buffer`` records are shuffled, and the shards; with 0 neither is. ``readers`` shards are
    read at a time, a record of each in turn; 0 for one after the other.
    """
    shards = tf.range(len(dataset.manifest.formats[dataset.format].shards), dtype=tf.int64)
    read = _shard_reader(dataset)

    def samples(epoch: Any) -> Any:
        key = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(shards, key) if buffer else shards
        records = _interleaved(tf.data.Dataset.from_tensor_slices(order), read, readers)
        if not buffer:
            return records
        # Of this function's graph alone: the program's global seed has no part in the order
        # (and with 0 for it, shuffle does not take a seed that is drawn).
        tf.random.set_seed(1)
        drawn = tf.random.stateless_uniform((), key, 1, 2**31 - 1, tf.int64)
        return records.shuffle(buffer, seed=drawn, reshuffle_each_iteration=False)

    return samples


def with_draws(samples: Any) -> Any:
    """The same function to a data set of ((JPEG, label), draw).

    ``draw``, int64, is another for each sample of each epoch: with the seed it makes the key of
    a stream of random numbers.
    """

    def drawn(epoch: Any) -> Any:
        # Counting in the data set costs a tenth of computing the same in a function.
        return tf.data.Dataset.zip((samples(epoch), tf.data.Dataset.counter(epoch * 2**32)))

    return drawn


def _shard_reader(dataset: Dataset) -> Any:
    """A function of a shard's number to a data set of its (JPEG, label from 0)."""
    if not isinstance(dataset.store, LocalStore):
        return _generated(Records(dataset))
    root, entry = dataset.store.root, dataset.manifest.formats[dataset.format]
    paths = tf.constant([os.fspath(root / shard.key) for shard in entry.shards], tf.string)
    parse = _parser(dataset.manifest.record_options(dataset.format))
    snapshot = dataset.snapshot

    def check() -> bool:
        snapshot.check()
        return True

    def checked(number: Any, record: Any) -> Any:
        # At the first record TensorFlow has the file open, which then stays what it is.
        first = tf.equal(number, 0)
        same = tf.cond(first, lambda: tf.numpy_function(check, [], tf.bool), lambda: first)
        with tf.control_dependencies([same]):
            return parse(record)

    def read(shard: Any) -> Any:
        records = tf.data.TFRecordDataset(paths[shard], buffer_size=_READ_BYTES)
        return records.enumerate().map(checked)

    return read


def _interleaved(order: Any, read: Any, readers: int) -> Any:
    if readers <= 1:
        return order.flat_map(read)
    return order.interleave(
        read, cycle_length=readers, num_parallel_calls=readers, deterministic=True
    )


def _parser(options: RecordOptions) -> Any:
    image, label = options.layout.feature("encoded"), options.layout.feature("label")
    features = {
        image: tf.io.FixedLenFeature([], tf.string),
        label: tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record: Any) -> tuple[Any, Any]:
        found = tf.io.parse_single_example(record, features)
        return found[image], found[label] - options.label_offset

    return parse


def _generated(records: Records) -> Any:
    def samples(shard: int) -> Iterator[tuple[bytes, int]]:
        view = memoryview(records.shard(int(shard)))
        for index in records.samples_of(int(shard)):
            yield bytes(records.image_within(view, index)), int(records.labels[index])

    signature = (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int64))

    def read(shard: Any) -> Any:
        return tf.data.Dataset.from_generator(samples, args=(shard,), output_signature=signature)

    return read
