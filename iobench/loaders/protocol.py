"""What a loader does: storage to batches."""

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
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.trial import Place

if TYPE_CHECKING:
    from dataprep.adapters.augment import Augmentation

MemoryRung = Literal["collate", "augment", "decode"]
Framework = Literal["torch", "tensorflow", "mxnet", "none"]


BatchSize = Annotated[int, Field(ge=1, le=1_000_000)]
Workers = Annotated[int, Field(ge=0, le=1024)]
Prefetch = Annotated[int, Field(ge=1, le=1024)]
ItemSeconds = Annotated[float, Field(ge=0, le=3600)]


class Batch(NamedTuple):
    """``samples`` images and labels, in the framework's own arrays (bytes where not decoded).

    torch: images (N, 3, H, W), float32 normalised or uint8; labels int64 (N,).
    tensorflow: images (N, H, W, 3); labels int64 (N,).
    mxnet: images (N, 3, H, W) float32; labels float32 (N,).
    """

    images: Any
    labels: Any
    samples: int


class LoaderSettings(BaseModel):
    """One point of a loader grid.

    ``prefetch`` is batches ahead (for torch: a worker); ``workers`` processes or threads, 0 for
    none beside the training process. Without ``decode`` batches hold encoded bytes; without
    ``augment`` images are resized to ``image_size`` and cropped at their centre. ``item_s`` is
    how long the mock loader takes for an item. ``shuffle_buffer`` samples are held to draw the next
    from, by loaders of sequences; 0 for what the loader does by itself. Of ``world_size`` processes
    that train together this one is ``rank``: a loader that is ``by_rank`` gives each a part of its
    own.
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
    """A loader that does not simply cut all samples into batches; optional."""

    def whole_batches(self) -> int:
        """Batches of ``batch_size`` samples in epoch 0, of this rank."""


class FirstBatch(NamedTuple):
    """Where the time until the first batch went, in seconds; None for what cannot be told apart.

    Spans on the way to that one batch, of which no two overlap: what other workers do meanwhile is
    in none of them. What they leave of the whole is the rest: putting the batch together, handing
    it over, and whatever is None.

    Attributes:
        listing_s: until it was known what there is to read: folders listed, or a manifest and its
            tables read.
        worker_start_s: from then until whoever makes the first batch began to read: workers were
            started, or a pipeline built.
        fetch_s: its samples were waited for, from wherever they lie.
        decode_s: they were decoded and augmented.
    """

    listing_s: float | None = None
    worker_start_s: float | None = None
    fetch_s: float | None = None
    decode_s: float | None = None


@runtime_checkable
class SplitsFirstBatch(Protocol):
    """A loader that can tell what its first batch waited for; optional."""

    def first_batch(self) -> FirstBatch | None:
        """Of the first epoch that was begun; None as long as nothing is known of it.

        On the clock that the loader was given. Asked once a batch was taken, before ``close``.
        """


@runtime_checkable
class BuffersSamples(Protocol):
    """A loader that knows what its shuffle buffers held; optional."""

    def buffer_bytes(self) -> int:
        """The most that each worker's held so far, added up: encoded images."""


@runtime_checkable
class HoldsSamples(Protocol):
    """A loader that can be given samples that lie in memory; optional."""

    def hold(self, rung: MemoryRung, samples: int, limit_bytes: int) -> None:
        """Prepare the first ``samples`` of epoch 0, and give those instead of what is stored.

        ``rung`` says how they lie in memory: encoded (``decode``), decoded (``augment``) or
        finished (``collate``). They take ``limit_bytes`` at most; called before any epoch.

        Raises:
            TrialFailed: that holds not one of them.
        """


class Loader(Protocol):
    """Batches of one place.

    The class is what an entry point of group ``iobench.loaders`` names. Constructing one reads
    no sample; the first ``epoch`` opens what it needs.

    Attributes:
        framework: whose arrays the batches hold; ``none`` for bytes or nothing.
        reads: the record format it reads, ``files`` for class folders, None for nothing.
        notes: what a reader of its figures must know ("copies shards ahead to ...").
        by_rank: optional; whether ``epoch`` gives the samples of ``settings.rank`` alone, so that
            all ranks together have each sample once.
    """

    framework: Framework
    reads: str | None
    notes: Sequence[str]

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        """Raises Unavailable where the framework or a capability is missing."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """All samples once, in an order that depends on seed and ``number``."""

    def close(self) -> None:
        """End and reap every worker; unmap and remove what was opened."""


class PlacedLoader:
    """What loaders that read a place through a framework share: the place, the settings, notes.

    A subclass sets ``name``, ``framework`` and ``reads``, ``holds`` where it reads files, and
    ``parts`` when it knows the parts of its first batch.
    """

    name: ClassVar[str]
    holds: ClassVar[Literal["shards", "files"]] = "shards"
    framework: Framework = "torch"
    reads: str | None = "tfrecord"

    def __init__(self, place: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        if place is None or place.holds != self.holds:
            found = f"{place.uri} holds {place.holds}" if place else "it has no data"
            raise ConfigError(f"loader {self.name!r} reads {self.holds}, but {found}")
        self.place, self.settings, self.clock = place, settings, clock
        self.notes: list[str] = []
        self.parts: FirstBatch | None = None
        self.module: Any = need_framework(self.framework)

    def first_batch(self) -> FirstBatch | None:
        """The parts of the first batch; None as long as nothing is known of it."""
        return self.parts


def augmentation_of(
    settings: LoaderSettings, layout: Literal["CHW", "HWC"] = "CHW", *, decoded: bool = False
) -> Augmentation:
    """The augmentation that settings ask for; ``decoded``: images are stored as pixels.

    Colours change only where images are augmented at all.
    """
    from dataprep.adapters.augment import Augmentation
    from iobench.pixels import OfPixels

    return (OfPixels if decoded else Augmentation)(
        size=settings.image_size,
        random=settings.augment,
        jitter=0.4 if settings.colour_jitter else 0.0,  # both as the field uses them
        noise=0.1 if settings.pca_noise else 0.0,
        normalise=settings.normalise,
        layout=layout,
    )


def need_framework(name: str) -> ModuleType:
    """Import a framework before any clock runs, so that the first batch does not pay for it.

    Raises:
        Unavailable: it is not installed; the message says what installs it.
    """
    try:
        return import_framework(name)
    except ImportError as error:
        raise Unavailable(str(error)) from None


def need_cuda(why: str) -> None:
    """Refuse what needs a CUDA device of torch where there is none; ``why`` says what needs it.

    Raises:
        Unavailable: torch finds no GPU.
    """
    if not import_framework("torch").cuda.is_available():
        raise Unavailable(f"torch finds no GPU here: {why}")
