"""obstore's texts as statuses."""

from __future__ import annotations

import pytest

from iobench.probes.object_store.clients.obstore_errors import failed_request

ANSWER = (
    "Generic S3 error: Error performing GET http://host/bucket/key in 577.1µs - Server returned "
    "non-2xx status code: 503 Service Unavailable: <?xml version='1.0'?>\n<Error><Code>SlowDown"
    "</Code><Message>Reduce your\nrate.</Message></Error>\n\nDebug source:\nGeneric { retries: 0 }"
)
NO_ANSWER = "Generic S3 error: HTTP error: error sending request\n\nDebug source:\nkind: {}"


def test_an_answer_has_its_status_code_and_message() -> None:
    """Status, code and message come out of the text, on one line."""
    error = failed_request(RuntimeError(ANSWER))
    assert (error.status, str(error)) == ("503", "503 SlowDown: Reduce your rate.")


@pytest.mark.parametrize(
    ("kind", "in_body", "status"),
    [
        ("Connect", False, "connection"),
        ("Interrupted", False, "connection"),
        ("Timeout", False, "timeout"),
        ("Timeout", True, "timeout"),
        ("Interrupted", True, "truncated"),
    ],
)
def test_without_an_answer_the_kind_is_told(kind: str, in_body: bool, status: str) -> None:
    """Time-outs, broken bodies and missing connections are told apart, without the debug tree."""
    error = failed_request(RuntimeError(NO_ANSWER.format(kind)), in_body=in_body)
    assert error.status == status
    assert "Debug source" not in str(error)


def test_an_unknown_text_keeps_its_first_line() -> None:
    """What is not understood is shown."""
    assert str(failed_request(RuntimeError("something new"))) == "something new"
