"""What a sampler does: a few numbers of the machine, read again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Sampler(Protocol):
    """One kind of series. Entry points of the group ``iobench.samplers`` name such classes.

    Attributes:
        notes: what a reader of its series must know.
    """

    notes: Sequence[str]

    def __init__(self, process: int) -> None:
        """``process``: the id of the process whose loop is measured.

        Raises:
            Unavailable: this machine has nothing to read; the message says what would bring it.
        """
        ...

    def read(self, now_s: float) -> Mapping[str, float]:
        """Values by name, units in the names (``_bytes``, ``_per_s``, ``_share``, ``_cores``).

        ``now_s`` is the time on a monotonic clock. Rates are of the time since the call before, so
        that the first call gives none. What cannot be read just now, or is too dear to be read so
        soon again, is left out.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
