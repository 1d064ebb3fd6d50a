"""One hostile file, and what may become of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

WRITTEN = frozenset({"written"})
REFUSED = frozenset({"corrupt", "unsupported", "too_large", "not_an_image", "too_small"})
CORRUPT = frozenset({"corrupt"})
UNSUPPORTED = frozenset({"unsupported"})
TOO_LARGE = frozenset({"too_large"})
NO_IMAGE = frozenset({"corrupt", "not_an_image"})
ANY = WRITTEN | REFUSED

Files = Mapping[str, bytes]
"""Sound images by what they are."""


@dataclass(frozen=True)
class Case:
    """A file of one mutator's making.

    ``what`` tells it apart from the mutator's others; ``allowed`` are the results that are right:
    ``written``, or the kind of an ``ImageError``. ``suffix`` is that of its name.
    """

    mutator: str
    what: str
    data: bytes
    allowed: frozenset[str] = ANY
    suffix: str = ".JPEG"


Cases = Iterator[Case]
