"""TCP connections of the proxy, each closed by its thread, or woken all together."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s


class Peer:
    """One connection: ``reader`` and ``send`` to talk, ``close`` or ``reset`` to end it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self.reader = connection.makefile("rb")

    def send(self, data: bytes) -> None:
        """Send all of ``data``."""
        self._socket.sendall(data)

    def is_quiet(self) -> bool:
        """Whether nothing arrived unasked: an idle connection with news is one being closed."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def wake(self) -> None:
        """End whatever another thread waits for on this connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Close with a TCP RST, so that the other side sees a reset and not an end."""
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        """Close; what was sent still arrives."""
        self.reader.close()
        self._socket.close()


class Peers:
    """All open connections, so that stopping can wake the threads that wait on them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[Peer] = set()
        self._stopping = False

    def add(self, connection: socket.socket) -> Peer:
        """Take a connection over; once stopping, it is of no use any more."""
        peer = Peer(connection)
        with self._lock:
            self._open.add(peer)
            stopping = self._stopping
        if stopping:
            peer.wake()
        return peer

    def close(self, peer: Peer, *, reset: bool = False) -> None:
        """Close a connection and forget it."""
        with self._lock:
            self._open.discard(peer)
        if reset:
            peer.reset()
        else:
            peer.close()

    def stop(self) -> None:
        """Wake every thread that waits on a connection, now or later."""
        with self._lock:
            self._stopping = True
            waiting = tuple(self._open)
        for peer in waiting:
            peer.wake()
