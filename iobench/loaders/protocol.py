"""The Protocol of loaders, which turn storage into batches; and their settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    runtime_checkable,
)

from pydantic import BaseModel, ConfigDict, Field

from dataprep.adapters import import_framework
from dataprep.errors import ConfigError
from dataprep.reading.read_counter import ReadCounter, ReadTotals
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.trial import ANY_FORMAT, Place

if TYPE_CHECKING:
    from dataprep.adapters.augment import Augmentation

MemoryRung = Literal["collate", "augment", "decode"]
Framework = Literal["torch", "tensorflow", "mxnet", "none"]


BatchSize = Annotated[int, Field(ge=1, le=1_000_000)]
Workers = Annotated[int, Field(ge=0, le=1024)]
Prefetch = Annotated[int, Field(ge=1, le=1024)]
ItemSeconds = Annotated[float, Field(ge=0, le=3600)]


class Batch(NamedTuple):
    """``samples`` images and labels, in the framework's own arrays (bytes if not decoded).

    torch: images (N, 3, H, W), float32 normalised or uint8; labels int64 (N,).
    tensorflow: images (N, H, W, 3); labels int64 (N,).
    mxnet: images (N, 3, H, W) float32; labels float32 (N,).
    """

    images: Any
    labels: Any
    samples: int


class LoaderSettings(BaseModel):
    """One point of a loader grid.

    ``prefetch`` is the number of batches made ahead (for torch: by each worker). ``workers`` are
    processes or threads; with 0 the training process loads. Without ``decode`` batches contain
    encoded bytes; without ``augment`` images are resized to ``image_size`` and cropped at their
    centre. ``item_s`` is the time of the mock loader for one item. Loaders of sequences draw the
    next sample from a buffer of ``shuffle_buffer``; with 0 they shuffle their own way. This process
    is number ``rank`` of ``world_size`` processes that train together: a loader that is ``by_rank``
    gives each of them its own part.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_size: BatchSize = 64
    workers: Workers = 0
    prefetch: Prefetch = 2
    decode: bool = True
    augment: bool = True
    colour_jitter: bool = False
    pca_noise: bool = False
    normalise: bool = True
    pin_memory: bool = False
    image_size: Annotated[int, Field(ge=16, le=1024)] = 224
    shuffle: bool = True
    shuffle_buffer: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    item_s: ItemSeconds = 0.0
    rank: Annotated[int, Field(ge=0)] = 0
    world_size: Annotated[int, Field(ge=1)] = 1


@runtime_checkable
class CountsBatches(Protocol):
    """Optional: a loader that does not simply cut all samples into batches, and counts them."""

    def whole_batches(self) -> int:
        """Number of batches of ``batch_size`` samples in epoch 0, for this rank."""


class FirstBatch(NamedTuple):
    """Parts of the time until the first batch, in seconds; None for a part that is not known.

    The parts do not overlap. They include only work on the first batch, not what other workers do
    meanwhile. The rest of the time is for collating, passing on the batch, and unknown parts.

    Attributes:
        listing_s: listing folders, or reading a manifest and its tables.
        worker_start_s: after that, starting workers or building a pipeline.
        fetch_s: waiting for the encoded samples of the batch.
        decode_s: decoding and augmenting them.
    """

    listing_s: float | None = None
    worker_start_s: float | None = None
    fetch_s: float | None = None
    decode_s: float | None = None


@runtime_checkable
class SplitsFirstBatch(Protocol):
    """Optional: a loader that knows the parts of the time until its first batch."""

    def first_batch(self) -> FirstBatch | None:
        """The parts for the first epoch, on the loader's clock; None if they are not known.

        Called after a batch was taken, before ``close``.
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

    Only then can a rate be measured in a steady state: what was fetched before the first batch is
    known, and so is what was fetched while time counted.
    """

    def read_so_far(self) -> ReadTotals:
        """Samples and bytes that have arrived since the loader was made, in all its processes."""

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """How it reads data whose samples have ``sample_bytes`` on average."""


class WorkerBatch(NamedTuple):
    """A batch that a worker process made, on the loader's clock.

    Attributes:
        worker: the number of the worker, from 0.
        begin_s, end_s: from the request for its first sample until it was put together.
    """

    worker: int
    begin_s: float
    end_s: float


@runtime_checkable
class TimesBatches(Protocol):
    """Optional: a loader that knows when its workers made their batches."""

    def worker_batches(self) -> Sequence[WorkerBatch]:
        """The batches of all workers since the loader was made, in the order of their ends."""


@runtime_checkable
class BuffersSamples(Protocol):
    """Optional: a loader that knows the size of its shuffle buffers."""

    def buffer_bytes(self) -> int:
        """The most bytes of encoded images in the buffers of all workers so far."""


@runtime_checkable
class HoldsSamples(Protocol):
    """Optional: a loader that can take samples from memory."""

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Prepare the first ``samples`` of epoch 0, and give those in place of stored ones.

        ``rung`` is their form in memory: encoded (``decode``), decoded (``augment``) or finished
        (``collate``). They take at most ``limit_bytes``. Called before any epoch.

        Raises:
            TrialFailed: no sample fits.
        """


class Loader(Protocol):
    """A source of batches from one place.

    Entry points of group ``iobench.loaders`` name classes. Creating a loader reads no sample; the
    first ``epoch`` opens the data.

    Attributes:
        framework: the framework of the batches' arrays; ``none`` for bytes or empty batches.
        reads: the record format that it reads, ``files`` for class folders, None for nothing. An
            empty text is any format: the one in which data are opened if none is named.
        notes: facts that readers of its figures must know ("copies shards ahead to ...").
        by_rank: optional; whether ``epoch`` gives only the samples of ``settings.rank``, so that
            all ranks together have each sample once.
    """

    framework: Framework
    reads: str | None
    notes: Sequence[str]

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        """Raises Unavailable if the framework or a capability is missing."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """All samples once, in an order that depends on seed and ``number``."""

    def close(self) -> None:
        """End all workers and wait for them; release files, maps and copies."""


class PlacedLoader:
    """Base of loaders that read a place by a framework: its place, settings and notes.

    A subclass sets ``name`` and ``framework``, ``holds`` and ``reads`` if it reads files, ``reads``
    if it needs shards of one format, ``parts`` when it knows the parts of the time to its first
    batch, and ``counter`` when it opens data whose reads are counted.
    """

    name: ClassVar[str]
    holds: ClassVar[Literal["shards", "files"]] = "shards"
    framework: Framework = "torch"
    reads: str | None = ANY_FORMAT

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        if place is None or place.holds != self.holds:
            found = f"{place.uri} holds {place.holds}" if place else "it has no data"
            raise ConfigError(f"loader {self.name!r} reads {self.holds}, but {found}")
        self.place, self.settings, self.clock = place, settings, clock
        self.notes: list[str] = []
        self.parts: FirstBatch | None = None
        self.module: Any = need_framework(self.framework)
        self.counter: ReadCounter | None = None

    def first_batch(self) -> FirstBatch | None:
        """The parts of the time until the first batch; None if they are not known yet."""
        return self.parts

    def read_so_far(self) -> ReadTotals:
        """Samples and bytes that have arrived since the data were opened."""
        return self.counter.totals() if self.counter is not None else ReadTotals()


def augmentation_of(
    settings: LoaderSettings, layout: Literal["CHW", "HWC"] = "CHW", *, decoded: bool = False
) -> Augmentation:
    """The augmentation of these settings; ``decoded``: images are stored as pixels.

    Colours change only with ``augment``.
    """
    from dataprep.adapters.augment import Augmentation
    from iobench.pixels import OfPixels

    return (OfPixels if decoded else Augmentation)(
        size=settings.image_size,
        random=settings.augment,
        jitter=0.4 if settings.colour_jitter else 0.0,  # usual values, as of the noise
        noise=0.1 if settings.pca_noise else 0.0,
        normalise=settings.normalise,
        layout=layout,
    )


def need_framework(name: str) -> ModuleType:
    """Import a framework; done before any clock runs, so that no first batch includes it.

    Raises:
        Unavailable: it is not installed; the message says what installs it.
    """
    try:
        return import_framework(name)
    except ImportError as error:
        raise Unavailable(str(error)) from None


def need_cuda(why: str) -> None:
    """Check that torch finds a GPU; ``why`` says what needs it.

    Raises:
        Unavailable: torch finds no GPU.
    """
    if not import_framework("torch").cuda.is_available():
        raise Unavailable(f"torch finds no GPU here: {why}")
