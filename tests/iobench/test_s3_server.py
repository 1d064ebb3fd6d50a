"""The S3 server of one's own: it finds itself a port, and says why it does not start."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from iobench import s3_server
from iobench.s3_server import MotoServer


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_that_was_taken_meanwhile(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries another."""
    free = s3_server._free_port()
    ports = [taken, free]
    monkeypatch.setattr(s3_server, "_free_port", lambda: ports.pop(0))
    with MotoServer() as server:
        assert (server.port, server.url) == (free, f"http://127.0.0.1:{free}")
        server.create_bucket("some-bucket")


def test_it_does_not_try_for_ever(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ports; the reason has the last, and what became of the server."""
    ports = [taken] * 3
    monkeypatch.setattr(s3_server, "_free_port", lambda: ports.pop(0))
    with pytest.raises(RuntimeError, match=f"ended on port {taken} with exit code"), MotoServer():
        pass
    assert not ports


def test_without_moto(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is what installs it."""
    monkeypatch.setattr(s3_server, "_SERVER", "raise SystemExit(1)")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"pip install 'dataprep-iobench\[demo\]'"), MotoServer():
        pass
