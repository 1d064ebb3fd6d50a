"""PURE. How loaders read ahead, so that a plan knows it before it creates a loader.

Each function has the type ``Pattern`` of ``iobench.loaders.capabilities``. Its arguments are the
settings of the loader, the mean bytes of a stored sample, and the mean number of samples in a shard
(1 for files). A pattern may use only some of them. Without workers, the training process counts as
one worker.
"""

from __future__ import annotations

import math

from dataprep.reading.read_ahead import read_ahead
from dataprep.reading.record_reader import LOCAL_FILE_BYTES
from iobench.loaders.protocol import ReadPattern
from iobench.loaders.settings import LoaderSettings

TF_SHUFFLE_BUFFER = 2048
"""Samples in the shuffle buffer of ``tf-data`` if it shuffles and ``shuffle_buffer`` is 0."""


def batch_by_batch(
    settings: LoaderSettings, sample_bytes: float = 0.0, shard_samples: int = 1
) -> ReadPattern:
    """Return the pattern of workers that each read the samples of one batch at a time."""
    return ReadPattern(streams=max(1, settings.workers))


def shard_by_shard(
    settings: LoaderSettings, sample_bytes: float, shard_samples: int
) -> ReadPattern:
    """Return the pattern of threads that each read one shard, or one file, at a time."""
    return ReadPattern(streams=max(1, settings.workers), window_samples=shard_samples)


def windows_of_each_worker(
    settings: LoaderSettings, sample_bytes: float, shard_samples: int = 1
) -> ReadPattern:
    """Return the pattern of workers that each read windows of many samples.

    Each worker may also have a shuffle buffer, if the samples are shuffled.
    """
    buffer_samples = settings.shuffle_buffer if settings.shuffle else 0
    return _windows(sample_bytes, streams=max(1, settings.workers), buffer_samples=buffer_samples)


def windows_of_one_generator(
    settings: LoaderSettings, sample_bytes: float, shard_samples: int = 1
) -> ReadPattern:
    """Return the pattern of a single generator that reads windows of many samples.

    The number of threads that decode the samples has no effect on it.
    """
    buffer_samples = 0
    if settings.shuffle:
        buffer_samples = settings.shuffle_buffer or TF_SHUFFLE_BUFFER
    return _windows(sample_bytes, streams=1, buffer_samples=buffer_samples)


def local_record_files(
    settings: LoaderSettings, sample_bytes: float, shard_samples: int = 1
) -> ReadPattern:
    """Return the pattern of one thread that writes local files of many samples for MXNet."""
    return ReadPattern(streams=1, window_samples=math.ceil(LOCAL_FILE_BYTES / sample_bytes))


def _windows(sample_bytes: float, *, streams: int, buffer_samples: int) -> ReadPattern:
    """Return the pattern of streams that each read windows of many samples in sequence."""
    # A disk reads fewer windows at the same time than a remote store. The number for a remote store
    # is used for both, because all rungs of a ladder must follow the same rule.
    ahead = read_ahead(sample_bytes, is_remote=True)
    return ReadPattern(streams, ahead.window_samples, ahead.windows_at_once, buffer_samples)
