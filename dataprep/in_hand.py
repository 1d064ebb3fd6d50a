"""Which samples are being read and converted: told before native code gets hold of them."""

from __future__ import annotations

from typing import Protocol


class InHand(Protocol):
    """Told by each thread that reads or converts; a thread has one sample in hand at most."""

    def reach(self, name: str) -> None:
        """The calling thread begins to read this sample's file, for as long as that may take."""
        ...

    def reached(self) -> None:
        """It has read it, or could not."""
        ...

    def take(self, name: str) -> None:
        """The calling thread begins to convert this sample."""
        ...

    def lay_down(self) -> None:
        """It is done with it."""
        ...


class Unnoted:
    """Nobody asks."""

    def reach(self, name: str) -> None:
        """Nothing."""

    def reached(self) -> None:
        """Nothing."""

    def take(self, name: str) -> None:
        """Nothing."""

    def lay_down(self) -> None:
        """Nothing."""


UNNOTED = Unnoted()
