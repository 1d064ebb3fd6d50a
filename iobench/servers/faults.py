"""PURE. The faults that the proxy injects, and the requests that they disturb."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

Direction: TypeAlias = Literal["upload", "download"]
"""The body of a request (``upload``) or of a response (``download``)."""

Point: TypeAlias = Literal["request", "response"]
"""Before the request is forwarded, or before the response begins."""

FaultType = TypeVar("FaultType")


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait ``s`` seconds before the request is forwarded or before the response begins."""

    s: float
    at: Point = "request"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Limit all bodies of one direction together to ``bytes_per_s``.

    The limit holds for uploads and for downloads separately.
    """

    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with an S3 error instead of forwarding: ``Status(503, "SlowDown")``."""

    code: int
    s3_code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Close the connection after ``after_bytes`` of a longer response body."""

    after_bytes: int


@dataclass(frozen=True, slots=True)
class FlipByte:
    """Flip the lowest bit of the byte at ``offset`` in a body.

    Negative offsets count from the end. A body without that byte passes unchanged.
    """

    offset: int
    direction: Direction = "download"


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection (TCP RST) before the request is forwarded, or after it is answered.

    With ``at="response"``, the server has executed the request, but the client does not know it.
    """

    at: Point = "request"


@dataclass(frozen=True, slots=True)
class Stall:
    """Pause for ``s`` seconds after ``after_bytes`` of a longer response body."""

    s: float
    after_bytes: int = 1


@dataclass(frozen=True, slots=True)
class SetHeader:
    """Set a header of the response, such as a wrong ``ETag``; ``None`` removes it."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Shorten:
    """Forward only the first ``bytes`` of the body of a request, as if it had no more."""

    bytes: int


Fault: TypeAlias = (
    Delay | RateLimit | Status | Truncate | FlipByte | Reset | Stall | SetHeader | Shorten
)


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that a rule disturbs; by default all requests.

    Attributes:
        method: the HTTP method of the requests; None for any.
        path: a regular expression that is found in the path?query of the requests; None for any.
        skip: the number of matching requests that pass undisturbed at first.
        times: the number of matching requests after the skipped ones to which the rule applies;
            None for all.
        every: 2 to disturb only every second of these requests, beginning with the first.
    """

    method: str | None = None
    path: str | None = None
    skip: int = 0
    times: int | None = None
    every: int = 1

    def fits(self, method: str, path: str) -> bool:
        """Return whether a request fits by method and path; the counts are not considered."""
        if self.method is not None and self.method != method:
            return False
        return self.path is None or re.search(self.path, path) is not None

    def hits(self, nth: int) -> bool:
        """Return whether the ``nth`` matching request, counted from 0, is disturbed."""
        after_skip = nth - self.skip
        if after_skip < 0:
            return False
        if self.times is not None and after_skip >= self.times:
            return False
        return after_skip % self.every == 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault, and the requests that it disturbs."""

    match: Match
    fault: Fault


@dataclass(slots=True)
class Request:
    """A request and its answer as the client sees them; the proxy updates it while bytes pass.

    Attributes:
        method: the HTTP method.
        path: path?query as received.
        faults: the faults that disturb the request.
        status: the status of the answer; None if no answer began.
        request_bytes: bytes of the body that were read from the client.
        response_bytes: bytes of the body that were sent to the client.
    """

    method: str
    path: str
    faults: tuple[Fault, ...] = ()
    status: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0

    def faults_of(self, fault_type: type[FaultType]) -> list[FaultType]:
        """Return the faults of one type."""
        return [fault for fault in self.faults if isinstance(fault, fault_type)]
