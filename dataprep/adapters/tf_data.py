"""A data set as a ``tf.data.Dataset``."""

from __future__ import annotations

from typing import Any

from dataprep.adapters.frameworks import import_framework
from dataprep.adapters.opened import require_open
from dataprep.augment import Augmentation
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError

_READERS = 4


def to_tf(
    dataset: Dataset,
    *,
    batch_size: int | None = None,
    decode: bool = True,
    augmentation: Augmentation | None = None,
    shuffle: bool = True,
    shuffle_buffer: int = 2048,
    seed: int = 0,
    epoch: Any = 0,
    parallel_calls: int | None = None,
    prefetch: int | None = None,
) -> Any:
    """``dataset``, in its tfrecord format, as a ``tf.data.Dataset`` of (image, label from 0).

    Local shards are read by ``tf.data.TFRecordDataset``, several at a time. TensorFlow's wheel
    cannot open ``s3://`` and other remote stores: their shards come through this package's own
    reader, by ``from_generator``. All else is TensorFlow's in both cases, augmentation included:
    its random crops have 0.38 of the image on average, where torch's and MXNet's have 0.44.
    Order and augmentation depend on seed and epoch, not on timing; ``len`` is known.

    Of JPEGs only the part that is needed is decoded; PNGs and WebPs are decoded whole.

    Args:
        dataset: an open split with the tfrecord format.
        batch_size: samples a batch, the last may be smaller; single samples if not given.
        decode: images (size, size, 3), float32 or uint8; otherwise encoded JPEGs as strings.
        augmentation: what is done to images; the defaults if none is given. Channels are last.
        shuffle: shards, of which several are read at a time, and records within a buffer;
            without it samples come in the order of the data set.
        shuffle_buffer: how many records (encoded images) that holds.
        seed: of order and augmentation.
        epoch: the number of the first iteration, each of which is one epoch further (what
            ``model.fit`` needs); or an integer ``tf.Variable`` that is assigned before each.
        parallel_calls: how many images are prepared at a time, in a pool of as many threads; 0
            for one after the other when it is asked for; by default tf.data tunes it.
        prefetch: batches ahead; by default tf.data tunes it.

    Raises:
        TypeError: no open data set, but a path for instance.
        ImportError: TensorFlow is not installed.
        ConfigError: the data set has another format, or images that this TensorFlow cannot decode.
    """
    require_open(dataset, "tfrecord")
    if dataset.format != "tfrecord":
        raise ConfigError(
            f"tf.data reads tfrecord, not {dataset.format}: dataprep.open(..., format='tfrecord')"
        )
    tf: Any = import_framework("tensorflow")
    from dataprep.adapters.tf_images import preparation
    from dataprep.adapters.tf_records import encoded_samples, epochs, with_draws

    calls = tf.data.AUTOTUNE if parallel_calls is None else parallel_calls or None
    readers = min(_READERS, parallel_calls) if parallel_calls is not None else _READERS
    if not shuffle:
        readers = 0  # several would take turns
    read = encoded_samples(dataset, seed, shuffle_buffer if shuffle else 0, readers)
    if decode:
        prepare = preparation(augmentation or Augmentation(), seed, dataset.manifest.encoding)
        samples = epochs(epoch).flat_map(with_draws(read)).map(prepare, num_parallel_calls=calls)
    else:
        samples = epochs(epoch).flat_map(read)
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
