"""PURE. How this package's own loaders read ahead, known without making them."""

from __future__ import annotations

import math

from dataprep.adapters.records import LOCAL_FILE_BYTES
from dataprep.reading.read_ahead import read_ahead
from iobench.loaders.protocol import LoaderSettings, ReadPattern

TF_SHUFFLE_BUFFER = 2048
"""Samples in the shuffle buffer of ``tf-data`` unless the settings say otherwise."""


def by_batch(settings: LoaderSettings) -> ReadPattern:
    """Each worker reads the samples of one batch at a time."""
    return ReadPattern(streams=max(1, settings.workers))


def by_object(settings: LoaderSettings, object_samples: int) -> ReadPattern:
    """Each thread reads one shard, or one file, of ``object_samples`` at a time."""
    return ReadPattern(streams=max(1, settings.workers), window_samples=object_samples)


def by_window(
    settings: LoaderSettings, sample_bytes: float, *, streams: int, buffer_samples: int
) -> ReadPattern:
    """Each stream reads windows of many samples in sequence."""
    # The windows of a remote store, of which a disk reads fewer at once: the rungs of a ladder
    # must follow the same rule, wherever the data are.
    ahead = read_ahead(sample_bytes, is_remote=True)
    return ReadPattern(streams, ahead.window_samples, ahead.windows_at_once, buffer_samples)


def of_torch_iterable(settings: LoaderSettings, sample_bytes: float) -> ReadPattern:
    """Each worker reads windows, and may have a shuffle buffer."""
    streams = max(1, settings.workers)
    return by_window(
        settings, sample_bytes, streams=streams, buffer_samples=settings.shuffle_buffer
    )


def of_tf_data(settings: LoaderSettings, sample_bytes: float) -> ReadPattern:
    """One generator reads windows, however many threads decode them."""
    buffer_samples = settings.shuffle_buffer or TF_SHUFFLE_BUFFER
    if not settings.shuffle:
        buffer_samples = 0
    return by_window(settings, sample_bytes, streams=1, buffer_samples=buffer_samples)


def of_mxnet_record(sample_bytes: float) -> ReadPattern:
    """One thread writes local files, each of many samples, for ImageRecordIter."""
    return ReadPattern(streams=1, window_samples=math.ceil(LOCAL_FILE_BYTES / sample_bytes))


def pattern_of(
    loader: str, settings: LoaderSettings, sample_bytes: float, object_samples: int
) -> ReadPattern | None:
    """How the loader of that name reads; None if it does not count what arrives.

    Args:
        loader: the name in the config.
        settings: of the loader.
        sample_bytes: average stored size of a sample.
        object_samples: average samples of a shard; 1 for files.
    """
    if loader in ("torch-map", "torch-folder", "mock"):
        return by_batch(settings)
    if loader == "torch-iterable":
        return of_torch_iterable(settings, sample_bytes)
    if loader == "raw":
        return by_object(settings, object_samples)
    if loader == "tf-data":
        return of_tf_data(settings, sample_bytes)
    if loader == "mxnet-record":
        return of_mxnet_record(sample_bytes)
    return None
