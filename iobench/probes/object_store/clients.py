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
    """The times of a request that succeeded. They include retries and the waits between them.

    Attributes:
        total_s: the seconds from the call until the request was complete.
        bytes: the number of bytes in the body.
        first_byte_s: the seconds from the call until the first byte of the body arrived. It is None
            for writes, and for clients that deliver whole bodies. Their ``notes`` mention this.
    """

    total_s: float
    bytes: int
    first_byte_s: float | None = None


class RequestFailed(IobenchError, OSError):
    """A request has failed, after all retries.

    ``status`` is the HTTP status (``"503"``). If no complete answer arrived, it is ``connection``,
    ``timeout`` or ``truncated``. Some clients report a truncated body as ``connection``. The
    message has one line.
    """

    def __init__(self, status: str, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status


class ObjectClient(Protocol):
    """A client of the objects below one location, which many threads use in parallel.

    An entry point of the group ``iobench.clients`` names the class of a client.

    - Keys are relative to the location.
    - The bytes of a body that arrives are counted and dropped.
    - If a request fails or a body is incomplete, the method raises ``RequestFailed``.
    - After a temporary failure, a request is sent again, up to ``location.store.max_attempts``
      times in total. A request whose status is ``truncated`` is not sent again.

    Attributes:
        notes: remarks that readers of the figures need.
        refused: optional. The number of answers 503 and 429 so far, retried or not; None if the
            client does not report them.
    """

    notes: Sequence[str]

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        """Prepare for requests from up to ``connections`` threads.

        Raises:
            Unavailable: the library is missing.
        """

    @property
    def retries(self) -> int | None:
        """The number of requests sent again so far; None if the client does not report them."""

    def get(self, key: str) -> Timing:
        """Read a whole object."""

    def get_range(self, key: str, offset: int, length: int) -> Timing:
        """Read ``length`` bytes from ``offset`` with one range request."""

    def put(self, key: str, data: bytes) -> Timing:
        """Store an object with one PUT."""

    def multipart(self, key: str, data: bytes, part_bytes: int) -> Timing:
        """Store an object in parts of ``part_bytes``, one after the other.

        If a part fails, abort the upload.
        """

    def close(self) -> None:
        """Close all connections."""


@runtime_checkable
class CopyClient(Protocol):
    """A client that copies many whole objects in one call, such as a program.

    It is registered like an ``ObjectClient``, and supports only ``get``.

    Attributes:
        notes: remarks that readers of the figures need.
    """

    notes: Sequence[str]

    def __init__(self, location: Location, connections: int, clock: Clock) -> None:
        """Prepare copies with up to ``connections`` connections.

        Raises:
            Unavailable: the program or the library is not installed.
        """

    def copy(self, prefix: str, folder: Path) -> None:
        """Copy every object whose key begins with ``prefix`` into ``folder``.

        Args:
            prefix: the beginning of the keys, relative to the location. It ends with a slash.
            folder: an empty folder.

        Raises:
            TrialFailed: the copy has failed. The message is the message of the program.
        """


CLIENTS: Registry[ObjectClient | CopyClient] = Registry("iobench.clients", "object-store client")
