"""The contract of object-store clients: what each can do, and how a request fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dataprep.registry import Registry
from iobench.clock import Clock
from iobench.errors import IobenchError
from iobench.trial import Place


@dataclass(frozen=True, slots=True)
class Timing:
    """One request that succeeded, retries and the waits between them included.

    ``first_byte_s``: from the call until the first byte of the body was there; None for writes, and
    where a client hands over bodies when they are whole, which its ``notes`` say.
    """

    total_s: float
    bytes: int
    first_byte_s: float | None = None

    @property
    def body_s(self) -> float | None:
        """From the first byte to the last; None where that is not known."""
        return None if self.first_byte_s is None else self.total_s - self.first_byte_s


class RequestFailed(IobenchError, OSError):
    """One request failed, after all retries.

    ``status`` is the HTTP status (``"503"``) or, where there was no answer or no whole one,
    ``connection``, ``timeout`` or ``truncated``, which some take for the former. The message is one
    line.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


class ObjectClient(Protocol):
    """Objects below one place. Every method may be called from ``connections`` threads at once.

    The class is what an entry point of group ``iobench.clients`` names. Keys are relative to
    the place. Bodies that arrive are counted and dropped. Methods raise ``RequestFailed``, and
    whatever arrives incomplete is a failure. Failed answers are retried up to
    ``place.store.max_attempts``; a body that breaks off is not.

    Attributes:
        notes: what a reader of its figures must know.
        refused: optional; answers 503 and 429 so far, tried again or not, None where they cannot
            be seen.
    """

    notes: Sequence[str]

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        """Raises Unavailable where the library is missing."""

    @property
    def retries(self) -> int | None:
        """Requests that were sent again so far; None where that cannot be seen."""

    def get(self, key: str) -> Timing:
        """Read a whole object."""

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read ``length`` bytes from ``offset``, by one range request."""

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object in parts, one after the other; abort the upload where one fails."""

    def close(self) -> None:
        """Close all connections."""


@runtime_checkable
class CopyClient(Protocol):
    """A client that copies whole objects by itself, such as a program, several at a time.

    It is registered beside the others, and takes part in ``get`` alone. ``notes`` as there.
    """

    notes: Sequence[str]

    def __init__(self, place: Place, connections: int, clock: Clock) -> None:
        """Raises Unavailable where it is not installed."""

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy every object whose key begins with ``prefix``, a slash at its end, into a folder.

        Raises:
            TrialFailed: with the program's message.
        """


CLIENTS: Registry[ObjectClient | CopyClient] = Registry("iobench.clients", "object-store client")
