"""One shard of a split, as something to walk through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dataprep.formats import Sample


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard; iterating it gives its samples, after one request for all of it.

    Attributes:
        number: in the order of the manifest, from 0.
        key: of the object, below the output.
        bytes: how large it is.
        sha256: of its bytes, as the manifest has it.
        samples: the numbers of its samples in the data set.
    """

    number: int
    key: str
    bytes: int
    sha256: str
    samples: range
    _walk: Callable[[Shard], Iterator[Sample]] = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return self._walk(self)
