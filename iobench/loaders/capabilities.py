"""What plans and reports must know about a loader before it is created.

Each loader of this package has a class attribute ``capabilities``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dataprep.errors import ConfigError
from iobench.loaders import LOADERS
from iobench.loaders.protocol import ReadPattern
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import ANY_FORMAT

Pattern: TypeAlias = Callable[[LoaderSettings, float, int], ReadPattern]
"""A function that describes how a loader reads. Its arguments are the settings of the loader, the
mean bytes of a stored sample, and the mean number of samples in a shard (1 for files)."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The properties of a loader. The defaults hold for loaders of other packages.

    Attributes:
        reads_data: whether it reads data; False for loaders that only measure the harness.
        makes_pixels: whether it decodes images, so that the settings of images have an effect.
        record_format: the only record format that it reads; ``ANY_FORMAT`` if it reads all.
        reads_single_samples: whether it reads parts of files in any order, not whole files.
        reads_stored_pixels: whether it reads images that are stored as pixels.
        image_types: the types that its images can have; empty if they are unknown.
        holds_samples: whether it can take samples from memory. Training loops with such a loader
            have all rungs of the ladder.
        access_modes: modes of access beside ``file`` and ``mount``, which every loader has.
        read_pattern: how it reads ahead; None if it does not count the samples that arrive.
    """

    reads_data: bool = True
    makes_pixels: bool = True
    record_format: str = ANY_FORMAT
    reads_single_samples: bool = False
    reads_stored_pixels: bool = False
    image_types: frozenset[Literal["uint8", "float32"]] = frozenset()
    holds_samples: bool = False
    access_modes: frozenset[Literal["pipe", "lazy"]] = frozenset()
    read_pattern: Pattern | None = None

    @property
    def gives_uint8(self) -> bool:
        """Whether its images can be uint8, so that the device can normalise them."""
        return "uint8" in self.image_types

    @property
    def gives_only_float32(self) -> bool:
        """Whether its images are float32 in any case."""
        return self.image_types == {"float32"}


def capabilities_of(loader: str) -> Capabilities:
    """Return the capabilities of a loader, by its name in a config.

    The name of a loader of another package, or of one that is not installed, gives the defaults.
    The class is imported, but its framework is not.
    """
    if not _is_own(loader):
        return Capabilities()
    loader_class = LOADERS.load(loader)
    capabilities: Capabilities = getattr(loader_class, "capabilities", Capabilities())
    return capabilities


def loaders_with(has_capability: Callable[[Capabilities], bool]) -> Sequence[str]:
    """Return the names of this package's loaders with a capability, sorted."""
    own_loaders = [name for name in LOADERS.names() if _is_own(name)]
    return [name for name in own_loaders if has_capability(capabilities_of(name))]


def _is_own(loader: str) -> bool:
    """Return whether this package registers a loader of that name."""
    if not LOADERS.has(loader):
        return False
    try:
        return not LOADERS.origin(loader)
    except ConfigError:  # Two other packages have this name.
        return False
