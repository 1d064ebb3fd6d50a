"""The Protocols of object-store clients: their methods, timings and failed requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dataprep.registry import Registry
from iobench.clock import Clock
from iobench.errors import IobenchError
from iobench.results.trial import Location


@dataclass(frozen=True, slots=True)
class Timing:
    """One request that succeeded, including its retries and the waits between them.

    Attributes:
        total_s: seconds from the call until the request was complete.
        bytes: bytes of the body.
        first_byte_s: seconds from the call until the first byte of the body arrived. It is None for
            writes, and for clients that deliver whole bodies and mention it in their ``notes``.
    """

    total_s: float
    bytes: int
    first_byte_s: float | None = None


class RequestFailed(IobenchError, OSError):
    """One request failed, after all retries.

    ``status`` is the HTTP status (``"503"``), or ``connection``, ``timeout`` or ``truncated`` if no
    complete answer arrived. Some clients report a truncated body as ``connection``. The message is
    one line.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


class ObjectClient(Protocol):
    """A client of the objects below one location, which many threads use in parallel.

    Entry points of the group ``iobench.clients`` name classes. Keys are relative to the location.
    Bodies that arrive are counted and dropped. Methods raise ``RequestFailed``, also for incomplete
    bodies. Failed answers are retried up to ``location.store.max_attempts``; incomplete bodies are
    not.

    Attributes:
        notes: remarks that a reader of its figures needs.
        refused: optional; number of answers 503 and 429 so far, whether retried or not; None if the
            client does not report them.
    """

    notes: Sequence[str]

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        """Prepare requests of up to ``connections`` threads.

        Raises:
            Unavailable: the library is missing.
        """

    @property
    def retries(self) -> int | None:
        """Requests that were sent again so far; None if the client does not report them."""

    def get(self, key: str) -> Timing:
        """Read a whole object."""

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read ``length`` bytes from ``offset``, by one range request."""

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object by one PUT."""

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object in parts, one after the other; abort the upload if one fails."""

    def close(self) -> None:
        """Close all connections."""


@runtime_checkable
class CopyClient(Protocol):
    """A client that copies many whole objects in one call, such as a program.

    It is registered like an ``ObjectClient``, and supports only ``get``.

    Attributes:
        notes: remarks that a reader of its figures needs.
    """

    notes: Sequence[str]

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        """Prepare copies with up to ``connections`` connections.

        Raises:
            Unavailable: the program or the library is not installed.
        """

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy every object whose key begins with ``prefix``, which ends with a slash.

        Raises:
            TrialFailed: the copy failed; the message is that of the program.
        """


CLIENTS: Registry[ObjectClient | CopyClient] = Registry("iobench.clients", "object-store client")
