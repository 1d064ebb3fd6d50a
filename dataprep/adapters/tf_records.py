"""Encoded images and labels as a ``tf.data.Dataset``, from shards in the order of an epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.records import Records
from dataprep.dataset import Dataset
from dataprep.stores.local import LocalStore

tf: Any = import_framework("tensorflow")

_READ_BYTES = 4 * 2**20


def encoded_samples(dataset: Dataset, seeds: tuple[int, Any], shuffle: bool, readers: int) -> Any:
    """(JPEG, int64 label from 0) of every sample; ``seeds`` is (seed, epoch).

    ``readers`` shards are read at a time, a record of each in turn; 0 for one after the other.
    """
    entry = dataset.manifest.formats[dataset.format]
    order = _shard_order(len(entry.shards), seeds, shuffle)
    if isinstance(dataset.store, LocalStore):
        root = dataset.store.root
        paths = tf.constant([os.fspath(root / shard.key) for shard in entry.shards])

        def read(shard: Any) -> Any:
            return tf.data.TFRecordDataset(paths[shard], buffer_size=_READ_BYTES)

        records = _interleaved(order, read, readers)
        return records.map(_parser(entry.label_offset), num_parallel_calls=readers or None)
    return _interleaved(order, _generated(Records(dataset)), readers)


def _shard_order(shards: int, seeds: tuple[int, Any], shuffle: bool) -> Any:
    numbers = tf.range(shards, dtype=tf.int64)

    def ordered(_: Any) -> Any:
        # Read when iteration begins, so that a variable's value of that moment counts.
        key = tf.stack([tf.cast(part, tf.int64) for part in seeds])
        return tf.random.experimental.stateless_shuffle(numbers, key) if shuffle else numbers

    return tf.data.Dataset.from_tensors(0).map(ordered).unbatch()


def _interleaved(order: Any, read: Any, readers: int) -> Any:
    if readers <= 1:
        return order.flat_map(read)
    return order.interleave(
        read, cycle_length=readers, num_parallel_calls=readers, deterministic=True
    )


def _parser(label_offset: int) -> Any:
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(record: Any) -> tuple[Any, Any]:
        found = tf.io.parse_single_example(record, features)
        return found["image/encoded"], found["image/class/label"] - label_offset

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
