"""The proxy itself: listens on loopback, and serves each client on a thread of its own."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from iobench.faults.connection import Connection, Shared
from iobench.faults.log import Log, Request
from iobench.faults.pacing import Pacers
from iobench.faults.peer import Peers
from iobench.faults.rules import Rule, Schedule
from iobench.faults.upstream import Behind, Upstream, parse_upstream

_POLL_S = 0.05


class FaultProxy:
    """An HTTP proxy in front of ``upstream`` that disturbs the requests which ``rules`` match.

    Without rules it passes every message as it is: method, path, ``Host`` and all end-to-end
    headers, so that signatures stay valid, and bodies as they arrive. An upstream that does not
    answer within ``upstream_timeout_s`` becomes a 502. In place of an upstream's URL stands what
    makes an answerer within this process, for each connection.

    ``clock`` and ``sleep`` measure and spend the time of ``Delay``, ``Stall`` and ``RateLimit``;
    by default a sleep ends when the proxy stops.
    """

    def __init__(
        self,
        upstream: str | Callable[[], Behind],
        rules: Sequence[Rule] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        upstream_timeout_s: float = 60.0,
    ) -> None:
        if isinstance(upstream, str):
            address = parse_upstream(upstream)
            self._behind: Callable[[], Behind] = lambda: Upstream(
                address, upstream_timeout_s, self._shared.peers
            )
        else:
            self._behind = upstream
        self._stopped = threading.Event()
        sleep = sleep or self._sleep_until_stopped
        self._shared = Shared(Schedule(rules), Log(), Peers(), Pacers(clock, sleep), sleep)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients reach the proxy: ``http://127.0.0.1:port``."""
        if self._server is None:
            raise RuntimeError("the proxy has no address yet; enter it with `with` first")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far in the order of their arrival, those under way included."""
        return self._shared.log.snapshot()

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Use other rules from the next request on; their counts begin at 0."""
        self._shared.schedule.replace(rules)

    def clear(self) -> None:
        """Drop all rules, and forget all requests and answers."""
        self.replace_rules(())
        self._shared.earlier.clear()
        self._shared.log.clear()

    def __enter__(self) -> Self:
        if self._server is not None:
            raise RuntimeError("a proxy can be entered only once; make a new one")
        self._server = _Server(self._serve)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="fault-proxy"
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is None or self._thread is None:
            return
        self._shared.peers.stop()  # before sleeps end: what they hold up must not pass now
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()  # joins the threads of all connections

    def _serve(self, client: socket.socket) -> None:
        Connection(self._shared.peers.add(client), self._behind(), self._shared).serve()

    def _sleep_until_stopped(self, duration_s: float) -> None:
        self._stopped.wait(duration_s)


class _Server(socketserver.ThreadingTCPServer):
    """Hands each accepted connection to ``serve`` on a thread, which then owns it."""

    request_queue_size = 128
    daemon_threads = False
    block_on_close = True

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self._serve = serve

    def finish_request(self, request: Any, client_address: object) -> None:
        """Serve one connection, in its thread."""
        threading.current_thread().name = "fault-proxy-connection"
        self._serve(request)

    def shutdown_request(self, request: Any) -> None:
        """Close only: shutting down first would turn a reset into an orderly end."""
        request.close()
