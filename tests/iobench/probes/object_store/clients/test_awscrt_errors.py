"""What awscrt raises, as failed requests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from iobench.probes.object_store.clients.awscrt_errors import failed_request

XML = b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        ({"status_code": 403, "body": XML}, "403", "403 AccessDenied: No."),
        ({"status_code": 404, "body": None}, "404", "404 no message"),
        ({"status_code": 301, "body": b"\xff<Code>Moved</Code>"}, "301", "301 Moved: no message"),
        ({"name": "AWS_ERROR_S3_SLOW_DOWN"}, "503", "AWS_ERROR_S3_SLOW_DOWN: words"),
        ({"name": "AWS_ERROR_S3_INTERNAL_ERROR"}, "500", "AWS_ERROR_S3_INTERNAL_ERROR: words"),
        ({"name": "AWS_IO_SOCKET_TIMEOUT"}, "timeout", "AWS_IO_SOCKET_TIMEOUT: words"),
        ({"name": "AWS_IO_SOCKET_CLOSED"}, "connection", "AWS_IO_SOCKET_CLOSED: words"),
    ],
)
def test_errors(error: dict[str, object], status: str, said: str) -> None:
    """The status of an answer, else what became of the connection."""
    found = failed_request(SimpleNamespace(**{"name": "X", "message": "words", **error}))
    assert (found.status, str(found)) == (status, said)
