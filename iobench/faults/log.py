"""What went through the proxy, request by request."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from iobench.faults.kinds import Fault


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the client saw it answered.

    ``path`` is path?query as received; ``status`` is ``None`` where no response began. Bytes
    are those of the bodies, without chunk framing: read from the client, and sent to it.
    """

    method: str
    path: str
    status: int | None
    request_bytes: int
    response_bytes: int
    faults: tuple[Fault, ...]


class Entry:
    """A request under way; one thread writes it.

    Counts are raised before the bytes are sent, so a client that has an answer finds it here.
    """

    def __init__(self, method: str, path: str, faults: tuple[Fault, ...]) -> None:
        self.method = method
        self.path = path
        self.faults = faults
        self.status: int | None = None
        self.request_bytes = 0
        self.response_bytes = 0

    def frozen(self) -> Request:
        """The request as it stands now."""
        return Request(
            self.method,
            self.path,
            self.status,
            self.request_bytes,
            self.response_bytes,
            self.faults,
        )


class Log:
    """Requests in the order of their arrival, those under way included."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []

    def begin(self, method: str, path: str, faults: tuple[Fault, ...]) -> Entry:
        """Log a request that has just arrived."""
        entry = Entry(method, path, faults)
        with self._lock:
            self._entries.append(entry)
        return entry

    def snapshot(self) -> tuple[Request, ...]:
        """All requests as they stand now."""
        with self._lock:
            return tuple(entry.frozen() for entry in self._entries)

    def clear(self) -> None:
        """Forget all requests."""
        with self._lock:
            self._entries.clear()
