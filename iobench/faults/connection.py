"""One client's connection: read a request, disturb it, pass it on, pass the answer back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO

from iobench.faults.answers import s3_error
from iobench.faults.bodies import TruncatedError, disturb
from iobench.faults.kinds import (
    Delay,
    Direction,
    Lag,
    Point,
    RateLimit,
    Reset,
    SetHeader,
    Shorten,
    Status,
)
from iobench.faults.log import Entry, Log
from iobench.faults.pacing import Pacer, Pacers
from iobench.faults.peer import Peer, Peers
from iobench.faults.rules import Schedule
from iobench.faults.upstream import Behind, UpstreamError, framed
from iobench.faults.wire import Body, Head, WireError, read_head, request_framing


@dataclass(frozen=True, slots=True)
class Shared:
    """What all connections of a proxy have in common."""

    schedule: Schedule
    log: Log
    peers: Peers
    pacers: Pacers
    sleep: Callable[[float], None]
    earlier: dict[str, tuple[Head, bytes]] = field(default_factory=dict)
    """By path?query the answers that ``Lag`` gives again."""


class _ResetError(Exception):
    """A ``Reset`` applies at this point."""


class Connection:
    """Serves one client until either side, or a fault, ends the connection."""

    def __init__(self, client: Peer, upstream: Behind, shared: Shared) -> None:
        self._client = client
        self._upstream = upstream
        self._shared = shared
        self._own_pacers = shared.pacers.fresh()

    def serve(self) -> None:
        """Answer requests one after the other; returns with both connections closed."""
        reset = False
        try:
            while (head := read_head(self._client.reader)) and self._exchange(head):
                pass
        except _ResetError:
            reset = True
        except (OSError, WireError, TruncatedError):
            pass  # the connection ends inside a message: all that is left to do is to close it
        finally:
            self._upstream.close()
            self._shared.peers.close(self._client, reset=reset)

    def _exchange(self, head: Head) -> bool:
        """Answer one request; return whether the connection can take another."""
        method, path = head.method_and_path
        faults = self._shared.schedule.faults_for(method, path)
        entry = self._shared.log.begin(method, path, faults)
        self._reach("request", entry)
        answer, answer_body = self._answer(head, entry)
        self._reach("response", entry)
        last = (
            head.has_token("connection", "close")
            or not head.start.endswith("HTTP/1.1")
            or answer_body.framing == "close"
        )
        self._respond(answer, answer_body, entry, last=last)
        self._upstream.release(answer, answer_body)
        return not last

    def _reach(self, point: Point, entry: Entry) -> None:
        for fault in entry.faults:
            if isinstance(fault, Delay) and fault.at == point:
                self._shared.sleep(fault.s)
        if any(isinstance(fault, Reset) and fault.at == point for fault in entry.faults):
            raise _ResetError

    def _answer(self, head: Head, entry: Entry) -> tuple[Head, Body]:
        """Take the request's body in, and get an answer from the server or from a fault."""
        body = Body(self._client.reader, request_framing(head))
        if head.has_token("expect", "100-continue"):
            self._client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        blocks = self._disturbed(_count_upload(body, entry), entry, "upload")
        for fault in entry.faults:
            if isinstance(fault, Status):
                deque(blocks, maxlen=0)
                return s3_error(fault, entry.method)
        shortened = [fault.bytes for fault in entry.faults if isinstance(fault, Shorten)]
        if shortened and body.framing not in ("chunked", "close"):
            data = b"".join(blocks)[: min(shortened)]
            head = head.with_field("Content-Length", str(len(data)))
            blocks, body = iter((data,) if data else ()), Body(BytesIO(), len(data))
        try:
            if any(isinstance(fault, Lag) for fault in entry.faults):
                return self._earlier(head, blocks, body, entry)
            return self._upstream.forward(head, blocks, body)
        except UpstreamError as error:
            return s3_error(Status(502, "BadGateway", str(error)), entry.method)

    def _earlier(
        self, head: Head, blocks: Iterable[bytes], body: Body, entry: Entry
    ) -> tuple[Head, Body]:
        """What was answered to this path before; now it is asked, if that is the first time."""
        found = self._shared.earlier.get(entry.path)
        if found is None:
            answer, content = self._upstream.forward(head, blocks, body)
            data = b"".join(content)
            self._upstream.release(answer, content)
            answer = answer.with_field("Transfer-Encoding", None)
            found = answer.with_field("Content-Length", str(len(data))), data
            self._shared.earlier[entry.path] = found
        else:
            deque(blocks, maxlen=0)
        answer, data = found
        return answer, Body(BytesIO(data), len(data))

    def _respond(self, answer: Head, body: Body, entry: Entry, *, last: bool) -> None:
        head = answer.end_to_end().as_http_1_1()
        for fault in entry.faults:
            if isinstance(fault, SetHeader):
                head = head.with_field(fault.name, fault.value)
        if last:
            head = head.with_field("Connection", "close")
        entry.status = head.status
        self._client.send(head.encode())
        blocks = self._disturbed(body, entry, "download")
        for piece in framed(_count_download(blocks, entry), body):
            self._client.send(piece)

    def _disturbed(
        self, blocks: Iterable[bytes], entry: Entry, direction: Direction
    ) -> Iterable[bytes]:
        return disturb(blocks, entry.faults, direction, sleep=self._shared.sleep, pacer=self._pacer)

    def _pacer(self, limit: RateLimit, direction: Direction) -> Pacer:
        return (self._shared.pacers if limit.shared else self._own_pacers).get(limit, direction)


def _count_upload(blocks: Iterable[bytes], entry: Entry) -> Iterator[bytes]:
    for block in blocks:
        entry.request_bytes += len(block)
        yield block


def _count_download(blocks: Iterable[bytes], entry: Entry) -> Iterator[bytes]:
    for block in blocks:
        entry.response_bytes += len(block)
        yield block
