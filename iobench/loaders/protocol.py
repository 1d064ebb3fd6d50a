"""The Protocol of loaders, which turn stored data into batches, and its optional parts.

To add a loader to this package, write its file with a class attribute ``capabilities``, and
register its class as an entry point in ``pyproject.toml``. No other file needs a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import Clock
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location

__all__ = [
    "Batch",
    "BuffersSamples",
    "CountsBatches",
    "CountsReads",
    "FirstBatch",
    "Framework",
    "HoldsSamples",
    "Loader",
    "LoaderSettings",
    "MemoryRung",
    "ReadPattern",
    "SplitsFirstBatch",
    "TimesBatches",
    "WorkerBatch",
]

MemoryRung = Literal["collate", "augment", "decode"]
"""The rungs of the ladder whose samples are in memory, each named for the work that remains."""

Framework = Literal["torch", "tensorflow", "mxnet", "none"]
"""The framework whose arrays a batch has; ``none`` for bytes and for empty batches."""


class Batch(NamedTuple):
    """A batch of samples, in the arrays of a framework.

    - torch: images (N, 3, H, W), float32 normalised or uint8; labels int64 (N,).
    - tensorflow: images (N, H, W, 3); labels int64 (N,).
    - mxnet: images (N, 3, H, W) float32; labels float32 (N,).

    Images that are not decoded are a list or tuple of bytes-like objects. From TensorFlow they are
    a tensor of strings (N,).

    Attributes:
        images: the images, in the order of the labels.
        labels: the number of the class of each image.
        samples: the number of images, N.
    """

    images: Any
    labels: Any
    samples: int


@runtime_checkable
class CountsBatches(Protocol):
    """Optional: a loader that knows how many batches an epoch has.

    For all other loaders, this rank's number of samples is divided by the batch size.
    """

    def whole_batches(self) -> int:
        """Return the number of batches of ``batch_size`` samples in epoch 0, for this rank."""


class FirstBatch(NamedTuple):
    """Parts of the time until the first batch, in seconds; None for a part that is not known.

    The parts do not overlap. They include only work on the first batch, not the work that other
    workers do at the same time. Their sum is less than the whole time, which also includes
    collating, sending the batch to the training process, and unknown parts.

    Attributes:
        listing_s: listing folders, or reading a manifest and its tables.
        worker_start_s: starting workers or building a pipeline, after the listing.
        fetch_s: waiting for the encoded samples of the batch.
        decode_s: decoding and augmenting these samples.
    """

    listing_s: float | None = None
    worker_start_s: float | None = None
    fetch_s: float | None = None
    decode_s: float | None = None


@runtime_checkable
class SplitsFirstBatch(Protocol):
    """Optional: a loader that knows the parts of the time until its first batch."""

    def first_batch(self) -> FirstBatch | None:
        """Return the parts for the first epoch, on the loader's clock; None if they are unknown.

        It is called after a batch was taken and before ``close``.
        """


class ReadPattern(NamedTuple):
    """How a loader reads ahead of the batches that it hands out.

    Attributes:
        streams: readers that read at the same time, such as worker processes.
        window_samples: samples that arrive together in one stream; 1 if a stream reads sample by
            sample or batch by batch.
        windows_at_once: windows that each stream requests at the same time.
        buffer_samples: samples that each stream keeps back in a shuffle buffer.
    """

    streams: int
    window_samples: int = 1
    windows_at_once: int = 1
    buffer_samples: int = 0


@runtime_checkable
class CountsReads(Protocol):
    """Optional: a loader that counts the samples that arrive from storage.

    The counts separate the samples that arrived before the measured time from the samples that
    arrived during it. A rate in the steady state can only be measured with them.
    """

    def read_so_far(self) -> ReadTotals:
        """Return the samples and bytes that have arrived so far, in all processes of the loader."""

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return how the loader reads its data.

        Args:
            sample_bytes: mean stored bytes of a sample.
        """


class WorkerBatch(NamedTuple):
    """A batch that a worker process made, on the loader's clock.

    Attributes:
        worker: the number of the worker, from 0.
        begin_s: when the first sample of the batch was requested.
        end_s: when the batch was put together.
    """

    worker: int
    begin_s: float
    end_s: float


@runtime_checkable
class TimesBatches(Protocol):
    """Optional: a loader that knows when its workers made their batches."""

    def worker_batches(self) -> Sequence[WorkerBatch]:
        """Return the batches of all workers so far, in the order of their ends."""


@runtime_checkable
class BuffersSamples(Protocol):
    """Optional: a loader that knows the size of its shuffle buffers."""

    def buffer_bytes(self) -> int:
        """Return the bytes of encoded images in the buffers of all workers when these are full."""


@runtime_checkable
class HoldsSamples(Protocol):
    """Optional: a loader that can take samples from memory."""

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Prepare samples of epoch 0 in memory. All epochs take their samples from there.

        It is called before any epoch. Samples that do not fit are left out.

        Args:
            rung: the form of the samples in memory: encoded (``decode``), decoded (``augment``)
                or finished (``collate``).
            samples: the number of samples of epoch 0 to prepare, from the first one on.
            limit_bytes: the memory that they may take.

        Raises:
            TrialFailed: not even one sample fits.
            ImageError: an image cannot be decoded.
        """


class Loader(Protocol):
    """A source of batches. It reads one location.

    Entry points of the group ``iobench.loaders`` name classes. Creating a loader reads no sample;
    the first ``epoch`` opens the data.

    Attributes:
        framework: the framework of the batches' arrays.
        reads: the record format that it reads; ``files`` for class folders; None if it reads
            nothing. An empty text means that it reads any format. The data are then opened in their
            default format.
        notes: facts that are needed to understand its figures ("copies shards ahead to ...").
        by_rank: optional; whether ``epoch`` gives only the samples of ``settings.rank``, so that
            all ranks together have each sample once.
        capabilities: optional, for loaders of this package; see ``iobench.loaders.capabilities``.
    """

    framework: Framework
    reads: str | None
    notes: Sequence[str]

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        """Check that everything that the loader needs is installed.

        Args:
            location: the location of the data; None for loaders that read nothing.
            settings: the settings of the loader.
            clock: the clock of all its times.

        Raises:
            Unavailable: the framework or a capability is missing.
        """

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch, which have each sample once.

        Args:
            number: the number of the epoch, from 0. With ``settings.shuffle``, the order of the
                samples depends on it and on the seed.
        """

    def close(self) -> None:
        """End all workers, and wait until they have ended. Release files, maps and copies."""
