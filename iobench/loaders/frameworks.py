"""The base of loaders that yield batches of a framework, and checks for frameworks and GPUs."""

from __future__ import annotations

from types import ModuleType
from typing import Any, ClassVar, Literal

from dataprep.errors import ConfigError
from dataprep.reading.frameworks import import_framework
from dataprep.reading.read_counter import ReadCounter, ReadTotals
from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.loaders.capabilities import Capabilities
from iobench.loaders.protocol import FirstBatch, Framework
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import ANY_FORMAT, Location


class FrameworkLoader:
    """Base of loaders that read shards or class folders for a framework.

    A subclass sets ``name``, ``framework`` and ``capabilities``. It also sets ``holds`` and
    ``reads`` if it reads files, and ``reads`` if it needs shards of one format. When it opens the
    data, it sets ``first_batch_parts``, the parts of the time to its first batch, and ``counter``,
    which counts its reads.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    holds: ClassVar[Literal["shards", "files"]] = "shards"
    framework: Framework = "torch"
    reads: str | None = ANY_FORMAT

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        if location is None:
            raise ConfigError(f"loader {self.name!r} reads {self.holds}, but it has no data")
        if location.holds != self.holds:
            raise ConfigError(
                f"loader {self.name!r} reads {self.holds}, "
                f"but {location.uri} holds {location.holds}"
            )
        self.location, self.settings, self.clock = location, settings, clock
        self.notes: list[str] = []
        self.first_batch_parts: FirstBatch | None = None
        self.module: Any = need_framework(self.framework)
        self.counter: ReadCounter | None = None

    def first_batch(self) -> FirstBatch | None:
        """Return the parts of the time until the first batch; None if they are not known yet."""
        return self.first_batch_parts

    def read_so_far(self) -> ReadTotals:
        """Return the samples and bytes that have arrived since the data were opened."""
        return self.counter.totals() if self.counter is not None else ReadTotals()


def need_framework(name: str) -> ModuleType:
    """Import a framework. This is done before any clock runs, so that no first batch includes it.

    Raises:
        Unavailable: it is not installed; the message says how to install it.
    """
    try:
        return import_framework(name)
    except ImportError as error:
        raise Unavailable(str(error)) from None


def need_cuda(reason: str) -> None:
    """Check that torch finds a GPU.

    Args:
        reason: says in the message why a GPU is needed.

    Raises:
        Unavailable: torch finds no GPU.
    """
    if not import_framework("torch").cuda.is_available():
        raise Unavailable(f"torch finds no GPU here: {reason}")
