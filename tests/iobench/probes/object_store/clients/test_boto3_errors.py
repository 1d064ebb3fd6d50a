"""botocore's errors as statuses."""

from __future__ import annotations

import pytest
from botocore import exceptions as boto

from iobench.probes.object_store.clients.boto3_errors import translated
from iobench.probes.object_store.clients.protocol import RequestFailed

URL = "http://host"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (boto.ReadTimeoutError(endpoint_url=URL), "timeout"),
        (boto.ConnectTimeoutError(endpoint_url=URL), "timeout"),
        (boto.EndpointConnectionError(endpoint_url=URL), "connection"),
        (boto.ConnectionClosedError(endpoint_url=URL), "connection"),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), "truncated"),
        (boto.ResponseStreamingError(error="broken"), "truncated"),
        (boto.NoCredentialsError(), "connection"),
        (ConnectionResetError("reset"), "connection"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_every_kind_has_its_status(error: Exception, status: str) -> None:
    """Time-outs, broken bodies and missing connections are told apart."""
    with pytest.raises(RequestFailed) as caught, translated():
        raise error
    assert caught.value.status == status
    assert "\n" not in str(caught.value)


def test_an_answer_has_its_status_code_and_message() -> None:
    """An error answer is told by its HTTP status."""
    response = {
        "Error": {"Code": "SlowDown", "Message": "Reduce your rate."},
        "ResponseMetadata": {"HTTPStatusCode": 503},
    }
    with (
        pytest.raises(RequestFailed, match="503 SlowDown: Reduce your rate") as caught,
        translated(),
    ):
        raise boto.ClientError(response, "GetObject")  # type: ignore[arg-type]
    assert caught.value.status == "503"


def test_a_defect_is_not_translated() -> None:
    """Our own mistakes stay what they are."""
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError
