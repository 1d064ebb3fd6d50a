"""Which samples are being converted at this moment: told before native code gets their bytes."""

from __future__ import annotations

from typing import Protocol


class InHand(Protocol):
    """Told by each thread that converts; a thread has one sample in hand at most."""

    def take(self, name: str) -> None:
        """The calling thread begins to convert this sample."""
        ...

    def lay_down(self) -> None:
        """It is done with it."""
        ...


class Unnoted:
    """Nobody asks."""

    def take(self, name: str) -> None:
        """Nothing."""

    def lay_down(self) -> None:
        """Nothing."""


UNNOTED = Unnoted()
