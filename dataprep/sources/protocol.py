"""Where samples come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dataprep.names import to_bytes


class Problem(NamedTuple):
    """Why a listed entry does not become a sample."""

    status: Literal["failed", "skipped"]
    reason: str


@dataclass(frozen=True)
class Listing:
    """Everything a source holds, as columns in the byte order of the names.

    Attributes:
        names: relative to the source, as ``os.fsdecode`` makes them.
        sizes: int64 bytes of each file.
        classes: the class folder of each entry; empty where it has none.
        problems: row to why it is no sample; rows without one are samples.
    """

    names: Sequence[str]
    sizes: NDArray[np.int64]
    classes: Sequence[str]
    problems: dict[int, Problem] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def digest(self) -> str:
        """SHA-256 over names, sizes and classes: what a resumed job compares."""
        digest = hashlib.sha256()
        for name, size, group in zip(self.names, self.sizes.tolist(), self.classes, strict=True):
            digest.update(b"%s\0%d\0%s\0" % (to_bytes(name), size, to_bytes(group)))
        return digest.hexdigest()


class Source(Protocol):
    """A collection of labelled images; picklable, so that workers can read it.

    ``concurrency`` is how many reads a worker keeps in flight to hide the source's latency.
    """

    concurrency: int

    @property
    def uri(self) -> str:
        """Where it lies, without credentials."""
        ...

    def list(self) -> Listing:
        """All entries, sorted, so that they are the same everywhere.

        Raises:
            SourceNotFound: nothing there, or nothing in it.
            SourceError: it cannot be listed.
        """
        ...

    def read(self, name: str) -> bytes:
        """One file's bytes.

        Raises:
            UnreadableImage: this one file may not be read.
            SourceChanged: it is gone since it was listed.
            StoreError: it could not be read this time.
        """
        ...
